"""How collectors share brokers out, wait for silent ones, and which sweeps count stays what it is.

The numbers are tests.small_worlds.digits of what many small groups, logs and answers of brokers lead to.
"""

import json
from collections.abc import Callable, Collection
from functools import partial
from random import Random
from typing import Any, Final

from controller.adapters.pulsar.admin import PulsarError
from controller.collector.cluster_state import ClusterState
from controller.collector.health import Health
from controller.collector.patience import patience
from controller.collector.reports import (
    SweepName,
    extensible_report,
    listed_topics,
    modular_report,
    swept,
    usage_from_metrics,
)
from controller.collector.roster import Arrivals
from controller.collector.sharing import share_out
from controller.collector.states import (
    ClusterPolicies,
    Due,
    Namespace,
    bundle_data,
    domains_by_broker,
    namespace_state,
    records,
)
from controller.model.errors import TrimtabError
from controller.wire.chunks import Arrived, json_chunks
from controller.wire.metrics import Partitions, TickRecord
from controller.wire.sweep import SweepHeader
from tests.fake_pulsar import sample
from tests.records import broker_sweep, without
from tests.small_worlds import digits, logged
from tests.unit.wire.test_spoilt_fields import FEW, spoilt

T: Final = 1_735_689_600_000
PERIOD: Final = 60_000


def shared(seed: int) -> int:
    chance, told, held = Random(seed), list[Any](), dict[str, tuple[str, ...]]()
    for _ in range(12):
        members = [f"c{i}" for i in range(6) if chance.random() < 0.5] or ["c0"]
        brokers = [f"b{i}" for i in range(9) if chance.random() < 0.8]
        held = share_out(members, held, brokers)
        told.append(held)
    return digits(told)


def silent(seed: int) -> int:
    chance, told, health, interval = Random(seed), list[Any](), Health(PERIOD), T
    brokers = ["b0", "b1", "b2"]
    for _ in range(40):
        broker = chance.choice(brokers)
        told.append([health.may_ask(each, interval=interval) for each in brokers])
        if chance.random() < 0.75:
            told.append(health.failed(broker, interval=interval))
        else:
            told.append(health.answered(broker))
        if chance.random() < 0.05:
            health.keep(["b0", "b1"])
        told += [health.silent(brokers), [health.failures(each) for each in brokers]]
        told.append(
            patience(chance.choice((0, 1, 7, 100)), chance.choice((1, 4, 64)), chance.choice((-1.0, 0.1, 1.0, 30.0)))
        )
        interval += PERIOD * chance.choice((0, 1, 1, 2))
    return digits(told)


def arrived(seed: int) -> int:
    chance, told = Random(seed), list[Any]()
    arrivals, at = Arrivals("demo", chance.choice((PERIOD, 10_000))), 0
    period = arrivals.period_ms
    header = SweepHeader.model_validate(without(broker_sweep(), "bundleStats"), by_alias=True, strict=False)
    for _ in range(80):
        interval = T + period * (at + chance.choice((0, 0, 0, 1, -1)))
        half = period // 2
        apart = chance.choice((None, 0, period, period + 1, -10_000, -10_001, -half, -half - 1, 10_001))
        append = None if apart is None else interval + apart
        if chance.random() < 0.1:
            tick = TickRecord(cluster="demo", interval=interval, partitions=Partitions(metrics=1, results=0))
            arrivals.take([Arrived(tick, append)], ("b0", "b1"), with_ticks=chance.random() < 0.5)
        else:
            chunks = chance.choice((1, 2, 2, 3, 1000, 1001))
            said = header.model_copy(
                update={
                    "cluster": chance.choice(("demo", "demo", "demo", "other")),
                    "broker": chance.choice(("b0", "b1", "b2")),
                    "interval": interval + (chance.random() < 0.05),
                    "sweep_id": chance.choice((*map(str, range(12)), "x" * 1000, "x" * 1001)),
                    "chunks": chunks,
                    "chunk": chance.randrange(min(chunks, 3)),
                }
            )
            arrivals.take([Arrived(said, append)], ("b0", "b1"), with_ticks=False)
        if chance.random() < 0.1:
            at += 1
            chance.choice((arrivals.end, arrivals.forget))(T + period * (at - 1))
        told.append(
            [arrivals.missing(interval, ("b1", "b0")), arrivals.roster(interval, ("b1", "b0")), arrivals.ticked]
        )
    return digits(told, arrivals.passed_over, arrivals.example)


def outcome(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except TrimtabError as error:
        return type(error).__name__


def reported() -> int:
    report, topics = sample("load_report_1.json"), sample("topics_1.json")
    name = SweepName(cluster="lab", broker="b:1", interval=T, sweep_id="s")
    report["lastStats"] = dict([*report["lastStats"].items()][:2])

    def sweep(report: Any, topics: Any) -> Any:
        read = modular_report(report)
        columns, flaws = swept(name, read, listed_topics(topics))
        return [read.odd, flaws, [json.loads(value) for _, value in json_chunks(columns)]]

    told = [outcome(partial(sweep, each, topics)) for each in (report, *spoilt(report, 1, FEW[:3]))]
    small = dict([*topics.items()][:1])
    told += [outcome(partial(sweep, report, each)) for each in (topics, *spoilt(small, 1, FEW))]
    load = sample("broker_load_data.json")
    told += [outcome(partial(extensible_report, each, owned=["x"])) for each in (load, *spoilt(load, 2, FEW))]
    metrics = sample("load_metrics.json")
    told.append(outcome(partial(usage_from_metrics, metrics, now_ms=T)))
    return digits(told)


def due(seed: int) -> int:
    chance, told, states = Random(seed), list[Any](), Due(2 * PERIOD)
    stored, interval = json.dumps(sample("bundle_data.json")).encode(), T
    for _ in range(60):
        some: list[Any] = [
            namespace_state(
                "lab",
                Namespace(
                    f"lab/{chance.choice('ab')}", (0, chance.choice((5, 6)), 0xFFFFFFFF), chance.choice(("", "g"))
                ),
                ClusterPolicies({}),
                version=interval,
            ),
            bundle_data("lab", f"lab/{chance.choice('ab')}/0x00000000_0xffffffff", "bundle_data", stored),
        ]
        found = states.of(some, interval)
        if chance.random() < 0.7:
            states.written(found, interval)
        if chance.random() < 0.03:
            states.forget()
        told += [[key for key, _ in records(found)], sorted(states.bundles(interval))]
        interval += PERIOD * chance.choice((0, 1, 1, 2, 36, 71, 72))
    return digits(told, domains_by_broker({"left": {"brokers": ["a", "b"]}, "right": {"brokers": None}, "none": {}}))


class Admin:
    """A cluster of which some things cannot be read: names in ``broken``, each with a status."""

    def __init__(self) -> None:
        self.broken: dict[str, int] = {}
        self.group, self.regex = "", "lab/a"

    def reading_at_most(self, _: int) -> "Admin":
        return self

    def _answer(self, name: str, value: Any) -> Any:
        if name in self.broken:
            raise PulsarError(f"{name} is broken", status=self.broken[name])
        return value

    def tenants(self) -> tuple[str, ...]:
        return self._answer("tenants", ("lab", "more"))  # type: ignore[no-any-return]

    def namespaces(self, tenant: str) -> tuple[str, ...]:
        return self._answer(tenant, (f"{tenant}/a", f"{tenant}/b"))  # type: ignore[no-any-return]

    def boundaries(self, name: str) -> tuple[int, ...]:
        return self._answer(name, (0, 5) if self.broken.get("ends") and name == "lab/b" else (0, 0xFFFFFFFF))  # type: ignore[no-any-return]

    def anti_affinity_group(self, name: str) -> str:
        return self._answer(f"group of {name}", self.group)  # type: ignore[no-any-return]

    def isolation_policies(self) -> dict[str, Any]:
        usable = {"namespaces": [self.regex], "primary": ["b-0"], "secondary": [], "auto_failover_policy": FAILOVER}
        odd = {f"odd-{i}": {"namespaces": "none"} for i in range(self.broken.get("odd", 0) // 57)}
        return self._answer("policies", {"one": usable, **odd})  # type: ignore[no-any-return]

    def leader(self) -> str:
        return self._answer("leader", f"b-{len(self.regex) % 2}:8080")  # type: ignore[no-any-return]

    def failure_domains(self) -> dict[str, Any]:
        return {"left": {"brokers": ["b-0:8080"]}}


class Averages:
    """Stored averages, of which some cannot be read."""

    def __init__(self, admin: Admin) -> None:
        self.admin, self.asked = admin, list[str]()

    def of_namespace(self, namespace: str, skip: Collection[str]) -> dict[str, tuple[str, bytes]]:
        self.asked.append(namespace)
        self.admin._answer(f"averages of {namespace}", None)
        stored = json.dumps(sample("bundle_data.json")).encode()
        name = f"{namespace}/0x00000000_0xffffffff"
        return {} if name in skip else {name: ("bundle_data", b"{}" if "spoilt" in self.admin.broken else stored)}

    def close(self) -> None:
        """There is nothing to end."""


FAILOVER: Final = {"parameters": {"min_limit": "1", "usage_threshold": "80"}, "policy_type": "min_available"}
PARTS: Final = (
    *("tenants", "lab", "more", "lab/a", "lab/b", "more/a", "group of lab/a", "group of more/b", "policies", "leader"),
    *("odd", "ends", "spoilt", "averages of lab/a", "averages of lab/b", "averages of more/a", "averages of more/b"),
)


def read(seed: int) -> int:
    """What is published of a cluster, reading by reading."""
    chance, admin, told = Random(seed), Admin(), list[Any]()
    averages = Averages(admin)
    state = ClusterState(admin, "lab", averages, most_at_once=4, seconds=20.0)  # type: ignore[arg-type]
    with logged("controller.collector") as lines:
        for turn in range(14):
            admin.broken = {name: chance.choice((404, 500)) for name in PARTS if chance.random() < 0.15}
            if chance.random() < 0.2:
                admin.broken |= {name: 500 for name in PARTS if name.startswith("averages")}
            admin.group, admin.regex = chance.choice(("", "g")), chance.choice(("lab/a", "more/.*", "lab/["))
            averages.asked.clear()
            known = ("lab/a/0x00000000_0xffffffff",) if chance.random() < 0.3 else ()
            try:
                found: Any = state.read(T + turn * PERIOD, whole=chance.random() < 0.5, known=known)
            except PulsarError:
                found = None
            told += [found, list(averages.asked), list(lines)]
            lines.clear()
    return digits(told, state.domains())


SHARED: Final = 6_548_861
SILENT: Final = 1_526_345
ARRIVED: Final = 59_094_754
DUE: Final = 50_336_258
REPORTED: Final = 55_078_308
READ: Final = 19_687_214


def test_shares_stay_the_same() -> None:
    assert digits([shared(seed) for seed in range(14)]) == SHARED


def test_silent_brokers_are_asked_in_the_same_intervals() -> None:
    assert digits([silent(seed) for seed in range(20)]) == SILENT


def test_the_same_sweeps_count() -> None:
    assert digits([arrived(seed) for seed in range(30)]) == ARRIVED


def test_states_are_due_in_the_same_intervals() -> None:
    assert digits([due(seed) for seed in range(16)]) == DUE


def test_the_same_is_swept_of_what_brokers_answer() -> None:
    assert reported() == REPORTED


def test_the_same_is_published_of_a_cluster_whatever_cannot_be_read() -> None:
    assert digits([read(seed) for seed in range(6)]) == READ
