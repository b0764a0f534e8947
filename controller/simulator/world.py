"""The cluster of a scenario, interval by interval: its events, its reports, and the effects of commands.

It makes the snapshots that the query's shards make of the same reports, without records between: the fold and the world
use the same code for averages.  tests/unit/simulator/test_world.py compares the two.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from controller.aggregate.shard.shard_state import DetailLimits
from controller.aggregate.snapshot import BrokerRow, Snapshot
from controller.aggregate.state.states import States
from controller.model.decision import Command
from controller.model.load import RATE_IN, RATE_OUT, RESOURCES, UNOWNED, Bools, Floats, Ints
from controller.model.names import parse_bundle
from controller.model.records import BrokerState, CommandResult, NamespaceState
from controller.settings.scenario import Scenario
from controller.settings.scenario_parts import ModelledNamespace, TurnNumber
from controller.simulator.carrying_out import SimulatedMove, UnderWay, downtimes, fate_of
from controller.simulator.demand import Demand
from controller.simulator.hardware import Hardware
from controller.simulator.modelled_bundles import ModelledBundles
from controller.strategies.common.auto_scale import AutoScale
from controller.strategies.protocols import TopicBundleAssignment

#: T of the first interval, epoch ms: midnight, as scenarios begin at an hour of their own.
FIRST_INTERVAL_MS: Final = 1_735_689_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRules:
    """What the brokers' own settings say about lookups."""

    assignment: TopicBundleAssignment
    #: loadBalancerDistributeBundlesEvenlyEnabled.
    evenly: bool
    #: loadBalancerBrokerOverloadedThresholdPercentage, as a fraction.
    overloaded: float
    #: When they split and merge segments of scalable topics.
    scale: AutoScale = field(default_factory=AutoScale)


class World:
    """See the module docstring."""

    def __init__(
        self, scenario: Scenario, seed: int, rules: BrokerRules, detail: DetailLimits, *, true_limits: bool = False
    ) -> None:
        """*true_limits*: a capacity file says the true limits of the brokers."""
        self._scenario, self._rules, self._detail = scenario, rules, detail
        # What clients ask for does not depend on what is done: so runs of one seed can be compared.
        for_demand, for_hardware, self._chance = (
            np.random.Generator(np.random.PCG64(each)) for each in np.random.SeedSequence(seed).spawn(3)
        )
        self._demand = Demand(scenario, for_demand)
        counts = [group.count for group in scenario.brokers]
        at_start = np.repeat([group.load if group.joins_at == 0 else 0.0 for group in scenario.brokers], counts)
        self._joins_at: Ints = np.repeat([group.joins_at for group in scenario.brokers], counts)
        digits = max(2, len(str(scenario.broker_count)))
        #: By row.
        self.brokers = [f"broker-{number:0{digits}d}:8080" for number in range(1, scenario.broker_count + 1)]
        self._allowed = self._allowed_brokers()
        weights = np.where(self._allowed, at_start, 0.0)
        self.bundles = ModelledBundles(scenario.namespaces, self._demand, weights, rules.assignment, rules.scale)
        self._hardware = Hardware(scenario, self._demand.mean_load().sum(axis=0), for_hardware)
        self._states = self._broker_states() if true_limits else States[BrokerState].of(())
        self._namespaces = self._namespace_states()
        self._down = downtimes(scenario)
        self._under_way: list[UnderWay] = []
        #: Bundle -> when its unload stops hanging, and the broker that it left.
        self._hanging: dict[str, tuple[TurnNumber, int]] = {}
        self._reported_cpu: Floats = np.zeros(len(self.brokers))
        #: All moves so far, in order; the bundles that were split, and the commands that went wrong, with when.
        self.moves: list[SimulatedMove] = []
        self.splits: list[tuple[TurnNumber, str]] = []
        self.failures: list[tuple[TurnNumber, str]] = []
        self.active: Bools = np.zeros(len(self.brokers), np.bool_)

    def interval_ms(self, turn: TurnNumber) -> int:
        """T of interval number *turn*, epoch ms."""
        return FIRST_INTERVAL_MS + turn * self._scenario.period_seconds * 1000

    def live(self, turn: TurnNumber) -> tuple[Snapshot, Floats]:
        """Let *turn* happen; intervals come in order, from 0.

        Returns what the controller sees, and (brokers,) the true usage as fractions: the largest of CPU and bandwidth,
        NaN of brokers that are not there.
        """
        self.active = (self._joins_at <= turn) & ~self._down[turn]
        self.bundles.carry(self._demand.load(turn))
        self.bundles.scale(self.interval_ms(turn))
        cold = np.zeros(len(self.brokers))
        results = self._carry_out(turn, cold)
        self._look_up(turn)
        load, topics, count = self.bundles.sums(len(self.brokers))
        usage = self._hardware.usage_of(load)
        usage[:, 0] += cold
        reported = self._hardware.reported(usage, turn)
        with np.errstate(invalid="ignore", divide="ignore"):
            self._reported_cpu = reported.usage[:, 0] / reported.limit[:, 0]
        numbers = np.column_stack(
            [*_interleaved(reported.usage, reported.limit), load, topics, count, np.zeros(len(count))]
        )
        snapshot = self._snapshot(turn, numbers, self.active & ~reported.missing, results)
        return snapshot, np.where(self.active, usage.max(axis=1), np.nan)

    def topic_unevenness(self) -> float:
        """How uneven the worst scalable topic is on the brokers that are there now; NaN where none has traffic."""
        return self.bundles.unevenness(int(self.active.sum()))

    def execute(self, turn: TurnNumber, commands: Sequence[Command]) -> None:
        """Begin *commands*, the decision of *turn*."""
        for command in commands:
            unload = command.action == "unload"
            fate = fate_of(self._scenario.moves, float(self._chance.uniform(0, 100))) if unload else "done"
            if fate != "lost":
                due = TurnNumber(turn + (self._scenario.moves.intervals if unload else 1))
                self._under_way.append(UnderWay(due=due, command=command, fate=fate))

    # ---- what happens ----

    def _carry_out(self, turn: TurnNumber, cold: Floats) -> list[CommandResult]:
        """Finish the commands that are due; adds to *cold* (brokers,) the CPU that bundles cost that just came."""
        due = [each for each in self._under_way if each.due <= turn]
        self._under_way = [each for each in self._under_way if each.due > turn]
        results = []
        for each in due:
            result = self._finish(each, turn, cold)
            if result.status in ("failed", "unknown"):
                self.failures.append((turn, each.command.bundle))
            results.append(result)
        return results

    def _finish(self, each: UnderWay, turn: TurnNumber, cold: Floats) -> CommandResult:
        """Finish one command, as an executor does that compares the cluster with what the command expects."""
        command, bundle = each.command, each.command.bundle
        row = self.bundles.row_of.get(bundle)
        owner = UNOWNED if row is None else int(self.bundles.owner[row])
        if row is None or owner == UNOWNED or not self.active[owner] or self.brokers[owner] != command.source:
            return self._answer(command, "obsolete", "it is no longer on that broker", owner)
        if each.fate == "failed":
            return self._answer(command, "failed", "the broker refused", owner)
        if command.action == "split":
            return self._split(command, turn, owner, cold)
        if each.fate == "hangs":
            self.bundles.owner[row] = UNOWNED
            self._hanging[bundle] = TurnNumber(turn + self._scenario.moves.hangs_intervals), owner
            return self._answer(command, "unknown", "nobody has it", owner)
        to = self.brokers.index(command.destination) if command.destination else UNOWNED
        if each.fate == "astray" or to == UNOWNED or not self.active[to]:
            to = self._chosen(row, among=self.active)
        self._move(row, owner, to, turn, cold, self._scenario.moves.seconds)
        if command.destination and self.brokers[to] != command.destination:
            return self._answer(command, "failed", f"it went to {self.brokers[to]}", owner)
        return self._answer(command, "done", "", owner)

    def _answer(self, command: Command, status: str, detail: str, before: int) -> CommandResult:
        row = self.bundles.row_of.get(command.bundle)
        after = UNOWNED if row is None else int(self.bundles.owner[row])
        names = ["" if broker == UNOWNED else self.brokers[broker] for broker in (before, after)]
        return CommandResult(id=command.id, status=status, detail=detail, owner_before=names[0], owner_after=names[1])

    def _split(self, command: Command, turn: TurnNumber, owner: int, cold: Floats) -> CommandResult:
        _, lower, upper = parse_bundle(command.bundle)
        cuts = sorted(cut for cut in command.boundaries if lower < cut < upper)
        if not cuts and command.algorithm == "range_equally_divide":
            cuts = [lower + (upper - lower) // 2]
        if not cuts:
            return self._answer(command, "failed", "no boundary inside the bundle", owner)
        rows = self.bundles.split(command.bundle, cuts)
        self._namespaces = self._namespace_states()
        self.splits.append((turn, command.bundle))
        for row in rows if command.unload_after_split else ():
            to = self._chosen(row, among=self.active)
            self._move(row, owner, to, turn, cold, self._scenario.moves.seconds)
        return self._answer(command, "done", "", owner)

    def _move(self, row: int, source: int, to: int, turn: TurnNumber, cold: Floats, seconds: float) -> None:
        """Give bundle *row* to broker *to*; its clients waited for so many *seconds*."""
        bundles = self.bundles
        bundles.owner[row] = to
        if to == UNOWNED:
            return
        load = bundles.load[row]
        cpu = float(self._hardware.cpu_of(load[RATE_IN] + load[RATE_OUT], np.array(to)))
        cold[to] += self._scenario.moves.cold_percent / 100 * cpu
        self.moves.append(
            SimulatedMove(
                turn=turn,
                bundle=bundles.names[row],
                namespace=self._scenario.namespaces[bundles.space[row]].name,
                source=source,
                destination=to,
                connections=int(bundles.producers[row] + bundles.consumers[row]),
                messages=float(load[RATE_IN]) * seconds,
                usage=100 * cpu,
            )
        )

    def _look_up(self, turn: TurnNumber) -> None:
        """Let clients look up the bundles that have no broker: those of brokers that are gone, and those that hung."""
        bundles, nowhere = self.bundles, np.zeros(len(self.brokers))
        for name, (until, source) in list(self._hanging.items()):
            row = bundles.row_of.get(name)
            if row is None or until <= turn:
                del self._hanging[name]
                if row is not None:
                    seconds = self._scenario.moves.hangs_intervals * self._scenario.period_seconds
                    to = self._chosen(row, among=self.active)
                    self._move(row, source, to, turn, nowhere, seconds)
        if not self.active.any():
            return
        bundles.owner[~self.active[bundles.owner]] = UNOWNED
        for row in np.flatnonzero(bundles.owner == UNOWNED).tolist():
            if bundles.names[row] not in self._hanging:
                bundles.owner[row] = self._chosen(row, among=self.active)

    def _chosen(self, row: int, *, among: Bools) -> int:
        """The broker that the brokers' own load manager gives bundle *row* to at a lookup.

        UNOWNED where policies allow none.  Pulsar: LeastLongTermMessageRate, after the filters of isolation policies
        and of even spreading.
        """
        bundles, n = self.bundles, len(self.brokers)
        candidates = np.flatnonzero(among & self._allowed[bundles.space[row]])
        if not len(candidates):
            return UNOWNED
        owned = bundles.owner != UNOWNED
        owned[row] = False
        if self._rules.evenly:
            same = owned & (bundles.space == bundles.space[row])
            count = np.bincount(bundles.owner[same], minlength=n)[candidates]
            candidates = candidates[count == count.min()]
        average = bundles.known.long_term
        rate = np.bincount(bundles.owner[owned], (average[:, RATE_IN] + average[:, RATE_OUT])[owned], n)
        score = np.where(self._reported_cpu > self._rules.overloaded, np.inf, rate)[candidates]
        return int(candidates[score.argmin()])

    # ---- what is seen ----

    def _snapshot(
        self, turn: TurnNumber, numbers: Floats, has_data: Bools, results: Sequence[CommandResult]
    ) -> Snapshot:
        """What the shards of the query make of the reports of the brokers that were *has_data*."""
        bundles, at = self.bundles, self.interval_ms(turn)
        roster = np.flatnonzero(self.active)
        rows = np.flatnonzero((bundles.owner != UNOWNED) & has_data[bundles.owner])
        bundles.advance(rows, at)
        place = np.cumsum(self.active) - 1
        known, names = bundles.known, bundles.names
        topics = bundles.detail(rows, self._detail)
        return Snapshot(
            interval=at,
            shard=0,
            shards=1,
            roster=tuple(self.brokers[broker] for broker in roster.tolist()),
            unswept=(),
            brokers=tuple(
                BrokerRow(broker=self.brokers[broker], last_update=at, numbers=tuple(numbers[broker].tolist()))
                for broker in roster.tolist()
                if has_data[broker]
            ),
            namespaces=self._namespaces,
            broker_states=self._states,
            results=tuple(results),
            late=0,
            unrostered=0,
            dropped=0,
            names=names if len(rows) == len(names) else [names[row] for row in rows.tolist()],
            owner=place[bundles.owner[rows]],
            load=bundles.load[rows],
            kinds=bundles.kinds[rows],
            short_samples=known.short_samples[rows],
            short_term=known.short_term[rows],
            long_samples=known.long_samples[rows],
            long_term=known.long_term[rows],
            topics=bundles.topics[rows],
            producers=bundles.producers[rows],
            consumers=bundles.consumers[rows],
            detail_size=topics.sizes,
            detail_position=topics.position,
            detail_load=topics.load,
            detail_segment=topics.segment,
        )

    def _namespace_states(self) -> States[NamespaceState]:
        return States[NamespaceState].of(
            NamespaceState(
                namespace=space.name,
                version=1,
                boundaries=self.bundles.boundaries(code),
                isolation_policies=self._policies_of(space),
            )
            for code, space in enumerate(self._scenario.namespaces)
        )

    def _policies_of(self, space: ModelledNamespace) -> tuple[dict[str, Any], ...]:
        """The isolation policies of *space*, as the admin API tells them."""
        if not space.primary:
            return ()
        hosts = [self.brokers[number - 1].partition(":")[0] for number in space.primary]
        return ({"namespaces": [space.name], "primary": hosts, "secondary": []},)

    def _allowed_brokers(self) -> Bools:
        """(namespaces, brokers) where isolation policies let the bundles of each namespace be."""
        spaces = self._scenario.namespaces
        primary = np.zeros((len(spaces), len(self.brokers)), np.bool_)
        for row, space in enumerate(spaces):
            primary[row, [number - 1 for number in space.primary]] = True
        isolated, reserved = np.any(primary, axis=1, keepdims=True), np.any(primary, axis=0, keepdims=True)
        return np.where(isolated, primary, ~reserved)

    def _broker_states(self) -> States[BrokerState]:
        return States[BrokerState].of(
            BrokerState(broker=broker, version=1, capacity=tuple(zip(RESOURCES, limit, strict=True)))
            for broker, limit in zip(self.brokers, self._hardware.limit.tolist(), strict=True)
        )


def _interleaved(usage: Floats, limit: Floats) -> list[Floats]:
    """Usage and limit of each resource in turn, as brokers report them."""
    return [column for resource in range(usage.shape[1]) for column in (usage[:, resource], limit[:, resource])]
