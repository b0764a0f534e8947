"""``trimtab what-if``: what would have happened in a recorded time with other strategies or settings."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from controller.adapters.long_work import long_work
from controller.cli.shared.answers import show
from controller.cli.shared.arguments import FORMS, span_of
from controller.cli.shared.console import LONGEST_PERIOD, json_option
from controller.cli.shared.option_groups import ScenarioPulsarOption
from controller.cli.texts.what_if import answer_of, print_answer
from controller.offline.counterfactual.answer import what_would_have_happened
from controller.offline.counterfactual.replay_source import open_source
from controller.offline.counterfactual.survey import ReplaySpan
from controller.strategies.catalogue import SHEDDERS

_Recording: TypeAlias = Annotated[
    Path | None,
    typer.Argument(
        metavar="RECORDING",
        help="A recording (`trimtab record`), the folder of a log, or an incident (`trimtab incident`); with --server"
        " none: the server takes the log between --from and --to.",
        show_default=False,
    ),
]
_Strategy: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        help=f"Replay with {', '.join(SHEDDERS)}; one of these with a placement, as in ThresholdShedder+"
        "LeastResourceUsageWithWeight; or a file of broker.conf options that ends in .conf.  What it does not set is as"
        " recorded.  Can be repeated.",
        show_default=False,
    ),
]
_Diff: TypeAlias = Annotated[
    tuple[str, str] | None,
    typer.Option(
        metavar="A B",
        help="Compare two strategies or .conf files decision by decision: count and list what differs.",
        show_default=False,
    ),
]
_Conf: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        help="The settings file of the recorded controller; it names its broker.conf.",
        exists=True,
        dir_okay=False,
        show_default="what `trimtab record` wrote into the recording",
    ),
]


def what_if(
    recording: _Recording = None,
    strategy: _Strategy = None,
    diff: _Diff = None,
    since: Annotated[str | None, typer.Option("--from", help=f"Replay from this time on: {FORMS}.")] = None,
    until: Annotated[str | None, typer.Option("--to", help="Replay up to this time.")] = None,
    conf: _Conf = None,
    pulsar: ScenarioPulsarOption = None,
    limit_percent: Annotated[
        float, typer.Option(min=0, max=1000, help='Usage above which a broker counts for "time over limit".')
    ] = 85.0,
    most: Annotated[int, typer.Option(min=0, max=10_000, help="List at most this many moves in each table.")] = 20,
    period_seconds: Annotated[
        int, typer.Option(min=1, max=LONGEST_PERIOD, help="Length of an interval, of a log in a folder without --conf.")
    ] = 60,
    as_json: Annotated[bool, json_option("answer.what_if")] = False,
) -> None:
    """Replay a recording with other strategies or settings, and print what would have happened.

    The load of each bundle is the recorded one; its place follows the replayed decisions.  The usage of brokers comes
    from a model that is fitted on the recording; its error is printed, and decisions within it are marked as uncertain.

    Exit codes: 0 printed; 1 the recording cannot be read; 2 an option is invalid, or no interval
    lies in the span.
    """
    if recording is None:
        raise typer.BadParameter("give what to replay, or --server", param_hint="RECORDING")
    begin, end = span_of(since, until)
    span = ReplaySpan(since=begin, until=end)
    strategies = list(dict.fromkeys([*(strategy or ()), *(diff or ())]))
    with (
        open_source(recording, conf, period_seconds=period_seconds, pulsar=pulsar) as recording_of,
        long_work("replaying, intervals") as done,
    ):
        result = what_would_have_happened(
            recording_of,
            strategies or [*filter(None, [recording_of.as_version])],
            span,
            limit_percent=limit_percent,
            compared=diff,
            done=done,
        )
        answer = answer_of(recording_of.log.cluster, result, diff)
    show(answer, lambda out: print_answer(out, answer, most), as_json=as_json)
