"""What people change in the controls, each change as a function of the controls, and the loop that stores one.

The command line and the page make the same changes by these functions.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from controller.adapters.election.controls import ControlStore
from controller.adapters.election.retries import retried
from controller.model.controls import (
    MAX_DRAINED,
    MAX_EXCLUDED,
    Choice,
    ControlChange,
    DecisionApproval,
    DecisionRejection,
    Drained,
    ExcludedName,
    OperatorControls,
    Pause,
)
from controller.model.errors import ControlsCorruptError, TrimtabError
from controller.model.proposals import EVERY_PAUSE
from controller.model.some_of import some_of
from controller.wire.base import printable
from controller.wire.controls import MAX_NAME, MAX_REASON
from controller.wire.controls_text import pauses_text
from controller.wire.readable import utc

#: The controls after a change, of those before it.  TrimtabError: it cannot be made, and nothing is changed.
ControlsChange: TypeAlias = Callable[[OperatorControls], OperatorControls]

#: Brokers, persons, or bundles and namespaces, that a sentence names.
_MAX_NAMED: Final = 10
#: The value of a mode that stands for the one in the settings.
SETTINGS_MODE: Final = "settings"


def choice_by(name: str, reason: str, at_ms: int, value: str = "") -> Choice:
    """*value* as *name* chooses it at *at_ms*, epoch ms, with the texts cut and made printable."""
    # Whatever somebody pastes as a reason in an emergency, the change has to work.
    return Choice(value=value, reason=printable(reason)[:MAX_REASON], by=printable(name)[:MAX_NAME], at_ms=at_ms)


def paused(made: Choice, until_ms: int = 0) -> ControlsChange:
    """Pause until *until_ms*, epoch ms; 0: until somebody resumes."""
    pause = Pause(by=made.by, reason=made.reason, at_ms=made.at_ms, until_ms=until_ms)
    detail = f"until {utc(until_ms)}" if until_ms else ""
    return lambda now: now.with_pause(pause).with_change(_entry("pause", made, detail))


def resumed(made: Choice, of: Collection[str] | None) -> ControlsChange:
    """End the pauses of the persons *of*, or of everybody (None), and reset the breaker."""

    def change(now: OperatorControls) -> OperatorControls:
        standing = now.pauses_at(made.at_ms)
        ended = _ending(standing, of)
        detail = f"ends the pause of {pauses_text(ended)}" if ended else ""
        remaining = tuple(each for each in standing if each not in ended)
        changed = replace(now, pauses=remaining, resumed_ms=max(made.at_ms, now.resumed_ms + 1))
        return changed.with_change(_entry("resume", made, detail))

    return change


def resumed_by_request(made: Choice, pauses: Collection[str], resumed_ms: int) -> ControlsChange:
    """End the *pauses*, as a ControlRequest has them, and reset the breaker as of *resumed_ms*, epoch ms."""

    def change(now: OperatorControls) -> OperatorControls:
        standing = now.pauses_at(made.at_ms)
        every = EVERY_PAUSE in pauses
        ended = [each for each in standing if str(each.at_ms) in pauses or (every and each.at_ms <= resumed_ms)]
        detail = f"ends the pause of {pauses_text(ended)}" if ended else ""
        remaining = tuple(each for each in standing if each not in ended)
        changed = replace(now, pauses=remaining, resumed_ms=max(resumed_ms, now.resumed_ms + 1))
        return changed.with_change(_entry("resume", made, detail))

    return change


def mode_set(made: Choice) -> ControlsChange:
    """Set the mode *made.value*; SETTINGS_MODE removes what was set."""
    mode = None if made.value == SETTINGS_MODE else made
    return lambda now: replace(now, mode=mode).with_change(_entry("mode", made, made.value))


def decision_approved(made: Choice) -> ControlsChange:
    """Approve the decision with the hash *made.value*, which waits in mode approve, without a signature."""
    approval = DecisionApproval(decision=made.value, by=(made.by,), at_ms=made.at_ms)
    return lambda now: now.with_approval(approval).with_change(_entry("approve", made, f"decision {made.value}"))


def decision_rejected(made: Choice) -> ControlsChange:
    """Reject the decision with the hash *made.value*: strategies leave its bundles alone until it would expire."""
    rejection = DecisionRejection(decision=made.value, by=made.by, reason=made.reason, at_ms=made.at_ms)
    return lambda now: now.with_rejection(rejection).with_change(_entry("reject", made, f"decision {made.value}"))


def drained(made: Choice, brokers: Collection[str]) -> ControlsChange:
    """Give *brokers* no more bundles, until they are released.  The bundles that they have stay there."""

    def change(now: OperatorControls) -> OperatorControls:
        already = {each.broker for each in now.drained}
        new = [Drained(broker=name, by=made.by, at_ms=made.at_ms) for name in sorted(set(brokers) - already)]
        if not new:
            raise TrimtabError(f"{some_of(sorted(brokers), _MAX_NAMED)} is drained already, so nothing was changed")
        if len(new) + len(now.drained) > MAX_DRAINED:
            raise TrimtabError(f"at most {MAX_DRAINED} brokers can be drained: release some first")
        by_name = {each.broker: each for each in (*now.drained, *new)}
        detail = ", ".join(each.broker for each in new)
        return replace(now, drained=tuple(by_name[name] for name in sorted(by_name))).with_change(
            _entry("drain", made, detail)
        )

    return change


def released(made: Choice, brokers: Collection[str] | None) -> ControlsChange:
    """Let *brokers*, or all drained ones (None), get bundles again."""

    def change(now: OperatorControls) -> OperatorControls:
        unknown = set(brokers or ()) - {each.broker for each in now.drained}
        if unknown:
            have = some_of([each.broker for each in now.drained], _MAX_NAMED) or "none"
            raise TrimtabError(f"{some_of(sorted(unknown), _MAX_NAMED)} is not drained; drained are: {have}")
        remaining = tuple(each for each in now.drained if brokers is not None and each.broker not in brokers)
        detail = ", ".join(each.broker for each in now.drained if each not in remaining)
        return replace(now, drained=remaining).with_change(_entry("release", made, detail))

    return change


def excluded(made: Choice, names: Collection[str]) -> ControlsChange:
    """Keep bundles, and all bundles of namespaces, where they are and whole, until they are included."""

    def change(now: OperatorControls) -> OperatorControls:
        new = sorted(set(names) - {each.name for each in now.excluded})
        if not new:
            raise TrimtabError(f"{some_of(sorted(names), _MAX_NAMED)} is excluded already, so nothing was changed")
        if len(new) + len(now.excluded) > MAX_EXCLUDED:
            raise TrimtabError(
                f"at most {MAX_EXCLUDED} bundles and namespaces can be excluded here: include some first, exclude whole"
                " namespaces, or name them in [decisions] excluded"
            )
        made_now = (ExcludedName(name=name, by=made.by, reason=made.reason, at_ms=made.at_ms) for name in new)
        both = tuple(sorted((*now.excluded, *made_now), key=lambda each: each.name))
        return replace(now, excluded=both).with_change(_entry("exclude", made, ", ".join(new)))

    return change


def included(made: Choice, names: Collection[str]) -> ControlsChange:
    """Let what is excluded be moved and split again."""

    def change(now: OperatorControls) -> OperatorControls:
        unknown = set(names) - {each.name for each in now.excluded}
        if unknown:
            have = some_of([each.name for each in now.excluded], _MAX_NAMED) or "none"
            raise TrimtabError(
                f"{some_of(sorted(unknown), _MAX_NAMED)} is not excluded by a person; excluded are: {have}"
            )
        remaining = tuple(each for each in now.excluded if each.name not in names)
        detail = ", ".join(each.name for each in now.excluded if each not in remaining)
        return replace(now, excluded=remaining).with_change(_entry("include", made, detail))

    return change


def stopped(made: Choice) -> ControlsChange:
    """Pause, and end the plan that is being applied: what `trimtab stop-all` does before it starts a new epoch."""

    def change(now: OperatorControls) -> OperatorControls:
        pause = Pause(by=made.by, reason=made.reason, at_ms=made.at_ms)
        changed = now.with_pause(pause).with_change(_entry("stop-all", made))
        return replace(changed, orders=None, stopped_ms=_newer_stop(made, now))

    return change


def plan_stopped(made: Choice, plan: str) -> ControlsChange:
    """End the plan with the hash *plan*, which is being applied.  Its commands in flight finish; nothing is paused."""

    def change(now: OperatorControls) -> OperatorControls:
        if now.orders is None or now.orders.plan != plan or not now.orders.hold_at(made.at_ms):
            raise TrimtabError(f"plan {plan[:12]} is not being applied, so nothing was changed")
        changed = now.with_change(_entry("stop-plan", made, f"plan {plan[:12]}, step {now.orders.step}"))
        return replace(changed, orders=None, stopped_ms=_newer_stop(made, now))

    return change


def loss_accepted(made: Choice) -> ControlsChange:
    """Continue without the journal's newest entries, which are lost; and pause."""

    def change(now: OperatorControls) -> OperatorControls:
        pause = Pause(by=made.by, reason=made.reason, at_ms=made.at_ms)
        changed = now.with_pause(pause).with_change(_entry("accept-loss", made))
        return replace(changed, loss_accepted_ms=max(made.at_ms, now.loss_accepted_ms))

    return change


def ended_pauses(before: OperatorControls, after: OperatorControls, at_ms: int) -> list[Pause]:
    """The pauses that stood *before*, at *at_ms*, and do not *after*."""
    return [each for each in before.pauses_at(at_ms) if each not in after.pauses]


def change_controls(
    store: ControlStore,
    change: ControlsChange,
    *,
    may_replace: bool = False,
    say: Callable[[str], object] = lambda _: None,
) -> tuple[OperatorControls, OperatorControls]:
    """Replace the controls by *change* of them; again if they changed meanwhile.  Returns those before and after.

    *may_replace*: controls that cannot be read are replaced, too, and *say* is called with what that means.  Only what
    pauses may ask for that: with others commands would be issued again, to drained brokers, too.  Raises TrimtabError.
    """

    def attempt() -> tuple[OperatorControls, OperatorControls] | None:
        try:
            before, version = store.read()
        except ControlsCorruptError as error:
            if not may_replace:
                raise
            say(f"{error}; they are replaced: set a mode other than the settings' again, and drain brokers again")
            before, version = OperatorControls(), store.version()
        after = change(before)
        return (before, after) if after == before or store.write(after, version) else None

    return retried("the controls", attempt)


def _ending(standing: Sequence[Pause], names: Collection[str] | None) -> list[Pause]:
    """The pauses of *standing* to end: those of *names*, or all; TrimtabError if a name has none."""
    if names is None or not standing:
        return list(standing)
    unknown = sorted(set(names) - {each.by for each in standing})
    if unknown:
        raise TrimtabError(
            f"there is no pause of {some_of(unknown, _MAX_NAMED)}, so nothing was changed; paused by"
            f" {pauses_text(standing)}: name one of them (--of NAME), or end every pause (--all)"
        )
    return [each for each in standing if each.by in names]


def _newer_stop(made: Choice, now: OperatorControls) -> int:
    return max(made.at_ms, now.stopped_ms + 1)


def _entry(action: str, made: Choice, detail: str = "") -> ControlChange:
    cut = printable(detail)[:MAX_REASON]
    return ControlChange(at_ms=made.at_ms, by=made.by, action=action, detail=cut, reason=made.reason)
