"""Random cases of single classes, in the form of ``tests/vectors``, without "expected".

Totals and usages differ from each other, since Java's order of equal ones is a hash map's.  Loads are multiples of a
quarter: so their sums do not depend on the order, either.
"""

from collections.abc import Callable
from random import Random
from typing import Any, Final

Config = dict[str, Any]
Input = dict[str, Any]

#: No namespace of an SLA monitor, whose bundles Pulsar moves and trimtab does not.
_SPACES: Final = ("acme/a", "acme/b", "pulsar/b1:8080", "pulsar/h:x")
_MB: Final = 1024 * 1024
_RING: Final = 0xFFFFFFFF
_MOST: Final = {"topics": 60, "sessions": 60, "rate": 4_000, "mbytes": 40}
_RESOURCES: Final = ("cpu", "memory", "directMemory", "bandwidthIn", "bandwidthOut")
_EXPRESSIONS: Final = ("b1", "b[1-3]", "b[4-7]", ".*", "b", "", "(?i)B2", "b5|b6", "b2:8080", "b[4-6]:.*")


def case(component: str, seed: str, number: int) -> dict[str, Any]:
    """The case *number* of *component* for *seed*."""
    config, given = _PLAYS[component](Random(f"{seed}/{component}/{number}"))
    return {"case": f"random_{component}-{seed}-{number}", "config": config, "input": given}


def _overload(random: Random) -> tuple[Config, Input]:
    return _overloaded_at(random) | _weights(random), _shedding(random, _names(random))


def _threshold(random: Random) -> tuple[Config, Input]:
    config = {
        "loadBalancerBrokerThresholdShedderPercentage": random.choice((5, 10, 30)),
        "loadBalancerHistoryResourcePercentage": random.choice((0.0, 0.5, 0.9)),
        "loadBalancerBundleUnloadMinThroughputThreshold": random.choice((0.0, 1.0, 10.0)),
        "lowerBoundarySheddingEnabled": random.random() < 0.5,
    }
    return config | _weights(random), _rounds(random, 4)


def _uniform(random: Random) -> tuple[Config, Input]:
    config = {
        "loadBalancerMsgRateDifferenceShedderThreshold": random.choice((0, 20, 50)),
        "loadBalancerMsgThroughputMultiplierDifferenceShedderThreshold": random.choice((0, 2, 4)),
        "minUnloadMessage": random.choice((0, 100, 1000)),
        "minUnloadMessageThroughput": random.choice((0, _MB)),
        "maxUnloadPercentage": random.choice((0.2, 0.5)),
    }
    return config, _rounds(random, 3)


def _avg(random: Random) -> tuple[Config, Input]:
    config = {
        "loadBalancerAvgShedderLowThreshold": random.choice((0, 5, 15)),
        "loadBalancerAvgShedderHighThreshold": random.choice((20, 40)),
        "loadBalancerAvgShedderHitCountLowThreshold": random.choice((1, 2, 3)),
        "loadBalancerAvgShedderHitCountHighThreshold": random.choice((1, 2)),
        "minUnloadMessage": random.choice((0, 100)),
        "minUnloadMessageThroughput": random.choice((1024, _MB)),
        "maxUnloadPercentage": random.choice((0.2, 0.5, 1.0)),
    }
    return config | _weights(random), _rounds(random, 4)


def _least_rate(random: Random) -> tuple[Config, Input]:
    given = _shedding(random, _names(random))
    names, bundles = [broker["name"] for broker in given["brokers"]], given["bundles"]
    on_their_way = {name: random.sample(sorted(bundles), random.randint(0, min(2, len(bundles)))) for name in names}
    rates = [{"name": name, "long_term_rate": _load(random)[:2], "preallocated": on_their_way[name]} for name in names]
    return _overloaded_at(random) | _weights(random), {
        "brokers": given["brokers"],
        "broker_rates": rates,
        "bundle_long_term": {name: row[:4] for name, row in bundles.items()},
        "candidates": random.sample(names, random.randint(1, len(names))),
    }


def _least_usage(random: Random) -> tuple[Config, Input]:
    rounds = []
    names = _names(random)
    for _ in range(random.randint(1, 4)):
        given = _shedding(random, names)
        for row, broker in enumerate(given["brokers"]):
            broker["rate"] = broker["load"][:2]
            broker["num_bundles"] = sum(bundle[4] == row for bundle in given["bundles"].values())
        candidates = random.sample(names, random.randint(1, len(names)))
        change = random.choice((None, None, random.sample(names, random.randint(1, len(names)))))
        rounds.append({"brokers": given["brokers"], "candidates": candidates, "active_brokers_change": change})
    config = {
        "loadBalancerAverageResourceUsageDifferenceThresholdPercentage": random.choice((0, 5, 10)),
        "loadBalancerHistoryResourcePercentage": random.choice((0.0, 0.5, 0.9)),
    }
    return config | _weights(random), {"rounds": rounds}


def _ext_least_usage(random: Random) -> tuple[Config, Input]:
    names = _names(random)
    known = {name: random.uniform(0, 1.2) for name in names if random.random() < 0.8}
    config = {"loadBalancerAverageResourceUsageDifferenceThresholdPercentage": random.choice((0, 5, 10, 30))}
    candidates = random.sample(names, random.randint(1, len(names)))
    return config, {"candidates": candidates, "weighted_max_ema": known}


def _round_robin(random: Random) -> tuple[Config, Input]:
    names = _names(random)
    sequences = [random.sample(names, random.randint(1, len(names))) for _ in range(random.randint(2, 5))]
    asked = [sequence for sequence in sequences for _ in range(random.randint(1, 4))]
    return {}, {"start_count": random.choice((0, 5, 2**31 - 3)), "candidate_sequences": asked}


def _anti_affinity(random: Random) -> tuple[Config, Input]:
    names = _names(random)
    spaces = [f"acme/n{i}" for i in range(6)]
    groups = {name: random.choice(("g1", "g2", "G1", None)) for name in spaces if random.random() < 0.8}
    owned = {name: [_range_of(random, random.choice(spaces)) for _ in range(random.randint(0, 4))] for name in names}
    return {"failureDomainsEnabled": random.random() < 0.6}, {
        "namespace_groups": groups,
        "owned_bundles": {name: sorted(set(bundles)) for name, bundles in owned.items()},
        "broker_domains": {name: random.choice("xyz") for name in names if random.random() < 0.8},
        "candidates": random.sample(names, random.randint(1, len(names))),
        "bundle": _range_of(random, random.choice(spaces)),
    }


def _policies(random: Random) -> tuple[Config, Input]:
    names = [*_names(random), "noport"]
    policies = {
        f"p{i}": {
            "namespaces": random.sample(("acme/a", "acme/.*", "acme/b", "other/.*"), random.randint(1, 2)),
            **_policy(random),
        }
        for i in range(random.randint(0, 3))
    }
    return {}, {
        "policies": policies,
        "policies_lookup_fails": random.random() < 0.1,
        "namespace": random.choice(("acme/a", "acme/b", "acme/c")),
        "service_unit_is_bundle": random.random() < 0.8,
        "has_non_persistent_topic": random.random() < 0.5,
        "available_brokers": names,
        "topic_modes": {name: [random.random() < 0.8, random.random() < 0.8] for name in names},
    }


def _policy(random: Random) -> dict[str, Any]:
    return {
        "primary": random.sample(_EXPRESSIONS, random.randint(1, 2)),
        "secondary": random.sample(_EXPRESSIONS, random.randint(0, 2)),
        "min_limit": random.randint(0, 3),
        "usage_threshold": random.choice((50, 80, 100)),
    }


def _isolation(random: Random) -> tuple[Config, Input]:
    hosts = random.sample([f"b{i}" for i in range(1, 8)], random.randint(0, 7))
    factors = random.sample(range(101), len(hosts))
    brokers = [
        {"host": host, "active": random.random() < 0.8, "load_factor": factor}
        for host, factor in zip(hosts, factors, strict=True)
    ]
    return {}, {**_policy(random), "brokers": brokers}


def _large_topic_count(random: Random) -> tuple[Config, Input]:
    names = _names(random)
    brokers = {
        name: {
            "num_topics": random.randint(0, 100),
            "preallocated_topics": [random.randint(0, 50) for _ in range(random.randint(0, 3))],
        }
        for name in names
        if random.random() < 0.9
    }
    return {"loadBalancerBrokerMaxTopics": random.randint(1, 150)}, {"brokers": brokers, "candidates": names}


def _splitter_task(random: Random) -> tuple[Config, Input]:
    """Of a namespace all bundles that are over a limit are split, or none."""
    given = _shedding(random, _names(random))
    last: dict[str, Any] = {broker["name"]: {} for broker in given["brokers"]}
    names = list(last)
    for bundle, row in given["bundles"].items():
        last[names[row[4]]][bundle] = _counts(random)
    config = {
        "loadBalancerNamespaceMaximumBundles": 100,
        "loadBalancerNamespaceBundleMaxTopics": random.randint(2, _MOST["topics"]),
        "loadBalancerNamespaceBundleMaxSessions": random.choice((-1, 0, random.randint(1, _MOST["sessions"]))),
        "loadBalancerNamespaceBundleMaxMsgRate": random.randint(0, _MOST["rate"]),
        "loadBalancerNamespaceBundleMaxBandwidthMbytes": random.choice((0, 5, _MOST["mbytes"], 2047, 2048, 5000)),
    }
    spaces = sorted({bundle.rpartition("/")[0] for bundle in given["bundles"]})
    return config, {
        "broker_last_stats": last,
        "bundle_long_term": {bundle: row[:4] for bundle, row in given["bundles"].items()},
        "namespace_bundle_count": {name: random.choice((10, 100)) for name in spaces},
        "count_fails": [],
    }


def _algorithms(random: Random) -> tuple[Config, Input]:
    parts = random.randint(1, 4)
    edges = [_RING * i // parts for i in range(parts)] + [_RING]
    part = random.randrange(parts)
    topics = [_topic(random, f"t{i}") for i in range(random.choice((0, 1, 2, 3, 10, 30)))]
    name = random.choice(("range_equally_divide", "topic_count_equally_divide", "flow_or_qps_equally_divide"))
    config: Config = {"algorithm": name}
    given: Input = {
        "bundle_boundaries": [f"0x{edge:08x}" for edge in edges],
        "bundle": f"0x{edges[part]:08x}_0x{edges[part + 1]:08x}",
        "topics": topics,
    }
    if name == "flow_or_qps_equally_divide":
        config |= {
            "loadBalancerNamespaceBundleMaxMsgRate": random.randint(1, _MOST["rate"]),
            "loadBalancerNamespaceBundleMaxBandwidthMbytes": random.choice((0, 1, _MOST["mbytes"])),
            "flowOrQpsDifferenceThresholdPercentage": random.choice((0, 10, 50)),
        }
        given["topic_stats"] = {topic: _load(random) for topic in topics if random.random() < 0.9}
    return config, given


def _time_average(random: Random) -> tuple[Config, Input]:
    samples = [_load(random) for _ in range(random.randint(1, 20))]
    return {"max_samples": random.randint(1, 12), "default_stats": random.random() < 0.5}, {
        "samples": samples,
        "steps": random.randint(1, 25),
    }


def _local_data(random: Random) -> tuple[Config, Input]:
    rounds = []
    for _ in range(random.randint(1, 5)):
        names = random.sample([f"acme/a/{i}" for i in range(8)], random.randint(0, 8))
        rounds.append({
            "clean_deltas_first": random.random() < 0.3,
            "stats": {name: [*_load(random), *_counts(random)] for name in names},
            "usage": [[random.uniform(0, 100), 100.0] for _ in _RESOURCES],
        })  # fmt: skip
    return {}, {"rounds": rounds}


def _broker_load(random: Random) -> tuple[Config, Input]:
    updates = [
        {"clear_first": random.random() < 0.2, "load": _load(random), **_usages(random, 100.0)}
        for _ in range(random.randint(1, 5))
    ]
    config = {
        "loadBalancerMemoryResourceWeight": random.choice((0.0, 1.0)),
        "loadBalancerHistoryResourcePercentage": random.choice((0.0, 0.5, 0.9)),
    }
    return config | _weights(random), {"updates": updates}


def _top_bundles(random: Random) -> tuple[Config, Input]:
    bundles = _shedding(random, _names(random))["bundles"]
    stats = {name: [*row[:4], *_counts(random)] for name, row in bundles.items()}
    return {"k": random.choice((1, 3, 10))}, {"bundle_stats": stats}


def _topic_names(random: Random) -> tuple[Config, Input]:
    name = _topic(
        random, random.choice(("a", "a-partition-3", "a-partition-03", "a-partition-x", "ö/b", "", "a b", "a%"))
    )
    return {}, {"topic": random.choice((name, name, name.partition("://")[2], name.replace("public/", "", 1)))}


_PLAYS: Final[dict[str, Callable[[Random], tuple[Config, Input]]]] = {
    "overload_shedder": _overload,
    "threshold_shedder": _threshold,
    "uniform_load_shedder": _uniform,
    "avg_shedder": _avg,
    "least_long_term_message_rate": _least_rate,
    "least_resource_usage_with_weight": _least_usage,
    "ext_least_resource_usage_with_weight": _ext_least_usage,
    "round_robin_selector": _round_robin,
    "anti_affinity_filter": _anti_affinity,
    "apply_namespace_policies": _policies,
    "namespace_isolation_policy": _isolation,
    "filter_large_topic_count": _large_topic_count,
    "bundle_splitter_task": _splitter_task,
    "bundle_split_algorithms": _algorithms,
    "time_average": _time_average,
    "local_broker_data_update": _local_data,
    "ext_broker_load_data": _broker_load,
    "ext_top_k_bundles": _top_bundles,
    "topic_names": _topic_names,
}
COMPONENTS: Final = tuple(_PLAYS)


def _names(random: Random) -> list[str]:
    return [f"b{i}:8080" for i in range(1, random.randint(1, 7) + 1)]


def _rounds(random: Random, most: int) -> Input:
    names = _names(random)
    return {"rounds": [_shedding(random, names) for _ in range(random.randint(1, most))]}


def _shedding(random: Random, names: list[str]) -> Input:
    """Brokers and their bundles."""
    bundles: dict[str, list[float]] = {}
    for i in range(random.randint(1, 6 * len(names))):
        space = random.choice(_SPACES[: random.choice((2, 4))])
        bundles[f"{space}/0x{i * 16:08x}_0x{i * 16 + 16:08x}"] = [*_load(random), random.randrange(len(names))]
    if random.random() < 0.5:
        bundles[random.choice(sorted(bundles))][:4] = [0.0] * 4
    _apart(bundles)
    owned = [[row for row in bundles.values() if row[4] == code] for code in range(len(names))]
    percent = random.choice((30.0, 100.0))
    brokers = [
        {
            "name": name,
            **_usages(random, percent),
            "load": [sum(row[column] for row in rows) for column in range(4)],
        }
        for name, rows in zip(names, owned, strict=True)
    ]
    recent = [name for name in sorted(bundles) if random.random() < 0.1]
    return {"brokers": brokers, "bundles": bundles, "recently_unloaded": recent}


def _apart(bundles: dict[str, list[float]]) -> None:
    """Change loads by as little as makes the totals of all bundles differ."""
    for column in (0, 2):
        used: set[float] = set()
        for row in bundles.values():
            while (total := row[column] + row[column + 1]) in used:
                row[column] += 0.25
            used.add(total)


def _usages(random: Random, percent: float) -> dict[str, list[float]]:
    limits = [100.0, *(random.choice((100.0, 100.0, 200.0, 0.0)) for _ in _RESOURCES[1:])]
    return {name: [random.uniform(0, percent), limit] for name, limit in zip(_RESOURCES, limits, strict=True)}


def _load(random: Random) -> list[float]:
    """msg/s in and out, bytes/s in and out, multiples of a quarter."""
    most = _MOST["rate"] * 2, _MOST["rate"] * 2, _MOST["mbytes"] * _MB * 2, _MOST["mbytes"] * _MB * 2
    return [random.randint(1, limit) / 4 for limit in most]


def _counts(random: Random) -> list[int]:
    """Topics, producers, consumers."""
    return [random.randint(0, _MOST["topics"]), random.randint(0, _MOST["sessions"]), random.randint(0, 9)]


def _range_of(random: Random, namespace: str) -> str:
    part = random.randrange(4)
    return f"{namespace}/0x{part << 30:08x}_0x{min((part + 1) << 30, _RING):08x}"


def _topic(random: Random, local_name: str) -> str:
    return f"{random.choice(('persistent', 'non-persistent'))}://public/default/{local_name}"


def _overloaded_at(random: Random) -> Config:
    return {"loadBalancerBrokerOverloadedThresholdPercentage": random.choice((20, 50, 85))}


def _weights(random: Random) -> Config:
    names = ("CPU", "DirectMemory", "BandwidthIn", "BandwidthOut")
    return {f"loadBalancer{name}ResourceWeight": random.choice((0.0, 0.5, 1.0)) for name in names}
