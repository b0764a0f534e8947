"""Small logs with everything in them that can go wrong, for tests of the fold and the cycle together.

A log is its partitions, each a list of decoded records; a record that may make no difference (late, delivered twice,
of a sweep that does not count) is marked as noise.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from controller.aggregate.columns.rows import METRICS, RESULTS
from controller.wire.arrow_stream import RATES
from controller.wire.base import validate
from controller.wire.metrics import (
    BrokerLoadRecord,
    BrokerStateRecord,
    BundleData,
    NamespaceStateRecord,
    TickRecord,
    TopicStats,
)
from controller.wire.results import Result
from controller.wire.rows import Located
from controller.wire.sweep import BrokerSweep
from tests.records import (
    as_bytes,
    broker_load,
    broker_state,
    broker_sweep,
    bundle_data,
    bundle_stats,
    load_report,
    namespace_state,
    result,
    tick,
    topic_stats,
    without,
)

PERIOD = 60_000
START = 1_735_689_600_000
BROKERS = tuple(f"broker-{i}:8080" for i in range(5))
#: The last broker is never swept: its reports or its topics' statistics count.
UNSWEPT = BROKERS[-1]
BUNDLES = tuple(
    f"tenant/ns-{ns}/0x{lower:08x}_0x{min(lower + (1 << 29), 0xFFFFFFFF):08x}"
    for ns in range(2)
    for lower in range(0, 1 << 32, 1 << 29)
)


@dataclass(frozen=True, kw_only=True)
class Shape:
    """How a log is made; the same shape gives the same log."""

    seed: int = 0
    intervals: int = 5
    metrics_partitions: int = 3
    results_partitions: int = 2
    #: Intervals (from 0) that are never ticked; a sweep of theirs comes for nothing.
    silent: frozenset[int] = frozenset()
    #: Every sweep comes whole and in time.
    calm: bool = False
    #: A period before its first interval.
    start: int = START


@dataclass(frozen=True)
class Entry:
    """A record in its partition."""

    partition: tuple[int, int]
    record: Any
    noise: bool = False


@dataclass
class LogBuilder:
    """Publishes interval after interval, in the order in which a cluster and its collector would."""

    shape: Shape
    #: T -> results that come in before the tick of T.
    answers: Mapping[int, Sequence[Result]]
    entries: list[Entry] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = Random(self.shape.seed)
        self.partitions = [(METRICS, p) for p in range(self.shape.metrics_partitions)]
        self.partitions += [(RESULTS, p) for p in range(self.shape.results_partitions)]
        #: Ticks that reach their partition after the records of the next interval.
        self.lagging: list[Entry] = []

    def put(self, record: Any, *, noise: bool = False, source: int = METRICS) -> None:
        partition = self.rng.choice([p for p in self.partitions if p[0] == source])
        self.entries.append(Entry(partition, record, noise))

    def publish(self) -> list[Entry]:
        self._policies(version=1)
        for i in range(self.shape.intervals):
            interval = self.shape.start + (i + 1) * PERIOD
            if i in self.shape.silent:
                for chunk in self._sweep(BROKERS[1], interval, [*BUNDLES[:3]]):
                    self.put(chunk, noise=True)
                continue
            for answer in self.answers.get(interval, ()):
                self.put(answer, source=RESULTS)
            roster, late = self._load(interval)
            if self.rng.random() < 0.5:
                self._policies(version=self.rng.randrange(3))
            ticked = self._ticks(interval, roster, last=i == self.shape.intervals - 1)
            for chunk in late:
                self.entries.append(Entry(self.rng.choice(ticked), chunk, noise=True))
        return self.entries

    def _policies(self, version: int) -> None:
        boundaries = [f"0x{min(lower, 0xFFFFFFFF):08x}" for lower in range(0, (1 << 32) + 1, 1 << 29)]
        for ns in range(2):
            record = namespace_state(namespace=f"tenant/ns-{ns}", version=version, boundaries=boundaries)
            self.put(validate(NamespaceStateRecord, as_bytes(record)))
        capacity = {"bandwidthOut": self.rng.uniform(80, 120)}
        self.put(
            validate(BrokerStateRecord, as_bytes(broker_state(broker=BROKERS[0], version=version, capacity=capacity)))
        )
        for name in self.rng.sample(BUNDLES, 4):
            quota = {"memory": 0.0, "dynamic": True, "bandwidthIn": 1e5, "bandwidthOut": self.rng.uniform(1e5, 1e6)}
            quota |= {"msgRateIn": 1e2, "msgRateOut": 1e2}
            record = bundle_data(bundle=name)
            if self.rng.random() < 0.5:
                record = without(record, "bundleData") | {"resourceQuota": quota}
            self.put(validate(BundleData, as_bytes(record)))

    def _load(self, interval: int) -> tuple[dict[str, str | None], list[BrokerSweep]]:
        """One interval's load: the roster, and sweeps that will come late."""
        rng, roster, late = self.rng, dict[str, str | None](), []
        for code, broker in enumerate(BROKERS):
            owned = [name for i, name in enumerate(BUNDLES) if i % 7 % len(BROKERS) == code]
            if broker == UNSWEPT:
                roster[broker] = None
                self._unswept(interval, owned)
                continue
            chunks = self._sweep(broker, interval, owned)
            roster[broker] = chunks[0].sweep_id
            fates = ("good", "good", "good", "twice", "swept twice", "missing", "late", "cut off")
            fate = "good" if self.shape.calm else rng.choice(fates)
            in_time = {"missing": 0, "late": 0, "cut off": len(chunks) - 1}.get(fate, len(chunks))
            if not in_time:
                roster[broker] = None
            for chunk in chunks[:in_time]:
                self.put(chunk)
            if fate == "twice":
                self.put(rng.choice(chunks), noise=True)
            elif fate == "swept twice":
                for chunk in self._sweep(broker, interval, owned, sweep="another"):
                    self.put(chunk, noise=True)
            elif fate != "missing":
                late += chunks[in_time:]
        return roster, late

    def _sweep(self, broker: str, interval: int, owned: list[str], sweep: str = "counts") -> list[BrokerSweep]:
        rng, count = self.rng, self.rng.randint(2, 3)
        parts: list[dict[str, dict[str, Any]]] = [{} for _ in range(count)]
        for part in parts:  # a bundle with many topics fills several chunks
            part[owned[0]] = self._bundle(owned[0])
        for name in (*owned[1:], rng.choice(BUNDLES)):  # the last one is claimed by its owner too
            parts[rng.randrange(count)].setdefault(name, self._bundle(name))
        said = {
            "cpu": {"usage": rng.uniform(70, 95) if broker == BROKERS[0] else rng.uniform(5, 40), "limit": 100.0},
            "lastUpdate": max(0, interval - rng.choice((0, 0, 500))),
            "numBundles": len(owned),
        }
        return [
            validate(
                BrokerSweep,
                as_bytes(
                    broker_sweep(
                        broker,
                        interval=interval,
                        sweepId=f"{broker}/{sweep}",
                        chunk=i,
                        chunks=count,
                        bundleStats=[*part.values()],
                        **said,
                    )
                ),
            )
            for i, part in enumerate(parts)
        ]

    def _bundle(self, name: str) -> dict[str, Any]:
        rng, topics = self.rng, self.rng.randint(0, 4)
        stats = bundle_stats(name, topics)
        stats["topic"] = [f"persistent://tenant/ns/{rng.randrange(10**6)}" for _ in range(topics)]
        stats.update({rate: [rng.lognormvariate(9, 3) for _ in range(topics)] for rate in RATES})
        stats["totals"] = stats["totals"] | {rate: rng.lognormvariate(9, 3) for rate in RATES}
        return stats

    def _unswept(self, interval: int, owned: list[str]) -> None:
        for _ in range(self.rng.randint(0, 2)):
            report = load_report(lastUpdate=max(0, interval - self.rng.randrange(1000)))
            totals = next(iter(report["lastStats"].values()))
            report["lastStats"] = {name: totals | {"msgRateIn": self.rng.uniform(0, 1e3)} for name in owned}
            self.put(validate(BrokerLoadRecord, as_bytes(broker_load(broker=UNSWEPT, report=report))))
        for i in range(self.rng.randint(0, 3)):
            rates = {rate: self.rng.lognormvariate(9, 3) for rate in RATES}
            topic = f"persistent://tenant/ns/{i % 2}"
            record = topic_stats(broker=UNSWEPT, bundle=owned[0], topic=topic, **rates)
            self.put(validate(TopicStats, as_bytes(record)))

    def _ticks(self, interval: int, roster: Mapping[str, str | None], *, last: bool) -> list[tuple[int, int]]:
        """Tick the partitions, some of them later or not at all; the metrics partitions ticked now."""
        counts = {"metrics": self.shape.metrics_partitions, "results": self.shape.results_partitions}
        listed = [{"broker": broker, "sweepId": sweep} for broker, sweep in roster.items()]
        self.entries += self.lagging
        self.lagging, ticked = [], [(METRICS, 0)]
        for partition in self.rng.sample(self.partitions, len(self.partitions)):
            first = partition == (METRICS, 0)
            record = validate(TickRecord, as_bytes(tick(interval, partitions=counts, roster=listed if first else None)))
            fate = "good" if first or last else self.rng.choice(("good", "good", "good", "lagging", "lost"))
            if fate == "lagging":
                self.lagging.append(Entry(partition, record))
            elif fate == "good":
                self.entries.append(Entry(partition, record))
                ticked += [partition] * (partition[0] == METRICS)
                if self.rng.random() < 0.2:  # written again: the first one counts, whatever the second says
                    again = record.model_copy(update={"roster": () if first else None})
                    self.entries.append(Entry(partition, again, noise=True))
        return ticked


def log(shape: Shape, answers: Mapping[int, Sequence[Result]] | None = None) -> list[Entry]:
    """The log of *shape*, with the results in *answers* (T -> before whose tick)."""
    return LogBuilder(shape, answers or {}).publish()


def answer(command_id: str, status: str) -> Result:
    return validate(Result, as_bytes(result(id=command_id, status=status)))


def located(entries: Sequence[Entry]) -> Iterator[Located]:
    """*entries* with offsets as their partitions give them."""
    next_offset: dict[tuple[int, int], int] = {}
    for entry in entries:
        offset = next_offset.get(entry.partition, 0)
        next_offset[entry.partition] = offset + 1
        source, partition = entry.partition
        yield Located(source=source, partition=partition, offset=offset, record=entry.record)
