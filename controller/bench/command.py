"""``trimtab bench``: how fast trimtab is on this machine."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from enum import StrEnum
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

import typer

from controller.adapters.disk.scratch import scratch_folder
from controller.adapters.long_work import is_quiet, long_work
from controller.adapters.process import signals
from controller.bench.clusters import CLUSTERS
from controller.bench.decisions import SLOPE_SIZES, slopes, subjects, timings
from controller.bench.java_rival import java_rival
from controller.bench.overload import SHARES, largest
from controller.bench.recorded_day import recorded_day
from controller.bench.tables import (
    BenchTable,
    arrival_table,
    overload_table,
    pipeline_table,
    recording_table,
    slope_table,
    timing_table,
)
from controller.cli.shared.answers import show
from controller.cli.shared.console import console, json_option
from controller.lab.pulsar_server import pulsar_cluster
from controller.lab.servers import kafka_server
from controller.simulator.cluster import ClusterShape
from controller.simulator.encode import FORMS
from controller.strategies.catalogue import SHEDDERS
from controller.wire.answers.base import JsonAnswer
from controller.wire.answers.bench import (
    TimingAnswer,
)
from controller.wire.readable import counted

if TYPE_CHECKING:
    from controller.bench.logs import LogServer

T = TypeVar("T")


class LogKind(StrEnum):
    """What holds the log of a measurement."""

    KAFKA = "kafka"
    PULSAR = "pulsar"


app = typer.Typer(help="Measure how fast trimtab is on this machine.", no_args_is_help=True)


_Bundles: TypeAlias = Annotated[int, typer.Option(min=100, help="Bundles in the cluster.")]
_Brokers: TypeAlias = Annotated[
    int, typer.Option(min=2, help="Brokers in the cluster; at most half the number of bundles.")
]
_Runs: TypeAlias = Annotated[int, typer.Option(min=1, help="Runs of each measurement; medians are printed.")]
_Java: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--java",
        help="Also run Pulsar's own classes, alternately, and print the ratio.  Downloads jars.",
    ),
]
_Slope: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--slope",
        help=f"Measure instead how time and memory grow from {SLOPE_SIZES[0]:,} to {SLOPE_SIZES[-1]:,} bundles.",
    ),
]
_Overloaded: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--overloaded",
        help="Measure instead whole intervals in which half of the brokers, or all, are 40 % over their limit; the"
        " largest of --runs intervals is printed.",
    ),
]
_AsItArrives: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--as-it-arrives",
        help="Measure instead a running controller: CPU, delay of the decision, state written, memory, idle CPU.",
    ),
]


@app.command()
def decisions(
    bundles: _Bundles = 100_000,
    brokers: _Brokers = 1_000,
    runs: _Runs = 9,
    java: _Java = False,
    slope: _Slope = False,
    overloaded: _Overloaded = False,
    as_json: Annotated[bool, json_option("answer.bench_*", each="measurement")] = False,
) -> None:
    """Measure every shedder, placement and split check, and the update of the averages.

    On two clusters: a skewed one, where many bundles must move, and a nearly balanced one.
    """
    if brokers > bundles // 2:
        raise typer.BadParameter(f"{brokers} brokers need {2 * brokers} bundles or more", param_hint="--brokers")
    if slope and java:
        raise typer.BadParameter("--slope measures trimtab alone", param_hint="--java")
    if overloaded and (java or slope):
        raise typer.BadParameter("--overloaded measures whole intervals of trimtab alone", param_hint="--overloaded")
    if overloaded:
        decided = _measured(largest(brokers, bundles, intervals=runs), len(SHARES) * len(SHEDDERS))
        title = f"{bundles:,} bundles on {brokers:,} brokers, the largest of {counted(runs, 'interval')}"
        _tell(decided, overload_table(decided, title), as_json=as_json)
        return
    if slope:
        every = chain.from_iterable(slopes(cluster, runs=runs) for cluster in CLUSTERS)
        grown = _measured(every, len(CLUSTERS) * len(subjects()))
        _tell(grown, slope_table(grown), as_json=as_json)
        return
    timed = _measured(_timings(brokers, bundles, runs, java=java), len(CLUSTERS) * len(subjects()))
    table = timing_table(timed, f"{bundles:,} bundles on {brokers:,} brokers, medians of {runs}")
    _tell(timed, table, as_json=as_json)


def _timings(brokers: int, bundles: int, runs: int, *, java: bool) -> Iterator[TimingAnswer]:
    for cluster, make in CLUSTERS.items():
        view = make(brokers, bundles)
        with java_rival(view) if java else nullcontext() as rival:
            yield from timings(cluster, view, runs=runs, rival=rival)


def _measured(measurements: Iterable[T], number: int) -> list[T]:
    """All of *measurements*, of which there are *number*; shows how far it is."""
    answers: list[T] = []
    with long_work("measuring, kinds of decisions", number) as done:
        for one in measurements:
            answers.append(one)
            done(len(answers))
    return answers


@app.command("pipeline")
def whole_pipeline(
    topics: Annotated[int, typer.Option(min=1, help="Topics in the modelled cluster.")] = 1_000_000,
    bundles: Annotated[int, typer.Option(min=1, help="Bundles that hold the topics.")] = 100_000,
    brokers: Annotated[int, typer.Option(min=2, help="Brokers that serve the bundles.")] = 1_000,
    runs: Annotated[int, typer.Option(min=1, help="Intervals to measure after the warm-up; medians are printed.")] = 5,
    form: Annotated[
        list[str] | None, typer.Option(help=f"Form of the records; can be repeated.  [default: {', '.join(FORMS)}]")
    ] = None,
    bootstrap: Annotated[str, typer.Option(help="Kafka to use; without it, one is started for this run.")] = "",
    in_log: Annotated[
        LogKind, typer.Option("--log", help="What holds the log; a Pulsar is started for this run.")
    ] = LogKind.KAFKA,
    as_it_arrives: _AsItArrives = False,
    period_seconds: Annotated[int, typer.Option(min=5, help="Length of an interval with --as-it-arrives.")] = 60,
    master: Annotated[str, typer.Option(help="Where Spark runs, as in spark.master.")] = "local[2]",
    partitions: Annotated[int, typer.Option(min=1, help="Partitions of the topics.")] = 4,
    as_json: Annotated[bool, json_option("answer.bench_{pipeline,arrival}", each="form")] = False,
) -> None:
    """Measure the real query on a real log: seconds per interval, and the ratio to only reading and parsing.

    With --as-it-arrives, measure `trimtab run` itself while sweeps come one by one, as they do in production.
    """
    # Here, because importing Spark takes seconds.
    from controller.bench import arrival, pipeline

    forms = _known_forms(form)
    if in_log is LogKind.PULSAR and (bootstrap or as_it_arrives):
        raise typer.BadParameter("not with --bootstrap or --as-it-arrives, which are Kafka's", param_hint="--log")
    shape = _shape(brokers, bundles, topics)
    measure: Callable[..., Any] = pipeline.pipeline
    if as_it_arrives:
        measure = partial(arrival.arrival, period_seconds=period_seconds)
    measured = []
    with (
        scratch_folder("trimtab-bench-") as scratch,
        _log_server(in_log, bootstrap, scratch) as server,
        _intervals_shown(len(forms) * (pipeline.WARM_UP + runs)) as report,
    ):
        for name in forms:
            spread = {"master": master, "partitions": partitions}
            measured.append(measure(name, shape, server, scratch / name, runs=runs, report=report, **spread))
            if as_json:  # print each at once: all forms together take minutes
                typer.echo(measured[-1].as_line())
    if not as_json:
        (arrival_table if as_it_arrives else pipeline_table)(measured).print(console())


@app.command()
def recording(
    brokers: _Brokers = 100,
    bundles: _Bundles = 5_000,
    topics: Annotated[int, typer.Option(min=1, help="Topics in the cluster.")] = 5_000,
    intervals: Annotated[int, typer.Option(min=1, help="Intervals; 1,440 are a day.")] = 1_440,
    as_json: Annotated[bool, json_option("answer.bench_recording")] = False,
) -> None:
    """Measure how large a recording of a day is, and how long its replay without Spark takes.

    A modelled cluster and a controller in this process write the log first, in a temporary folder.
    """
    with scratch_folder("trimtab-bench-") as scratch:
        measured = recorded_day(_shape(brokers, bundles, topics), intervals, scratch)
    _tell([measured], recording_table(measured), as_json=as_json)


def _shape(brokers: int, bundles: int, topics: int) -> ClusterShape:
    """A cluster whose brokers are all loaded about alike."""
    namespaces = max(1, bundles // 100)
    return ClusterShape(
        brokers=brokers, empty_brokers=0, namespaces=namespaces, bundles=bundles, topics=topics, placement_skew=0.05
    )


def _known_forms(names: Sequence[str] | None) -> Sequence[str]:
    """The forms *names*, or all."""
    for name in names or ():
        if name not in FORMS:
            raise typer.BadParameter(f"{name}: allowed: {', '.join(FORMS)}", param_hint="--form")
    return names or list(FORMS)


@contextmanager
def _intervals_shown(number: int) -> Iterator[Callable[[str], None]]:
    """Within the block show how many of *number* intervals are measured; yields what takes a line about each."""
    intervals = iter(range(1, number + 1))
    with long_work("measuring, intervals", number) as done:

        def report(line: str) -> None:
            done(next(intervals))
            if not is_quiet():
                typer.echo(line, err=True)

        yield report


@contextmanager
def _log_server(kind: LogKind, bootstrap: str, folder: Path) -> "Iterator[LogServer]":
    from controller.bench.logs import InKafka, InPulsar

    if bootstrap:
        yield InKafka(bootstrap)
        return
    # A server of our own must stop whenever this process is stopped.
    with signals.interrupts(exit_code=signals.INTERRUPTED):
        if kind is LogKind.KAFKA:
            with kafka_server(folder / "kafka") as kafka:
                yield InKafka(kafka.bootstrap)
        else:
            with pulsar_cluster(folder / "pulsar") as pulsar:
                yield InPulsar(pulsar.service_url, pulsar.admin_urls)


def _tell(answers: Sequence[JsonAnswer], table: BenchTable, *, as_json: bool) -> None:
    show(answers, table.print, as_json=as_json)
