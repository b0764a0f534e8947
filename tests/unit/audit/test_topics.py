"""The audit of scalable topics: how unevenly their segments lay on brokers, interval by interval."""

from dataclasses import replace

import pytest

from controller.aggregate.scalable_topics import NO_CUT
from controller.audit.topics import TopicAuditor
from controller.model.names import topic_hash
from tests.cluster import MB
from tests.segments import segment, segmented


def test_a_topic_has_its_worst_interval_and_how_often_its_segments_changed() -> None:
    whole = segmented({"a:8080": {segment("x", 0, 0xFFFF): 6}, "b:8080": {}, "c:8080": {}})
    halves = segmented(
        {"a:8080": {segment("x", 0, 0x7FFF, 1): 5}, "b:8080": {segment("x", 0x8000, 0xFFFF, 2): 1}, "c:8080": {}}
    )
    auditor = TopicAuditor("")
    for turn, view in enumerate((whole, halves, halves)):
        auditor.take(replace(view, as_of_ms=60_000 * turn))
    [found] = auditor.found()
    assert (found.namespace, found.place) == ("tenant/ns", topic_hash("topic://tenant/ns/x"))
    assert (found.intervals, found.min_segments, found.segments, found.max_segments, found.changed) == (3, 1, 2, 2, 1)
    assert found.worst == pytest.approx(3.0)
    assert found.worst_at == 0
    assert found.unevenness / 3 == pytest.approx((3.0 + 2.5 + 2.5) / 3)
    assert found.throughput == pytest.approx(18 * MB)
    assert found.cut not in (NO_CUT, 0x8000)


def test_topics_of_other_namespaces_and_without_traffic_are_left_out() -> None:
    view = segmented({"a:8080": {segment("x", 0, 0xFFFF): 6, segment("y", 0, 0xFFFF): 0}, "b:8080": {}})
    other, of_this = TopicAuditor("tenant/other"), TopicAuditor("tenant/ns")
    for each in (other, of_this):
        each.take(view)
    assert other.found() == []
    assert [found.place for found in of_this.found()] == [topic_hash("topic://tenant/ns/x")]
