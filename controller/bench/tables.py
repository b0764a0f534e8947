"""The tables of ``trimtab bench``."""

from collections.abc import Sequence
from functools import partial
from operator import attrgetter
from typing import Any, Final, NamedTuple

from rich.console import Console

from controller.bench.decisions import SLOPE_SIZES
from controller.cli.shared.answers import fields_of, print_answers
from controller.cli.shared.layout import Column
from controller.wire.answers.base import JsonAnswer
from controller.wire.answers.bench import (
    ArrivalAnswer,
    OverloadAnswer,
    PipelineAnswer,
    RecordingAnswer,
    SlopeAnswer,
    TimingAnswer,
)
from controller.wire.readable import counted


class BenchTable(NamedTuple):
    """A table that may be printed."""

    title: str
    header: Sequence[Column]
    answers: Sequence[JsonAnswer]
    #: The cells that name a row.
    head: int = 2

    def print(self, out: Console) -> None:
        """Print it to *out*."""
        print_answers(out, self.header, self.answers, title=self.title, head=self.head)


def _scaled(heading: str, name: str, factor: float) -> Column:
    """The field *name* times *factor*, in whole numbers."""
    value = attrgetter(name)
    return Column(heading=heading, number=True, cell=lambda one: f"{factor * value(one):,.0f}")


def _of_stages(heading: str, name: str) -> Column:
    value = attrgetter(name)
    return Column(heading=heading, number=True, cell=lambda one: f"{value(one.stages):,}")


_TIMING: Final = fields_of(TimingAnswer, "cluster", "subject", "ms", "chosen", "java_ms", "java_chosen", "ratio")
_OVERLOAD: Final = fields_of(
    OverloadAnswer,
    *("cluster", "shedder"),
    *(_scaled(*each, 1000) for each in (("view ms", "view"), ("decide ms", "decision"), ("entry ms", "encoding"))),
    _scaled("verdicts ms", "verdicts_file", 1000),
    *(
        _scaled("issued", "commands", 1),
        _scaled("held back", "held_back", 1),
        _scaled("entry KB", "entry_bytes", 0.001),
    ),
)
_RECORDING: Final = fields_of(
    RecordingAnswer,
    *("intervals", "log_megabytes", "recording_megabytes", "commands"),
    *("record_cpu_seconds", "replay_cpu_seconds", "replay_seconds", "equal"),
)
_STAGES: Final = [
    _of_stages(*each)
    for each in (
        ("batches", "batches"), ("plan s", "plan_seconds"), ("read s", "read_seconds"), ("fold s", "fold_seconds"),
        ("Python s", "python_seconds"), ("commit s", "commit_seconds"), ("decide s", "decide_seconds"),
    )
]  # fmt: skip
_PIPELINE: Final = fields_of(
    PipelineAnswer,
    *("form", "megabytes_per_interval", "topics_per_second", "seconds_per_interval", "floor_seconds"),
    *("ratio_to_floor", "lowest_ratio", "highest_ratio", "cpu_seconds"),
    *_STAGES,
)
_ARRIVAL: Final = fields_of(
    ArrivalAnswer,
    *("form", "cpu_seconds", "lowest_cpu_seconds", "highest_cpu_seconds", "delay_seconds", "longest_delay_seconds"),
    *("state_megabytes", "resident_megabytes", "growth_megabytes", "idle_cores"),
    *_STAGES,
)


def timing_table(timed: Sequence[TimingAnswer], title: str) -> BenchTable:
    """How long decisions take."""
    return BenchTable(title, _TIMING, timed)


def overload_table(decided: Sequence[OverloadAnswer], title: str) -> BenchTable:
    """Whole intervals of overloaded clusters."""
    return BenchTable(title, _OVERLOAD, decided)


def slope_table(grown: Sequence[SlopeAnswer]) -> BenchTable:
    """How times grow with the cluster."""
    sizes = [
        Column(heading=f"ms at {size:,}", number=True, cell=partial(_ms_at, place))
        for place, size in enumerate(SLOPE_SIZES)
    ]
    header = fields_of(SlopeAnswer, "cluster", "subject", "time", "memory", *sizes)
    return BenchTable("Log-log slopes: 1 is linear", header, grown)


def _ms_at(place: int, one: SlopeAnswer) -> str:
    return f"{one.ms[place]:,.2f}"


def recording_table(one: RecordingAnswer) -> BenchTable:
    """The size of a recording, and how long its replay takes."""
    return BenchTable(_size(one), _RECORDING, [one], head=1)


def pipeline_table(measured: Sequence[PipelineAnswer]) -> BenchTable:
    """Intervals in one batch, by the form of the records."""
    return BenchTable(_size(measured[0]), _PIPELINE, measured, head=1)


def arrival_table(measured: Sequence[ArrivalAnswer]) -> BenchTable:
    """Intervals as they arrive, by the form of the records."""
    first = measured[0]
    of = f"medians of {counted(first.intervals, 'interval')} of {first.period_seconds} s"
    return BenchTable(f"{_size(first)}, as they arrive, {of}", _ARRIVAL, measured, head=1)


def _size(one: Any) -> str:
    return f"{one.topics:,} topics in {one.bundles:,} bundles on {one.brokers:,} brokers"
