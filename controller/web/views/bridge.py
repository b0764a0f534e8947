"""The bridge: the state of the controller in one sentence, on every page."""

from dataclasses import dataclass
from typing import Final

from controller.web.store.values import LatestState, Progress
from controller.web.views.formats import clock, sentence, span
from controller.wire.answers.status import StatusAnswer
from controller.wire.readable import counted, in_number

#: A decision is late once the interval that runs and one more have passed without one.
_LATE_PERIODS: Final = 3
#: Sources without which nobody knows whether decisions go on.
_DECISIVE: Final = ("summaries", "journal")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bridge:
    """What stands at the top of each page."""

    #: "": normal; hold: amber, nothing is issued for a known reason; stop: red, a person has to act.
    kind: str
    mode: str
    #: Signs of the mode: disc (it moves load), ring (it does not), or the name of an icon.
    sign: str
    #: One short sentence to be emphasised, and the rest.
    lead: str
    text: str
    #: Where the reason stands: a path of this site and its text; "": nowhere.
    path: str = ""
    path_text: str = ""
    #: Length of an interval and how much of it has passed, seconds; 0: nothing beats.
    beat_seconds: float = 0.0
    beat_passed: float = 0.0


def mode_word(mode: str) -> str:
    """A mode as people write it."""
    return mode.replace("_", " ")


def is_late(state: LatestState, now_ms: int) -> bool:
    """Whether a decision is missing."""
    return now_ms - state.interval > _LATE_PERIODS * state.period_ms


def bridge(state: LatestState | None, progress: Progress, status: StatusAnswer | None, now_ms: int) -> Bridge:
    """The bridge of the cluster whose last interval is *state*; *status*: None where it is not known."""
    if state is None:
        return _without_interval(progress)
    mode = mode_word(state.controls.mode)
    return (
        _broken(state, mode, now_ms)
        or _unread(state, progress, now_ms)
        or _late(state, status, now_ms)
        or _halted(state, mode, now_ms)
        or _normal(state, mode, now_ms)
    )


def _without_interval(progress: Progress) -> Bridge:
    failed = next((source for source in progress.sources if source.error), None)
    if failed is not None:
        lead, text = f"The {failed.source} cannot be read.", failed.error
        return Bridge(kind="hold", mode="not known", sign="warn", lead=lead, text=text)
    if not progress.complete:
        done = min((source.done for source in progress.sources), default=0.0)
        text = f"{100 * done:.0f} % of what the log holds is read; pictures fill up meanwhile."
        return Bridge(kind="", mode="loading", sign="ring", lead="The last days are loading.", text=text)
    text = "No summary of an interval has come yet."
    return Bridge(kind="", mode="waiting", sign="ring", lead="Waiting for the first interval.", text=text)


def _broken(state: LatestState, mode: str, now_ms: int) -> Bridge | None:
    tripped = state.breaker.tripped_at
    if tripped is None:
        return None
    text = f"{sentence(state.breaker.why)} Nothing is issued until a person resumes."
    lead = f"Breaker open since {clock(tripped, now_ms)} UTC."
    return Bridge(
        kind="stop", mode=f"{mode}, stopped", sign="stop", lead=lead, text=text, path="/controls", path_text="See why"
    )


def unread(state: LatestState, progress: Progress, now_ms: int) -> str:
    """Why nobody can say here whether anything was decided since *state*: the log's error; "": its end is known."""
    if not is_late(state, now_ms):
        return ""
    return next((each.error for each in progress.sources if each.source in _DECISIVE and each.error), "")


def _unread(state: LatestState, progress: Progress, now_ms: int) -> Bridge | None:
    why = unread(state, progress, now_ms)
    if not why:
        return None
    text = f"{sentence(why)} What was decided since {clock(state.interval, now_ms)} is not known here."
    return Bridge(kind="hold", mode="not known", sign="warn", lead="The log cannot be read.", text=text)


def _late(state: LatestState, status: StatusAnswer | None, now_ms: int) -> Bridge | None:
    if not is_late(state, now_ms):
        return None
    missing = (now_ms - state.interval) // state.period_ms
    lead = f"No decision for {counted(missing, 'interval')}."
    text = f"The last is {clock(state.interval, now_ms)}, {span((now_ms - state.interval) / 1000)} ago."
    if status is None:
        return Bridge(kind="hold", mode="late", sign="warn", lead=lead, text=text)
    if status.leader is None and not status.leader_unknown:
        return Bridge(kind="hold", mode="no leader", sign="warn", lead=lead, text=f"{text} No controller leads.")
    problem = next(iter(status.problems), None)
    why = f" {sentence(problem.title)}" if problem else ""
    return Bridge(kind="hold", mode="late", sign="warn", lead=lead, text=text + why)


def _halted(state: LatestState, mode: str, now_ms: int) -> Bridge | None:
    """Why nothing is issued, where a person or a setting says so."""
    controls = state.controls

    def hold(word: str, sign: str, lead: str, text: str) -> Bridge:
        whole = f"{mode}, {word}" if word else mode
        return Bridge(
            kind="hold", mode=whole, sign=sign, lead=lead, text=text, path="/controls", path_text="See controls"
        )

    if controls.unknown:
        return hold("unknown", "warn", "The controls cannot be read, so nothing is issued.", controls.unknown)
    if controls.paused:
        pause = next(iter(controls.pauses), None)
        if pause is None:
            return hold("paused", "pause", "Paused by the settings.", "It decides and explains, and issues nothing.")
        reason = f": “{pause.reason}”" if pause.reason else ""
        until = f", until {clock(pause.until_ms, now_ms)}" if pause.until_ms else ""
        lead = f"Paused by {pause.by} since {clock(pause.at_ms, now_ms)} UTC{until}{reason}."
        return hold("paused", "pause", lead, "It decides and explains, and issues nothing.")
    if state.brokers_balance:
        return hold("waiting", "warn", "Nothing is issued: brokers balance by themselves.", state.brokers_balance)
    if controls.maintenance:
        return hold("waiting", "clock", "Outside of the maintenance windows.", sentence(controls.maintenance))
    return None


def _normal(state: LatestState, mode: str, now_ms: int) -> Bridge:
    passed = (now_ms - state.interval) / 1000
    period = state.period_ms / 1000
    speed = "" if state.tick_to_decision_ms is None else f", {state.tick_to_decision_ms / 1000:.1f} s after its tick"
    text = f"Last decision: {clock(state.interval, now_ms)}{speed}. {in_number(state.summary)}."
    lead, sign = "Nothing is in the way.", "disc"
    if state.controls.orders is not None:
        orders = state.controls.orders
        doing = "is being applied" if orders.moves else "is in force, and none of its moves is handed over now"
        lead = f"A plan {doing}: step {orders.step}, wave {orders.wave} of {orders.waves}."
    elif mode == "observe":
        lead, sign = "It observes: it decides and issues nothing.", "ring"
    elif mode == "approve" and state.proposed is not None:
        until = clock(state.proposed.expires_at_ms, now_ms)
        lead, sign = f"A decision waits for approval until {until}: {state.proposed.text}.", "clock"
    elif mode == "approve":
        lead = "No decision waits for approval."
    elif mode != "active":
        lead, sign = "Dry run: commands change nothing.", "ring"
    return Bridge(
        kind="",
        mode=mode,
        sign=sign,
        lead=lead,
        text=text,
        beat_seconds=period,
        beat_passed=passed % period,
    )
