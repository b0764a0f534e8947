"""IncrementalCooperativeAssignor of Kafka Connect 2.6.0, the same leader over several rebalances.

Candidates for lost work that are seen in one rebalance come from a Java hash set; trimtab takes them by name.  In an
order-sensitive case another candidate may thus get what was lost, and what is new is then dealt out around it.  Checked
there, rebalance by rebalance: what each member is to stop, what is started by all together, the delay, and the leader's
memory but for the order of the candidates.

What a member is to start and to stop is compared without its order, as the vectors have it sorted.
"""

from collections.abc import Mapping
from itertools import chain
from typing import Any

from controller.strategies.common.worker_group import ConfigSnapshot, ConnectorsAndTasks, Group
from controller.strategies.rebalance.incremental_cooperative import (
    IncrementalCooperativeAssignor,
    LeaderMemory,
    Release,
)
from tests.conformance.vectors import Case
from tests.connect_groups import as_json, work_of_members

COMPONENT = "connect_incremental_cooperative_assignor"


def test_the_leader_answers_and_remembers_the_same(case: Case) -> None:
    replay(case, Release.V2_6_0)


def replay(case: Case, release: Release) -> None:
    """Compare all rebalances of *case*."""
    assignor = IncrementalCooperativeAssignor(
        scheduled_rebalance_max_delay_ms=case["config"]["scheduled_rebalance_max_delay_ms"], release=release
    )
    memory = assignor.initial_memory()
    for given, expected in zip(case["input"]["rounds"], case["expected"]["rounds"], strict=True):
        group = Group(
            members=work_of_members(given["members"]),
            configured=ConfigSnapshot(connectors=given["configured"]),
            generation=given["generation"],
            last_completed_generation=given["last_completed_generation"],
        )
        found, memory = assignor.assign(group, memory, given["time_ms"])
        start = {name: _sorted(as_json(one.start)) for name, one in found.assignments.items()}
        stop = {name: _sorted(as_json(one.stop)) for name, one in found.assignments.items()}
        expected_start = {
            name: _sorted({"connectors": one["connectors"], "tasks": one["tasks"]})
            for name, one in expected["assignments"].items()
        }
        assert stop == {
            name: _sorted({"connectors": one["revoked_connectors"], "tasks": one["revoked_tasks"]})
            for name, one in expected["assignments"].items()
        }
        assert found.delay_ms == expected["delay"]
        if case.get("order_sensitive"):
            assert start.keys() == expected_start.keys()
            assert _together(start) == _together(expected_start)
            assert _state(memory, release, ordered=False) == _expected_state(expected["state"], ordered=False)
        else:
            assert start == expected_start
            assert _state(memory, release, ordered=True) == _expected_state(expected["state"], ordered=True)


def _state(memory: LeaderMemory, release: Release, *, ordered: bool) -> dict[str, Any]:
    """The memory as the vectors of *release* have it."""
    if release.later:
        known = ConnectorsAndTasks.union([memory.assigned, memory.lost])
        of_release: dict[str, Any] = {
            "revoked_in_previous": memory.revoked_in_previous,
            "successive_revoking_rebalances": memory.successive_revocations,
        }
    else:
        # What was lost and given out again is counted twice.
        known = memory.assigned + memory.lost
        of_release = {"can_revoke": memory.can_revoke}
    return of_release | {
        "scheduled_rebalance": memory.scheduled_rebalance_ms,
        "delay": memory.delay_ms,
        "candidate_workers": list(memory.candidates) if ordered else sorted(memory.candidates),
        "previous_generation": memory.generation,
        "previous_assignment_size": [len(known.connectors), len(known.tasks)],
        "previous_revocation": _sorted(as_json(memory.revoked)),
    }


def _expected_state(state: Mapping[str, Any], *, ordered: bool) -> dict[str, Any]:
    candidates = state["candidate_workers"]
    return {
        **state,
        "candidate_workers": candidates if ordered else sorted(candidates),
        "previous_revocation": _sorted(state["previous_revocation"]),
    }


def _sorted(one: Mapping[str, list[str]]) -> dict[str, list[str]]:
    return {kind: sorted(names) for kind, names in one.items()}


def _together(start: Mapping[str, Mapping[str, list[str]]]) -> dict[str, list[str]]:
    return {kind: sorted(chain.from_iterable(one[kind] for one in start.values())) for kind in ("connectors", "tasks")}
