from controller.model.resource_usage import ResourceWeights, max_usage, percent_usage
from tests.conformance.vectors import Case, close_to, resources

COMPONENT = "resource_usage"


def test_usage_is_the_same_as_in_pulsar(case: Case) -> None:
    usage, limit = resources([case["input"]])
    weights = {name: float(weight) for name, weight in case["config"]["weights"].items()}
    weighted = ResourceWeights(
        cpu_weight=weights["cpu"],
        direct_memory_weight=weights["directMemory"],
        bandwidth_in_weight=weights["bandwidthIn"],
        bandwidth_out_weight=weights["bandwidthOut"],
    ).weighted_usage(usage, limit)
    expected = case["expected"]
    assert percent_usage(usage, limit)[0].tolist() == close_to(expected["percent_usage"])
    assert max_usage(usage, limit)[0] == close_to(expected["max_resource_usage"])
    assert weighted[0] == close_to(expected["max_resource_usage_with_weight"])
