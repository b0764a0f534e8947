from itertools import compress

import numpy as np

from controller.strategies.placement.ext_least_resource_usage_with_weight import ExtLeastResourceUsageWithWeight
from tests.conformance.vectors import Case, configured, floats

COMPONENT = "ext_least_resource_usage_with_weight"
_ONLY_LOGGED = ("loadBalancerBrokerOverloadedThresholdPercentage",)


def test_the_same_brokers_are_acceptable(case: Case) -> None:
    placement = configured(ExtLeastResourceUsageWithWeight, case["config"], unused=_ONLY_LOGGED)
    candidates, ema = case["input"]["candidates"], case["input"]["weighted_max_ema"]
    known = np.array([name in ema for name in candidates], np.bool_)
    best = placement.best(floats([ema.get(name, 0) for name in candidates]), known)
    assert sorted(compress(candidates, best.tolist())) == sorted(case["expected"]["acceptable_brokers"])
