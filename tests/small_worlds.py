"""Small clusters drawn by a seed, the same on every machine, in numbers of which many are equal or exactly at a limit.

What was decided about them is kept in tests as a few digits.  Where some of these change, decisions of users change.
If that is meant, the new digits, which the failing test shows, take the place of the old ones.
"""

import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from functools import cache
from random import Random
from typing import Any, Final
from zlib import crc32

import numpy as np

from controller.model.load import ClusterView
from controller.model.policies import IsolationPolicy, MinAvailable, Policies
from controller.strategies.view_builder import INTERVAL, Broker, Bundle, cluster_view

MINUTE_MS: Final = 60_000
_SPACES: Final = ("acme/a", "acme/b", "pulsar/system", "acme/c")
_USAGES: Final = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 1.0, 1.1)
_RATES: Final = (0.0, 1.0, 10.0, 50.0, 100.0, 500.0, 1000.0, 5000.0, 30_000.0, 30_001.0)
_MBYTES: Final = (0.0, 1.0, 2.0, 5.0, 10.0, 10.0, 50.0, 100.0, 200.0)
#: Fields that hold a text for people.
_FOR_PEOPLE: Final = ("detail", "summary")
_NUMBER: Final = re.compile(r"\d+(?:[.,]\d+)*")
_COUNTS: Final = (0, 1, 2, 9, 10, 100, 500, 1000, 1001, 2000)


@dataclass
class SmallWorld:
    """A cluster that changes from interval to interval; what is unloaded goes where it was sent, most of the time."""

    chance: Random
    usage: dict[str, list[float]] = field(default_factory=dict)
    bundles: dict[str, tuple[str, Bundle]] = field(default_factory=dict)
    unloaded: dict[str, int] = field(default_factory=dict)
    interval: int = INTERVAL
    policies: Policies = field(default_factory=Policies)
    counts: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, seed: int) -> "SmallWorld":
        chance = Random(seed)
        world = cls(chance)
        brokers = [f"b-{i}:8080" for i in range(chance.choice((1, 2, 2, 3, 3, 4, 5)))]
        common = chance.choice(_USAGES[:9])
        for broker in brokers:
            world.usage[broker] = [chance.choice((common, chance.choice(_USAGES))) for _ in range(5)]
        pieces = chance.choice((2, 4, 8))
        for space in _SPACES[: chance.choice((1, 2, 2, 3, 4))]:
            for piece in range(pieces):
                lower, upper = (min(end * (1 << 32) // pieces, 0xFFFFFFFF) for end in (piece, piece + 1))
                owner = chance.choice((*brokers, brokers[0], ""))
                world.bundles[f"{space}/0x{lower:08x}_0x{upper:08x}"] = owner, _bundle(chance)
            world.counts[space] = chance.choice((pieces, pieces, -1, 127, 128))
        world.policies = _policies(chance, brokers)
        return world

    def view(self) -> ClusterView:
        """What strategies see of it now."""
        held: dict[str, dict[str, Bundle]] = {broker: {} for broker in self.usage}
        unowned: dict[str, Bundle] = {}
        for name, (owner, bundle) in self.bundles.items():
            held.get(owner, unowned)[name] = bundle
        return cluster_view(
            *(
                Broker(name, cpu=u[0], memory=u[1], direct_memory=u[2], bandwidth_in=u[3], bandwidth_out=u[4],
                       on_its_way=10.0 * len(held[name]), bundles=held[name])
                for name, u in self.usage.items()
            ),
            unowned=unowned,
            recently_unloaded=self.unloaded.keys() & self.bundles.keys(),
            bundle_count=dict(self.counts),
            policies=self.policies,
            as_of_ms=self.interval,
        )  # fmt: skip

    def goes_on(self, unloads: Mapping[str, str]) -> None:
        """The next interval, after *unloads*: bundle -> destination, "" where the cluster chooses."""
        chance, brokers = self.chance, list(self.usage)
        self.unloaded = {name: left - 1 for name, left in self.unloaded.items() if left > 0}
        for name, to in unloads.items():
            if chance.random() < 0.8:
                self.bundles[name] = to if to in self.usage else chance.choice(brokers), self.bundles[name][1]
                self.unloaded[name] = chance.choice((0, 1, 2))
        for name, (owner, bundle) in self.bundles.items():
            if chance.random() < 0.1:
                self.bundles[name] = owner, _bundle(chance)
            elif owner not in self.usage and chance.random() < 0.5:
                self.bundles[name] = chance.choice(brokers), bundle
        for usages in self.usage.values():
            for each in range(5):
                if chance.random() < 0.4:
                    usages[each] = chance.choice(_USAGES)
        if chance.random() < 0.15:
            self.usage[f"b-{len(brokers)}:8080"] = [0.0] * 5
        elif chance.random() < 0.15 and len(brokers) > 1:
            del self.usage[chance.choice(brokers)]
        self.interval += MINUTE_MS * chance.choice((1, 1, 1, 2, 5))


@cache
def views(seed: int) -> tuple[ClusterView, ...]:
    """Some intervals of a world that nobody balances."""
    world, seen = SmallWorld.of(seed), list[ClusterView]()
    for _ in range(8):
        seen.append(world.view())
        world.goes_on({})
    return tuple(seen)


def _bundle(chance: Random) -> Bundle:
    return Bundle(
        msg_rate_in=chance.choice(_RATES),
        msg_rate_out=chance.choice(_RATES[:7]),
        mbytes_in=chance.choice(_MBYTES),
        mbytes_out=chance.choice(_MBYTES),
        topics=chance.choice(_COUNTS),
        producers=chance.choice(_COUNTS),
        consumers=chance.choice(_COUNTS),
        short_samples=chance.choice((10, 10, 9, 1)),
        long_samples=chance.choice((1000, 1000, 30, 10, 1)),
    )


def _policies(chance: Random, brokers: list[str]) -> Policies:
    def some(values: Any, share: float) -> list[Any]:
        return [value for value in values if chance.random() < share]

    hosts = [broker.partition(":")[0] for broker in brokers]
    isolation = tuple(
        IsolationPolicy(
            namespaces=(space if chance.random() < 0.8 else "acme/.*",),
            primary=tuple(some(hosts, 0.5)) or ("b-0",),
            secondary=tuple(some(hosts, 0.4)),
            auto_failover=MinAvailable(min_limit=chance.choice((0, 1, 2)), usage_threshold=chance.choice((100, 80))),
        )
        for space in some(_SPACES, 0.25)
    )
    return Policies(
        isolation=isolation,
        anti_affinity_group={space: chance.choice(("g", "G", "h", " ")) for space in some(_SPACES, 0.4)},
        failure_domain={broker: chance.choice(("left", "right")) for broker in some(brokers, 0.6)},
        broker_version={broker: chance.choice(("4.0.8", "4.0.10", "4.1.0-rc1", "x")) for broker in some(brokers, 0.8)},
        without_persistent=frozenset(some(brokers, 0.1)),
        without_non_persistent=frozenset(some(brokers, 0.1)),
    )


def with_options(kind: type[Any], chance: Random) -> Any:
    """A strategy with some options that are not the default ones; those that it refuses stay as they are."""
    changed: dict[str, Any] = {}
    for each in fields(kind):
        default = getattr(kind(), each.name)
        if isinstance(default, frozenset):
            continue  # of names: chance would find none that there are
        if chance.random() < 0.4:
            if isinstance(default, bool):
                value: Any = not default
            elif isinstance(default, int | float):
                value = type(default)(default * chance.choice((0, 0.1, 0.5, 1.5)) + chance.choice((0, 0, 1)))
            else:
                continue
            try:
                kind(**changed, **{each.name: value})
            except Exception:
                continue
            changed[each.name] = value
    return kind(**changed)


def digits(*said: Any) -> int:
    """Eight digits of all numbers and names in *said*; of texts for people their numbers count, and no last digits."""
    return crc32(repr(_plain(said)).encode()) % 100_000_000


class _Kept(logging.Handler):
    """Keeps how serious each line is, and its numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[Any] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append([record.levelname, numbers_in(record.getMessage())])


@contextmanager
def logged(name: str) -> Iterator[list[Any]]:
    """How serious the lines are that the package *name* logs meanwhile, and their numbers."""
    kept, log = _Kept(), logging.getLogger(name)
    before = log.level, log.propagate
    log.addHandler(kept)
    log.setLevel(logging.DEBUG)
    log.propagate = False
    try:
        yield kept.lines
    finally:
        log.removeHandler(kept)
        log.setLevel(before[0])
        log.propagate = before[1]


def numbers_in(text: str) -> list[str]:
    """The numbers that *text* tells people."""
    return _NUMBER.findall(text)


def _plain(value: Any) -> Any:
    if isinstance(value, Enum | bool | None):
        return str(value)
    if isinstance(value, float | np.floating):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if is_dataclass(value):
        parts = {each.name: getattr(value, each.name) for each in fields(value)}
        return [numbers_in(part) if name in _FOR_PEOPLE else _plain(part) for name, part in parts.items()]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, str | int):
        return value
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, frozenset | set):
        return sorted(map(str, value))
    return [_plain(one) for one in value]
