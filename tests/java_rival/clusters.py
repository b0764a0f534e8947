"""Random clusters, and trimtab's answers beside those of the classes of Pulsar's modular load manager.

Loads and usages differ from each other, since Java's order of equal ones is a hash map's.  Loads are multiples of a
quarter: so their sums do not depend on the order, either.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any, Final

import numpy as np

from controller.aggregate.kept.averages import advance
from controller.model.load import ClusterView
from controller.model.memory import NoMemory
from controller.strategies.catalogue import PLACEMENTS, SHEDDERS
from controller.strategies.splitting.bundle_splitter_task import BundleSplitterTask
from tests.cluster import broker_table, bundle_table, cluster_view
from tests.conformance.brokers.local_broker_data import LocalBrokerData
from tests.conformance.vectors import configured
from tests.java_rival.asked import Asked

#: No namespace of an IPv6 host: Pulsar's patterns do not know it as a broker's own, and trimtab does.
_SPACES: Final = ("acme/a", "acme/b", "pulsar/b1:8080", "pulsar/c/b1:8080", "sla-monitor/c/b2:8080", "pulsar/h:x")
_MB: Final = 1024 * 1024
_MOST: Final = {"topics": 60, "sessions": 60, "rate": 4_000, "mbytes": 40}

Play = Callable[[Random], Iterator[Asked]]


def shedding(name: str, options: Callable[[Random], dict[str, Any]]) -> Play:
    """Several rounds of the shedder called *name*, with random *options*."""

    def play(random: Random) -> Iterator[Asked]:
        config = options(random)
        shedder = configured(SHEDDERS[name], config)
        memory = shedder.initial_memory()
        yield _new(name, config)
        names = _broker_names(random)
        for _ in range(random.randint(1, 4)):
            view = _cluster(random, names)
            yield Asked(_cluster_line(view), ("cluster",))
            decision, memory = shedder.decide(view, memory)
            unload = defaultdict(list)
            for one in decision.unloads:
                unload[one.source].append(one.bundle)
            yield Asked("shed", ("shed " + " ".join(" ".join((b, *unload[b])) for b in sorted(unload)),))

    return play


def placing(name: str, options: Callable[[Random], dict[str, Any]]) -> Play:
    """Several placements by the placement called *name*: the brokers that are equally good."""

    def play(random: Random) -> Iterator[Asked]:
        config = options(random)
        placement = configured(PLACEMENTS[name], config)
        memory = placement.initial_memory()
        yield _new(name, config)
        names = _broker_names(random)
        for _ in range(random.randint(1, 3)):
            view = _cluster(random, names)
            yield Asked(_cluster_line(view), ("cluster",))
            for _ in range(random.randint(1, 3)):
                rows = np.array(sorted(random.sample(range(len(names)), random.randint(1, len(names)))), np.int64)
                found, memory = placement.acceptable(view, 0, rows, memory)
                line = " ".join(["select", view.bundles.names[0], *(names[row] for row in rows.tolist())])
                best = [names[row] for row in found.tolist()]
                yield Asked(line, tuple(" ".join([one, *best]) for one in best))

    return play


def splitting(random: Random) -> Iterator[Asked]:
    """BundleSplitterTask; of a namespace all bundles that are over a limit are split, or none."""
    config = {
        "loadBalancerNamespaceMaximumBundles": 100,
        "loadBalancerNamespaceBundleMaxTopics": random.randint(2, _MOST["topics"]),
        "loadBalancerNamespaceBundleMaxSessions": random.choice((-1, 0, random.randint(1, _MOST["sessions"]))),
        "loadBalancerNamespaceBundleMaxMsgRate": random.randint(0, _MOST["rate"]),
        "loadBalancerNamespaceBundleMaxBandwidthMbytes": random.choice((0, 5, _MOST["mbytes"], 2047, 2048, 5000)),
    }
    yield _new("BundleSplitterTask", config)
    seen = _cluster(random, _broker_names(random))
    counts = {name: random.choice((10, 100)) for name in seen.bundles.namespaces}
    view = cluster_view(seen.brokers, seen.bundles, bundle_count=counts)
    yield Asked(_cluster_line(view), ("cluster",))
    decision, _ = configured(BundleSplitterTask, config).decide(view, NoMemory())
    words = " ".join(f"{one.bundle} {one.broker}" for one in sorted(decision.splits, key=lambda one: one.bundle))
    yield Asked(" ".join(["split", *(f"{name} {n}" for name, n in counts.items())]), (f"split {words}",))


def averaging(random: Random) -> Iterator[Asked]:
    """TimeAverageMessageData, sample after sample."""
    most, count, average = random.randint(1, 12), np.zeros(1, np.int64), np.zeros((1, 4))
    yield _new("BundleSplitterTask", {})
    for _ in range(random.randint(1, 20)):
        sample = _load(random)
        count, average = advance(count, average, np.array([sample]), most)
        answer = " ".join([str(int(count[0])), *map(repr, average[0].tolist())])
        yield Asked(" ".join(map(str, ["average", most, *sample])), (answer,))


def reporting(random: Random) -> Iterator[Asked]:
    """LocalBrokerData.update, report after report."""
    data = LocalBrokerData()
    yield _new("BundleSplitterTask", {})
    for _ in range(random.randint(1, 5)):
        clean = random.random() < 0.3
        data = data.without_deltas() if clean else data
        names = sorted(f"acme/a/{i}" for i in random.sample(range(8), random.randint(0, 8)))
        load = np.array([_load(random) for _ in names]).reshape(-1, 4)
        counts = np.array([_counts(random) for _ in names], np.int64).reshape(-1, 3)
        data = data.updated(names, load, *counts.T)
        rows = zip(names, load.tolist(), counts.tolist(), strict=True)
        words = [str(word) for name, of_load, of_counts in rows for word in (name, *of_load, *of_counts)]
        totals = [*map(repr, data.load.tolist()), data.topics, data.producers, data.consumers]
        sets = [word for one in (data.bundles, data.gains, data.losses) for word in (len(one), *sorted(one))]
        yield Asked(" ".join(["local", "clean" if clean else "keep", *words]), (" ".join(map(str, [*totals, *sets])),))


def _new(name: str, config: Mapping[str, Any]) -> Asked:
    words = [str(word).lower() if isinstance(word, bool) else str(word) for item in config.items() for word in item]
    return Asked(" ".join(["new", name, *words]), (name,))


def _broker_names(random: Random) -> tuple[str, ...]:
    return tuple(f"b{i}:8080" for i in range(1, random.randint(1, 7) + 1))


def _cluster(random: Random, names: tuple[str, ...]) -> ClusterView:
    n = len(names)
    owner_of = {}
    for i in range(random.randint(1, 6 * n)):
        owner_of[f"{random.choice(_SPACES[: random.choice((2, 6))])}/0x{i * 16:08x}_0x{i * 16 + 16:08x}"] = (
            random.randrange(n)
        )
    bundles = sorted(owner_of)
    owner = np.array([owner_of[name] for name in bundles], np.int64)
    load = np.array([_load(random) for _ in bundles])
    load[random.randrange(len(bundles))] *= random.choice((0, 1))
    topics, producers, consumers = np.array([_counts(random) for _ in bundles], np.int64).T
    table = bundle_table(
        bundles, owner, load=load, short_term=load, long_term=load,
        topics=topics, producers=producers, consumers=consumers,
    )  # fmt: skip
    total = np.zeros((n, 4))
    np.add.at(total, owner, load)
    percent = random.choice((30.0, 100.0))
    usage = np.array([[random.uniform(0, percent) for _ in range(5)] for _ in names])
    limit = np.array([[100.0, *(random.choice((100.0, 100.0, 200.0, 0.0)) for _ in range(4))] for _ in names])
    brokers = broker_table(
        names, usage=usage, limit=limit, load=total, long_term=total, bundle_count=np.bincount(owner, minlength=n)
    )
    return cluster_view(brokers, table, recently_unloaded=[name for name in bundles if random.random() < 0.1])


def _load(random: Random) -> list[float]:
    """msg/s in and out, bytes/s in and out, multiples of a quarter."""
    most = _MOST["rate"] * 2, _MOST["rate"] * 2, _MOST["mbytes"] * _MB * 2, _MOST["mbytes"] * _MB * 2
    return [random.randint(1, limit) / 4 for limit in most]


def _counts(random: Random) -> tuple[int, int, int]:
    """Topics, producers, consumers."""
    return random.randint(0, _MOST["topics"]), random.randint(0, _MOST["sessions"]), random.randint(0, 9)


def _cluster_line(view: ClusterView) -> str:
    brokers, bundles = view.brokers, view.bundles
    words: list[object] = ["cluster", len(brokers)]
    rows = zip(brokers.names, brokers.usage, brokers.limit, brokers.load, brokers.long_term[:, :2], strict=True)
    for name, *numbers in rows:
        words += [name, *np.concatenate(numbers).tolist()]
    words.append(len(bundles))
    counts = np.column_stack([bundles.topics, bundles.producers, bundles.consumers]).tolist()
    for row, name in enumerate(bundles.names):
        words += [name, int(bundles.broker[row]), *bundles.short_term[row].tolist(), *bundles.long_term[row].tolist()]
        words += counts[row]
    recent = [name for name, is_recent in zip(bundles.names, view.recently_unloaded.tolist(), strict=True) if is_recent]
    return " ".join(map(str, [*words, len(recent), *recent]))
