"""What people hear of: each thing once, and nothing old."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from controller.doctor.finding import Finding, error
from controller.model.decision import Reason, Verdict
from controller.web.notifications.detection import detect
from controller.web.notifications.facts import ClusterFacts, LogFacts, ProposalFact
from controller.web.store.values import BreakerState, IssuedCommand
from controller.wire.notifications import ClusterObservation, EventKind, Notification
from tests.page_data import BUNDLE, COMMAND, T

PERIOD_MS = 60_000
NOTHING = ClusterObservation()
WAVE = "plan 0123456789ab, step 1, wave 2 of 3"


def breaker(tripped_at: int | None = None) -> BreakerState:
    return BreakerState(
        in_a_row=0,
        most_in_a_row=10,
        in_window=0,
        most_in_window=None,
        tripped_at=tripped_at,
        why="10 commands failed",
    )


def in_log(**changed: Any) -> LogFacts:
    values: dict[str, Any] = {
        "decided": T,
        "epoch": 3,
        "breaker": breaker(),
        "plan_failures": (),
        "undone_moves": (),
    }
    return LogFacts(**values | changed)


def facts(now_ms: int = T + PERIOD_MS, **changed: Any) -> ClusterFacts:
    values: dict[str, Any] = {"cluster": "east", "now_ms": now_ms, "period_ms": PERIOD_MS, "log": in_log()}
    return ClusterFacts(**values | changed)


def failed(wave: str = WAVE, number: int = 0) -> IssuedCommand:
    why = Verdict(subject="b", reason=Reason.PLANNED, by="plan", detail=wave)
    return replace(COMMAND, id=f"f-{number}", why=why, status="failed", detail="409")


def moved_back(number: int) -> IssuedCommand:
    return replace(COMMAND, id=f"m-{number}")


def proposal(state: str, key: str = "p" * 64) -> ProposalFact:
    return ProposalFact(id=key, state=state, author="ann", title="4 moves", expires_at_ms=T + 3_600_000)


def look(
    *several: ClusterFacts, observation: ClusterObservation = NOTHING
) -> tuple[ClusterObservation, list[Notification]]:
    found = list[Notification]()
    for each in several:
        observation, new = detect(observation, each, silent_intervals=5)
        found += new
    return observation, found


def kinds(notifications: Sequence[Notification]) -> list[str]:
    return [each.kind for each in notifications]


#: After a first look at which nothing was wrong.
CALM = look(facts())[0]


def test_a_calm_cluster_tells_nothing() -> None:
    assert look(facts(), facts(), facts(T + 2 * PERIOD_MS, log=in_log(decided=T + PERIOD_MS)))[1] == []


@pytest.mark.parametrize(
    ("changed", "kind"),
    [
        ({"log": in_log(breaker=breaker(T))}, EventKind.BREAKER_OPENED),
        ({"log": in_log(epoch=4)}, EventKind.LEADER_CHANGED),
        ({"log": in_log(plan_failures=(failed(),))}, EventKind.WAVE_FAILED),
        ({"log": in_log(undone_moves=(moved_back(1),))}, EventKind.MOVES_UNDONE),
        ({"now_ms": T + 6 * PERIOD_MS}, EventKind.NO_DECISION),
        ({"doctor": (error("x", "a", observed="bad"),)}, EventKind.DOCTOR_ERROR),
        ({"proposals": (proposal("pending"),)}, EventKind.PROPOSAL_WAITS),
        ({"proposals": (proposal("failed"),)}, EventKind.PLAN_FAILED),
    ],
)
def test_each_event_is_told_once(changed: dict[str, Any], kind: EventKind) -> None:
    observation, found = look(facts(**changed), observation=CALM)
    assert kinds(found) == [kind]
    assert found[0].title.startswith("east: ")
    assert look(facts(**changed), facts(**changed | {"doctor": None}), observation=observation)[1] == []


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"log": in_log(breaker=breaker(T - 10 * 86_400_000))}, [EventKind.BREAKER_OPENED]),
        ({"now_ms": T + 86_400_000}, [EventKind.NO_DECISION]),
        ({"doctor": (error("x", "a", observed="bad"),)}, [EventKind.DOCTOR_ERROR]),
        ({"proposals": (proposal("pending"),)}, [EventKind.PROPOSAL_WAITS]),
        ({"log": in_log(plan_failures=(failed(),), undone_moves=(moved_back(1),))}, []),
        ({"proposals": (proposal("failed"),)}, []),
    ],
)
def test_at_the_first_look_what_holds_is_told_and_what_happened_before_is_not(
    changed: dict[str, Any], told: list[EventKind]
) -> None:
    assert kinds(look(facts(**changed), facts(**changed))[1]) == told


def test_two_senders_that_see_the_same_give_it_the_same_id() -> None:
    changed = facts(log=in_log(epoch=4, breaker=breaker(T), plan_failures=(failed(),)))
    assert look(changed, observation=CALM) == look(changed, observation=CALM)
    ids = [each.id for each in look(changed, observation=CALM)[1]]
    assert len(set(ids)) == len(ids) == 3
    assert ids != [each.id for each in look(replace(changed, cluster="west"), observation=CALM)[1]]


def test_while_the_log_is_loaded_nothing_is_judged() -> None:
    loading = facts(T + 86_400_000, log=None)
    assert look(loading, observation=CALM) == (CALM, [])


def test_a_log_that_cannot_be_read_is_told_as_silence_and_why() -> None:
    unread = facts(T + 86_400_000, log=None, unread="journal: Kafka does not answer")
    [event] = look(unread, unread, observation=CALM)[1]
    assert event.kind == EventKind.NO_DECISION
    assert "Kafka does not answer" in event.text


def test_a_cluster_that_never_decides_is_told_after_the_time_from_the_first_look() -> None:
    silent = in_log(decided=None, epoch=0, breaker=None)
    early, late = facts(T, log=silent), facts(T + 6 * PERIOD_MS, log=silent)
    assert kinds(look(early, early)[1]) == []
    assert kinds(look(early, late, late)[1]) == [EventKind.NO_DECISION]


def test_silence_is_told_again_after_another_decision() -> None:
    first, second = facts(T + 6 * PERIOD_MS), facts(T + 20 * PERIOD_MS, log=in_log(decided=T + 8 * PERIOD_MS))
    found = look(facts(), first, first, second, second)[1]
    assert kinds(found) == [EventKind.NO_DECISION] * 2
    assert found[0].id != found[1].id


def test_a_breaker_that_opens_again_is_told_again() -> None:
    states = [breaker(T), breaker(), breaker(T + PERIOD_MS)]
    found = look(*(facts(log=in_log(breaker=each)) for each in states), observation=CALM)[1]
    assert kinds(found) == [EventKind.BREAKER_OPENED] * 2
    assert found[0].id != found[1].id


def test_a_wave_is_told_once_however_many_of_its_moves_fail() -> None:
    one, three = (failed(),), tuple(failed(number=each) for each in range(3))
    other = failed("plan 0123456789ab, step 1, wave 3 of 3", 9)
    found = look(*(facts(log=in_log(plan_failures=each)) for each in (one, three, (other, *three))), observation=CALM)[
        1
    ]
    assert [each.data["wave"] for each in found] == [WAVE, other.why.detail]
    assert "1 move failed" in found[0].text
    assert BUNDLE in found[0].text


def test_leaders_that_change_all_the_time_are_told_now_and_then_and_the_newest_one_always() -> None:
    several = [
        facts(T + minute * PERIOD_MS, log=in_log(epoch=4 + minute, decided=T + minute * PERIOD_MS))
        for minute in range(25)
    ]
    events = look(*several, observation=CALM)[1]
    assert [(each.data["epochBefore"], each.data["epoch"]) for each in events] == [(3, 4), (4, 14), (14, 24)]
    later = facts(T + 60 * PERIOD_MS, log=in_log(epoch=28, decided=T + 60 * PERIOD_MS))
    assert look(*several, later, observation=CALM)[1][-1].data["epoch"] == 28


def test_undone_moves_are_told_once_an_hour_all_together() -> None:
    moves = [tuple(moved_back(each) for each in range(count)) for count in (1, 2, 3)]
    times = (T, T + PERIOD_MS, T + 61 * PERIOD_MS)
    several = [
        facts(at + PERIOD_MS, log=in_log(decided=at, undone_moves=each)) for at, each in zip(times, moves, strict=True)
    ]
    assert [each.data["moves"] for each in look(*several, observation=CALM)[1]] == [1, 2]


def test_what_waits_in_mode_approve_is_told_once_wherever_it_lies() -> None:
    waits = proposal("pending")
    decided = facts(log=in_log(proposed=waits))
    several = [decided, replace(decided, proposals=(waits,)), facts(proposals=(waits,)), decided]
    assert kinds(look(*several, observation=CALM)[1]) == [EventKind.PROPOSAL_WAITS]


def test_what_waits_is_not_told_again_after_a_time_in_which_it_could_not_be_read() -> None:
    both = facts(log=in_log(proposed=proposal("pending")), proposals=(proposal("pending", "q" * 64),))
    unread = [replace(both, proposals=None), replace(both, log=None, unread="no answer")]
    assert len(look(both, unread[0], both, unread[1], both, observation=CALM)[1]) == 2


def findings(*codes: str) -> tuple[Finding, ...]:
    return tuple(error(code, "a", observed="bad") for code in codes)


def test_an_error_of_the_doctor_is_told_again_only_after_it_was_gone() -> None:
    runs = [findings("x"), findings("x", "y"), findings("y"), findings("x", "y")]
    found = look(*(facts(T + number, doctor=each) for number, each in enumerate(runs)), observation=CALM)[1]
    assert [each.data["codes"] for each in found] == [("x",), ("y",), ("x",)]
    assert len({each.id for each in found}) == 3


def test_more_errors_than_are_remembered_are_not_told_again_and_again() -> None:
    many = tuple(error("x", f"a{each}", observed="bad") for each in range(2_000))
    assert len(look(facts(doctor=many), facts(doctor=many), observation=CALM)[1]) == 1


def test_hostile_names_neither_break_a_notification_nor_make_it_large() -> None:
    name = "\x1b[31m\n\ud800\u202e" + "x" * 100_000
    command = replace(failed(name), bundle=name, detail=name)
    changed = facts(
        log=in_log(plan_failures=(command,), undone_moves=(command,), breaker=replace(breaker(T), why=name)),
        doctor=(error("x", [name] * 1_000, observed=name),),
        proposals=(replace(proposal("pending"), title=name, author=name),),
    )
    found = look(changed, observation=CALM)[1]
    assert len(found) == 5
    for each in found:
        assert len(each.model_dump_json()) < 10_000
        assert "\x1b" not in each.text + each.title
        assert "\u202e" not in each.text + each.title
