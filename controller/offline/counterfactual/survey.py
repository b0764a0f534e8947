"""Surveys a recording before it is replayed: its brokers, its commands, and the model of their usage."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from controller.aggregate.columns.rows import NUMBER_USAGE
from controller.aggregate.snapshot import Snapshot
from controller.model.decision import Command
from controller.model.errors import SettingsError
from controller.offline.counterfactual.recorded import RecordedCommands, RecordedInterval, ReplayableRecording
from controller.offline.counterfactual.replayed_interval import true_limits
from controller.offline.counterfactual.usage_model import UsageModel, UsageSamples, drivers_of, fit_usage
from controller.offline.counterfactual.world import ReplayedWorldOptions
from controller.simulator.cluster import sum_by

#: The model is fitted on at most this many broker-intervals, evenly chosen among all.
_MAX_SAMPLES: Final = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySpan:
    """Which intervals are replayed, epoch ms; None: from the first one, to the last one."""

    since: int | None = None
    until: int | None = None

    def has(self, interval: int) -> bool:
        """Whether *interval* is one of them."""
        return (self.since is None or interval >= self.since) and (self.until is None or interval <= self.until)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Survey:
    """See the module docstring."""

    cluster: str
    period_ms: int
    #: All intervals that are replayed, epoch ms.
    intervals: tuple[int, ...]
    #: How many of them have a recorded decision, and how many in each mode.
    decided: int
    modes: Mapping[str, int]
    #: Sorted.
    brokers: tuple[str, ...]
    bundles: int
    commands: RecordedCommands
    #: In the order of their decisions.
    recorded: tuple[Command, ...]
    model: UsageModel
    takes_ms: int

    @property
    def world(self) -> ReplayedWorldOptions:
        """What all replays have in common."""
        return ReplayedWorldOptions(
            brokers=self.brokers, model=self.model, period_ms=self.period_ms, takes_ms=self.takes_ms
        )


def survey(recording: ReplayableRecording, span: ReplaySpan) -> Survey:
    """Read the whole of *recording*, and survey what lies in *span*.

    Raises SettingsError where no interval lies in it.
    """
    intervals, brokers, bundles = list[int](), set[str](), set[str]()
    commands, parts, waits = list[Command](), list[_Sample](), list[int]()
    modes, issued_at = Counter[str](), dict[str, int]()
    has_journal = False
    for number, recorded in enumerate(until(recording, span)):
        snapshot, entry = recorded.snapshot, recorded.entry
        has_journal |= entry is not None
        waits += [recorded.interval - issued_at.pop(each.id) for each in snapshot.results if each.id in issued_at]
        issued = () if entry is None else entry.decision.commands
        issued_at |= {each.id: each.interval for each in issued}
        commands += issued
        # The model is that of the whole recording: more is known so.
        parts.append(_sample(number, snapshot))
        if span.has(recorded.interval):
            intervals.append(recorded.interval)
            modes.update(() if entry is None else (entry.controls.mode,))
            brokers |= {*snapshot.roster}
            bundles |= {*snapshot.names}
    if not intervals:
        raise SettingsError("the recording has no closed interval in this span: see its ticks, --from and --to")
    period_ms, in_span = recording.period_ms, tuple(each for each in commands if span.has(each.interval))
    return Survey(
        cluster=recording.cluster,
        period_ms=period_ms,
        intervals=tuple(intervals),
        decided=modes.total(),
        modes=modes,
        brokers=tuple(sorted(brokers)),
        bundles=len(bundles),
        # What was under way when the span begins is carried out as recorded, whatever a replay decides.
        commands=RecordedCommands(in_span, period_ms, known=has_journal),
        recorded=in_span,
        model=fit_usage(_samples(parts)),
        takes_ms=max(period_ms, period_ms * round(float(np.median(waits)) / period_ms)) if waits else period_ms,
    )


def until(recording: ReplayableRecording, span: ReplaySpan) -> Iterator[RecordedInterval]:
    """The intervals of *recording* up to the end of *span*."""
    for recorded in recording.intervals():
        if span.until is not None and recorded.interval > span.until:
            return
        yield recorded


@dataclass(frozen=True, slots=True, eq=False)
class _Sample:
    """The brokers with data in one interval."""

    interval: int
    brokers: tuple[str, ...]
    drivers: np.ndarray
    usage: np.ndarray
    limit: np.ndarray


def _sample(number: int, snapshot: Snapshot) -> _Sample:
    limits = true_limits(snapshot)
    rows = [row for row in snapshot.brokers if row.broker in limits]
    drivers = drivers_of(snapshot.load, snapshot.producers, snapshot.consumers)
    of_roster = sum_by(snapshot.owner, drivers, len(snapshot.roster))
    place = {name: row for row, name in enumerate(snapshot.roster)}
    placed = [row for row in rows if row.broker in place]
    return _Sample(
        number,
        tuple(row.broker for row in placed),
        of_roster[[place[row.broker] for row in placed]],
        np.array([row.numbers[NUMBER_USAGE] for row in placed], np.float64).reshape(len(placed), 5),
        np.array([limits[row.broker] for row in placed], np.float64).reshape(len(placed), 5),
    )


def _samples(parts: list[_Sample]) -> UsageSamples:
    total = sum(len(part.brokers) for part in parts)
    # Whole intervals are left out, evenly.
    chosen = parts[:: max(1, -(-total // _MAX_SAMPLES))]
    names = tuple(sorted({name for part in chosen for name in part.brokers}))
    code_of = {name: code for code, name in enumerate(names)}
    return UsageSamples(
        interval=np.array([part.interval for part in chosen for _ in part.brokers], np.int64),
        broker=np.array([code_of[name] for part in chosen for name in part.brokers], np.int64),
        brokers=names,
        drivers=np.concatenate([part.drivers for part in chosen]),
        usage=np.concatenate([part.usage for part in chosen]),
        limit=np.concatenate([part.limit for part in chosen]),
    )
