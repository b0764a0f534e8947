"""The incremental cooperative protocol, one statement of its descriptions a test."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.offline.connect_group import Change, play
from controller.strategies.common.worker_group import (
    NOTHING,
    ConfigSnapshot,
    ConnectorsAndTasks,
    Group,
    GroupAssignment,
)
from controller.strategies.rebalance.incremental_cooperative import (
    IncrementalCooperativeAssignor,
    LeaderMemory,
    Release,
)
from controller.strategies.rebalance.incremental_cooperative.dealing import deal, to_least_loaded
from tests.connect_groups import task, work

DELAY = 300_000


@dataclass
class Leading:
    """A leader over several rebalances, in which members do as they are told unless a test says otherwise."""

    release: Release = Release.V2_6_3
    delay_ms: int = DELAY
    connectors: dict[str, int] = field(default_factory=dict)
    members: dict[str, ConnectorsAndTasks] = field(default_factory=dict)
    now_ms: int = 1_000_000
    generation: int = 0
    memory: LeaderMemory = field(default_factory=LeaderMemory)

    def rebalance(self, *, obey: bool = True, completed: int | None = None) -> GroupAssignment:
        self.generation += 1
        found, self.memory = IncrementalCooperativeAssignor(
            scheduled_rebalance_max_delay_ms=self.delay_ms, release=self.release
        ).assign(
            Group(
                members=self.members,
                configured=ConfigSnapshot(connectors=self.connectors),
                generation=self.generation,
                last_completed_generation=(self.generation - 1 or -1) if completed is None else completed,
            ),
            self.memory,
            self.now_ms,
        )
        if obey:
            self.members = {
                name: held - found.assignments[name].stop + found.assignments[name].start
                for name, held in self.members.items()
            }
        return found

    def tasks(self) -> dict[str, int]:
        return {name: len(held.tasks) for name, held in self.members.items()}


def tasks_of(found: GroupAssignment, what: str) -> dict[str, int]:
    return {name: len(getattr(one, what).tasks) for name, one in found.assignments.items() if getattr(one, what)}


@pytest.fixture
def two() -> Leading:
    """Two members with six tasks each."""
    leading = Leading(connectors={"ct1": 6, "ct2": 6}, members={"c1": NOTHING, "c2": NOTHING})
    leading.rebalance()
    assert leading.tasks() == {"c1": 6, "c2": 6}
    return leading


def test_members_keep_what_they_run_while_nothing_changes(two: Leading) -> None:
    before = two.members
    found = two.rebalance()
    assert found.stopped() == 0
    assert two.members == before


def test_a_join_takes_two_rebalances_the_first_takes_away_and_the_second_gives(two: Leading) -> None:
    two.members["c3"] = NOTHING
    first = two.rebalance()
    assert (tasks_of(first, "stop"), tasks_of(first, "start")) == ({"c1": 2, "c2": 2}, {})
    second = two.rebalance()
    assert (tasks_of(second, "stop"), tasks_of(second, "start")) == ({}, {"c3": 4})
    assert two.tasks() == {"c1": 4, "c2": 4, "c3": 4}


def test_each_member_is_left_the_average_rounded_up() -> None:
    leading = Leading(connectors={"ct": 7}, members={"c1": NOTHING, "c2": NOTHING})
    leading.rebalance()
    leading.members["c3"] = NOTHING
    assert tasks_of(leading.rebalance(), "stop") == {"c1": 1}
    leading.rebalance()
    assert leading.tasks() == {"c1": 3, "c2": 3, "c3": 1}


def test_release_2_6_0_takes_one_share_in_all_from_the_first_members() -> None:
    leading = Leading(release=Release.V2_6_0, connectors={"ct": 24}, members=dict.fromkeys(("c1", "c2", "c3"), NOTHING))
    leading.rebalance()
    leading.members |= {"c4": NOTHING, "c5": NOTHING, "c6": NOTHING}
    assert tasks_of(leading.rebalance(), "stop") == {"c1": 4}
    leading.rebalance()
    leading.rebalance()
    assert leading.tasks() == {"c1": 4, "c2": 8, "c3": 8, "c4": 2, "c5": 1, "c6": 1}


def test_without_a_member_that_has_nothing_an_uneven_group_stays_as_it_is() -> None:
    members = {"c1": work(tasks=[f"ct:{i}" for i in range(5)]), "c2": work(tasks=["ct:5"])}
    for release in (Release.V2_6_0, Release.V2_6_3):
        leading = Leading(release=release, connectors={"ct": 6}, members=dict(members))
        assert leading.rebalance().stopped() == 0


def test_nothing_is_taken_away_in_two_rebalances_in_a_row(two: Leading) -> None:
    two.members["c3"] = NOTHING
    assert two.rebalance().stopped() > 0
    two.members["c4"] = NOTHING
    assert two.rebalance().stopped() == 0
    two.members["c5"] = NOTHING
    assert two.rebalance().stopped() > 0


def test_a_revocation_that_did_not_happen_is_noticed_and_repeated_at_once(two: Leading) -> None:
    two.members["c3"] = NOTHING
    first = two.rebalance(obey=False)
    second = two.rebalance()
    assert first.assignments == second.assignments
    assert second.stopped() == 4
    two.rebalance()
    assert two.tasks() == {"c1": 4, "c2": 4, "c3": 4}


def test_what_a_member_that_left_ran_waits_for_the_delay(two: Leading) -> None:
    del two.members["c2"]
    found = two.rebalance()
    assert (found.delay_ms, tasks_of(found, "start")) == (DELAY, {})
    two.now_ms += DELAY - 1
    assert two.rebalance().delay_ms == 1
    two.now_ms += 1
    found = two.rebalance()
    assert (found.delay_ms, tasks_of(found, "start")) == (0, {"c1": 6})


def test_a_member_that_comes_back_within_the_delay_gets_the_work_and_the_others_keep_theirs(two: Leading) -> None:
    lost = set(two.members.pop("c2").tasks)
    two.rebalance()
    two.now_ms += 60_000
    two.members["c2"] = NOTHING
    found = two.rebalance()
    assert (found.delay_ms, found.stopped(), tasks_of(found, "start")) == (DELAY - 60_000, 0, {})
    two.now_ms += DELAY - 60_000
    assert two.rebalance().stopped() == 0
    assert set(two.members["c2"].tasks) == lost


def test_nothing_is_taken_away_while_something_waits(two: Leading) -> None:
    del two.members["c2"]
    two.rebalance()
    two.members["c3"] = NOTHING
    assert two.rebalance().stopped() == 0


@pytest.mark.parametrize(
    ("release", "gained"),
    [
        (Release.V2_6_0, {"c3": 6}),
        (Release.V2_6_3, {"c3": 3, "c4": 3}),
        (Release.V3_9, {"c3": 3, "c4": 3}),
        (Release.TRIMTAB, {"c3": 3, "c4": 3}),
    ],
)
def test_what_was_lost_goes_to_members_that_have_nothing(
    two: Leading, release: Release, gained: Mapping[str, int]
) -> None:
    two.release = release
    del two.members["c2"]
    two.members |= {"c3": NOTHING, "c4": NOTHING}
    two.rebalance()
    two.now_ms += DELAY
    assert tasks_of(two.rebalance(), "start") == gained


def test_work_that_is_missing_though_nobody_left_is_given_out_at_once(two: Leading) -> None:
    two.members["c2"] = NOTHING  # it never heard of its assignment
    found = two.rebalance()
    assert found.delay_ms == 0
    assert tasks_of(found, "start") == {"c2": 6}


def test_after_an_answer_that_got_lost_what_nobody_runs_is_new_and_waits_for_nothing(two: Leading) -> None:
    del two.members["c2"]
    found = two.rebalance(completed=-7)
    assert found.delay_ms == 0
    assert tasks_of(found, "start") == {"c1": 6}


LATER = pytest.mark.parametrize("release", [Release.V3_9, Release.TRIMTAB])


@LATER
def test_without_a_delay_what_a_member_that_left_ran_is_given_out_at_once(two: Leading, release: Release) -> None:
    two.release, two.delay_ms = release, 0
    del two.members["c2"]
    found = two.rebalance()
    assert (found.delay_ms, tasks_of(found, "start")) == (0, {"c1": 6})


@LATER
def test_without_a_delay_work_is_taken_away_in_rebalances_in_a_row(two: Leading, release: Release) -> None:
    two.release, two.delay_ms = release, 0
    two.members["c3"] = NOTHING
    assert two.rebalance().stopped() > 0
    two.members["c4"] = NOTHING
    assert two.rebalance().stopped() > 0


@LATER
def test_work_is_taken_away_in_rebalances_in_a_row_only_after_a_wait_that_grows(release: Release) -> None:
    leading = Leading(release=release, connectors={"ct": 100}, members={"c1": NOTHING})
    leading.rebalance()
    waits = []
    for name in ("c3", "c4", "c5"):
        leading.members[name] = NOTHING
        assert leading.rebalance().stopped() > 0
        leading.members[f"{name}b"] = NOTHING
        found = leading.rebalance()
        assert found.stopped() == 0
        waits.append(found.delay_ms)
        leading.now_ms += found.delay_ms
    assert waits == [40, 1_600, 64_000]


@LATER
def test_the_wait_is_no_longer_than_the_delay_of_lost_work_and_begins_anew_once_the_group_is_even(
    two: Leading, release: Release
) -> None:
    two.release, two.delay_ms = release, 1_000
    two.memory = replace(two.memory, revoked_in_previous=True, successive_revocations=5)
    two.members["c3"] = NOTHING
    found = two.rebalance()
    # A power of 40 comes out below 1,000 by a hair, and Java cuts fractions off.
    assert (found.stopped(), found.delay_ms) == (0, 999)
    two.now_ms += 1_000
    assert two.rebalance().stopped() == 4
    two.rebalance()
    assert two.memory.successive_revocations == 0


@pytest.mark.parametrize(("release", "stopped", "delay_ms"), [(Release.V3_9, 4, 0), (Release.TRIMTAB, 0, 30)])
def test_in_our_release_a_rebalance_before_the_wait_is_over_does_not_end_it(
    two: Leading, release: Release, stopped: int, delay_ms: int
) -> None:
    two.release = release
    two.memory = replace(two.memory, revoked_in_previous=True)
    two.members["c3"] = NOTHING
    assert two.rebalance().delay_ms == 40
    two.now_ms += 10
    assert two.rebalance().delay_ms == 30
    found = two.rebalance()
    assert (found.stopped(), found.delay_ms) == (stopped, delay_ms)


@pytest.mark.parametrize(("release", "delay_ms"), [(Release.V3_9, DELAY), (Release.TRIMTAB, 0)])
def test_in_our_release_a_member_that_left_without_work_is_not_waited_for(
    two: Leading, release: Release, delay_ms: int
) -> None:
    two.release = release
    two.members |= {"c3": NOTHING, "c4": NOTHING}
    assert two.rebalance().stopped() == 6
    del two.members["c4"]
    assert two.rebalance().delay_ms == delay_ms


def test_release_3_9_takes_from_an_uneven_group_though_nobody_has_nothing() -> None:
    members = {"c1": work(tasks=[f"ct:{i}" for i in range(5)]), "c2": work(tasks=["ct:5"])}
    leading = Leading(release=Release.V3_9, connectors={"ct": 6}, members=members)
    assert tasks_of(leading.rebalance(), "stop") == {"c1": 2}


def test_what_is_deleted_stops_where_it_runs(two: Leading) -> None:
    del two.connectors["ct1"]
    found = two.rebalance()
    assert {t.connector for one in found.assignments.values() for t in one.stop.tasks} == {"ct1"}
    assert two.tasks() == {"c1": 3, "c2": 3}


def test_what_is_new_goes_to_those_that_have_least_connectors_and_tasks_each_for_themselves(two: Leading) -> None:
    two.members["c3"] = work(tasks=["ct1:0"])
    two.members["c1"] = two.members["c1"] - two.members["c3"]
    two.connectors["ct3"] = 6
    found = two.rebalance()
    assert found.assignments["c3"].start == work(["ct3"], [f"ct3:{i}" for i in range(5)])
    assert found.assignments["c1"].start == work(tasks=["ct3:5"])


def test_what_two_members_run_stops_on_both_and_is_given_out_by_the_next_rebalance(two: Leading) -> None:
    twice = two.members["c1"].tasks[0]
    two.members["c2"] = two.members["c2"] + ConnectorsAndTasks(tasks=(twice,))
    found = two.rebalance()
    assert {name: one.stop.tasks for name, one in found.assignments.items()} == {"c1": (twice,), "c2": (twice,)}
    two.rebalance()
    assert sum(held.tasks.count(twice) for held in two.members.values()) == 1


@pytest.mark.parametrize(("release", "told"), [(Release.V2_6_3, False), (Release.V3_9, True), (Release.TRIMTAB, True)])
def test_a_member_with_duplicates_hears_of_its_deletions_from_release_3_9_on(
    two: Leading, release: Release, told: bool
) -> None:
    two.release = release
    twice = next(one for one in two.members["c1"].tasks if one.connector == "ct1")
    two.members["c2"] = two.members["c2"] + ConnectorsAndTasks(tasks=(twice,))
    del two.connectors["ct2"]
    found = two.rebalance()
    assert (task("ct2:0") in found.assignments["c1"].stop.tasks) is told


def test_a_leader_behind_its_members_assigns_nothing_and_remembers_what_it_did() -> None:
    memory = LeaderMemory(assigned=work(["ct"]), generation=3)
    found, after = IncrementalCooperativeAssignor().assign(
        Group(members={"a": work()}, config_offsets={"a": 9}, configured=ConfigSnapshot(offset=8)), memory, 0
    )
    assert (found.config_mismatch, after) == (True, memory)


def test_the_inputs_stay_as_they_are(two: Leading) -> None:
    two.members["c3"] = NOTHING
    members, memory = dict(two.members), two.memory
    copy = LeaderMemory(**{name: getattr(memory, name) for name in memory.__slots__})
    two.rebalance(obey=False)
    assert two.members == members
    assert memory == copy


def test_equal_members_take_turns_in_the_order_of_their_names() -> None:
    found = to_least_loaded({"b": 1, "a": 1, "c": 0}, "uvwxyz")
    assert list(found.items()) == [("c", ["u", "v", "y"]), ("a", ["w", "z"]), ("b", ["x"])]


@given(
    connectors=st.dictionaries(st.sampled_from(["k1", "k2", "k3", "k4"]), st.integers(0, 9), min_size=1),
    joins=st.lists(st.integers(1, 3), min_size=1, max_size=4),
)
def test_from_release_3_9_on_members_end_up_even_however_they_come_and_nothing_has_to_happen_for_that(
    connectors: dict[str, int], joins: list[int]
) -> None:
    names = iter(f"w{i:02}" for i in range(20))
    changes = [Change(create=connectors)]
    changes += [Change(join=tuple(next(names) for _ in range(n))) for n in joins]
    for protocol in ("cooperative-3.9", "cooperative-trimtab"):
        assert play({"first": NOTHING}, {}, changes, protocol=protocol)[-1].is_balanced()


@pytest.mark.parametrize(
    ("release", "of_one", "of_other"),
    [
        (Release.V2_6_0, work(["p"], ["p:0", "p:0"]), work(["p"], ["p:0", "p:0"])),
        (Release.V2_6_3, work(["p", "q"], ["p:0", "p:0", "p:1"]), work(["p"], ["p:0", "p:0", "p:0"])),
        (Release.V3_9, work(["p", "q"], ["p:0", "p:1"]), work([], ["p:0"])),
    ],
)
def test_what_is_to_stop_for_two_reasons_is_told_twice_by_releases_2_6_but_a_connector_once(
    release: Release, of_one: ConnectorsAndTasks, of_other: ConnectorsAndTasks
) -> None:
    # As the classes of 2.6.0, 2.6.3 and 3.9.0 answered: p and p:0 are held twice, and a member is above its share.
    members = {"a": work(["p", "q", "r"], ["p:0", "p:1", "p:2"]), "b": work(["p"], ["p:0"]), "c": NOTHING}
    found = Leading(release=release, connectors={"p": 3, "q": 0, "r": 0}, members=members).rebalance()
    stopped = found.assignments["a"].stop
    assert (sorted(stopped.connectors), sorted(stopped.tasks)) == (list(of_one.connectors), list(of_one.tasks))
    # Here one member alone names p and p:0 twice; later releases read them once.
    alone = {"a": work(["p", "p"], ["p:0", "p:0", "p:1"]), "b": NOTHING}
    stopped = Leading(release=release, connectors={"p": 2}, members=alone).rebalance().assignments["a"].stop
    assert (sorted(stopped.connectors), sorted(stopped.tasks)) == (list(of_other.connectors), list(of_other.tasks))


def test_new_work_goes_to_who_holds_least_with_what_it_keeps_and_what_it_is_to_start() -> None:
    def some(connectors: int, tasks: int, of: str) -> ConnectorsAndTasks:
        names = tuple(f"{of}{i}" for i in range(connectors))
        return ConnectorsAndTasks(connectors=names, tasks=tuple(task(f"{of}:{i}") for i in range(tasks)))

    kept = {"one": some(1, 1, "a"), "other": some(1, 1, "b")}
    start = {"one": some(2, 2, "c"), "other": NOTHING}
    found = deal(kept, start, some(2, 2, "new"))
    assert found == {"one": start["one"], "other": some(2, 2, "new")}
