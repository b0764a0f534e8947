"""Random brokers of the extensible load manager, whose bundles move and split, beside Pulsar's reporters and shedder.

Java is told every change of a bundle's state, as brokers are; trimtab only sees who owns which bundles in each round.
So no bundle changes twice between two rounds: one that went and came back would leave no trace in what trimtab sees.
Usages differ from each other, and throughputs are whole steps of Pulsar's order, since Java's order of equal ones is a
hash map's.
"""

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any, Final

import numpy as np

from controller.model.load import BANDWIDTH_IN, BANDWIDTH_OUT, CPU, THROUGHPUT_IN, THROUGHPUT_OUT, ClusterView
from controller.model.names import parse_bundle
from controller.strategies.shedding.transfer_shedder import TransferShedder
from controller.strategies.shedding.transfer_shedder.memory import TransferHistory
from tests.cluster import INTERVAL, broker_table, bundle_table, cluster_view
from tests.conformance.vectors import configured
from tests.java_rival.asked import PlanRequest

_STEP: Final = 100_000
_MINUTE_MS: Final = 60_000
_USED: Final = [CPU, BANDWIDTH_IN, BANDWIDTH_OUT]

Owners = dict[str, str]


def transferring(random: Random) -> Iterator[PlanRequest]:
    """Several rounds of TransferShedder; bundles come, move and split between them, whatever it decides."""
    config = _options(random)
    yield PlanRequest(" ".join(map(str, ["new", *(_word(word) for item in config.items() for word in item)])), ("new",))
    # Java is told of no broker that was unloaded recently.
    shedder = replace(configured(TransferShedder, config), shedding_delay_seconds=0)
    memory = shedder.initial_memory()
    names = [f"b{i}:8080" for i in range(1, random.randint(2, 5) + 1)]
    owner = {f"acme/a/0x{i * 16:08x}_0x{i * 16 + 16:08x}": random.choice(names) for i in range(random.randint(2, 25))}
    for nth in range(random.randint(2, 6)):
        view = replace(_cluster(random, names, owner), as_of_ms=INTERVAL + nth * _MINUTE_MS)
        decision, memory = shedder.decide(view, memory)
        unloads = sorted(
            f"{one.bundle} {one.source} {one.destination or '-'} {one.why.reason}" for one in decision.unloads
        )
        yield PlanRequest(_round_line(view), (" ".join(["averages", *_averages(memory), "unloads", *unloads]),))
        changing = random.sample(sorted(owner), min(len(owner), random.choice((0, 0, 1, 3))))
        for bundle in changing:
            yield from _changed(random, names, owner, bundle)


def _options(random: Random) -> dict[str, Any]:
    return {
        "loadBalancerBrokerLoadTargetStd": random.choice((0.05, 0.1, 0.25)),
        "loadBalancerHistoryResourcePercentage": random.choice((0.0, 0.5, 0.9)),
        "loadBalancerSheddingConditionHitCountThreshold": random.choice((0, 0, 1, 2)),
        "loadBalancerMaxNumberOfBrokerSheddingPerCycle": random.randint(1, 3),
        "loadBalancerMaxNumberOfBundlesInBundleLoadReport": random.choice((3, 10)),
        "loadBalancerBrokerOverloadedThresholdPercentage": random.choice((20, 50, 85)),
        "loadBalancerTransferEnabled": random.random() < 0.7,
        "loadBalancerSheddingBundlesWithPoliciesEnabled": True,
        "loadBalancerBandwidthInResourceWeight": random.choice((0.5, 1.0)),
    }


def _word(word: object) -> object:
    return str(word).lower() if isinstance(word, bool) else word


def _changed(random: Random, names: list[str], owner: Owners, bundle: str) -> Iterator[PlanRequest]:
    """*bundle* is split where it is, or moves, or another one is owned for the first time."""
    source, other = owner[bundle], random.choice([name for name in names if name != owner[bundle]])
    name = parse_bundle(bundle)
    match random.choice(("split", "move", "move", "new")):
        case "split" if name.upper - name.lower > 1:
            del owner[bundle]
            middle = (name.lower + name.upper) // 2
            yield _state(bundle, "Splitting", "-", source)
            for lower, upper in ((name.lower, middle), (middle, name.upper)):
                child = str(name._replace(lower=lower, upper=upper))
                owner[child] = source
                yield _state(child, "Owned", source, "-")
        case "new":
            bundle = f"acme/b/0x{len(owner):08x}_0x{len(owner) + 1:08x}"
            owner[bundle] = other
            yield _state(bundle, "Owned", other, "-")
        case _:
            owner[bundle] = other
            yield _state(bundle, "Releasing", other, source)
            yield _state(bundle, "Assigning", other, source)
            yield _state(bundle, "Owned", other, source)


def _state(bundle: str, state: str, destination: str, source: str) -> PlanRequest:
    return PlanRequest(f"state {bundle} {state} {destination} {source}", ("state",))


def _cluster(random: Random, names: list[str], owner: Owners) -> ClusterView:
    bundles, n = sorted(owner), len(names)
    load = np.zeros((len(bundles), 4))
    load[:, THROUGHPUT_IN] = _STEP * np.array(random.sample(range(1, 10 * len(bundles) + 1), len(bundles)))
    load[:, THROUGHPUT_OUT] = _STEP * np.array([random.randint(0, 9) for _ in bundles])
    owners = np.array([names.index(owner[bundle]) for bundle in bundles], np.int64)
    total = np.zeros((n, 4))
    np.add.at(total, owners, load)
    usage, limit = np.zeros((n, 5)), np.full((n, 5), 100.0)
    usage[:, _USED] = [[random.uniform(0, 100) for _ in _USED] for _ in names]
    return cluster_view(
        broker_table(names, usage=usage, limit=limit, load=total), bundle_table(bundles, owners, load=load)
    )


def _round_line(view: ClusterView) -> str:
    brokers, bundles = view.brokers, view.bundles
    words: list[object] = ["round"]
    for row, name in enumerate(brokers.names):
        owned = bundles.of_broker(row).tolist()
        words += [name, *brokers.usage[row, _USED].tolist(), len(owned)]
        for bundle in owned:
            words += [bundles.names[bundle], *bundles.load[bundle, [THROUGHPUT_IN, THROUGHPUT_OUT]].tolist()]
    return " ".join(map(str, words))


def _averages(memory: TransferHistory) -> list[str]:
    usage, throughput = memory.weighted_max_ema, memory.msg_throughput_ema
    return [word for name in sorted(usage) for word in (name, repr(usage[name]), repr(throughput[name]))]
