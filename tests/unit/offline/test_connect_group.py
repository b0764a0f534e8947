"""The modelled group: time, leaders, and members that do not do as they are told."""

import pytest

from controller.offline.connect_group import PROTOCOLS, Change, Rebalance, play
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


COOPERATIVE = [name for name in PROTOCOLS if name != "eager"]
RUNNING = {"w1": work(["a"], ["a:0"]), "w2": work([], ["a:1"])}


@pytest.mark.parametrize("protocol", COOPERATIVE)
def test_the_first_leader_knows_what_the_group_runs_so_the_work_of_a_member_that_leaves_waits(protocol: str) -> None:
    found = play(RUNNING, {"a": 2}, [Change(leave=("w2",))], protocol=protocol, max_delay_ms=DELAY)
    assert steps(found) == [(1, 1, 0), (1, 2, DELAY)]
    assert found[0].missing == work([], ["a:1"])
    assert found[-1].members == {"w1": work(["a"], ["a:0", "a:1"])}


@pytest.mark.parametrize("protocol", COOPERATIVE)
def test_a_member_of_the_first_group_that_returns_in_time_gets_its_work_back(protocol: str) -> None:
    back = [Change(leave=("w2",)), Change(after_ms=1000, join=("w2",))]
    found = play(RUNNING, {"a": 2}, back, protocol=protocol, max_delay_ms=DELAY)
    assert found[-1].members == RUNNING
    assert sum(one.stopped for one in found) == 0


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("change", [Change(delete=("b",)), Change(create={"b": 0})])
def test_work_that_is_deleted_or_beyond_the_number_of_tasks_stops_in_the_first_change(
    change: Change, protocol: str
) -> None:
    members = {"w1": work(["a"], ["a:0", "b:0"]), "w2": work(["b"], ["a:1", "b:1"])}
    found = play(members, {"a": 2, "b": 2}, [change], protocol=protocol)
    configured = {"a"} if change.delete else {"a", "b"}
    runs = found[-1].members.values()
    assert {name for held in runs for name in held.connectors} == configured
    assert {task.connector for held in runs for task in held.tasks} == {"a"}
    assert found[-1].is_balanced()


def test_a_group_that_runs_what_is_not_configured_is_not_balanced() -> None:
    members = {"w1": work(["a"]), "w2": work(["gone"])}
    found = play(members, {"a": 0}, [Change(does_not_stop=("w2",))], protocol="cooperative-3.9")
    assert [one.unconfigured for one in found] == [work(["gone"]), NOTHING, NOTHING]
    assert [one.is_balanced() for one in found] == [False, True, True]


def while_w3_is_taken_in(protocol: str) -> list[Rebalance]:
    """KAFKA-12495: w3 joins, and w4 while the first rebalance of w3 is still under way."""
    changes = [Change(join=("w3",)), Change(after_ms=500, join=("w4",))]
    members = {
        "w1": work(["ct"], [f"ct:{i}" for i in range(0, 12, 2)]),
        "w2": work([], [f"ct:{i}" for i in range(1, 12, 2)]),
    }
    return play(members, {"ct": 12}, changes, protocol=protocol, max_delay_ms=DELAY, rebalance_ms=1000)


def test_a_member_that_joins_during_a_rebalance_takes_part_in_the_next_one() -> None:
    found = while_w3_is_taken_in("cooperative-2.6.3")
    assert [(one.at_ms, one.why) for one in found[:2]] == [(0, "w3 joins"), (1000, "w4 joins")]
    assert found[0].stopped == 4
    assert found[1].started == 4


def test_a_member_that_joins_during_a_rebalance_leaves_a_group_of_2_6_uneven_and_one_of_3_9_even() -> None:
    assert {protocol: while_w3_is_taken_in(protocol)[-1].is_balanced() for protocol in COOPERATIVE} == {
        "cooperative": False,
        "cooperative-2.6.3": False,
        "cooperative-3.9": True,
        "cooperative-trimtab": True,
    }


def test_what_a_member_got_in_the_rebalance_in_which_it_leaves_is_lost_and_waits() -> None:
    changes = [Change(join=("w3",)), Change(after_ms=500, leave=("w3",))]
    found = play(RUNNING, {"a": 2, "b": 1}, changes, protocol="cooperative-3.9", max_delay_ms=DELAY, rebalance_ms=1000)
    assert [(one.at_ms, one.why) for one in found] == [
        (0, "w3 joins"),
        (1000, "w3 leaves"),
        (1000 + DELAY, "the delay is over"),
    ]
    assert [len(one.missing) for one in found] == [0, 1, 0]


def test_a_rebalance_without_a_duration_is_over_before_the_next_change() -> None:
    changes = [Change(join=("w1",)), Change(after_ms=0, join=("w2",))]
    found = played(*changes, members=1)
    assert [(one.change, one.why) for one in found[1:4]] == [
        (2, "w1 joins"),
        (2, "what stopped is free"),
        (3, "w2 joins"),
    ]


def test_a_new_leader_of_kafka_stops_deleted_work_one_rebalance_late_and_trimtabs_at_once() -> None:
    def runs_deleted_work(protocol: str) -> list[int]:
        changes = [Change(leave=("w1",), delete=("b",)), Change()]
        members = {"w1": NOTHING, "w2": work(["b"], ["b:0"])}
        found = play(members, {"b": 1}, changes, protocol=protocol)
        return [len(next(one for one in found if one.change == number).unconfigured) for number in (1, 2)]

    assert {protocol: runs_deleted_work(protocol) for protocol in COOPERATIVE} == {
        "cooperative": [2, 0],
        "cooperative-2.6.3": [2, 0],
        "cooperative-3.9": [2, 0],
        "cooperative-trimtab": [0, 0],
    }
