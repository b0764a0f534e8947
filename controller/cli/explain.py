"""``trimtab explain``: why a bundle was moved or not, what was decided about a broker, or what an interval decided."""

import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import typer

from controller.adapters.long_work import long_work, percent
from controller.adapters.network.deadline import Deadline
from controller.adapters.outages import Part
from controller.adapters.recordings.reading import Recording
from controller.cli.shared.console import DEFAULT_CONF, LONGEST_PERIOD, Conf, json_option
from controller.cli.shared.pulsar_option import PulsarOption
from controller.cli.shared.reachable import require
from controller.cli.shared.times import FORMS, is_time, time_of
from controller.cli.texts.explanation import print_explanation
from controller.model.errors import TrimtabError
from controller.model.names import parse_bundle
from controller.model.some_of import some_of
from controller.offline.explanations.explanation import ExplainedDecision, explain
from controller.offline.explanations.from_journal import journalled_decision
from controller.offline.explanations.from_load import decision_on_load
from controller.offline.explanations.from_recording import recorded_decision
from controller.offline.flips import Redecision, flips
from controller.settings.trimtab_toml import read_settings
from controller.wire.answers.explain import FlipAnswer, SubjectKind
from controller.wire.readable import utc

_NEWEST: Final = "last"
#: Pulsar's default.
_SHEDDER: Final = "ThresholdShedder"
#: Brokers that an error names.
_FEW: Final = 5

_Subject: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="BUNDLE|BROKER|INTERVAL",
        help="A bundle (tenant/namespace/0x00000000_0x40000000), a broker as in `trimtab status`, the time of an"
        f" interval, or {_NEWEST}, the newest one.",
    ),
]
_At: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help=f"Explain the last decision up to this time: {FORMS}.",
        show_default="the newest decision",
    ),
]
_Intervals: TypeAlias = Annotated[
    int,
    typer.Option(min=0, max=10_000, help="Read so many intervals of the log before the decision, for averages."),
]
_Load: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option(
        help="Explain what would be decided on this load, as `trimtab decide` reads it; can be repeated.  No journal is"
        " read.",
        exists=True,
        show_default=False,
    ),
]
_Recording: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        help="Explain a decision of this recording (`trimtab record`), by the settings in it.  No journal is read.",
        show_default=False,
    ),
]
_Strategy: TypeAlias = Annotated[
    str, typer.Option(help="With --load: the shedder, as in `trimtab decide`.", show_default=_SHEDDER)
]
_BrokerConf: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        help="With --load: the options, by Pulsar's names.",
        exists=True,
        dir_okay=False,
        show_default="Pulsar's defaults",
    ),
]
_Rounds: TypeAlias = Annotated[
    int, typer.Option(min=1, max=1000, help="With --load: decide up to this many times, as in `trimtab decide`.")
]
_Flip: TypeAlias = Annotated[
    bool,
    typer.Option("--flip", help="Also search for the smallest change of load or of an option that would flip it."),
]
_FlipSeconds: TypeAlias = Annotated[
    int,
    typer.Option(
        min=1,
        max=86_400,
        help="--flip searches for so long at most: each try is a decision, half a second for 100,000 bundles.",
    ),
]
_Period: TypeAlias = Annotated[int, typer.Option(min=1, max=LONGEST_PERIOD, help="With --load: length of an interval.")]


def explain_subject(
    subject: _Subject = _NEWEST,
    at: _At = None,
    intervals: _Intervals = 30,
    recording: _Recording = None,
    load: _Load = None,
    strategy: _Strategy = "",
    broker_conf: _BrokerConf = None,
    rounds: _Rounds = 1,
    pulsar: PulsarOption = None,
    period_seconds: _Period = 60,
    show_all: Annotated[bool, typer.Option("--all", help="Also print who said yes, and all brokers.")] = False,
    flip: _Flip = False,
    flip_seconds: _FlipSeconds = 60,
    conf: Conf = DEFAULT_CONF,
    as_json: Annotated[bool, json_option("answer.explain")] = False,
) -> None:
    """Print why a bundle was or was not moved, and what was found about each broker; or a broker; or an interval.

    It reads what the controller recorded. What is not recorded comes from the same decision, made again on the load in
    the log: this says whether it came out the same. Nothing is moved.

    Exit codes: 0 printed; 1 there is no such decision, bundle or broker, or the log did not answer; 2 an option is
    invalid.
    """
    kind = _kind(subject)
    time_ms = _time(subject, kind, at)
    _refuse_pairs(recording, load, needs_load=bool(strategy or broker_conf or pulsar))
    if load:
        if time_ms is not None:
            raise typer.BadParameter("the last interval of --load is explained; leave out the time", param_hint="--at")
        strategy, period_ms = strategy or _SHEDDER, period_seconds * 1000
        told = decision_on_load(load, strategy, broker_conf, period_ms=period_ms, rounds=rounds, pulsar=pulsar)
    elif recording is not None:
        told = recorded_decision(Recording(recording), time_ms)
    else:
        told = _of_journal(conf, time_ms, before=intervals)
    _refuse_unknown(told, subject, kind)
    answer = explain(told, kind if kind == "interval" else subject, kind)
    if flip and told.examined is not None:
        answer = answer.model_copy(update=_flips(told.examined.made_of, subject, kind, flip_seconds))
    if as_json:
        typer.echo(answer.as_line())
    else:
        print_explanation(answer, show_all=show_all)


def _flips(made: Redecision, subject: str, kind: str, seconds: int) -> dict[str, list[Any]]:
    with long_work("looking for what would flip it", 100.0, percent) as tell:
        deadline = Deadline.after(seconds)
        found = flips(made, subject, kind, tell=tell, is_over=lambda: deadline.passed)
    return {
        "flips": [FlipAnswer(**asdict(each)) for each in found.flips],
        "flips_unfinished": list(found.unfinished),
    }


def _refuse_pairs(recording: Path | None, load: list[Path] | None, *, needs_load: bool) -> None:
    if recording is not None and load:
        raise typer.BadParameter("give one of the two", param_hint="--recording, --load")
    if needs_load and not load:
        why = "need --load: of a journal, --conf names the controller's; a recording has its own"
        raise typer.BadParameter(why, param_hint="--strategy, --broker-conf, --pulsar")


def _of_journal(conf: Path, time_ms: int | None, *, before: int) -> ExplainedDecision:
    settings = read_settings(conf)
    with long_work("reading the journal and the log"):
        require(settings, Part.LOG)
        return journalled_decision(settings, time_ms, before=before)


def _time(subject: str, kind: SubjectKind, at: str | None) -> int | None:
    """The time that is asked for, epoch ms; None: the newest decision."""
    now_ms = time.time_ns() // 1_000_000
    if kind != "interval" or subject == _NEWEST:
        return None if at is None else time_of(at, now_ms=now_ms, of="--at")
    if at is not None:
        raise typer.BadParameter(f"{subject} is a time already; leave --at out", param_hint="--at")
    return time_of(subject, now_ms=now_ms, of="INTERVAL")


def _kind(subject: str) -> SubjectKind:
    if subject == _NEWEST or is_time(subject):
        return "interval"
    if "/" not in subject:
        return "broker"
    try:
        parse_bundle(subject)
    except TrimtabError as error:
        raise typer.BadParameter(str(error), param_hint="BUNDLE") from error
    return "bundle"


def _refuse_unknown(told: ExplainedDecision, subject: str, kind: SubjectKind) -> None:
    """Raise TrimtabError where nothing is known of *subject* although the load is."""
    if told.examined is None or kind == "interval":
        return
    view = told.examined.view
    table = view.bundles if kind == "bundle" else view.brokers
    named = {*view.missing, *(command.bundle for command, _ in told.commands)}
    named |= {verdict.subject for verdict in told.verdicts or ()}
    if subject in table.code_of or subject in named:
        return
    have = f"{len(table)} {kind}s"
    names = "`trimtab lookup` finds a topic's bundle" if kind == "bundle" else f"it has {_some(view.brokers.names)}"
    raise TrimtabError(f"{subject} is not in the load of {utc(told.interval)}, which has {have}: {names}")


def _some(names: tuple[str, ...]) -> str:
    return some_of(names, _FEW) or "none"
