"""The tables of ``trimtab bench``."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from controller.bench.decisions import SLOPE_SIZES
from controller.cli.shared.console import console
from controller.cli.shared.layout import Column, columns, print_table
from controller.wire.answers.bench import (
    ArrivalAnswer,
    BalanceAnswer,
    FrontierAnswer,
    MovesAnswer,
    OverloadAnswer,
    PipelineAnswer,
    RecordingAnswer,
    SlopeAnswer,
    StagesAnswer,
    TimingAnswer,
)
from controller.wire.readable import counted


class BenchTable(NamedTuple):
    """A table that may be printed."""

    title: str
    header: Sequence[Column]
    rows: Sequence[Sequence[str]]
    #: The cells that name a row.
    head: int = 2

    def print(self) -> None:
        """To the standard output."""
        print_table(console(), self.header, self.rows, title=self.title, head=self.head)


def timing_table(timed: Sequence[TimingAnswer], title: str) -> BenchTable:
    """How long decisions take."""
    rows = []
    for one in timed:
        theirs = ("", "", "")
        if one.java_ms is not None and one.ratio is not None:
            theirs = (f"{one.java_ms:,.2f}", f"{one.java_chosen:,}", f"{one.ratio:.3f}")
        rows.append((one.cluster, one.subject, f"{one.ms:,.3f}", f"{one.chosen:,}", *theirs))
    return BenchTable(title, _header("ms", "chosen", "Pulsar ms", "Pulsar chose", "ratio"), rows)


def overload_table(decided: Sequence[OverloadAnswer], title: str) -> BenchTable:
    """Whole intervals of overloaded clusters."""
    header = _header("view ms", "decide ms", "entry ms", "verdicts ms", "issued", "held back", "entry KB")
    rows = []
    for one in decided:
        times = (one.view, one.decision, one.encoding, one.verdicts_file)
        counts = (one.commands, one.held_back)
        cells = (*(f"{1000 * each:,.0f}" for each in times), *(f"{each:,}" for each in counts))
        rows.append((one.cluster, one.shedder, *cells, f"{one.entry_bytes / 1000:,.0f}"))
    return BenchTable(title, header, rows)


def balance_table(found: Sequence[BalanceAnswer]) -> BenchTable:
    """How even strategies make clusters."""
    headings = ("before", "after", "moves", "PeakShedder's", "not reached", "fewest", "half", "impossible", "open")
    rows = []
    for one in found:
        levels, to_there = (f"{one.before:.2f}", f"{one.after:.2f}"), one.peak_shedder_moves
        counts = ("" if to_there is None else f"{to_there:.1f}", f"{one.not_reached}", f"{one.fewest_moves:.1f}")
        halves: tuple[str, ...] = ("", "", "")
        if one.within_half is not None and one.half_impossible is not None:
            unknown = one.clusters - one.within_half - one.half_impossible
            halves = (f"{one.within_half}", f"{one.half_impossible}", f"{unknown}")
        cells = (*levels, f"{one.moves:.1f}", *counts, *halves)
        rows.append((one.capacities, one.strategy, *cells))
    title = f"Highest usage as a multiple of the mean, and moves; means of {counted(found[0].clusters, 'cluster')}"
    return BenchTable(title, columns("capacities", "strategy", *headings, numbers=headings), rows)


def frontier_table(found: Sequence[FrontierAnswer]) -> BenchTable:
    """Evenness by the moves that are allowed."""
    headings = ("used", "reached", "bound", "gap", "best found", "proved")
    rows = []
    for one in found:
        best = ("" if each is None else f"{each:.3f}" for each in (one.best_found, one.best_bound))
        levels = (f"{one.moves}", f"{one.reached:.3f}", f"{one.bound:.3f}", f"{one.gap:.1%}")
        rows.append((f"{one.max_moves}", one.kind, *levels, *best))
    title = "Highest usage as a multiple of the mean, by the moves that are allowed"
    return BenchTable(title, columns("moves", "bound by", *headings, numbers=("moves", *headings)), rows)


def slope_table(grown: Sequence[SlopeAnswer]) -> BenchTable:
    """How times grow with the cluster."""
    rows = [
        (one.cluster, one.subject, f"{one.time:.2f}", f"{one.memory:.2f}", *(f"{ms:,.2f}" for ms in one.ms))
        for one in grown
    ]
    header = _header("time", "memory", *(f"ms at {size:,}" for size in SLOPE_SIZES))
    return BenchTable("Log-log slopes: 1 is linear", header, rows)


def recording_table(one: RecordingAnswer) -> BenchTable:
    """The size of a recording, and how long its replay takes."""
    headings = ("log MB", "MB", "commands", "record CPU s", "replay CPU s", "replay s", "equal")
    sizes = (f"{one.log_megabytes:,.1f}", f"{one.recording_megabytes:,.1f}", f"{one.commands:,}")
    times = (one.record_cpu_seconds, one.replay_cpu_seconds, one.replay_seconds)
    row = (f"{one.intervals:,}", *sizes, *(f"{each:,.1f}" for each in times), f"{one.equal:,}")
    title = f"{one.topics:,} topics in {one.bundles:,} bundles on {one.brokers:,} brokers"
    return BenchTable(title, columns("intervals", *headings, numbers=("intervals", *headings)), [row], head=1)


_STAGES: Final = ("batches", "plan s", "read s", "fold s", "Python s", "commit s", "decide s")


def pipeline_table(measured: Sequence[PipelineAnswer]) -> BenchTable:
    """Intervals in one batch, by the form of the records."""
    title = f"{measured[0].topics:,} topics in {measured[0].bundles:,} bundles on {measured[0].brokers:,} brokers"
    headings = ("MB", "topics/s", "s an interval", "floor s", "ratio to floor", "lowest", "highest", "CPU s")
    rows = []
    for one in measured:
        ratios = (one.ratio_to_floor, one.lowest_ratio, one.highest_ratio)
        numbers = (
            one.megabytes_per_interval,
            one.topics_per_second,
            one.seconds_per_interval,
            one.floor_seconds,
            *ratios,
            one.cpu_seconds,
        )
        rows.append((one.form, *(f"{number:,}" for number in (*numbers, *_stage_cells(one.stages)))))
    return BenchTable(title, columns("records", *headings, *_STAGES, numbers=(*headings, *_STAGES)), rows, head=1)


def arrival_table(measured: Sequence[ArrivalAnswer]) -> BenchTable:
    """Intervals as they arrive, by the form of the records."""
    first = measured[0]
    title = (
        f"{first.topics:,} topics in {first.bundles:,} bundles on {first.brokers:,} brokers, as they arrive, medians of"
        f" {counted(first.intervals, 'interval')} of {first.period_seconds} s"
    )
    headings = ("CPU s", "lowest", "highest", "delay s", "longest", "state MB", "memory MB", "growth MB", "idle cores")
    rows = []
    for one in measured:
        cpu = (one.cpu_seconds, one.lowest_cpu_seconds, one.highest_cpu_seconds)
        rest = (one.delay_seconds, one.longest_delay_seconds, one.state_megabytes, one.resident_megabytes)
        numbers = (*cpu, *rest, one.growth_megabytes, one.idle_cores, *_stage_cells(one.stages))
        rows.append((one.form, *(f"{number:,}" for number in numbers)))
    return BenchTable(title, columns("records", *headings, *_STAGES, numbers=(*headings, *_STAGES)), rows, head=1)


def _stage_cells(stages: StagesAnswer) -> tuple[float, ...]:
    """Under the headings of _STAGES."""
    spark = (stages.batches, stages.plan_seconds, stages.read_seconds, stages.fold_seconds)
    return (*spark, stages.python_seconds, stages.commit_seconds, stages.decide_seconds)


def moves_table(found: Sequence[MovesAnswer]) -> BenchTable:
    """Stalls of clients, by the kind of unload."""
    first = found[0]
    title = (
        f"ms that clients stalled, p50 / p99 / longest; {counted(first.unloads, 'unload')} of each kind,"
        f" {counted(first.producers, 'producer')} of {first.rate:g} msg/s and as many consumers on"
        f" {counted(first.topics, 'topic')}"
    )
    headings = ("arrived", "command", "publishing", "receiving", "publishing elsewhere", "receiving elsewhere")
    rows = []
    for one in found:
        stalls = (one.command, one.publishing, one.receiving, one.publishing_elsewhere, one.receiving_elsewhere)
        cells = (f"{each.p50:,.0f} / {each.p99:,.0f} / {each.max:,.0f}" for each in stalls)
        kind = "destination" if one.destination else "none"
        rows.append((one.load_manager, kind, f"{one.arrived} of {one.unloads}", *cells))
    return BenchTable(title, columns("load manager", "destination", *headings, numbers=headings), rows)


def _header(*numbers: str) -> list[Column]:
    return columns("cluster", "what", *numbers, numbers=numbers)
