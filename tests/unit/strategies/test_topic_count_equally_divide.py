from controller.model.decision import Reason
from controller.strategies.splitting.topic_count_equally_divide import TopicCountEquallyDivide
from tests.topics import NO_LOAD, at

PULSARS, FIXED = TopicCountEquallyDivide(), TopicCountEquallyDivide(fixed=True)


def cuts(algorithm: TopicCountEquallyDivide, *positions: int) -> tuple[int, ...] | Reason:
    return algorithm.cuts(0, 1000, at(*positions), NO_LOAD)


def test_of_neighbours_on_the_ring_pulsar_sends_the_left_one_right_too_unless_that_is_fixed() -> None:
    assert cuts(PULSARS, 10, 11) == (10,)
    assert cuts(FIXED, 10, 11) == (11,)


def test_topics_at_one_place_are_parted_from_others_where_that_is_fixed() -> None:
    assert cuts(PULSARS, 0, 0, 0, 50) == (0,)  # no cut at all: it is the bundle's beginning
    assert cuts(FIXED, 0, 0, 0, 50) == (26,)
    assert cuts(FIXED, 7, 7, 7) is Reason.TOO_FEW_TOPICS


def test_where_the_middle_cannot_be_parted_the_nearest_place_is_taken_and_of_two_the_lower_one() -> None:
    assert cuts(FIXED, 10, 20, 20, 20, 20, 30) == (16,)
    assert cuts(FIXED, 10, 20, 20, 20, 30, 40) == (26,)


def test_a_topic_at_the_rings_end_is_parted_inside_of_the_bundle() -> None:
    assert FIXED.cuts(0, 1000, at(998, 1000), NO_LOAD) == (999,)
    assert FIXED.cuts(0, 1000, at(10, 999, 1000, 1000), NO_LOAD) == (505,), "there is no place between the last two"
    assert FIXED.cuts(0, 1000, at(999, 1000), NO_LOAD) is Reason.TOO_FEW_TOPICS
