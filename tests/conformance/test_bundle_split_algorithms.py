"""Pulsar's null and its error are both a reason here; a split that Pulsar then refuses is refused likewise."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from controller.model.bundle_ranges import divided
from controller.model.decision import Reason
from controller.model.errors import TrimtabError
from controller.model.names import parse_bundle, topic_hash
from controller.strategies.catalogue import SPLIT_ALGORITHMS
from controller.strategies.protocols import SplitAlgorithm
from controller.strategies.splitting.specified_positions_divide import SpecifiedPositionsDivide
from tests.conformance.brokers.split_bundles import with_split
from tests.conformance.vectors import Case, configured, rows_of_4

COMPONENT = "bundle_split_algorithms"
_IDLE = [0.0] * 4


def test_a_bundle_is_cut_at_the_same_positions_into_the_same_bundles(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    bundle = parse_bundle(f"public/default/{given['bundle']}")
    topics = given["topics"] or []
    positions = np.array([topic_hash(topic) for topic in topics], np.int64)
    stats = given.get("topic_stats", {})
    load = rows_of_4([stats.get(topic, _IDLE) for topic in topics])

    found = _algorithm(case).cuts(bundle.lower, bundle.upper, positions, load)

    if "error" in expected or not expected["boundaries"]:
        assert isinstance(found, Reason)
        assert (found is Reason.NO_POSITIONS) or "error" not in expected
        return
    assert not isinstance(found, Reason)
    assert list(found) == expected["boundaries"]
    if "split_error" in expected:
        with pytest.raises(TrimtabError):
            divided(bundle.lower, bundle.upper, found)
        return
    assert _ranges(divided(bundle.lower, bundle.upper, found)) == expected["children"]
    before = [int(edge, 16) for edge in given["bundle_boundaries"]]
    after = with_split(before, bundle.lower, bundle.upper, found)
    assert after is not None
    assert _ranges(after) == expected["all_bundles_after"]


def _algorithm(case: Case) -> SplitAlgorithm:
    options = dict(case["config"])
    name = options.pop("algorithm")
    if name.startswith(SpecifiedPositionsDivide.name):
        return SpecifiedPositionsDivide(at=tuple(case["input"]["positions"] or ()), force=name.endswith("_force"))
    cls: Any = SPLIT_ALGORITHMS[name]
    made: SplitAlgorithm = configured(cls, options)
    return made


def _ranges(ends: tuple[int, ...]) -> list[str]:
    return [f"0x{lower:08x}_0x{upper:08x}" for lower, upper in pairwise(ends)]
