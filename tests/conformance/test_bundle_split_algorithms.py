from itertools import pairwise

import numpy as np

from controller.model.names import parse_bundle
from controller.strategies.catalogue import SPLIT_ALGORITHMS
from tests.conformance.vectors import Case

COMPONENT = "bundle_split_algorithms"


def in_scope(case: Case) -> bool:
    return case["config"]["algorithm"] in SPLIT_ALGORITHMS


def test_a_bundle_is_cut_at_the_same_positions(case: Case) -> None:
    algorithm = SPLIT_ALGORITHMS[case["config"]["algorithm"]]()
    bundle = parse_bundle(f"public/default/{case['input']['bundle']}")
    assert not algorithm.needs_topic_detail
    found = algorithm.boundaries(bundle.lower, bundle.upper, np.zeros(0, np.int64), np.zeros((0, 4)))
    expected = case["expected"]
    if "children" not in expected:  # what Pulsar computed cannot be carried out
        assert found is None
        return
    assert found is not None
    assert list(found) == [bundle.lower, *expected["boundaries"], bundle.upper]
    assert [f"0x{a:08x}_0x{b:08x}" for a, b in pairwise(found)] == expected["children"]
