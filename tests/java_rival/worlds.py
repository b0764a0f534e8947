"""Random clusters that live over several rounds: loads drift, bundles move and split, brokers come, go and fall silent.

Brokers have names whose order is that of Java's hash maps, so that it makes no difference which of the two orders a
class goes by.  Loads are whole numbers, so that sums do not depend on the order either, and no two bundles have the
same total: what Pulsar sorts by load has one order alone.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from controller.model.names import namespace_of, parse_bundle

#: Brokers that a world can have, those that join later among them.
_POOL: Final = 10
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
#: A port of one digit: then the hash codes of the names below differ by 961, which is 1 modulo 64.
_PORT: Final = "8"
_HASH_BITS: Final = 32
#: Behind an expression for hosts: nothing, or a port.  With a port it matches nothing before Pulsar 5.0.
_OF_A_PORT: Final = ("", f":{_PORT}", "(?::.)?")
#: What a part gets of a bundle that is split.
_SHARES: Final = (0.6, 0.4)
#: Bytes a second of a kbit/s.
_KBIT: Final = 125


@dataclass(slots=True, kw_only=True)
class Bundle:
    """The load of a bundle: msg/s in and out, bytes/s in and out, and counts."""

    short_term: list[int]
    long_term: list[int]
    topics: int
    producers: int
    consumers: int

    def part(self, share: float) -> "Bundle":
        """A part of it."""
        return Bundle(
            short_term=[_brief(value * share) for value in self.short_term],
            long_term=[_brief(value * share) for value in self.long_term],
            topics=int(self.topics * share),
            producers=int(self.producers * share),
            consumers=int(self.consumers * share),
        )


@dataclass(slots=True, kw_only=True)
class World:
    """A cluster between two rounds."""

    random: Random
    #: Whether brokers may be without load data.
    may_be_silent: bool
    #: All names, in their order.
    pool: Sequence[str]
    alive: list[str]
    bundles: dict[str, Bundle]
    owner: dict[str, str]
    #: Brokers that are alive and send no load data.
    silent: set[str] = field(default_factory=set)

    def drift(self, most: float) -> None:
        """The loads of all bundles change by a random factor; *most* is about its spread."""
        for bundle in self.bundles.values():
            factor = self.random.lognormvariate(0, self.random.uniform(0, most))
            bundle.short_term = [_brief(value * factor) for value in bundle.short_term]
            if self.random.random() < most:
                bundle.long_term = [_brief(value * self.random.uniform(0.9, 1.1)) for value in bundle.long_term]

    def change_brokers(self) -> None:
        """A broker leaves, and others get its bundles; or one joins, which has none.  Two with load data stay."""
        unused = [name for name in self.pool if name not in self.alive]
        if self.random.random() < 0.5 and len(self.alive) - len(self.silent) > 2:
            gone = self.random.choice(self.alive)
            self.alive.remove(gone)
            self.silent.discard(gone)
            self.bundles.pop(_heartbeat(gone), None)
            self.owner.pop(_heartbeat(gone), None)
            for name, owner in self.owner.items():
                if owner == gone:
                    self.owner[name] = self.random.choice(self.alive)
        elif unused:
            self.alive = sorted([*self.alive, unused[0]])
            if self.may_be_silent and self.random.random() < 0.3:
                self.silent.add(unused[0])

    def fall_silent(self) -> None:
        """Some brokers send no load data for a round; two do always."""
        self.silent = {name for name in self.alive[2:] if self.random.random() < 0.2}

    def speak(self) -> None:
        """Each broker that sent no load data may begin to."""
        self.silent = {name for name in sorted(self.silent) if self.random.random() < 0.5}

    def carry_out(self, unloads: Iterable[Sequence[str]], splits: Iterable[Sequence[str]]) -> None:
        """Bundles move to their destinations, and split in two; where parts are unloaded, one may land anywhere."""
        for name, _, destination in unloads:
            self.owner[name] = destination
        for name, unloaded in splits:
            whole, at = parse_bundle(name), self.owner.pop(name)
            split, middle = self.bundles.pop(name), whole.lower + (whole.upper - whole.lower) // 2
            halves = (whole._replace(upper=middle), whole._replace(lower=middle))
            for nth, (half, share) in enumerate(zip(halves, _SHARES, strict=True)):
                self.bundles[str(half)] = split.part(share)
                self.owner[str(half)] = self.random.choice(self.alive) if nth and unloaded == "true" else at

    def round(self, time: int) -> dict[str, Any]:
        """The brokers and bundles as they are reported at *time* (ms)."""
        _apart(self.bundles.values())
        reporting = [name for name in self.alive if name not in self.silent]
        bundles = {
            name: _bundle_json(self.owner[name], bundle)
            for name, bundle in sorted(self.bundles.items())
            if self.owner[name] in reporting
        }
        owned = {name: [self.bundles[b] for b, one in bundles.items() if one["owner"] == name] for name in reporting}
        busiest = max(1, *(sum(sum(bundle.short_term[2:]) for bundle in all_of) for all_of in owned.values()))
        capacity = busiest / self.random.uniform(0.4, 1.25)
        brokers = [self._broker_json(name, all_of, capacity) for name, all_of in owned.items()]
        return {"t": time, "brokers": brokers, "missing": sorted(self.silent), "bundles": bundles}

    def _broker_json(self, name: str, bundles: Sequence[Bundle], capacity: float) -> dict[str, Any]:
        load = [sum(bundle.short_term[column] for bundle in bundles) for column in range(4)]
        used, random = (load[2] + load[3]) / capacity, self.random
        cores = random.choice((2, 4, 8, 16)) * 100
        cpu = round(cores * min(1.0, max(0.0, used + random.uniform(-0.05, 0.1))), 1)
        kbits = round(capacity / _KBIT) or 1
        return {
            "name": name,
            "cpu": [cpu, cores],
            "memory": [random.randint(400, 4000), 4096],
            "directMemory": [random.randint(400, 7400), 8192],
            "bandwidthIn": [load[2] // _KBIT, kbits],
            "bandwidthOut": [load[3] // _KBIT, kbits],
            "load": load,
            "topics": sum(bundle.topics for bundle in bundles),
            "long_term": [sum(bundle.long_term[column] for bundle in bundles) for column in range(4)],
        }


def world(random: Random, *, may_be_silent: bool) -> World:
    """A cluster of a few brokers, on which its bundles are spread unevenly; some brokers *may be silent*."""
    pool = broker_names(random)
    alive = list(pool[: random.randint(2, 6)])
    rate, size = random.lognormvariate(8, 1), random.uniform(50, 4000)
    bundles = {name: _bundle(random, rate, size) for name in _bundle_names(random, len(alive) * random.randint(2, 6))}
    weights = [random.lognormvariate(0, random.uniform(0, 1.2)) for _ in alive]
    owner = {name: random.choices(alive, weights)[0] for name in bundles}
    if random.random() < 0.25:
        heartbeats = {_heartbeat(name): name for name in alive}
        bundles |= {bundle: _bundle(random, rate, size, topics=1) for bundle in heartbeats}
        owner |= heartbeats
    return World(random=random, may_be_silent=may_be_silent, pool=pool, alive=alive, bundles=bundles, owner=owner)


def _heartbeat(broker: str) -> str:
    return f"pulsar/{broker}/0x00000000_0xffffffff"


def broker_names(random: Random) -> tuple[str, ...]:
    """Names whose order is that of their buckets, one name a bucket, in Java's hash maps of 16 buckets and of more."""
    while True:
        prefix = "".join(random.choice(_LETTERS) for _ in range(3))
        names = tuple(f"{prefix}-{i}:{_PORT}" for i in range(_POOL))
        buckets = [_spread(name) % 64 for name in names]
        if buckets == sorted(set(buckets)) and buckets[-1] < 16:
            return names


def _spread(text: str) -> int:
    """The hash code of java.lang.String, as java.util.HashMap spreads it."""
    code = 0
    for letter in text:
        code = (code * 31 + ord(letter)) % (1 << _HASH_BITS)
    return code ^ (code >> 16)


def _brief(value: float) -> int:
    """*value* in three digits, so that vectors stay small."""
    return int(float(f"{value:.2e}"))


def _bundle(random: Random, rate: float, size: float, topics: int | None = None) -> Bundle:
    of_in = random.lognormvariate(0, 1.2) * rate
    of_out, size = of_in * random.uniform(0.2, 3), size * random.uniform(0.5, 2)
    load = [of_in, of_out, of_in * size, of_out * size]
    if random.random() < 0.04:
        load = [0.0] * 4
    return Bundle(
        short_term=[_brief(value) for value in load],
        long_term=[_brief(value * random.uniform(0.5, 1.6)) for value in load],
        topics=topics or int(random.lognormvariate(4, 1.2)),
        producers=int(random.lognormvariate(4.6, 1.2)),
        consumers=int(random.lognormvariate(4.6, 1.2)),
    )


def _bundle_names(random: Random, count: int) -> list[str]:
    """The first *count* bundles of namespaces that have 1 to 16 each."""
    names: list[str] = []
    namespace = 0
    while len(names) < count:
        parts = 1 << random.randint(0, 4)
        edges = [(1 << 32) * i // parts for i in range(parts)] + [(1 << 32) - 1]
        names += [f"acme/n{namespace}/0x{edges[i]:08x}_0x{edges[i + 1]:08x}" for i in range(parts)]
        namespace += 1
    return names[:count]


def namespaces(bundles: Iterable[str]) -> list[str]:
    """The namespaces of *bundles* that users have, in their order."""
    return sorted({namespace_of(name) for name in bundles if name.startswith("acme/")})


def _apart(bundles: Iterable[Bundle]) -> None:
    """Change loads by as little as makes the totals of all bundles differ: one bundle at most is without load."""
    for columns in ((0, 1), (2, 3)):
        used: set[int] = set()
        for bundle in bundles:
            while (total := sum(bundle.short_term[column] for column in columns)) in used:
                bundle.short_term[columns[0]] += 1
            used.add(total)


def _bundle_json(owner: str, bundle: Bundle) -> dict[str, Any]:
    return {
        "owner": owner,
        "st": list(bundle.short_term),
        "lt": list(bundle.long_term),
        "topics": bundle.topics,
        "producers": bundle.producers,
        "consumers": bundle.consumers,
    }


def policies(random: Random, world: World) -> Mapping[str, Any]:
    """Isolation policies, anti-affinity groups, failure domains and versions, each of them in some worlds alone."""
    prefix, names = world.pool[0].partition("-")[0], namespaces(world.bundles)
    isolation = {}
    # Not with silent brokers: Pulsar's modular load manager may choose one of them by isolation, and throws.
    if random.random() < 0.45 and not world.may_be_silent:
        for nth in range(random.randint(1, 2)):
            isolation[f"p{nth}"] = {
                "namespaces": [random.choice(names)],
                "primary": [f"{prefix}-[{random.randint(0, 1)}-{random.randint(2, 4)}]{random.choice(_OF_A_PORT)}"],
                "secondary": random.choice(([], [f"{prefix}-[4-7]"], [f"{prefix}-[4-7]{_OF_A_PORT[1]}"])),
                "min_limit": random.randint(0, 3),
                "usage_threshold": random.choice((80, 100)),
            }
    grouped = random.random() < 0.5
    return {
        "isolation": isolation,
        "anti_affinity": {name: f"g{random.randint(0, 1)}" for name in names if grouped and random.random() < 0.5},
        "domains": {name: f"d{random.randint(0, 2)}" for name in world.pool if random.random() < 0.8},
        "versions": {name: random.choice(("4.0.7", "4.0.8", "4.0.8")) for name in world.pool if random.random() < 0.95},
    }
