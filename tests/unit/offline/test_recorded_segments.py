"""A recording of a real Pulsar 5.0.1 whose brokers split the segments of a topic: tests/measure/segments.py."""

from pathlib import Path

import pytest

from controller.model.names import topic_hash
from controller.offline.audit import AuditScope, audit
from controller.offline.counterfactual.answer import what_would_have_happened
from controller.offline.counterfactual.replay_source import open_source
from controller.offline.counterfactual.survey import ReplaySpan

pytestmark = pytest.mark.slow

RECORDING = Path(__file__).parents[2] / "data" / "pulsar_recordings" / "segments"


def test_an_audit_follows_a_topic_through_the_splits_of_its_segments() -> None:
    with open_source(RECORDING, None) as opened:
        [topic] = audit(opened, AuditScope()).topics
    assert (topic.namespace, topic.place) == ("bench/segments", topic_hash("topic://bench/segments/orders-0"))
    assert (topic.min_segments, topic.max_segments, topic.segments) == (2, 18, 18)
    assert topic.changed >= 5
    assert topic.worst == pytest.approx(2.7, abs=0.05)
    assert topic.unevenness / topic.intervals < 2


def test_a_replay_with_another_strategy_has_the_recorded_splits_of_segments() -> None:
    with open_source(RECORDING, None) as opened:
        found = what_would_have_happened(opened, ("AvgShedder",), ReplaySpan())
    assert found.reproduction is not None
    assert found.reproduction.recorded == 8
