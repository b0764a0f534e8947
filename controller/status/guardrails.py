"""What stops commands now, and how much of the budgets is used."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from controller.cycle.dry_run import forget_dry_run, in_flight
from controller.cycle.guardrails.budgets import Ledger, Line
from controller.cycle.guardrails.listing import unconfirmed_brokers
from controller.cycle.ordered import told_of
from controller.log.elections import election_system
from controller.model.controls import MOVING_MODES, Choice, OperatorControls, Pause
from controller.model.errors import TrimtabError
from controller.model.journal import JournalEntry
from controller.model.memory import Breaker, Roster
from controller.model.proposed import ProposedDecision
from controller.model.some_of import some_of
from controller.settings.guardrails import limits_of
from controller.settings.maintenance import Maintenance
from controller.settings.trimtab_toml import Settings
from controller.wire.answers.status import (
    BreakerAnswer,
    BudgetAnswer,
    GuardrailsAnswer,
    ModeAnswer,
    PauseAnswer,
    PausedAnswer,
    ProposedDecisionAnswer,
)
from controller.wire.readable import counted, in_time, utc

#: Maximum number of brokers that a row names.
_NAMED: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardrailStatus:
    """The guardrails, as of the last decision, and what persons have set, as of now."""

    #: In force now.
    mode: str
    paused: bool
    #: The pauses that stand, the oldest first.
    pauses: tuple[Pause, ...]
    #: What the settings say; it holds where nobody has chosen.
    settings_mode: str
    settings_paused: bool
    chosen: OperatorControls
    #: The plan that is being applied; "": none is.
    plan: str
    #: Mode approve: the decision that waits for approval; None: none does.
    proposed: ProposedDecision | None
    #: Why the choices could not be read; "" where they could.
    unknown: str
    #: Why maintenance windows forbid to issue anything now; "" where they allow it.
    maintenance: str
    breaker: Breaker
    #: Broker -> bundles that it should list by now; and how many it does not list, for whatever reason.
    unconfirmed: Mapping[str, list[str]]
    unlisted: Mapping[str, int]
    #: Bundle -> how many owners of it died in a row.
    fatal: Mapping[str, int]
    #: Why nothing is issued that moves load: brokers balance by themselves, or may do so; "": neither.
    brokers_balance: str
    roster: Roster
    #: Of every budget in the window and of what is in flight: whose, and how much is used.
    used: tuple[tuple[Line, int], ...]


def chosen_controls(settings: Settings) -> tuple[OperatorControls, str]:
    """What persons have chosen, and why that cannot be read, "" where it can."""
    store = election_system(settings).controls()
    try:
        return store.read()[0], ""
    except TrimtabError as error:
        return OperatorControls(), str(error)
    finally:
        store.close()


def guardrail_status(
    settings: Settings, last: JournalEntry | None, chosen: OperatorControls, unknown: str = ""
) -> GuardrailStatus:
    """What *last*, the newest decision, remembers, and what persons have *chosen*, or why that is *unknown*."""
    decisions, windows, limits = settings.decisions, settings.guardrails.maintenance, limits_of(settings.guardrails)
    now_ms = time.time_ns() // 1_000_000
    mode, paused = chosen.mode_in_force(decisions.mode), chosen.is_paused(now_ms, paused=decisions.paused)
    memory = None if last is None else last.memory
    if memory is not None and mode in MOVING_MODES:
        memory = forget_dry_run(memory)
    issued = () if memory is None else memory.issued.values()
    ledger = Ledger(limits, issued, () if memory is None else in_flight(memory, dry_run=False).values())
    maintenance = Maintenance(time_zone=windows.time_zone, allowed=windows.allowed, frozen=windows.frozen)
    return GuardrailStatus(
        mode=mode,
        paused=paused,
        pauses=chosen.pauses_at(now_ms),
        settings_mode=decisions.mode,
        settings_paused=decisions.paused,
        chosen=chosen,
        plan="" if chosen.orders is None or not chosen.orders.hold_at(now_ms) else told_of(chosen.orders),
        proposed=memory.proposed if memory is not None and mode == "approve" else None,
        unknown=unknown,
        maintenance=maintenance.forbids(now_ms),
        breaker=Breaker() if memory is None else memory.breaker,
        unconfirmed={} if memory is None else unconfirmed_brokers(memory, limits),
        unlisted={} if memory is None else {name: len(each.unlisted) for name, each in memory.destinations.items()},
        fatal={} if memory is None else {bundle: each.deaths for bundle, each in memory.deaths.fatal.items()},
        brokers_balance="" if memory is None else memory.balancing.why,
        roster=Roster() if memory is None else memory.roster,
        used=tuple((line, used) for line, used in ledger.usage() if not line.key.startswith("interval.")),
    )


def guardrail_rows(status: GuardrailStatus) -> dict[str, str]:
    """For people."""
    rows = {"mode": _mode(status), "paused": _paused(status)}
    if status.chosen.drained:
        rows["drained"] = ", ".join(f"{each.broker} by {each.by}" for each in status.chosen.drained)
    if status.chosen.excluded:
        rows["excluded"] = ", ".join(
            f"{each.name} by {each.by} since {utc(each.at_ms)}" for each in status.chosen.excluded
        )
    if status.plan:
        rows["plan"] = f"{status.plan} is being applied, so strategies unload nothing"
    if status.proposed is not None:
        decision = status.proposed
        rows["proposed"] = (
            f"decision {decision.short_hash} of {utc(decision.interval)} waits for approval until"
            f" {utc(decision.expires_at_ms)}: {decision.text}; see `trimtab proposals show {decision.short_hash}`"
        )
    if status.unknown:
        rows["controls"] = f"cannot be read, so nothing is issued: {status.unknown}"
    if status.brokers_balance:
        rows["balancing"] = status.brokers_balance
    breaker = status.breaker
    rows["breaker"] = (
        f"closed, {counted(breaker.in_a_row, 'failure')} in a row"
        if breaker.tripped_at is None
        else f"TRIPPED at {utc(breaker.tripped_at)}: {breaker.why}; run `trimtab resume`"
    )
    if status.unconfirmed:
        rows["unconfirmed"] = (
            f"{_in_words(status.unconfirmed)}: they get no more bundles, and count as brokers without data."
            " Look at their logs and at what they report; `trimtab resume` lets them get bundles again"
        )
    if status.fatal:
        text = ", ".join(f"{name} ({counted(deaths, 'owner')} died in a row)" for name, deaths in status.fatal.items())
        rows["kill brokers"] = f"{text}: it is not moved. Look at the brokers' logs, then run `trimtab resume`"
    changed = {**status.roster.came, **status.roster.went}
    if changed:
        rows["brokers"] = f"joined or left: {', '.join(sorted(changed))}"
    rows["windows"] = status.maintenance or "commands are allowed now"
    rows["budgets"] = _budgets(status)
    return rows


def _budgets(status: GuardrailStatus) -> str:
    """The budgets of which half is used, the fullest first; where there are none, the fullest one."""
    used = sorted(status.used, key=lambda each: each[1] / each[0].limit, reverse=True)
    full = [each for each in used if 2 * each[1] >= each[0].limit]
    if not used:
        return "none are set"
    if not full:
        return f"less than half of each is used, most of {_budget(*used[0])}" if used[0][1] else "nothing is used"
    return some_of(full, _NAMED, format_item=lambda each: _budget(*each))


def _budget(line: Line, used: int) -> str:
    return f"{line.whose}: {used:,} of {line.limit:,} {in_time(line.unit)} ({used / line.limit:.0%})"


def _in_words(unconfirmed: Mapping[str, list[str]]) -> str:
    """Which brokers do not list how many bundles."""
    text = [f"{name} does not list {counted(len(bundles), 'bundle')}" for name, bundles in unconfirmed.items()]
    return some_of(text, _NAMED)


def guardrail_answer(status: GuardrailStatus) -> GuardrailsAnswer:
    """For a program."""
    mode, breaker = status.chosen.mode, status.breaker
    return GuardrailsAnswer.from_object(
        status,
        mode=ModeAnswer.from_object(status, in_force=status.mode, settings=status.settings_mode, set=mode),
        paused=PausedAnswer(
            in_force=status.paused,
            settings=status.settings_paused,
            pauses=[PauseAnswer.from_object(each) for each in status.pauses],
        ),
        proposed=None if status.proposed is None else ProposedDecisionAnswer.of(status.proposed),
        drained=[each.broker for each in status.chosen.drained],
        excluded=[each.name for each in status.chosen.excluded],
        unlisted={name: number for name, number in status.unlisted.items() if number},
        breaker=BreakerAnswer.from_object(breaker, failures_in_a_row=breaker.in_a_row),
        came=dict(status.roster.came),
        went=dict(status.roster.went),
        budgets=[
            BudgetAnswer(budget=f"guardrails.{line.key}", of=line.whose, used=used, limit=line.limit, unit=line.unit)
            for line, used in status.used
        ],
    )


def _mode(status: GuardrailStatus) -> str:
    if status.chosen.mode is None:
        return f"{status.mode}, by the settings"
    return f"{status.mode}, {_who(status.chosen.mode)}; the settings say {status.settings_mode}"


def _paused(status: GuardrailStatus) -> str:
    says = f"the settings say {'yes' if status.settings_paused else 'no'}"
    if not status.paused:
        resumed = status.chosen.resumed_ms
        return f"no, resumed at {utc(resumed)}; {says}" if resumed else "no, by the settings"
    if not status.pauses:
        return "yes, by the settings"
    return f"yes, {'; '.join(map(_pause, status.pauses))}; {says}"


def _who(choice: Choice) -> str:
    return f"set by {choice.by} at {utc(choice.at_ms)}{f': {choice.reason}' if choice.reason else ''}"


def _pause(pause: Pause) -> str:
    until = f" until {utc(pause.until_ms)}" if pause.until_ms else ""
    return f"set by {pause.by} at {utc(pause.at_ms)}{until}{f': {pause.reason}' if pause.reason else ''}"
