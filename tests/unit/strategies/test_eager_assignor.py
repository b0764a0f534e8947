"""The eager protocol: everything stops, and is dealt out anew."""

from controller.strategies.common.worker_group import ConfigSnapshot, Group
from controller.strategies.rebalance.eager import EagerAssignor
from tests.connect_groups import as_json, work


def group(*members: str, connectors: dict[str, int], **more: object) -> Group:
    return Group(members=dict.fromkeys(members, work()), configured=ConfigSnapshot(connectors=connectors), **more)  # type: ignore[arg-type]


def shares(given: Group) -> dict[str, dict[str, list[str]]]:
    return {name: as_json(one.start) for name, one in EagerAssignor().assign(given).assignments.items()}


def test_tasks_are_dealt_out_after_all_connectors_going_on_around_the_members() -> None:
    assert shares(group("c3", "c1", "c2", connectors={"ct1": 2, "ct2": 1})) == {
        "c1": {"connectors": ["ct1"], "tasks": ["ct1:1"]},
        "c2": {"connectors": ["ct2"], "tasks": ["ct2:0"]},
        "c3": {"connectors": [], "tasks": ["ct1:0"]},
    }


def test_one_task_a_connector_on_two_members_gives_both_of_them_tasks() -> None:
    found = shares(group("a", "b", connectors={f"ct{i}": 1 for i in range(4)}))
    assert {name: len(share["tasks"]) for name, share in found.items()} == {"a": 2, "b": 2}


def test_tasks_go_by_number_and_not_by_how_it_is_spelt() -> None:
    found = shares(group("a", "b", connectors={"ct": 12}))
    assert found["b"]["tasks"] == ["ct:0", "ct:2", "ct:4", "ct:6", "ct:8", "ct:10"]


def test_a_member_is_told_to_stop_all_that_it_runs_also_what_it_gets_back() -> None:
    held = work(["ct1"], ["ct1:0", "ct1:1"])
    found = EagerAssignor().assign(Group(members={"a": held}, configured=ConfigSnapshot(connectors={"ct1": 2})))
    assert found.assignments["a"].stop == found.assignments["a"].start == held
    assert found.stopped() == 3


def test_more_members_than_work_leaves_some_idle() -> None:
    assert shares(group("a", "b", "c", connectors={"ct": 0})) == {
        "a": {"connectors": ["ct"], "tasks": []},
        "b": {"connectors": [], "tasks": []},
        "c": {"connectors": [], "tasks": []},
    }


def test_a_leader_that_has_read_less_than_a_member_reads_again() -> None:
    given = Group(
        members={"a": work(), "b": work()},
        config_offsets={"a": 3, "b": 5},
        configured=ConfigSnapshot(offset=3, connectors={"old": 1}),
        reread=ConfigSnapshot(offset=6, connectors={"new": 1}),
    )
    found = EagerAssignor().assign(given)
    assert (found.config_mismatch, found.offset) == (False, 6)
    assert found.assignments["a"].start == work(["new"])


def test_a_leader_that_cannot_read_as_far_as_a_member_assigns_nothing() -> None:
    given = Group(
        members={"a": work(["old"]), "b": work()},
        config_offsets={"a": 3, "b": 5},
        configured=ConfigSnapshot(offset=3, connectors={"old": 1}),
        reread=ConfigSnapshot(offset=4, connectors={"old": 1}),
    )
    found = EagerAssignor().assign(given)
    assert (found.config_mismatch, found.offset, found.stopped()) == (True, 5, 0)
    assert {len(one.start) for one in found.assignments.values()} == {0}
