"""A small modelled cluster in which some brokers report what is not so, decided by the real engine."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np

from controller.aggregate.snapshot import BrokerRow, Snapshot
from controller.aggregate.state.states import States
from controller.cycle import Policy
from controller.engine import decide_interval
from controller.model.controls import Controls
from controller.model.decision import Command, Decision
from controller.model.load import Floats
from controller.model.memory import Memory
from controller.model.records import CommandResult, NamespaceState
from controller.settings.broker_conf import read_broker_conf
from controller.settings.guardrails import GuardrailSettings
from controller.settings.policy import policy_of
from controller.settings.trimtab_toml import DecisionSettings

CONF: Final = Path(__file__).parents[1] / "conf"
PERIOD: Final = 60_000
#: Of a message.
BYTES: Final = 20_000
START: Final = 1_735_689_600_000
NAMESPACE: Final = "acme/orders"
#: Short name -> what broker.conf says, beside the recommended settings.
_IMPL: Final = "org.apache.pulsar.broker.loadbalance.impl."
STRATEGIES: Final[Mapping[str, Mapping[str, str]]] = {
    "UniformLoadShedder": {},
    "ThresholdShedder": {"loadBalancerLoadSheddingStrategy": _IMPL + "ThresholdShedder"},
    "OverloadShedder": {"loadBalancerLoadSheddingStrategy": _IMPL + "OverloadShedder"},
    "AvgShedder": {
        "loadBalancerLoadSheddingStrategy": _IMPL + "AvgShedder",
        "loadBalancerLoadPlacementStrategy": _IMPL + "AvgShedder",
    },
    "TransferShedder": {
        "loadManagerClassName": "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl",
        "loadBalancerLoadSheddingStrategy": "org.apache.pulsar.broker.loadbalance.extensions.scheduler.TransferShedder",
    },
    "PeakShedder": {"loadBalancerLoadSheddingStrategy": "PeakShedder"},
}


@dataclass(frozen=True)
class Report:
    """What a broker says in one interval; None in place of it: no complete sweep."""

    #: Of its CPU, a fraction.
    usage: float
    bundles: frozenset[str]
    #: Epoch ms.
    last_update: int


#: The number of the interval, the broker, what is so, the cluster -> what the broker says.
Lie = Callable[[int, Report, "Cluster"], Report | None]


def recommended(strategy: str, *, period_ms: int = PERIOD, guardrails: GuardrailSettings | None = None) -> Policy:
    """The recommended settings with another shedder."""
    conf = {**read_broker_conf(CONF / "broker.recommended.conf"), **STRATEGIES[strategy]}
    # The modelled brokers have no switches.
    rules = (guardrails or GuardrailSettings()).model_copy(update={"brokers_balance_unknown": "ignore"})
    return policy_of(conf, DecisionSettings(), rules, 2, "lab", period_ms)


@dataclass
class Cluster:
    """Its brokers, who owns which bundle, and what each broker got."""

    policy: Policy
    names: list[str]
    bundles: list[str]
    #: Bundle -> broker, "": nobody has it.
    owner: dict[str, str]
    #: (bundles,) CPU that each takes of a broker, a fraction.
    cpu: Floats
    lies: dict[str, Lie] = field(default_factory=dict)
    #: Interval from which brokers are there, and those in which they are away.
    joins: dict[str, int] = field(default_factory=dict)
    away: dict[str, frozenset[int]] = field(default_factory=dict)
    #: What the executor answers.
    answer: Callable[[Command, CommandResult], CommandResult] = lambda _, result: result
    memory: Memory | None = None
    controls: Controls = field(default_factory=lambda: Controls(mode="active"))
    number: int = -1
    pending: list[Command] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    #: Broker -> the bundles that it got by commands; and of these, those that it never listed.
    got: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    unlisted: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def run(self, intervals: int) -> "Cluster":
        for _ in range(intervals):
            self.step()
        return self

    def step(self) -> Decision:
        """Let one interval happen."""
        self.number += 1
        here = [name for name in self.names if self.is_here(name)]
        results = [self._carried_out(command) for command in self.pending]
        for number, bundle in enumerate(self.bundles):
            if self.owner[bundle] and self.owner[bundle] not in here:
                self.owner[bundle] = here[number % len(here)]
        snapshot = self._snapshot(here, results)
        memory = self.policy.initial_memory(0) if self.memory is None else self.memory
        entry = decide_interval([snapshot], memory, self.controls, self.policy)
        self.memory, self.pending = entry.memory, list(entry.decision.commands)
        self.decisions.append(entry.decision)
        return entry.decision

    def is_here(self, name: str) -> bool:
        return self.number >= self.joins.get(name, 0) and self.number not in self.away.get(name, ())

    def owned(self, name: str) -> set[str]:
        return {bundle for bundle, owner in self.owner.items() if owner == name}

    @property
    def now(self) -> int:
        """T, epoch ms."""
        return START + self.number * self.policy.period_ms

    def _carried_out(self, command: Command) -> CommandResult:
        before, to = self.owner.get(command.bundle, ""), command.destination
        if command.action != "unload" or before != command.source or not self.is_here(to):
            status = "obsolete" if command.action == "unload" else "failed"
            return CommandResult(id=command.id, status=status, owner_before=before, owner_after=before)
        self.owner[command.bundle] = to
        self.got[to].add(command.bundle)
        self.unlisted[to].add(command.bundle)
        done = CommandResult(id=command.id, status="done", owner_before=before, owner_after=to)
        return self.answer(command, done)

    def _reports(self, here: Sequence[str]) -> dict[str, Report]:
        usage, said = defaultdict[str, float](float), {}
        for bundle, cpu in zip(self.bundles, self.cpu.tolist(), strict=True):
            usage[self.owner[bundle]] += cpu
        for name in here:
            true = Report(min(usage[name], 1.0), frozenset(self.owned(name)), self.now)
            report = self.lies[name](self.number, true, self) if name in self.lies else true
            if report is not None:
                said[name] = report
                self.unlisted[name] -= report.bundles
        return said

    def _snapshot(self, here: Sequence[str], results: Sequence[CommandResult]) -> Snapshot:
        said = self._reports(here)
        claims = defaultdict[str, list[tuple[int, str]]](list)
        for name, report in said.items():
            for bundle in report.bundles:
                claims[bundle].append((report.last_update, name))
        listed = sorted(claims)
        cpu = dict(zip(self.bundles, self.cpu.tolist(), strict=True))
        rate = np.array([10_000 * cpu.get(bundle, 0.001) for bundle in listed])
        load = np.stack([rate, rate, rate * BYTES, rate * BYTES], axis=1).reshape(-1, 4)
        n = len(listed)
        rows = []
        for name, report in said.items():
            own = sum(10_000 * cpu.get(bundle, 0.001) for bundle in report.bundles)
            numbers = (report.usage * 400, 400.0, 1000.0, 8000.0, 0.0, 8000.0, own, 1e6, own, 1e6)
            totals = (
                own,
                own,
                own * BYTES,
                own * BYTES,
                float(4 * len(report.bundles)),
                float(len(report.bundles)),
                0.0,
            )
            rows.append(BrokerRow(broker=name, last_update=report.last_update, numbers=(*numbers, *totals)))
        edges = (*(int(bundle[-21:-11], 16) for bundle in self.bundles), 0xFFFFFFFF)
        place = {name: row for row, name in enumerate(here)}
        others = [(row, name) for row, bundle in enumerate(listed) for _, name in sorted(claims[bundle])[:-1]]
        return Snapshot(
            interval=self.now,
            shard=0,
            shards=1,
            roster=tuple(here),
            unswept=(),
            brokers=tuple(rows),
            namespaces=States[NamespaceState].of(
                [NamespaceState(namespace=NAMESPACE, version=1, boundaries=edges)] if self.bundles else []
            ),
            broker_states=States.of(()),
            results=tuple(results),
            late=0,
            unrostered=0,
            dropped=0,
            names=listed,
            owner=np.array([place[max(claims[bundle])[1]] for bundle in listed], np.int64),
            contested=np.array([row for row, _ in others], np.int64),
            claimant=np.array([place[name] for _, name in others], np.int64),
            load=load,
            short_samples=np.full(n, 10),
            short_term=load,
            long_samples=np.full(n, 1000),
            long_term=load,
            kinds=np.ones(n, np.uint8),
            topics=np.full(n, 4),
            producers=np.full(n, 4),
            consumers=np.full(n, 4),
            detail_size=np.zeros(n, np.int64),
            detail_position=np.zeros(0, np.int64),
            detail_load=np.zeros((0, 4)),
            detail_segment=np.zeros(0, np.int64),
        )


def cluster(
    policy: Policy,
    brokers: int = 10,
    bundles: int = 200,
    *,
    usage: float = 0.5,
    hot: float = 1.0,
    empty: Sequence[str] = (),
) -> Cluster:
    """*bundles* evenly on *brokers*, which are at *usage*, a third of them at *hot* times that.

    *empty*: names of further brokers, without bundles.
    """
    names = [f"broker-{number:03d}:8080" for number in range(brokers)]
    step = (1 << 32) // bundles
    edges = [*(step * number for number in range(bundles)), 0xFFFFFFFF]
    ranges = [f"{NAMESPACE}/0x{lower:08x}_0x{upper:08x}" for lower, upper in pairwise(edges)]
    owner = {name: names[number % brokers] for number, name in enumerate(ranges)}
    cpu = np.full(bundles, usage * brokers / bundles) * np.linspace(0.9, 1.1, bundles)
    cpu[np.arange(bundles) % brokers < brokers / 3] *= hot
    return Cluster(policy=policy, names=sorted([*names, *empty]), bundles=ranges, owner=owner, cpu=cpu)


# ---- lies ----


def idle(_number: int, true: Report, _cluster: Cluster) -> Report:
    return replace(true, usage=0.0, bundles=frozenset())


def nothing_but_usage(_number: int, true: Report, _cluster: Cluster) -> Report:
    return replace(true, bundles=frozenset())


def frozen_at(first: int = 0, *, moving: bool = False) -> Lie:
    """The report of interval *first* for ever; *moving*: with a new time."""
    kept: list[Report] = []

    def lie(number: int, true: Report, _cluster: Cluster) -> Report:
        if number < first or not kept:
            kept[:] = [true]
        return replace(kept[0], last_update=true.last_update) if moving else kept[0]

    return lie


def half(_number: int, true: Report, cluster: Cluster) -> Report:
    listed = frozenset(bundle for number, bundle in enumerate(cluster.bundles) if number // 10 % 2)
    return Report(true.usage / 2, true.bundles & listed, true.last_update)


def other_names(_number: int, true: Report, _cluster: Cluster) -> Report:
    return Report(
        0.05, frozenset(name.replace(NAMESPACE, "acme/other") for name in sorted(true.bundles)[:5]), true.last_update
    )


def alternating(number: int, true: Report, _cluster: Cluster) -> Report:
    return true if number % 2 else replace(true, usage=0.0, bundles=frozenset())


def claims_of(other: str) -> Lie:
    def lie(_number: int, true: Report, cluster: Cluster) -> Report:
        return Report(0.05, frozenset(cluster.owned(other)), true.last_update + 1)

    return lie


def late(intervals: int) -> Lie:
    """Lists bundles so many intervals after they came."""
    since: dict[str, int] = {}

    def lie(number: int, true: Report, _cluster: Cluster) -> Report:
        for bundle in true.bundles:
            since.setdefault(bundle, number if number else -intervals)
        listed = frozenset(bundle for bundle in true.bundles if number - since[bundle] >= intervals)
        return Report(true.usage * len(listed) / max(1, len(true.bundles)), listed, true.last_update)

    return lie


def not_a_number(_number: int, true: Report, _cluster: Cluster) -> Report:
    return Report(float("nan"), frozenset(), true.last_update)


def almost_idle(_number: int, true: Report, _cluster: Cluster) -> Report:
    return Report(1e-300, frozenset(), true.last_update)
