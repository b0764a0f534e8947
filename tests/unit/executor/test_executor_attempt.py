"""One command on a cluster that answers by a script."""

from typing import Self

import pytest

from controller.adapters.pulsar.admin import PulsarError
from controller.executor import attempt
from controller.executor.attempt import Outcome, carry_out
from controller.executor.judge import Answer, Observation
from controller.model.decision import Command
from tests.commands import QUARTERS, A, B, C, split, unload

OURS, THEIRS = Observation(boundaries=QUARTERS, owner=A), Observation(boundaries=QUARTERS, owner=B)
NOBODYS, ELSEWHERE = Observation(boundaries=QUARTERS), Observation(boundaries=QUARTERS, owner=C)
SERVER_ERROR = PulsarError("HTTP 500", status=500)
NO_CONNECTION = PulsarError("no connection", sent=False, away=True)
TIMEOUT = PulsarError("no answer", away=True)
SENT_ON_TOO_LATE = PulsarError("redirected after more than 5 s: too late", status=307)
BUSY = PulsarError("HTTP 429", status=429, wait_seconds=3.0)


class Scripted:
    """Looks and acts in this order; an error is raised, everything else returned."""

    def __init__(self, *steps: Observation | PulsarError | None) -> None:
        self.steps = list(steps)
        #: Brokers that are none, wherever a command names them.
        self.strange: tuple[str, ...] = ()

    def within(self, _: float) -> Self:
        return self

    def not_active(self, command: Command) -> tuple[str, ...]:
        return tuple(name for name in (command.source, command.destination) if name in self.strange)

    def look(self, command: Command) -> Observation:
        step = self._next(command)
        assert step is not None, "the script has an act here"
        return step

    look_after = look

    def act(self, command: Command) -> None:
        assert self._next(command) is None, "the script has a look here"

    def _next(self, command: Command) -> Observation | None:
        assert self.steps, f"{command.action} goes on behind the script's end"
        step = self.steps.pop(0)
        if isinstance(step, PulsarError):
            raise step
        return step


def obey(
    *steps: Observation | PulsarError | None,
    maybe_begun: bool = False,
    may_act: Answer | None = None,
    strange: tuple[str, ...] = (),
    dry_run: bool = False,
) -> Outcome:
    cluster = Scripted(*steps)
    cluster.strange = strange
    outcome = carry_out(
        unload(),
        cluster,
        may_act=lambda: may_act,
        maybe_started=maybe_begun,
        dry_run=dry_run,
        sleep=lambda _: None,
    )
    assert cluster.steps == []
    return outcome


def test_a_failpoint_lies_behind_each_act_that_was_done(monkeypatch: pytest.MonkeyPatch) -> None:
    passed: list[str] = []
    monkeypatch.setattr(attempt, "failpoint", passed.append)
    obey(OURS, None, THEIRS)
    assert passed == ["after-act"]
    obey(OURS, SERVER_ERROR, OURS, SERVER_ERROR, OURS, SERVER_ERROR, OURS)
    assert passed == ["after-act"]


def test_a_command_is_looked_at_done_and_looked_at() -> None:
    assert obey(OURS, None, THEIRS) == Outcome(answer=Answer(status="done"), owner_before=A, owner_after=B, attempts=1)


@pytest.mark.parametrize("strange", [(A,), (B,), (A, B)])
@pytest.mark.parametrize("dry_run", [False, True])
def test_a_command_that_names_a_broker_which_is_not_active_has_failed_without_a_look(
    strange: tuple[str, ...], dry_run: bool
) -> None:
    outcome = obey(strange=strange, dry_run=dry_run)
    assert (outcome.answer.status, outcome.attempts) == ("failed", 0)
    assert all(repr(name) in outcome.answer.detail for name in strange)


def test_a_command_that_was_begun_is_looked_at_though_its_source_is_gone_by_now() -> None:
    assert obey(THEIRS, strange=(A,), maybe_begun=True).answer.status == "already_done"


def test_what_the_brokers_refused_is_tried_again_behind_a_new_look() -> None:
    outcome = obey(OURS, SERVER_ERROR, OURS, OURS, None, THEIRS)
    assert (outcome.answer.status, outcome.attempts) == ("done", 2)
    outcome = obey(OURS, NO_CONNECTION, OURS, None, THEIRS)  # nothing was sent: there is no effect to look for
    assert (outcome.answer.status, outcome.attempts) == ("done", 2)
    outcome = obey(OURS, SENT_ON_TOO_LATE, OURS, OURS, None, THEIRS)
    assert (outcome.answer.status, outcome.attempts) == ("done", 2)


def test_attempts_are_limited() -> None:
    refused: list[Observation | PulsarError | None] = [OURS, SERVER_ERROR, OURS]
    outcome = obey(*refused * 3)
    assert (outcome.answer.status, outcome.attempts) == ("failed", 3)
    assert "HTTP 500" in outcome.answer.detail


def test_what_may_still_be_under_way_is_not_sent_again() -> None:
    outcome = obey(OURS, TIMEOUT, OURS)
    assert (outcome.answer.status, outcome.attempts) == ("unknown", 1)


def test_an_act_that_nobody_can_look_at_afterwards_is_unknown() -> None:
    outcome = obey(OURS, None, NO_CONNECTION)
    assert (outcome.answer.status, outcome.owner_before, outcome.owner_after) == ("unknown", A, "")


def test_looking_is_tried_again_and_then_nothing_was_done() -> None:
    assert obey(NO_CONNECTION, TIMEOUT, OURS, None, THEIRS).answer.status == "done"
    outcome = obey(NO_CONNECTION, SERVER_ERROR, SERVER_ERROR)
    assert (outcome.answer.status, outcome.attempts) == ("failed", 0)
    assert obey(NO_CONNECTION, TIMEOUT, NO_CONNECTION, maybe_begun=True).answer.status == "unknown"


def test_a_command_for_which_nobody_could_be_reached_has_not_failed_but_was_never_begun() -> None:
    nobody = Outcome(
        answer=Answer(status="expired", detail="not started: no broker could be reached: no connection"),
        nobody_reached=True,
    )
    assert obey(NO_CONNECTION, TIMEOUT, NO_CONNECTION) == nobody
    # Nor has one whose act never left this process, whatever was seen before.
    unsent = obey(OURS, NO_CONNECTION, OURS, NO_CONNECTION, TIMEOUT)
    assert (unsent.answer.status, unsent.attempts, unsent.nobody_reached) == ("expired", 2, True)
    # One that brokers received and refused has.
    refused = obey(OURS, SERVER_ERROR, OURS, NO_CONNECTION, NO_CONNECTION)
    assert (refused.answer.status, refused.nobody_reached) == ("failed", False)


def test_while_nobody_can_be_reached_a_command_waits_as_long_as_it_may() -> None:
    pauses, may = list[float](), [True, True, False]
    cluster = Scripted(*[NO_CONNECTION] * 5)
    outcome = carry_out(
        unload(), cluster, may_act=lambda: None, may_wait=lambda: may.pop(0), sleep=pauses.append, max_attempts=3
    )
    assert (outcome.answer.status, cluster.steps, may) == ("expired", [], [])
    assert pauses == [0.5, 1.0, 2.0, 2.0]
    cluster = Scripted(*[NO_CONNECTION] * 4, OURS, None, THEIRS)
    outcome = carry_out(unload(), cluster, may_act=lambda: None, may_wait=lambda: True, sleep=pauses.append)
    assert outcome.answer.status == "done"
    # Of what the brokers refuse there is no more than the attempts.
    refused: list[Observation | PulsarError | None] = [OURS, SERVER_ERROR, OURS]
    cluster = Scripted(*refused * 3)
    outcome = carry_out(unload(), cluster, may_act=lambda: None, may_wait=lambda: True, sleep=pauses.append)
    assert (outcome.answer.status, cluster.steps) == ("failed", [])


def test_an_act_for_which_a_broker_has_too_many_requests_is_a_new_attempt_that_has_to_be_allowed_anew() -> None:
    pauses, fenced = list[float](), Answer(status="fenced")
    busy: list[Observation | PulsarError | None] = [OURS, BUSY]

    def outcome_of(*steps: Observation | PulsarError | None, allowed: list[Answer | None]) -> Outcome:
        cluster = Scripted(*steps)
        outcome = carry_out(
            unload(), cluster, may_act=lambda: allowed.pop(0), may_wait=lambda: bool(allowed), sleep=pauses.append
        )
        assert (cluster.steps, allowed) == ([], [])
        return outcome

    # The broker has done nothing: there is no effect to look for.
    done = outcome_of(*busy * 4, OURS, None, THEIRS, allowed=[None] * 5)
    assert (done.answer.status, done.attempts, pauses) == ("done", 5, [3.0] * 4)
    stopped = outcome_of(OURS, BUSY, OURS, allowed=[None, fenced])
    assert (stopped.answer, stopped.attempts) == (fenced, 1)
    moved = outcome_of(OURS, BUSY, ELSEWHERE, allowed=[None])
    assert (moved.answer.status, moved.attempts) == ("obsolete", 1)
    waited = outcome_of(*busy * 4, allowed=[None] * 4)
    assert (waited.answer.status, waited.attempts, waited.nobody_reached) == ("expired", 4, True)


def test_a_broker_that_wants_absurdly_much_time_is_not_waited_for_so_long() -> None:
    absurd = PulsarError("HTTP 429", status=429, wait_seconds=900_000.0)
    assert slept(OURS, absurd, OURS, absurd, OURS, None, THEIRS) == [0.5, 1.0]


def test_an_act_that_seems_to_have_led_to_nothing_is_looked_at_again_before_it_is_said() -> None:
    pauses = list[float]()

    def outcome_of(command: Command, *steps: Observation | PulsarError | None) -> Outcome:
        cluster = Scripted(*steps)
        outcome = carry_out(command, cluster, may_act=lambda: None, sleep=pauses.append)
        assert cluster.steps == []
        return outcome

    assert outcome_of(unload(), OURS, None, OURS, OURS, THEIRS).answer.status == "done"
    assert pauses == [0.5, 1.0]
    assert outcome_of(unload(), OURS, None, OURS, OURS, OURS).answer.status == "failed"
    halved = Observation(boundaries=(*QUARTERS[:2], 0x60000000, *QUARTERS[2:]))
    assert outcome_of(split(), OURS, None, OURS, halved).answer.status == "done"
    assert outcome_of(split(), OURS, None, OURS, OURS, OURS).answer.status == "failed"


def test_a_replaced_executor_does_not_act() -> None:
    expired = Answer(status="expired")
    assert obey(OURS, may_act=expired) == Outcome(answer=expired, owner_before=A, owner_after=A)


@pytest.mark.parametrize(("placed", "status"), [(THEIRS, "already_done"), (OURS, "unknown"), (ELSEWHERE, "unknown")])
def test_a_bundle_that_a_dead_executor_left_without_an_owner_is_looked_up_and_not_unloaded_again(
    placed: Observation, status: str
) -> None:
    outcome = obey(NOBODYS, placed, maybe_begun=True)
    assert outcome.answer.status == status
    assert (outcome.owner_before, outcome.owner_after, outcome.attempts) == ("", placed.owner, 0)


def test_a_bundle_that_nobody_has_is_not_looked_up_for_a_command_that_was_never_begun() -> None:
    assert obey(NOBODYS).answer.status == "obsolete"


def slept(*steps: Observation | PulsarError | None, **options: float) -> list[float]:
    pauses: list[float] = []
    cluster = Scripted(*steps)
    carry_out(unload(), cluster, may_act=lambda: None, sleep=pauses.append, **options)  # type: ignore[arg-type]
    assert cluster.steps == []
    return pauses


def test_a_command_without_a_result_says_how_often_it_was_tried_and_what_came_last() -> None:
    assert obey(NO_CONNECTION, TIMEOUT, SERVER_ERROR) == Outcome(
        answer=Answer(status="failed", detail="after 3 attempts: HTTP 500")
    )
    assert obey(OURS, SERVER_ERROR, OURS, OURS, SERVER_ERROR, OURS, TIMEOUT) == Outcome(
        answer=Answer(status="failed", detail="after 3 attempts: no answer"), owner_before=A, attempts=2
    )


def test_an_act_without_a_look_behind_it_says_both_answers() -> None:
    assert obey(OURS, None, NO_CONNECTION).answer.detail == "sent; then no connection"
    assert obey(OURS, SERVER_ERROR, TIMEOUT).answer.detail == "HTTP 500; then no answer"


def test_brokers_that_are_not_active_are_named() -> None:
    assert obey(strange=(A,)).answer.detail == f"{A!r} is not an active broker of the cluster: not called"
    both = obey(strange=(A, B)).answer.detail
    assert both == f"{A!r} and {B!r} are not active brokers of the cluster: not called"


def test_a_broker_that_goes_while_its_command_is_tried_again_is_asked_all_the_same() -> None:
    class Leaving(Scripted):
        def act(self, command: Command) -> None:
            self.strange = (A,)
            super().act(command)

    cluster = Leaving(OURS, SERVER_ERROR, OURS, OURS, None, THEIRS)
    outcome = carry_out(unload(), cluster, may_act=lambda: None, sleep=lambda _: None)
    assert (outcome.answer.status, outcome.attempts) == ("done", 2)


def test_the_owner_before_is_that_of_the_first_look() -> None:
    assert obey(OURS, SERVER_ERROR, OURS, ELSEWHERE).owner_before == A
