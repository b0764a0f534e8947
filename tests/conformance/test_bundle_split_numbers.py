from itertools import pairwise

from controller.model.bundle_ranges import divided, equal_cuts
from controller.model.names import default_boundaries, parse_bundle
from tests.conformance.brokers.split_bundles import with_split
from tests.conformance.vectors import Case

COMPONENT = "bundle_split_numbers"


def test_a_bundle_is_divided_into_as_many_equal_parts(case: Case) -> None:
    bundle = parse_bundle(f"public/default/{case['input']['bundle']}")
    parts = equal_cuts(bundle.lower, bundle.upper, case["config"]["num_bundles"])
    after = with_split(default_boundaries(case["input"]["bundles"]), bundle.lower, bundle.upper, parts)
    if case["expected"]["children"] is None:
        assert after is None
        return
    assert after is not None
    ends = divided(bundle.lower, bundle.upper, parts)
    assert [f"0x{lower:08x}_0x{upper:08x}" for lower, upper in pairwise(ends)] == case["expected"]["children"]
    assert [f"0x{edge:08x}" for edge in after] == case["expected"]["all_bundles_after"]
