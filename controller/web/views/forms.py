"""The forms of what people do with the controls: what each asks, and says before somebody presses the button."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from controller.model.controls import OperatorControls
from controller.web.store.values import LatestState
from controller.web.views.bridge import mode_word
from controller.web.views.controls import MODES
from controller.web.views.formats import BrokerNames, clock
from controller.wire.readable import counted

#: Choices of how long a pause lasts, minutes; "" for no end.
_LENGTHS: Final = (
    ("", "until somebody resumes"),
    ("15", "15 minutes"),
    ("60", "1 hour"),
    ("240", "4 hours"),
    ("720", "12 hours"),
    ("1440", "1 day"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """A field of a form: one or several of some values, or a text."""

    name: str
    label: str
    #: select, checkbox, line or lines of text.
    kind: str
    #: Value, and what people read; of a text none.
    options: Sequence[tuple[str, str]] = ()
    chosen: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionForm:
    """A form for one action."""

    #: Where it is sent.
    path: str
    title: str
    #: What it does, and what it does not do, in sentences.
    text: str
    button: str
    #: The button looks dangerous.
    is_danger: bool = False
    #: Sent as they are.
    hidden: Sequence[tuple[str, str]] = ()
    choices: Sequence[Choices] = ()
    #: Term and text, of what a person should know.
    terms: Sequence[tuple[str, str]] = ()
    #: The hash that the person's name is bound to; "": none.
    hash: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormFacts:
    """What forms are made of."""

    controls: OperatorControls
    #: The last interval; None: none is known.
    state: LatestState | None
    names: BrokerNames
    settings_mode: str
    by: str
    now_ms: int
    #: Values that the address or the form before has: name -> values.
    values: Mapping[str, Sequence[str]]

    def value(self, name: str) -> str:
        """The first value of *name*; "" without one."""
        return next(iter(self.values.get(name, ())), "")


def action_form(action: str, facts: FormFacts) -> ActionForm:
    """The form of *action*, which is in the table of control_actions.py."""
    return _FORMS[action](facts)


def _pause(facts: FormFacts) -> ActionForm:
    standing = facts.controls.pauses_at(facts.now_ms)
    others = f" {counted(len(standing), 'pause')} stand already; each has to end." if standing else ""
    return ActionForm(
        path="/controls/pause",
        title="Pause balancing",
        text="From the next interval on no commands are issued. Those that were issued before are still executed;"
        f" “Stop all” ends these, too. Load is still watched, and decisions are explained.{others}",
        button="Pause",
        choices=(
            Choices(
                name="minutes", label="For", kind="select", options=_LENGTHS, chosen=frozenset({facts.value("minutes")})
            ),
        ),
    )


def _resume(facts: FormFacts) -> ActionForm:
    standing = facts.controls.pauses_at(facts.now_ms)
    people = dict.fromkeys(each.by for each in standing)
    tripped = facts.state is not None and facts.state.breaker.tripped_at is not None
    parts = ["Commands may be issued from the next interval on, once no pause stands any more."]
    if tripped and facts.state is not None:
        parts.append(f"The breaker is closed again. It opened because: {facts.state.breaker.why}")
    mine = frozenset(facts.values.get("of", ())) or frozenset({facts.by} & set(people)) or frozenset(people)
    why = {each.by: f" (“{each.reason}”)" if each.reason else "" for each in standing}
    options = [(name, f"{name}{why[name]}") for name in people]
    return ActionForm(
        path="/controls/resume",
        title="Resume balancing",
        text=" ".join(parts),
        button="Resume",
        choices=(Choices(name="of", label="End the pauses of", kind="checkbox", options=options, chosen=mine),)
        if options
        else (),
    )


def _mode(facts: FormFacts) -> ActionForm:
    value = facts.value("mode")
    now = facts.controls.mode_in_force(facts.settings_mode)
    to = facts.settings_mode if value == "settings" else value
    what = MODES.get(to, "")
    return ActionForm(
        path="/controls/mode",
        title="Use the mode of the settings" if value == "settings" else f"Set the mode to {mode_word(value)}",
        text=f"{mode_word(now)} → {mode_word(to)}, for all controllers, from the next interval on. {what}",
        button=f"Set {mode_word(to)}",
        hidden=(("mode", value),),
    )


def _drain(facts: FormFacts) -> ActionForm:
    name = facts.value("brokers")
    return ActionForm(
        path="/controls/drain",
        title=f"Drain {facts.names.label(name)}",
        text=f"{facts.names.label(name)} gets no more bundles from the next interval on, until it is released. The"
        " bundles that it has stay: a plan that empties it moves them.",
        button="Drain",
        hidden=(("brokers", name),),
    )


def _release(facts: FormFacts) -> ActionForm:
    name = facts.value("brokers")
    return ActionForm(
        path="/controls/release",
        title=f"Release {facts.names.label(name)}",
        text=f"{facts.names.label(name)} may get bundles again from the next interval on.",
        button="Release",
        hidden=(("brokers", name),),
    )


def _exclude(facts: FormFacts) -> ActionForm:
    name = facts.value("names")
    split = "" if "/0x" not in name else " Where somebody else splits or merges it, this ends: exclude its namespace."
    return ActionForm(
        path="/controls/exclude",
        title=f"Exclude {name}" if name else "Exclude a bundle or a namespace",
        text=f"trimtab neither moves nor splits it from the next interval on, also by a plan, until it is included. The"
        f" brokers still may.{split}",
        button="Exclude",
        hidden=(("names", name),) if name else (),
        choices=() if name else (Choices(name="names", label="Names, a line each", kind="lines"),),
    )


def _include(facts: FormFacts) -> ActionForm:
    name = facts.value("names")
    return ActionForm(
        path="/controls/include",
        title=f"Include {name}",
        text="trimtab may move and split it again, from the next interval on.",
        button="Include",
        hidden=(("names", name),),
    )


def _stop_all(facts: FormFacts) -> ActionForm:
    flying = 0 if facts.state is None else facts.state.in_flight_total
    plan = " The plan that is being applied ends." if facts.controls.orders is not None else ""
    flight = f"{counted(flying, 'command')} in flight: what an executor has begun is finished, the rest is never begun."
    return ActionForm(
        path="/controls/stop-all",
        title="Stop all",
        text=f"{flight if flying else 'No command is in flight.'}{plan} Balancing is paused until somebody resumes, and"
        " the controller that leads starts anew.",
        button="Stop all",
        is_danger=True,
    )


def _stop_plan(facts: FormFacts) -> ActionForm:
    plan, orders = facts.value("plan"), facts.controls.orders
    drained = ", ".join(facts.names.label(each.broker) for each in facts.controls.drained)
    stays = f" {drained} stays drained until it is released." if drained else ""
    wave = ""
    if orders is not None and orders.plan == plan:
        wave = f"It is at step {orders.step}, wave {orders.wave} of {orders.waves}, started by {orders.by}. "
    return ActionForm(
        path="/controls/stop-plan",
        title=f"Stop plan {plan[:16]}",
        text=f"{wave}What is in flight is finished; nothing else of the plan is issued.{stays} Balancing goes on by"
        " itself.",
        button="Stop the plan",
        is_danger=True,
        hidden=(("plan", plan),),
    )


_FORMS: Final = {
    "pause": _pause,
    "resume": _resume,
    "mode": _mode,
    "drain": _drain,
    "release": _release,
    "exclude": _exclude,
    "include": _include,
    "stop-all": _stop_all,
    "stop-plan": _stop_plan,
}


def not_in_force(controls: OperatorControls, state: LatestState | None, settings_mode: str, now_ms: int) -> list[str]:
    """What people have set and the last decision was not made with, in sentences."""
    if state is None:
        return []
    decided, made = state.controls, []
    mode = controls.mode_in_force(settings_mode)
    if decided.mode != mode:
        made.append(f"the mode {mode_word(mode)}")
    pauses = controls.pauses_at(now_ms)
    if set(pauses) - set(decided.pauses):
        made.append(" and ".join(f"the pause of {each.by}" for each in pauses if each not in decided.pauses))
    if not pauses and decided.pauses:
        made.append("the end of the pause")
    if controls.resumed_ms > decided.resumed_ms and state.breaker.tripped_at is not None:
        made.append("the reset of the breaker")
    drained = {each.broker for each in controls.drained}
    if new := sorted(drained - set(decided.drained)):
        made.append(f"{counted(len(new), 'more drained broker', 'more drained brokers')}")
    if released := sorted(set(decided.drained) - drained):
        made.append(f"the release of {counted(len(released), 'broker')}")
    if {each.name for each in controls.excluded} != {*decided.excluded}:
        made.append("what is excluded")
    return made


def last_change(controls: OperatorControls, now_ms: int) -> str:
    """Who changed the controls last, in a sentence; "" where nobody did."""
    if not controls.history:
        return ""
    last = controls.history[-1]
    return f"{last.action}{f' {last.detail}' if last.detail else ''} by {last.by} at {clock(last.at_ms, now_ms)}"
