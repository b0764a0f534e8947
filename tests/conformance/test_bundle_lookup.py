from collections.abc import Sequence
from itertools import pairwise

from controller.model.names import BundleName, can_split, find_bundle
from tests.conformance.vectors import Case

COMPONENT = "bundle_lookup"


def test_the_same_bundle_holds_a_position(case: Case) -> None:
    boundaries = [int(text, 16) for text in case["input"]["boundaries"]]
    bundles = [BundleName("public/default", lower, upper) for lower, upper in pairwise(boundaries)]
    expected = case["expected"]
    assert [_found(boundaries, position) for position in case["input"]["hashes"]] == expected["bundles"]
    assert [str(bundle) for bundle in bundles] == expected["bundle_names"]
    assert [can_split(bundle.lower, bundle.upper) for bundle in bundles] == expected["can_split"]


def _found(boundaries: Sequence[int], position: int) -> str:
    try:
        return BundleName("", *find_bundle(boundaries, position)).range
    except IndexError:
        return "error:IndexOutOfBoundsException"
