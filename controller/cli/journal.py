"""``trimtab journal``: browse the decisions in the journal, the newest first."""

from collections.abc import Sequence
from difflib import get_close_matches
from functools import partial
from typing import Annotated, Final, TypeAlias

import typer
from rich.console import Console

from controller.adapters.long_work import long_work
from controller.adapters.outages import Part
from controller.cli.shared.answers import show
from controller.cli.shared.arguments import FORMS, bundle_of, span_of
from controller.cli.shared.console import DEFAULT_CONF, Conf, json_option
from controller.cli.shared.layout import print_line
from controller.cli.shared.reachable import require
from controller.log.factory import log_system
from controller.model.decision import Reason
from controller.model.errors import NothingFoundError, TrimtabError
from controller.settings.trimtab_toml import read_settings
from controller.status.decisions import DecisionFilter, FoundDecision, decisions
from controller.wire.answers.base import CommandAnswer, PulsarVersionAnswer, VerdictAnswer
from controller.wire.answers.explain import JournalAnswer
from controller.wire.controls_text import pauses_text
from controller.wire.decision_texts import became, does, reason_text, verdict_text
from controller.wire.readable import in_number, utc

_LARGEST_LIMIT: Final = 100_000

_Bundle: TypeAlias = Annotated[
    str | None,
    typer.Option(help="About this bundle: tenant/namespace/0x00000000_0x40000000.", show_default=False),
]
_Broker: TypeAlias = Annotated[
    str | None,
    typer.Option(help="With this broker as source, as destination, or as what a verdict is about.", show_default=False),
]
_Reason: TypeAlias = Annotated[
    str | None,
    typer.Option(help="With this reason, as docs/explain.md lists them, for example Budget.", show_default=False),
]
_Since: TypeAlias = Annotated[str | None, typer.Option(help=f"From this time on: {FORMS}.", show_default=False)]
_Until: TypeAlias = Annotated[str | None, typer.Option(help="Up to this time.", show_default=False)]


def journal(
    bundle: _Bundle = None,
    broker: _Broker = None,
    reason: _Reason = None,
    since: _Since = None,
    until: _Until = None,
    issued: Annotated[bool, typer.Option("--issued", help="Only decisions with commands, without verdicts.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=_LARGEST_LIMIT, help="Print at most this many decisions.")] = 20,
    conf: Conf = DEFAULT_CONF,
    as_json: Annotated[bool, json_option("answer.journal", each="decision")] = False,
) -> None:
    """Print decisions of the journal, the newest first: their summaries and their commands with reasons and results.

    With --bundle, --broker or --reason: the commands and the kept verdicts that match, and nothing else.

    Exit codes: 0 printed; 1 nothing matches, or the log did not answer; 2 the settings or an option are invalid.
    """
    wanted_filter = _filter_of(bundle, broker, reason, since, until, issued=issued)
    settings = read_settings(conf)
    with long_work("reading the journal"):
        require(settings, Part.LOG)
        matching = decisions(settings, wanted_filter, limit)
    if not matching:
        missing = log_system(settings).tail().missing_journal
        if missing:
            raise TrimtabError(
                f"there is no journal: {missing!r} does not exist or is not visible to this user; `trimtab run` creates"
                " it at its first start, so check [log] in the settings, and the rights"
            )
        raise NothingFoundError(
            f"no decision about cluster {settings.cluster.name!r} in the journal"
            + ("" if wanted_filter == DecisionFilter() else " matches: leave out an option")
        )
    show_decisions(list(map(_answer, matching)), as_json=as_json)


def show_decisions(matching: Sequence[JournalAnswer], *, as_json: bool) -> None:
    """Print all of *matching*."""
    show(matching, partial(_print_all, matching=matching), as_json=as_json)


def _filter_of(
    bundle: str | None, broker: str | None, reason: str | None, since: str | None, until: str | None, *, issued: bool
) -> DecisionFilter:
    begin, end = span_of(since, until, of=("--since", "--until"))
    return DecisionFilter(
        bundle=None if bundle is None else bundle_of(bundle, of="--bundle"),
        broker=broker,
        reason=None if reason is None else reason_of(reason),
        since=begin,
        until=end,
        issued=issued,
    )


def reason_of(text: str) -> Reason:
    """The reason *text*, in capitals or not."""
    by_name = {str(reason).lower(): reason for reason in Reason}
    known = by_name.get(text.lower())
    if known is None:
        near = get_close_matches(text.lower(), by_name, n=1)
        hint = f"did you mean {by_name[near[0]]}?" if near else "docs/explain.md lists them"
        raise typer.BadParameter(f"no such reason: {text!r}; {hint}", param_hint="--reason")
    return known


def _print_all(out: Console, matching: Sequence[JournalAnswer]) -> None:
    for each in matching:
        _print(out, each)


def _print(out: Console, decision: JournalAnswer) -> None:
    paused = f"paused by {pauses_text(decision.pauses)}" if decision.pauses else "paused"
    notes = [note for note, on in ((paused, decision.paused), ("stale", decision.stale)) if on]
    notes += [] if decision.pulsar is None else [f"Pulsar {decision.pulsar.version}"]
    how = ", ".join([decision.mode, *notes])
    print_line(out, f"{utc(decision.interval)}  {how}: {in_number(decision.summary)}", rest="    ", style="bold")
    for command in decision.commands:
        print_line(out, f"{command.action} {command.bundle}", first="  ", rest="      ")
        for line in (f"{does(command)}: {became(command.result)}", f"because {verdict_text(command.why)}"):
            print_line(out, line, first="    ", rest="      ")
    for verdict in decision.verdicts or ():
        by = f", by {verdict.by}" if verdict.by else ""
        print_line(out, f"{verdict.subject}", first="  ", rest="      ")
        print_line(out, f"{reason_text(verdict)}{by}", first="    ", rest="      ")


def _answer(decision: FoundDecision) -> JournalAnswer:
    return JournalAnswer.from_object(
        decision,
        pulsar=PulsarVersionAnswer.of(decision.pulsar),
        commands=[CommandAnswer.of(command, result) for command, result in decision.commands],
        verdicts=None if decision.verdicts is None else [VerdictAnswer.short(verdict) for verdict in decision.verdicts],
    )
