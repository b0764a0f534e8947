"""A scalable topic in `trimtab explain`."""

from controller.offline.explanations.topic import explained_topic
from controller.strategies.common.auto_scale import AutoScale
from tests.segments import segment, segmented


def test_a_topic_is_explained_by_its_brokers_what_changes_next_and_an_even_cut() -> None:
    view = segmented(
        {
            "a:8080": {segment("x", 0, 0x7FFF): 9, segment("x", 0x8000, 0xFFFF, 1): 1},
            "b:8080": {segment("y", 0, 0xFFFF): 1},
        }
    )
    found = explained_topic(view, "topic://tenant/ns/x", AutoScale(split_msg_rate_in=8, merge_msg_rate_in=0))
    assert found is not None
    assert (found.answer.segments, found.answer.serving, found.answer.may_serve) == (2, 1, 2)
    assert (found.answer.unevenness, found.answer.busiest, found.answer.changing) == (2.0, "a:8080", 1)
    assert found.bundles == frozenset(view.bundles.names[:2])
    assert "a:8080 has 2 times the mean" in found.text
    assert "0x471c would be even" in found.text


def test_a_topic_without_a_segment_with_load_is_not_known() -> None:
    view = segmented({"a:8080": {segment("x", 0, 0xFFFF): 9}})
    assert explained_topic(view, "topic://tenant/ns/y", AutoScale()) is None
    assert explained_topic(view, "topic://tenant/other/x", AutoScale()) is None
