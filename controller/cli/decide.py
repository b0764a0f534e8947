"""``trimtab decide``: print what trimtab would do about recorded load, and why; no command is issued."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer
from rich.console import Console

from controller.cli.shared.answers import print_answers, show
from controller.cli.shared.console import LONGEST_PERIOD, json_option
from controller.cli.shared.layout import Column, print_line
from controller.cli.shared.option_groups import PulsarOption
from controller.cli.texts.verdicts import print_verdicts
from controller.model.decision import Command, Decision
from controller.model.pulsar_version import version_text
from controller.offline.decide import LoadDecision, decide_on_load, recorded_policy
from controller.offline.recorded_load import notes_on, read_load
from controller.strategies.catalogue import PLACEMENTS, SHEDDERS
from controller.wire.answers.base import PulsarVersionAnswer, VerdictAnswer
from controller.wire.answers.offline import DecideAnswer, PlannedCommandAnswer
from controller.wire.decision_texts import because
from controller.wire.readable import counted

_MOVED: Final = 3

_Load: TypeAlias = Annotated[
    list[Path],
    typer.Option(
        help="A load report as a broker serves it, JSON lines of reports or sweeps, a folder of such files, or the"
        " folder of a log; can be repeated.  Give the reports of all brokers.  Or a recording (`trimtab record`); only"
        " its load is used.  The last interval is decided.",
        exists=True,
        show_default=False,
    ),
]
_More: TypeAlias = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="FILE",
        help="More files and folders, as in --load reports/*.json.",
        exists=True,
        show_default=False,
    ),
]
_Strategy: TypeAlias = Annotated[
    str,
    typer.Option(
        help=f"The shedder: {', '.join(SHEDDERS)}; or the full name of Pulsar's class.",
        show_default=False,
    ),
]
_BrokerConf: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        help="The options, by Pulsar's names.  PULSAR_PREFIX_ variables override them.",
        exists=True,
        dir_okay=False,
        show_default="Pulsar's defaults",
    ),
]
_Placement: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help=f"The placement: {', '.join(PLACEMENTS)}.",
        show_default="that of --broker-conf, else the strategy's own, else Pulsar's default",
    ),
]
_Rounds: TypeAlias = Annotated[
    int,
    typer.Option(
        min=1,
        max=1000,
        help="Decide up to this many times on the same load, until something would move: some strategies wait for"
        " several intervals.",
    ),
]
_Cluster: TypeAlias = Annotated[
    str | None,
    typer.Option(help="Use the records of this cluster.", show_default="that of the first record that names one"),
]


def decide(
    load: _Load,
    strategy: _Strategy,
    more: _More = None,
    broker_conf: _BrokerConf = None,
    placement: _Placement = None,
    pulsar: PulsarOption = None,
    split: Annotated[bool, typer.Option("--split", help="Also look for bundles to split.")] = False,
    rounds: _Rounds = 1,
    cluster: _Cluster = None,
    period_seconds: Annotated[int, typer.Option(min=1, max=LONGEST_PERIOD, help="Length of an interval.")] = 60,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the choice among equally good brokers.")] = 0,
    as_json: Annotated[bool, json_option("answer.decide")] = False,
) -> None:
    """Decide once on recorded load, and explain why.  Nothing is moved.

    The guardrails for a new or paused controller and for missing data do not apply.

    Exit codes: 0 nothing would be moved or split; 3 something would; 2 an option or the load is invalid.
    """
    period_ms = period_seconds * 1000
    policy = recorded_policy(strategy, placement, broker_conf, split=split, period_ms=period_ms, pulsar=pulsar)
    recorded = read_load([*load, *(more or ())], cluster=cluster, period_ms=period_ms)
    answer = decide_on_load(recorded.last, policy, seed=seed, rounds=rounds)
    notes = notes_on(recorded, {*answer.view.brokers.names, *answer.view.outdated})
    outcome = _answer(recorded.cluster, answer, notes)
    show(outcome, lambda out: _print(out, answer, notes), as_json=as_json)
    if answer.decision.commands:
        raise typer.Exit(_MOVED)


def _answer(cluster: str, answer: LoadDecision, notes: Sequence[str]) -> DecideAnswer:
    decision, view, policy = answer.decision, answer.view, answer.made_of.policy
    return DecideAnswer(
        cluster=cluster,
        interval=view.as_of_ms,
        strategy=type(policy.shedder).__name__,
        placement=type(policy.placement).__name__,
        pulsar=PulsarVersionAnswer.of(decision.pulsar),
        round=answer.round,
        brokers=len(view.brokers),
        bundles=len(view.bundles),
        missing=list(view.missing),
        summary=decision.summary,
        commands=[_planned(command) for command in decision.commands],
        verdicts=[VerdictAnswer.short(verdict) for verdict in decision.verdicts],
        notes=list(notes),
    )


def _planned(command: Command) -> PlannedCommandAnswer:
    of_split = ("algorithm", "boundaries", "unload_after_split")
    names = ("action", "bundle", *(of_split if command.action == "split" else ("destination",)))
    details = {name: getattr(command, name) for name in names}
    return PlannedCommandAnswer(**details, broker=command.source, why=VerdictAnswer.short(command.why))


_COMMANDS: Final = (
    Column(heading="do", cell=lambda each: each.action),
    Column(heading="bundle", cell=lambda each: each.bundle),
    Column(heading="from", cell=lambda each: each.source),
    Column(heading="to, or cut at", prose=True, cell=lambda each: _where(each)),
    Column(heading="because", prose=True, cell=because),
)


def _print(out: Console, answer: LoadDecision, notes: Sequence[str]) -> None:
    decision = answer.decision
    print_answers(out, _COMMANDS, decision.commands, title="Would be done", head=2)
    print_verdicts(out, decision.verdicts)
    for note in notes:
        print_line(out, note)
    if decision.pulsar is not None:
        print_line(out, version_text(decision.pulsar))
    print_line(out, _summary(answer, decision))


def _where(command: Command) -> str:
    return command.destination or ", ".join(f"0x{cut:08x}" for cut in command.boundaries) or command.algorithm


def _summary(answer: LoadDecision, decision: Decision) -> str:
    view = answer.view
    counts = {action: sum(each.action == action for each in decision.commands) for action in ("split", "unload")}
    done = ", ".join(counted(number, action) for action, number in counts.items() if number)
    looked = f"{counted(len(view.bundles), 'bundle')} on {counted(len(view.brokers), 'broker')}"
    rounds = f" (round {answer.round})" if answer.round > 1 else ""
    return f"{looked}: {done or 'nothing to do'}{rounds}"
