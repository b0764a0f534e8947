"""Whole cycles over many rounds, by the real load managers of Pulsar: recorded as vectors, or compared at once.

Python makes the cluster of each round, ``java/cycles`` asks Pulsar's classes about it, and what they answer makes the
cluster of the next round.
"""

from collections.abc import Mapping
from random import Random
from typing import Any, Final

from tests.java_rival import worlds
from tests.java_rival.driver import Driver

Case = dict[str, Any]

_BEGINS: Final = 1_700_000_040_000
_MINUTE_MS: Final = 60_000
#: A case ends when splits have made more bundles than these, so that vectors stay small.
_MOST_BUNDLES: Final = 100
_CLASSES: Final = "org.apache.pulsar.broker.loadbalance"
_EXTENSIBLE: Final = f"{_CLASSES}.extensions.ExtensibleLoadManagerImpl"
_MODULAR: Final = f"{_CLASSES}.impl.ModularLoadManagerImpl"
_SHEDDERS: Final = ("ThresholdShedder", "OverloadShedder", "UniformLoadShedder", "AvgShedder")
_PLACEMENTS: Final = ("LeastLongTermMessageRate", "LeastResourceUsageWithWeight", "RoundRobinBrokerSelector")


def modular(driver: Driver, seed: str, number: int) -> Case:
    """A case of ModularLoadManagerImpl: checkNamespaceBundleSplit, then doLoadShedding, in each round."""
    random = Random(f"{seed}/modular/{number}")
    shedder, placement = _SHEDDERS[number % len(_SHEDDERS)], random.choice(_PLACEMENTS)
    placement = shedder if shedder == "AvgShedder" else placement
    config = {
        "loadManagerClassName": _MODULAR,
        "loadBalancerLoadSheddingStrategy": f"{_CLASSES}.impl.{shedder}",
        "loadBalancerLoadPlacementStrategy": f"{_CLASSES}.impl.{placement}",
        "loadBalancerSheddingGracePeriodMinutes": random.choice((1, 2, 3, 30)),
        "loadBalancerDistributeBundlesEvenlyEnabled": random.random() < 0.6,
        "loadBalancerAverageResourceUsageDifferenceThresholdPercentage": random.randint(0, 15),
        **_of_the_shedder(random, shedder),
        **_splits(random),
        **_of_both(random),
        **_excluded(driver.version, seed, number),
    }
    return _played(driver, f"modular-{seed}-{number}", config, random, rounds=random.randint(2, 6))


def extensible(driver: Driver, seed: str, number: int) -> Case:
    """A case of UnloadScheduler with TransferShedder, and of ExtensibleLoadManagerImpl.selectAsync."""
    random = Random(f"{seed}/extensible/{number}")
    config = {
        "loadManagerClassName": _EXTENSIBLE,
        "loadBalancerLoadSheddingStrategy": f"{_CLASSES}.extensions.scheduler.TransferShedder",
        "loadBalancerTransferEnabled": number % 3 != 0,
        "loadBalancerSheddingGracePeriodMinutes": random.choice((1, 2, 5, 30)),
        "loadBalanceSheddingDelayInSeconds": random.choice((30, 60, 120, 180)),
        "loadBalancerBrokerLoadTargetStd": random.choice((0.05, 0.1, 0.25)),
        "loadBalancerSheddingConditionHitCountThreshold": random.randint(0, 2),
        "loadBalancerMaxNumberOfBrokerSheddingPerCycle": random.randint(1, 4),
        "loadBalancerMaxNumberOfBundlesInBundleLoadReport": random.choice((3, 10)),
        "loadBalancerDebugModeEnabled": random.random() < 0.5,
        "loadBalancerSheddingBundlesWithPoliciesEnabled": random.random() < 0.85,
        "loadBalancerMemoryResourceWeight": random.choice((0.0, 0.0, 1.0)),
        "loadBalancerHistoryResourcePercentage": random.choice((0.0, 0.5, 0.9)),
        "loadBalancerAverageResourceUsageDifferenceThresholdPercentage": random.randint(0, 15),
        **_of_both(random),
        **_excluded(driver.version, seed, number),
    }
    return _played(driver, f"extensible-{seed}-{number}", config, random, rounds=random.randint(3, 8))


MANAGERS: Final = {"modular": modular, "extensible": extensible}


def class_names(manager: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """*config* with the class of *manager*, and strategies by the full names of their classes."""
    strategies = ("loadBalancerLoadSheddingStrategy", "loadBalancerLoadPlacementStrategy")
    full = {key: f"{_CLASSES}.impl.{config[key]}" for key in strategies if key in config}
    return {**config, **full, "loadManagerClassName": {"modular": _MODULAR, "extensible": _EXTENSIBLE}[manager]}


def _played(driver: Driver, name: str, config: Mapping[str, Any], random: Random, rounds: int) -> Case:
    changing, may_be_silent = random.random() < 0.4, random.random() < 0.3
    # A broker that loses its report is the modular load manager's: the extensible one goes on with the last report, and
    # trimtab does not.
    falls_silent = may_be_silent and config["loadManagerClassName"] == _MODULAR
    world, most = worlds.world(random, may_be_silent=may_be_silent), random.choice((0.0, 0.1, 0.3))
    given = dict(worlds.policies(random, world))
    driver.ask({"config": config, "input": given})
    asked, answers = [], []
    for nth in range(rounds):
        if nth:
            world.drift(most)
            world.speak()
            if changing and random.random() < 0.4:
                world.change_brokers()
        if falls_silent and random.random() < 0.5:
            world.fall_silent()
        now = world.round(_BEGINS + nth * _MINUTE_MS)
        answer = driver.ask(now)
        now["recently_unloaded"] = answer.pop("recently_unloaded")
        asked.append(now)
        answers.append({key: value for key, value in answer.items() if value not in ({}, [])})
        # Pulsar counts it as unloaded where it assigns a bundle to its own broker again, or to none; trimtab leaves it.
        if any(to in ("", source) for _, source, to in answer["unloads"]) or len(world.bundles) > _MOST_BUNDLES:
            break
        world.carry_out(answer["unloads"], answer["splits"])
    return {
        "case": name,
        "pulsar": driver.version,
        "config": dict(config),
        "input": given | {"rounds": asked},
        "expected": {"rounds": answers},
    }


def _of_the_shedder(random: Random, shedder: str) -> dict[str, Any]:
    messages = {"minUnloadMessage": random.choice((100, 1000)), "minUnloadMessageThroughput": 1000}
    share = {"maxUnloadPercentage": random.choice((0.2, 0.5))} | messages
    match shedder:
        case "ThresholdShedder":
            return {
                "loadBalancerBrokerThresholdShedderPercentage": random.randint(2, 20),
                "loadBalancerHistoryResourcePercentage": random.choice((0.0, 0.5, 0.9)),
                "loadBalancerBundleUnloadMinThroughputThreshold": random.choice((0.0, 1.0)),
                "lowerBoundarySheddingEnabled": random.random() < 0.4,
            }
        case "UniformLoadShedder":
            return {
                "loadBalancerMsgRateDifferenceShedderThreshold": random.choice((0.0, 10.0, 50.0)),
                "loadBalancerMsgThroughputMultiplierDifferenceShedderThreshold": random.choice((1.2, 4.0)),
            } | share
        case "AvgShedder":
            return {
                "loadBalancerAvgShedderLowThreshold": random.choice((5, 15)),
                "loadBalancerAvgShedderHighThreshold": random.choice((15, 40)),
                "loadBalancerAvgShedderHitCountLowThreshold": random.randint(1, 3),
                "loadBalancerAvgShedderHitCountHighThreshold": random.randint(1, 2),
            } | share
        case _:
            return {}


def _splits(random: Random) -> dict[str, Any]:
    return {
        "loadBalancerAutoBundleSplitEnabled": random.random() < 0.35,
        "loadBalancerAutoUnloadSplitBundlesEnabled": random.random() < 0.6,
        "loadBalancerNamespaceMaximumBundles": 1_000,
        "loadBalancerNamespaceBundleMaxTopics": random.choice((100_000, random.randint(60, 400))),
        "loadBalancerNamespaceBundleMaxSessions": random.choice((-1, random.randint(300, 900))),
        "loadBalancerNamespaceBundleMaxMsgRate": random.choice((2_000_000_000, 30_000)),
        "loadBalancerNamespaceBundleMaxBandwidthMbytes": random.choice((2_000, 100)),
    }


def _of_both(random: Random) -> dict[str, Any]:
    names = ("CPU", "DirectMemory", "BandwidthIn", "BandwidthOut")
    return {
        "loadBalancerBrokerOverloadedThresholdPercentage": random.choice((40, 70, 85)),
        "loadBalancerBrokerMaxTopics": random.choice((50_000, random.randint(100, 1500))),
        "failureDomainsEnabled": random.random() < 0.5,
        "preferLaterVersions": random.random() < 0.2,
        **{f"loadBalancer{name}ResourceWeight": random.choice((0.0, 1.0)) for name in names[1:]},
        "loadBalancerCPUResourceWeight": 1.0,
    }


def _excluded(version: str, seed: str, number: int) -> dict[str, Any]:
    """Namespaces whose bundles stay, since Pulsar 4.2; drawn apart, so that everything else is drawn as before.

    Pulsar unloads the parts of their bundles after a split all the same, and trimtab does not.
    """
    if tuple(map(int, version.split(".")[:2])) < (4, 2):
        return {}
    names = Random(f"{seed}/excluded/{number}").choice(("", "", "acme/n0", "acme/n1,acme/n2"))
    parts_stay = {"loadBalancerAutoUnloadSplitBundlesEnabled": False} if names else {}
    return {"loadBalancerSheddingExcludedNamespaces": names, **parts_stay}
