"""Small scenarios for tests."""

from typing import Any

from controller.aggregate.shard.fold import DetailLimits
from controller.settings.scenario import Scenario
from controller.simulator.world import BrokerRules, World
from controller.strategies.assignment.consistent_hashing import ConsistentHashingTopicBundleAssigner

ALL_DETAIL = DetailLimits(topics=0, sessions=0, msg_rate=0, throughput=0)


def values(**changed: Any) -> dict[str, Any]:
    """A scenario of three brokers, as TOML gives it, with some keys *changed*."""
    return {
        "title": "three brokers",
        "intervals": 20,
        "brokers": [{"count": 3}],
        "namespaces": [
            {"name": "acme/orders", "bundles": 8, "topics": 60},
            {"name": "acme/logs", "bundles": 4, "topics": 40},
        ],
        **changed,
    }


def scenario(**changed: Any) -> Scenario:
    """The scenario of :func:`values`."""
    return Scenario.model_validate(values(**changed))


def world(of: Scenario, *, seed: int = 1, true_limits: bool = False) -> World:
    """The cluster of a scenario."""
    rules = BrokerRules(assignment=ConsistentHashingTopicBundleAssigner(), evenly=True, overloaded=0.85)
    return World(of, seed, rules, ALL_DETAIL, true_limits=true_limits)
