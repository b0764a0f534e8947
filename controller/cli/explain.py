"""``trimtab explain``: why a bundle was moved or not, what was decided about a broker, or what an interval decided."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import typer

from controller.adapters.long_work import long_work, percent
from controller.adapters.network.deadline import Deadline
from controller.adapters.outages import Part
from controller.adapters.recordings.reading import Recording
from controller.cli.shared.answers import show
from controller.cli.shared.arguments import bundle_of, is_time, now_ms, time_of, topic_of
from controller.cli.shared.console import DEFAULT_CONF, Conf, json_option
from controller.cli.shared.option_groups import LoadSource, grouped
from controller.cli.shared.reachable import require
from controller.cli.texts.explanation import print_explanation
from controller.model.errors import NothingFoundError
from controller.model.some_of import some_of
from controller.offline.explanations.explanation import ExplainedDecision, explain
from controller.offline.explanations.sources import decision_on_load, journalled_decision, recorded_decision
from controller.offline.flips import Redecision
from controller.offline.flips import flips as found_flips
from controller.settings.trimtab_toml import read_settings
from controller.wire.answers.explain import ExplainAnswer, FlipAnswer, SubjectKind
from controller.wire.readable import utc

_NEWEST: Final = "last"
#: Pulsar's default.
_SHEDDER: Final = "ThresholdShedder"
#: How long --flip searches.
_FLIP_SECONDS: Final = 60
#: Brokers that an error names.
_LISTED: Final = 5

_Subject: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="BUNDLE|BROKER|TOPIC|INTERVAL",
        help="A bundle (tenant/namespace/0x00000000_0x40000000), a broker as in `trimtab status`, a scalable topic of"
        f" Pulsar 5.0 (topic://tenant/namespace/topic), the time of an interval, or {_NEWEST}, the newest one.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class FlipOptions:
    """Whether to search for what would flip the decision."""

    flip: Annotated[
        bool,
        typer.Option("--flip", help="Also search for the smallest change of load or of an option that would flip it."),
    ] = False
    flip_seconds: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=86_400,
            help="--flip searches for so long at most: each try is a decision, half a second for 100,000 bundles.",
            show_default=str(_FLIP_SECONDS),
        ),
    ] = None

    def refuse_misfits(self) -> None:
        """Raise typer.BadParameter where --flip-seconds is given, and nothing is searched for."""
        if self.flip_seconds is not None and not self.flip:
            raise typer.BadParameter("it says how long --flip searches: give --flip, too", param_hint="--flip-seconds")


@grouped
def explain_subject(
    source: LoadSource,
    flips: FlipOptions,
    subject: _Subject = _NEWEST,
    strategy: Annotated[
        str, typer.Option(help="With --load: the shedder, as in `trimtab decide`.", show_default=_SHEDDER)
    ] = "",
    rounds: Annotated[
        int,
        typer.Option(min=1, max=1000, help="With --load: decide up to this many times, as in `trimtab decide`."),
    ] = 1,
    show_all: Annotated[bool, typer.Option("--all", help="Also print what allowed the move, and all brokers.")] = False,
    conf: Conf = DEFAULT_CONF,
    as_json: Annotated[bool, json_option("answer.explain")] = False,
) -> None:
    """Print why a bundle was or was not moved, and the findings about each broker; or explain a broker, or an interval.

    It reads what the controller recorded. What is not recorded comes from the same decision, made again on the load in
    the log: this says whether it came out the same. Nothing is moved.

    Exit codes: 0 printed; 1 there is no such decision, bundle or broker, or the log did not answer; 2 an option is
    invalid.
    """
    kind = kind_of(subject)
    subject = str(topic_of(subject, of="TOPIC")) if kind == "topic" else subject
    time_ms = time_asked_for(subject, kind, source.at)
    flips.refuse_misfits()
    source.refuse_misfits(of_load={"--strategy": strategy})
    if source.load:
        if time_ms is not None:
            raise typer.BadParameter("the last interval of --load is explained; leave out the time", param_hint="--at")
        decision = decision_on_load(
            source.load,
            strategy or _SHEDDER,
            source.broker_conf,
            period_ms=source.period_seconds * 1000,
            rounds=rounds,
            pulsar=source.pulsar,
        )
    elif source.recording is not None:
        decision = recorded_decision(Recording(source.recording), time_ms)
    else:
        decision = _of_journal(conf, time_ms, before=source.intervals)
    answer = _explained(decision, subject, kind)
    if flips.flip and decision.examined is not None:
        answer = answer.model_copy(
            update=_flips(decision.examined.made_of, subject, kind, flips.flip_seconds or _FLIP_SECONDS)
        )
    show(answer, lambda out: print_explanation(out, answer, show_all=show_all), as_json=as_json)


def _explained(decision: ExplainedDecision, subject: str, kind: SubjectKind) -> ExplainAnswer:
    _refuse_unknown(decision, subject, kind)
    answer = explain(decision, kind if kind == "interval" else subject, kind)
    if kind == "topic" and decision.examined is not None and answer.topic is None:
        raise NothingFoundError(f"{subject} has no segment with load in the interval {utc(decision.interval)}")
    return answer


def _flips(made: Redecision, subject: str, kind: str, seconds: int) -> dict[str, list[Any]]:
    with long_work("looking for what would flip it", 100.0, percent) as tell:
        deadline = Deadline.after(seconds)
        flips = found_flips(made, subject, kind, tell=tell, is_over=lambda: deadline.passed)
    return {
        "flips": [FlipAnswer.from_object(each) for each in flips.flips],
        "flips_unfinished": list(flips.unfinished),
    }


def _of_journal(conf: Path, time_ms: int | None, *, before: int) -> ExplainedDecision:
    settings = read_settings(conf)
    with long_work("reading the journal and the log"):
        require(settings, Part.LOG)
        return journalled_decision(settings, time_ms, before=before)


def time_asked_for(subject: str, kind: SubjectKind, at: str | None) -> int | None:
    """The time that is asked for, epoch ms; None: the newest decision."""
    if kind != "interval" or subject == _NEWEST:
        return None if at is None else time_of(at, now_ms=now_ms(), of="--at")
    if at is not None:
        raise typer.BadParameter(f"{subject} is a time already; leave --at out", param_hint="--at")
    return time_of(subject, now_ms=now_ms(), of="INTERVAL")


def kind_of(subject: str) -> SubjectKind:
    """What *subject* is.  typer.BadParameter."""
    if subject == _NEWEST or is_time(subject):
        return "interval"
    if "/" not in subject:
        return "broker"
    if "://" in subject:
        topic_of(subject, of="TOPIC")
        return "topic"
    bundle_of(subject, of="BUNDLE")
    return "bundle"


def _refuse_unknown(decision: ExplainedDecision, subject: str, kind: SubjectKind) -> None:
    """Raise NothingFoundError where nothing is known of *subject* although the load is."""
    if decision.examined is None or kind in ("interval", "topic"):
        return
    view = decision.examined.view
    table = view.bundles if kind == "bundle" else view.brokers
    named = {*view.missing, *(command.bundle for command, _ in decision.commands)}
    named |= {verdict.subject for verdict in decision.verdicts or ()}
    if subject in table.code_of or subject in named:
        return
    have = f"{len(table)} {kind}s"
    names = "`trimtab lookup` finds a topic's bundle" if kind == "bundle" else f"it has {_some(view.brokers.names)}"
    raise NothingFoundError(f"{subject} is not in the load of {utc(decision.interval)}, which has {have}: {names}")


def _some(names: tuple[str, ...]) -> str:
    return some_of(names, _LISTED) or "none"
