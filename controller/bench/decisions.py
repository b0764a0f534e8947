"""How long the decisions of a cycle take: every shedder, placement and split check, and the update of the averages.

Every time is of a decision on a view that nothing was asked of before, so that no cached order or sum of an earlier
one shortens it.  Where Pulsar's real class runs beside, the two take turns, so changes in machine speed affect both.
"""

import gc
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol

import numpy as np

from controller.aggregate.state.averages import advance
from controller.bench.clusters import CLUSTERS
from controller.model.load import LONG_TERM_SAMPLES, SHORT_TERM_SAMPLES, BundleTable, ClusterView
from controller.settings.broker_conf import build
from controller.strategies.catalogue import PLACEMENTS, SHEDDERS, SPLIT_POLICIES
from controller.wire.answers.bench import SlopeAnswer, TimingAnswer

#: So that strategies that wait for several hits decide at once, and what is timed is a whole decision.
AT_ONCE: Final[Mapping[str, str]] = {
    "loadBalancerAvgShedderHitCountLowThreshold": "1",
    "loadBalancerAvgShedderHitCountHighThreshold": "1",
    "loadBalancerSheddingConditionHitCountThreshold": "0",
    "loadBalancerNamespaceBundleSplitConditionHitCountThreshold": "0",
}
AVERAGES: Final = "averages"
#: Placements are timed by so many in a row; what is told is the time of one.
PLACEMENTS_OF_A_CYCLE: Final = 50
#: Sizes that the slope is taken over, in bundles; a hundredth of them are brokers.
SLOPE_SIZES: Final = (1_000, 3_000, 10_000, 30_000, 100_000)
_BUNDLES_A_BROKER: Final = 100

_PATIENCE_MS: Final = 10_000.0

#: Decides once on a view and says how many bundles were chosen.
Subject = Callable[[ClusterView], int]


class Rival(Protocol):
    """Pulsar's classes on the same load."""

    @property
    def names(self) -> Sequence[str]:
        """The subjects that it has a class for."""
        ...

    def decide(self, name: str) -> tuple[float, int]:
        """Milliseconds that the class called *name* took, and how many bundles it chose."""
        ...


def subjects() -> dict[str, tuple[str, Subject]]:
    """Everything that is timed, by name, with its kind."""
    by_name: dict[str, tuple[str, Subject]] = {}
    for name, shedder in SHEDDERS.items():
        by_name[name] = ("shedder", _deciding(build(shedder, AT_ONCE), "unloads"))
    for name, policy in SPLIT_POLICIES.items():
        by_name[name] = ("split check", _deciding(build(policy, AT_ONCE), "splits"))
    for name, placement in PLACEMENTS.items():
        by_name[f"{name} (placement)"] = ("placement", _placing(build(placement, AT_ONCE)))
    by_name[AVERAGES] = (AVERAGES, _averages)
    return by_name


def timings(cluster: str, view: ClusterView, *, runs: int, rival: Rival | None = None) -> Iterator[TimingAnswer]:
    """Every subject on *view*, *runs* times after one to warm up, in turns with *rival* while that is quick enough."""
    for name, (kind, subject) in subjects().items():
        of = _in_a_row(kind)
        subject_rival = rival if rival is not None and name in rival.names else None
        own: list[float] = []
        others: list[float] = []
        chosen = other_chosen = 0
        for _ in range(runs + 1):
            ms, chosen = _timed(subject, view)
            own.append(ms)
            # Some of Pulsar's classes are quadratic: one decision of a minute says enough.
            if subject_rival is not None and sum(others) < _PATIENCE_MS:
                ms, other_chosen = subject_rival.decide(name)
                others.append(ms)
        ms = statistics.median(own[1:]) / of
        java_ms = statistics.median(others[1:] or others) if others else None
        yield TimingAnswer(
            cluster=cluster,
            kind=kind,
            subject=name,
            ms=ms,
            chosen=chosen,
            java_ms=java_ms,
            java_chosen=other_chosen if others else None,
            ratio=None if java_ms is None else ms / java_ms,
        )


def slopes(cluster: str, *, runs: int, sizes: Sequence[int] = SLOPE_SIZES) -> Iterator[SlopeAnswer]:
    """How every subject grows over clusters of *sizes* bundles."""
    views = [CLUSTERS[cluster](max(2, size // _BUNDLES_A_BROKER), size) for size in sizes]
    for name, (kind, subject) in subjects().items():
        of = _in_a_row(kind)
        # All sizes in turn, so that a slow minute of the machine does not bend the line.
        times = [[_timed(subject, view)[0] for view in views] for _ in range(runs + 1)][1:]
        ms = [statistics.median(of_size) / of for of_size in zip(*times, strict=True)]
        peak = [_peak(subject, view) for view in views]
        yield SlopeAnswer(
            cluster=cluster,
            subject=name,
            time=_slope(sizes, ms),
            memory=_slope(sizes, peak),
            ms=ms,
            peak=peak,
        )


def fresh(view: ClusterView) -> ClusterView:
    """*view* without what was worked out from it and kept."""
    tables = {name: replace(getattr(view, name)) for name in ("brokers", "bundles", "policies")}
    return replace(view, **tables)


def _in_a_row(kind: str) -> int:
    """How many decisions one call of a subject of *kind* takes."""
    return PLACEMENTS_OF_A_CYCLE if kind == "placement" else 1


def _deciding(strategy: Any, chosen: str) -> Subject:
    def decide(view: ClusterView) -> int:
        decision, _ = strategy.decide(view, strategy.initial_memory())
        return len(getattr(decision, chosen))

    return decide


def _placing(strategy: Any) -> Subject:
    def place(view: ClusterView) -> int:
        """A cycle's placements, each of which sees where the bundles before it went."""
        candidates, memory, acceptable = np.arange(len(view.brokers)), strategy.initial_memory(), []
        for bundle in range(PLACEMENTS_OF_A_CYCLE):
            acceptable, memory = strategy.acceptable(view, bundle, candidates, memory)
            view = view.with_preallocated(bundle, int(acceptable[0]))
        return len(acceptable)

    return place


def _averages(view: ClusterView) -> int:
    """Both averages of every bundle by one sample, and their sums over each broker's bundles."""
    bundles, brokers = view.bundles, len(view.brokers)
    for average, cap in ((bundles.short_term, SHORT_TERM_SAMPLES), (bundles.long_term, LONG_TERM_SAMPLES)):
        _, moved = advance(np.full(len(bundles), cap), average, bundles.load, cap)
        for column in range(moved.shape[1]):
            np.bincount(bundles.broker, weights=moved[:, column], minlength=brokers)
    return 0


def _timed(subject: Subject, view: ClusterView) -> tuple[float, int]:
    input_view = fresh(view)
    # Frozen is what was there before: looking through all of that again and again would take longer than the decisions.
    gc.freeze()
    gc.collect()
    gc.disable()
    try:
        begin = time.perf_counter_ns()
        chosen = subject(input_view)
        return (time.perf_counter_ns() - begin) / 1e6, chosen
    finally:
        gc.enable()
        gc.unfreeze()


def _peak(subject: Subject, view: ClusterView) -> int:
    """Bytes that one decision takes at most."""
    input_view = fresh(view)
    tracemalloc.start()
    try:
        subject(input_view)
        return max(1, tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()


def _slope(sizes: Sequence[int], values: Sequence[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def bundle_lines(bundles: BundleTable) -> Iterator[str]:
    """*bundles* as lines of text that the Java process reads."""
    columns = np.hstack([bundles.load, bundles.short_term, bundles.long_term]).tolist()
    counts = np.stack([bundles.topics, bundles.producers, bundles.consumers], axis=1).tolist()
    for name, broker, loads, numbers in zip(bundles.names, bundles.broker.tolist(), columns, counts, strict=True):
        yield " ".join(map(str, ("bundle", name, broker, *loads, *numbers)))
