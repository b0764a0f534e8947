"""Traces are judged by the rules of the model: those of the model itself, and those of a site's log."""

from dataclasses import replace

import pytest

from tests.protocol.check import search
from tests.protocol.model import Bound
from tests.protocol.rules import Event
from tests.protocol.site_trace import against_the_model, site_trace
from tests.protocol.trace import differs
from tests.unit.faults.test_fault_audit import FIRST, SECOND, answered, began, decided, issued, two_leaderships


def one_command(*more: Event) -> list[Event]:
    """A command that is decided, issued and begun."""
    return [
        Event(kind="epoch", epoch=1),
        Event(kind="marked", epoch=1),
        Event(kind="entry", epoch=1, interval=60_000),
        Event(kind="decided", epoch=1, interval=60_000, command="c"),
        Event(kind="issued", epoch=1, command="c"),
        Event(kind="begun", process="executor-1", command="c"),
        *more,
    ]


ACT = Event(kind="act", process="executor-1", command="c")
DONE = Event(kind="answered", command="c", outcome="done")


def test_a_command_that_is_done_and_answered_is_a_trace_of_the_model() -> None:
    assert differs(one_command(ACT, DONE)) is None


def test_a_late_act_behind_an_honest_answer_is_one_too() -> None:
    assert differs(one_command(replace(DONE, outcome="unknown"), ACT)) is None


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ([ACT, ACT, DONE], "it was done before"),
        ([ACT, DONE, DONE], "it has the result done"),
        ([DONE, ACT], "nobody has done it"),
        ([replace(DONE, outcome="fenced")], "it was begun"),
        ([ACT, replace(DONE, outcome="expired")], "it was begun"),
        ([Event(kind="begun", process="executor-2", command="c")], "it was begun before"),
        ([Event(kind="entry", epoch=1, interval=60_000)], "interval 60000 is decided already"),
        ([Event(kind="epoch", epoch=2), Event(kind="entry", epoch=1, interval=120_000)], "epoch 2 has begun"),
        ([Event(kind="marked", epoch=2)], "it is not in the journal"),
        ([ACT], "command c has no result"),
    ],
)
def test_where_a_trace_leaves_the_model_is_said(more: list[Event], why: str) -> None:
    found = differs(one_command(*more))
    assert found is not None
    assert why in str(found)


def test_what_would_be_allowed_instead_is_said() -> None:
    found = differs(one_command(ACT, ACT))
    assert found is not None
    assert (found.at, found.event) == (7, ACT)
    assert found.allowed == ["answered done", "answered unknown"]
    found = differs([*one_command()[:4], ACT, *one_command()[4:]])
    assert found is not None
    assert "issued" in found.allowed


def test_what_is_decided_while_paused_or_after_stop_all_is_refused() -> None:
    decides = one_command()[:4]
    paused = [*decides[:2], replace(decides[2], outcome="paused"), decides[3]]
    for trace in (paused, [decides[0], Event(kind="stopped"), *decides[2:]]):
        found = differs(trace)
        assert found is not None
        assert found.event == decides[3]


def test_a_wave_waits_for_the_one_before_it_and_for_approvals() -> None:
    def of(wave: int, command: str, kind: str) -> Event:
        return Event(kind=kind, epoch=1, command=command, plan="p", wave=wave)

    first = [
        Event(kind="epoch", epoch=1),
        Event(kind="approved", plan="p"),
        *(of(*each, "handed") for each in ((1, "a"), (2, "b"))),
        Event(kind="obeyed", plan="p"),
        Event(kind="entry", epoch=1, interval=1),
        of(1, "a", "decided"),
        of(1, "a", "issued"),
        Event(kind="entry", epoch=1, interval=2),
    ]
    early = [*first, of(2, "b", "decided")]
    found = differs(early, needed=1)
    assert found is not None
    assert "the wave before it is not done" in found.why
    done = Event(kind="answered", command="a", outcome="done")
    assert differs([*first, done, of(2, "b", "decided")], quiet=False, needed=1) is None
    found = differs(first, quiet=False, needed=2)
    assert found is not None
    assert found.why == "too few persons have approved its plan"


def test_the_events_on_the_way_to_a_broken_rule_are_no_trace_of_the_model() -> None:
    without = frozenset({"begin"})
    broken = search(Bound(entries=((0,),), partition=(0,), leader_faults=0, without=without)).broken
    assert broken is not None
    events = [
        replace(each, command="" if each.kind in ("epoch", "marked", "leads", "entry") else "c")
        for each in broken.events
    ]
    assert differs(events, quiet=False) is None
    found = differs([*events, Event(kind="begun", command="c")])
    assert found is not None
    assert found.why == "it was begun before"


def test_a_log_of_two_leaderships_is_a_trace_of_the_model() -> None:
    log, _ = two_leaderships()
    assert against_the_model(log) == []
    assert [each.kind for each in site_trace(log)][:5] == ["epoch", "entry", "decided", "marked", "issued"]


def test_a_log_with_a_command_behind_a_newer_epoch_is_one_only_where_it_was_refused() -> None:
    log, _ = two_leaderships()
    log.partitions[0] = [began(1), began(2), issued(FIRST)]
    [found] = against_the_model(log)
    assert "a newer epoch lies before it in its partition" in found
    log.answered[0] = answered(FIRST, "fenced")
    assert against_the_model(log) == []


def test_what_is_wrong_with_a_log_is_found_by_the_model_too() -> None:
    log, _ = two_leaderships()
    log.answered.pop()
    assert "command second has no result" in against_the_model(log)[0]
    log, _ = two_leaderships()
    log.decided.append(decided(2, epoch=1))
    assert "epoch 2 has begun in the journal" in against_the_model(log)[0]
    log, _ = two_leaderships()
    log.partitions[1].append(issued(SECOND, 2))
    assert "it was issued before" in against_the_model(log)[0]
    log, _ = two_leaderships()
    log.partitions[0].append(issued(replace(FIRST, id="stray"), 2))
    assert "nobody decided it" in against_the_model(log)[0]
    assert against_the_model(log, {"stray"}) == []
