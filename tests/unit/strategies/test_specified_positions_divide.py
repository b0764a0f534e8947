from controller.model.decision import Reason
from controller.strategies.splitting.specified_positions_divide import SpecifiedPositionsDivide
from tests.topics import NO_LOAD, NO_POSITIONS, at


def cuts(algorithm: SpecifiedPositionsDivide, *positions: int) -> tuple[int, ...] | Reason:
    return algorithm.cuts(100, 200, at(*positions), NO_LOAD)


def test_positions_inside_of_the_bundle_count_and_come_in_order() -> None:
    assert cuts(SpecifiedPositionsDivide(at=(180, 120, 100, 200, 99, 300)), 110, 190) == (120, 180)


def test_without_positions_nothing_is_cut() -> None:
    assert cuts(SpecifiedPositionsDivide(), 110, 190) is Reason.NO_POSITIONS
    assert cuts(SpecifiedPositionsDivide(force=True)) is Reason.NO_POSITIONS
    assert cuts(SpecifiedPositionsDivide(at=(100, 200)), 110, 190) is Reason.NO_POSITIONS


def test_two_topics_are_needed_unless_it_is_forced() -> None:
    assert cuts(SpecifiedPositionsDivide(at=(150,)), 110) is Reason.TOO_FEW_TOPICS
    forced = SpecifiedPositionsDivide(at=(150,), force=True)
    assert forced.cuts(100, 200, NO_POSITIONS, NO_LOAD) == (150,)
    assert not forced.needs_topic_detail
