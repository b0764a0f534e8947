"""``scripts/measure moves``: where its topics lie, and how its figures are made."""

import pytest

from controller.model.names import default_boundaries, parse_bundle, topic_hash
from tests.measure.moves import Load, stall, topics_of


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        ([0.1], (100.0, 100.0, 100.0)),
        ([-0.02, -0.01, 0.3], (0.0, 300.0, 300.0)),
        ([i / 1000 for i in range(1, 201)], (100.0, 198.0, 200.0)),
    ],
)
def test_a_stall_is_a_value_that_was_measured_and_none_is_below_0(
    seconds: list[float], expected: tuple[float, float, float]
) -> None:
    found = stall(seconds)
    assert (found.p50, found.p99, found.max) == expected


def test_each_bundle_has_as_many_topics() -> None:
    bundles, topics = topics_of(default_boundaries(2), 10)
    assert len(set(topics)) == 10
    for nth, bundle in enumerate(map(parse_bundle, bundles)):
        assert all(bundle.lower <= topic_hash(topic) < bundle.upper for topic in topics[5 * nth : 5 * nth + 5])


@pytest.mark.parametrize("topics", [-2, 0, 3])
def test_a_number_of_topics_that_bundles_cannot_share_is_refused(topics: int) -> None:
    with pytest.raises(ValueError, match=f"{topics} topics: give an even number"):
        Load(topics=topics, each=1, rate=1.0)
