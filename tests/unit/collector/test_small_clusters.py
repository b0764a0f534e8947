"""What collectors write to the log stays what it is, whatever brokers, the log, clocks and other collectors do.

The numbers are tests.small_worlds.digits of all records of small clusters, and of the metrics of their collectors.
"""

from collections.abc import Callable, Collection, Container
from random import Random
from typing import Any, Final

from controller.adapters.metrics.collector import CollectorMetrics
from controller.adapters.network.calls import FinishedCall
from controller.adapters.pulsar.admin import PulsarError
from controller.collector.cluster_state import Found
from controller.collector.loop import Collector
from controller.collector.reports import BrokerReport, SweepName, listed_topics, swept
from controller.collector.states import ClusterPolicies, Namespace, namespace_state
from controller.collector.sweeper import Swept
from controller.settings.capacity import CapacityOverrides
from controller.settings.trimtab_toml import CollectorSettings
from controller.wire.chunks import glance, json_chunks
from controller.wire.metrics import TickRecord, decode_metric
from tests.small_worlds import digits, logged
from tests.unit.collector.test_collector_loop import Ahead, Log, LogEnd, Member, Room

T: Final = 1_735_689_600
PERIOD: Final = 60
INTERVALS: Final = 7
BROKERS: Final = tuple(f"b-{i}:8080" for i in range(5))


class World:
    """Brokers, a log and a group; time is a number, and nothing runs but by it."""

    def __init__(self, chance: Random) -> None:
        self.chance, self.now, self.log, self.room = chance, T - 1.0, Log(), Room()
        self.there, self.told = list(BROKERS[:4]), list[Any]()
        self.slow: dict[str, float] = dict.fromkeys(BROKERS, 0.1)
        self.failing = set[str]()


class InTime:
    """Calls that have their answers at a time, without threads."""

    def __init__(self, world: World, most_at_once: int) -> None:
        self.world, self.most = world, most_at_once
        self.open: dict[Any, tuple[float, Callable[[], Any]]] = {}

    def submit(self, key: Any, call: Callable[[], Any]) -> bool:
        if key in self.open:
            return False
        self.open[key] = self.world.now + self.world.slow.get(key, 0.2), call
        return True

    @property
    def waiting(self) -> int:
        return max(0, len(self.open) - self.most)

    def relieve(self, now: float, patience: float, *, answering: Container[Any], most: int) -> None:
        self.world.told.append([now, patience, [key for key in self.open if key in answering], most])

    def is_open(self, key: Any) -> bool:
        return key in self.open

    def finished(self) -> list[FinishedCall]:
        due = [key for key, (at, _) in self.open.items() if at <= self.world.now]
        return [self._made(key, self.open.pop(key)[1]) for key in due]

    def _made(self, key: Any, call: Callable[[], Any]) -> FinishedCall:
        try:
            return FinishedCall(key, call(), None)
        except PulsarError as error:
            return FinishedCall(key, None, error)

    def renew(self) -> None:
        self.world.told.append("renewed")

    def close(self) -> None:
        """There is nothing to end."""


class Asked:
    """Brokers that answer, and the cluster that knows them: stands for the sweeper, the state and its admin."""

    def __init__(self, world: World) -> None:
        self.world, self.admin = world, self

    def sweep(self, name: SweepName, now_ms: int, answering: Callable[[], object]) -> Swept:
        chance = self.world.chance
        if name.broker in self.world.failing:
            raise PulsarError("no answer")
        answering()
        odd, version = chance.choice(((), (), ("lastUpdate",))), chance.choice(("4.0.8", "4.0.9"))
        usage = ((25.0, 100.0),) * 5
        report = BrokerReport(last_update=now_ms, usage=usage, bundles={}, broker_version=version, odd=odd)
        columns, _ = swept(name, report, listed_topics({}))
        flaws = chance.choice((0, 0, 3))
        return Swept(name=name, report=report, records=tuple(json_chunks(columns)), flaws=flaws, seconds=0.5)

    def keep(self, brokers: Collection[str]) -> None:
        self.world.told.append(sorted(brokers))

    def brokers(self) -> tuple[str, ...]:
        if self.world.chance.random() < 0.1:
            raise PulsarError("nobody answers")
        return tuple(self.world.there)

    def domains(self) -> dict[str, str]:
        if self.world.chance.random() < 0.2:
            raise PulsarError("nobody answers")
        return dict.fromkeys(BROKERS[:2], "left")

    def read(self, interval: int, *, whole: bool, known: Collection[str]) -> Found:
        self.world.told.append([interval, whole, sorted(known)])
        if self.world.chance.random() < 0.2:
            raise PulsarError("nobody answers")
        group = self.world.chance.choice(("", "g"))
        space = Namespace("lab/ns", (0, 0xFFFFFFFF), group)
        return Found(states=(namespace_state("lab", space, ClusterPolicies({}), version=interval),), leader=BROKERS[0])


def collector(world: World, name: str) -> tuple[Collector, Ahead, CollectorMetrics]:
    asked, clock, metrics = Asked(world), Ahead(), CollectorMetrics()
    log, group = LogEnd(world.log), Member(world.room, name)
    parts: dict[str, Any] = {"sweeper": asked, "state": asked, "log": log, "group": group}
    made = Collector(
        cluster="lab",
        period_ms=PERIOD * 1000,
        settings=CollectorSettings(state_every=3, max_concurrent=2),
        overrides=CapacityOverrides(),
        servers=clock,
        clock=lambda: world.now,
        metrics=metrics,
        calls=lambda most: InTime(world, most),  # type: ignore[arg-type, return-value]
        **parts,
    )
    return made, clock, metrics


def happens(world: World, clocks: list[Ahead]) -> None:
    """Something that may happen at any time."""
    chance, log = world.chance, world.log
    match chance.choice(
        ("slow", "fail", "away", "offline", "clock", "join", "leave", "back", "refuse", "well", "well")
    ):
        case "slow":
            world.slow[chance.choice(BROKERS)] = chance.choice((0.1, 5.0, 20.0, 60.0))
        case "fail":
            world.failing ^= {chance.choice(BROKERS)}
        case "away":
            log.away = not log.away
        case "offline":
            log.offline = not log.offline
        case "clock":
            chance.choice(clocks).seconds = chance.choice((0.0, 0.0, 9.9, 10.1, -60.0))
        case "join":
            world.there = sorted({*world.there, chance.choice(BROKERS)})
        case "leave":
            world.there = sorted({*world.there} - {chance.choice(BROKERS)}) or [BROKERS[0]]
        case "back":
            world.now -= chance.choice((2.0, 70.0))
        case "refuse":
            log.refuses = chance.choice((b"\n", b"namespace_state", b"broker_sweep"))
        case _:
            log.away, log.offline, log.refuses = False, False, b"\n"
            world.slow, world.failing = dict.fromkeys(BROKERS, 0.1), set()
            for clock in clocks:
                clock.seconds = 0.0


def collected(seed: int) -> int:
    world = World(Random(seed))
    chance, made = world.chance, [collector(world, name) for name in ("one", "two")[: 1 + seed % 2]]
    clocks = [clock for _, clock, _ in made]
    with logged("controller.collector") as lines:
        while world.now < T + INTERVALS * PERIOD:
            world.now += chance.choice((0.1, 1.0, 2.0, 5.0, 9.0))
            if chance.random() < 0.1:
                happens(world, clocks)
            for each, _, _ in made:
                if chance.random() < 0.9:
                    each.step()
    samples = [
        [(sample.name, sorted(sample.labels.items()), sample.value) for sample in family.samples]
        for *_, metrics in made
        for family in metrics.registry.collect()
        if "created" not in family.name and "process" not in family.name
    ]
    return digits(world.told, lines, [told_of(value) for value in world.log.records], sorted(map(str, samples)))


def told_of(value: bytes) -> Any:
    head = glance(value)
    if isinstance(head, TickRecord):
        return head.interval, {entry.broker: entry.sweep_id is not None for entry in head.roster or ()}
    if head is not None:
        return head.broker, head.interval, head.last_update
    return decode_metric(value, cluster="lab", period_ms=PERIOD * 1000)


COLLECTED: Final = [
    85_035_130, 95_736_903, 67_051_182, 37_709_453, 55_506_227,
]  # fmt: skip


def test_collectors_write_the_same_to_the_log() -> None:
    assert [collected(seed) for seed in range(5)] == COLLECTED
