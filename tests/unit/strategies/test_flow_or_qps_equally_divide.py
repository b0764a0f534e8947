from controller.model.decision import Reason
from controller.strategies.splitting.flow_or_qps_equally_divide import FlowOrQpsEquallyDivide
from tests.topics import at, loads

BY_BYTES = FlowOrQpsEquallyDivide(max_bandwidth_mbytes=10, max_msg_rate=1_000_000, difference_percent=10)


def cuts(
    topics: dict[int, float] | list[tuple[int, float]], algorithm: FlowOrQpsEquallyDivide = BY_BYTES
) -> tuple[int, ...] | Reason:
    """Given position and MB/s of each topic."""
    pairs = list(topics.items()) if isinstance(topics, dict) else topics
    return algorithm.cuts(0, 1000, at(*(place for place, _ in pairs)), loads(mbytes for _, mbytes in pairs))


def test_of_topics_at_one_place_pulsar_counts_the_last_for_each_and_the_fixed_form_each_once() -> None:
    fixed = FlowOrQpsEquallyDivide(max_bandwidth_mbytes=10, max_msg_rate=1_000_000, fixed=True)
    collision = [(100, 1.0), (100, 9.0), (200, 3.0)]
    assert cuts(collision) == (101, 151)  # 9 + 9, and 9 + 3
    assert cuts(collision, fixed) == (151,)  # 10 + 3
    assert cuts([(100, 20.0), (100, 1.0), (200, 2.0)]) is Reason.BELOW_MINIMUM  # 1 + 1 + 2
    assert cuts([(100, 20.0), (100, 1.0), (200, 2.0)], fixed) == (151,)
