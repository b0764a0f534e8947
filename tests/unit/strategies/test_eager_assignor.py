"""The eager protocol: everything stops, and is dealt out anew."""

from controller.strategies.common.worker_group import ConfigSnapshot, Group
from controller.strategies.rebalance.eager import EagerAssignor
from tests.connect_groups import work


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
