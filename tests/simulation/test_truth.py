"""What the oracle finds in traces that are untrue: a trace, and the finding."""

from dataclasses import replace

import pytest

from tests.protocol.rules import Event
from tests.simulation.truth import untrue

MINUTE = 60_000
T = 100 * MINUTE
WHAT = "unload acme/ns0/0x00000000_0x40000000 broker-2 broker-1 active"
OWNED = Event(kind="owned", at=T - MINUTE, content="acme/ns0/0x00000000_0x40000000", outcome="broker-1")
ENTRY = Event(kind="entry", at=T + 1, epoch=3, interval=T, content=str(T + 1), process="controller-1")
DECIDED = Event(
    kind="decided",
    at=T + 1,
    epoch=3,
    interval=T,
    command="c",
    outcome="active unload Overloaded",
    content=WHAT,
    expires_at=T + MINUTE,
)
ISSUED = replace(DECIDED, kind="issued", outcome="")
EFFECT = Event(kind="effect", at=T + 5_000, command="c", content=" ".join(WHAT.split()[:3]), process="executor-1")
MOVED = replace(OWNED, at=T + 6_000, outcome="broker-2")
DONE = Event(kind="answered", at=T + 7_000, command="c", outcome="done", process="executor-1")
GOOD = [OWNED, ENTRY, DECIDED, ISSUED, EFFECT, MOVED, DONE]
PAUSED = Event(kind="controls", at=T - 3 * MINUTE, outcome="paused ")
STOPPED = Event(kind="all-stopped", at=T - 2 * MINUTE, epoch=4)


def test_what_is_done_as_it_was_decided_is_true() -> None:
    assert untrue(GOOD) == []


@pytest.mark.parametrize(
    ("trace", "why"),
    [
        ([OWNED, ENTRY, DECIDED, replace(ISSUED, content=WHAT.replace("broker-2", "broker-3"))], "issued as"),
        ([OWNED, ENTRY, DECIDED, replace(ISSUED, expires_at=T + 2 * MINUTE)], "issued as"),
        ([*GOOD[:4], replace(EFFECT, content=EFFECT.content.replace("broker-2", "broker-3"))], "carried out as"),
        ([*GOOD, replace(EFFECT, command="")], "which no command asks for"),
        ([*GOOD[:2], *(replace(each, content=WHAT.replace("active", "dry_run")) for each in GOOD[2:4]), EFFECT], "dry"),
        ([*GOOD[:4], replace(EFFECT, at=T + 30 * MINUTE), replace(MOVED, at=T)], "carried out on"),
        ([*GOOD[:5], DONE], "its owners were"),
        ([*GOOD[:4], replace(DONE, outcome="expired")], "its time is not over"),
        ([*GOOD[:4], replace(DONE, outcome="fenced")], "epoch 3 is the newest"),
        ([*GOOD[:4], replace(DONE, outcome="skipped")], "no system namespace"),
        ([*GOOD[:3], replace(DECIDED, command="d")], "which has no answer"),
        ([replace(OWNED, outcome="broker-3"), *GOOD[1:3]], "has not owned it"),
        ([*GOOD[:2], replace(DECIDED, content=WHAT.replace("broker-2", "broker-1"))], "to itself"),
        ([*GOOD[:2], replace(DECIDED, expires_at=T + 5 * MINUTE)], "expires"),
        ([PAUSED, STOPPED, *GOOD[:3]], "stop-all: c is decided"),
        ([PAUSED, Event(kind="epoch", at=T - MINUTE, epoch=3), *GOOD[:3]], "which began after somebody forbade it"),
        ([replace(PAUSED, outcome="resumed "), replace(ENTRY, outcome="paused")], "after somebody resumed"),
        ([Event(kind="batch", epoch=7, content="1"), Event(kind="batch", epoch=7, content="2")], "batch: 7"),
    ],
)
def test_what_is_untrue_is_found(trace: list[Event], why: str) -> None:
    assert any(why in each for each in untrue(trace)), untrue(trace)


#: From then on 100 s ahead.
WRONG_CLOCK = Event(kind="skewed", at=T + 5_000, process="executor-1", content="100000")
TOO_EARLY = replace(DONE, outcome="expired", content="46000 ms too late")


@pytest.mark.parametrize("process", ["executor-1", "executor-2"])
def test_an_executor_whose_clock_was_wrong_may_find_a_command_expired_too_early(process: str) -> None:
    # Another one gives the answer where it died after it had stored it.
    assert untrue([*GOOD[:4], replace(WRONG_CLOCK, process=process), TOO_EARLY]) == []
    died = Event(kind="died", at=T + 6_500, process=process)
    assert untrue([*GOOD[:4], replace(WRONG_CLOCK, process=process), died, TOO_EARLY]) == []


@pytest.mark.parametrize(
    "later",
    [
        [replace(TOO_EARLY, content="")],
        [replace(TOO_EARLY, content="0 ms too late")],
        [replace(TOO_EARLY, content="48000 ms too late")],
        [replace(WRONG_CLOCK, content="98000"), TOO_EARLY],
        [Event(kind="died", at=T + 5_500, process="executor-1"), TOO_EARLY],
        [Event(kind="calm", at=T + 5_500, process="main"), TOO_EARLY],
    ],
)
def test_an_answer_that_no_wrong_clock_explains_is_found(later: list[Event]) -> None:
    [found] = untrue([*GOOD[:4], WRONG_CLOCK, *later])
    assert "its time is not over" in found


def test_the_wrong_clock_of_a_controller_explains_no_answer() -> None:
    [found] = untrue([*GOOD[:4], replace(WRONG_CLOCK, process="controller-1"), TOO_EARLY])
    assert "its time is not over" in found


def test_a_late_interval_shares_its_budget_with_what_is_decided_within_a_period() -> None:
    late, in_time = replace(ENTRY, content=str(T - MINUTE)), replace(ENTRY, interval=T + MINUTE, content=str(T - 1))
    names = [f"acme/ns0/0x0000000{n}_0x40000000" for n in range(4)]
    owned = [replace(OWNED, content=name) for name in names]
    decided = [
        replace(DECIDED, command=name, content=WHAT.replace("acme/ns0/0x00000000_0x40000000", name)) for name in names
    ]
    next_one = replace(decided[3], interval=T + MINUTE, expires_at=T + 2 * MINUTE)
    assert untrue([*owned, late, *decided[:3]]) == []
    for last in ([decided[3]], [in_time, next_one]):
        assert any(each.startswith("budget: 4 unloads") for each in untrue([*owned, late, *decided[:3], *last]))
    in_their_time = [*owned, ENTRY, *decided[:3], replace(in_time, content=str(T + MINUTE)), next_one]
    assert untrue(in_their_time) == []
    refused = Event(kind="answered", at=T + 2, command=names[0], outcome="fenced")
    newer = replace(ISSUED, command=names[0], epoch=4)
    begun_by_nobody = [replace(each, command=names[0]) for each in (newer, refused)]
    assert not any(
        each.startswith("budget") for each in untrue([*owned, late, *decided[:3], *begun_by_nobody, in_time, next_one])
    )


def test_older_commands_after_stop_all_are_found_also_where_it_begins_no_epoch() -> None:
    stopped = replace(STOPPED, at=T + 2, epoch=ISSUED.epoch)
    late = replace(EFFECT, kind="act", at=T + 20_000)
    assert untrue([*GOOD[:4], stopped, replace(late, at=T + 9_000), *GOOD[4:]]) == []
    assert untrue([*GOOD[:4], stopped, late, *GOOD[4:]]) == ["stop-all: c is carried out 19998 ms after it"]


def test_a_tick_that_lacks_a_broker_once_all_is_calm_is_found() -> None:
    tick = Event(kind="tick", at=T, interval=T, outcome="metrics", content="broker-2")
    calm = Event(kind="calm", at=T - 5 * MINUTE)
    assert untrue([OWNED, calm, replace(tick, content="broker-1 broker-2")]) == []
    assert untrue([OWNED, calm, tick]) == [f"tick: interval {T} lacks ['broker-1']"]
