"""The modelled group: time, leaders, and members that do not do as they are told."""

from controller.offline.connect_group import Change, Rebalance, play
from controller.strategies.common.worker_group import NOTHING
from tests.connect_groups import work

DELAY = 300_000
START = Change(create={"ct": 6})


def played(*changes: Change, members: int = 3, protocol: str = "cooperative-2.6.3") -> list[Rebalance]:
    names = {f"w{i}": NOTHING for i in range(members)}
    return play(names, {}, [START, *changes], protocol=protocol, max_delay_ms=DELAY)


def steps(rebalances: list[Rebalance]) -> list[tuple[int, int, int]]:
    return [(one.change, one.step, one.at_ms) for one in rebalances]


def test_a_delay_is_waited_for_unless_the_next_change_comes_before_its_end() -> None:
    assert steps(played(Change(leave=("w2",)), Change())) == [(1, 1, 0), (2, 1, 0), (2, 2, DELAY), (3, 1, DELAY)]
    early = played(Change(leave=("w2",)), Change(after_ms=1000))
    assert steps(early) == [(1, 1, 0), (2, 1, 0), (3, 1, 1000), (3, 2, DELAY)]
    late = played(Change(leave=("w2",)), Change(after_ms=DELAY + 1))
    assert steps(late) == [(1, 1, 0), (2, 1, 0), (2, 2, DELAY), (3, 1, DELAY + 1)]


def test_members_that_stopped_something_join_again_at_once() -> None:
    found = played(Change(join=("w3",)), members=1)[1:]
    assert [(one.stopped > 0, one.started > 0, len(one.missing) > 0) for one in found] == [
        (True, False, True),
        (False, True, False),
    ]


def test_when_the_leader_leaves_the_next_one_knows_of_no_loss_and_waits_for_nothing() -> None:
    _, *after = played(Change(leave=("w0",)))
    assert [(one.leader, one.delay_ms, len(one.missing)) for one in after] == [("w1", 0, 0)]


def test_the_leader_keeps_leading_though_a_lower_name_joins() -> None:
    assert played(Change(join=("a",)))[-1].leader == "w0"


def test_an_answer_that_gets_lost_is_followed_by_another_rebalance_that_sets_it_right() -> None:
    lost, again = played(Change(create={"more": 3}, answer_lost=True))[1:]
    assert (lost.started, len(lost.missing)) == (0, 4)
    assert again.why == "the answer was lost"
    assert again.is_balanced()


def test_a_loss_in_a_rebalance_whose_answer_got_lost_waits_for_nothing() -> None:
    _, lost, again = played(Change(leave=("w2",), answer_lost=True))
    assert (lost.delay_ms, again.delay_ms, again.at_ms, again.is_balanced()) == (DELAY, 0, 0, True)


def test_by_the_eager_protocol_members_have_stopped_all_when_the_answer_gets_lost() -> None:
    lost, again = played(Change(answer_lost=True), protocol="eager")[1:]
    assert (lost.stopped, len(lost.missing)) == (7, 7)
    assert again.is_balanced()


def test_a_member_that_does_not_stop_is_told_again_in_the_rebalance_after() -> None:
    found = played(Change(join=("w3",), does_not_stop=("w0",)), members=1)[1:]
    assert [one.stopped for one in found] == [0, 3, 0]
    assert found[-1].is_balanced()


def test_what_runs_twice_is_not_balanced() -> None:
    twice = work(["ct"], ["ct:0"])
    found = play({"a": twice, "b": twice}, {"ct": 1}, [Change()], protocol="cooperative-2.6.3")
    assert [one.is_balanced() for one in found] == [False, True]


def test_every_rebalance_says_why() -> None:
    found = played(
        Change(join=("w3",), leave=("w1",), create={"one": 1}, delete=("ct",), does_not_stop=("w0",), answer_lost=True)
    )
    assert found[1].why == (
        "w3 joins, w1 leaves, one has 1 task, ct is deleted, w0 stops nothing, the answer gets lost"
    )
    assert played(Change())[-1].why == "all join again"
