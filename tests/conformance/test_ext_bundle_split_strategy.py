"""Bundles are examined in the recorded order, which is a hash map's; trimtab's own order is by name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from controller.model.bundle_ranges import equal_cuts
from controller.model.decision import Reason, Split
from controller.model.load import BundleTable, ClusterView, Floats, Ints, TopicDetail
from controller.strategies.splitting.default_namespace_bundle_split_strategy import (
    DefaultNamespaceBundleSplitStrategyImpl,
)
from tests.cluster import broker_table, bundle_table, cluster_view
from tests.conformance.vectors import Case, configured, rows_of_4

COMPONENT = "ext_bundle_split_strategy"
_SELF = "self:8080"
_UNKNOWN = -1
#: Mode of the recording -> number of parts of a bundle.
_PARTS = {"null": 0, "fail": 0, "two": 3}


@dataclass(frozen=True)
class RecordedParts:
    """Splits a bundle into the recorded number of parts; the first topic position is the bundle's row in ``parts``."""

    parts: Sequence[int]
    name = "recorded_parts"
    needs_topic_detail = True

    def cuts(
        self,
        lower: int,
        upper: int,
        positions: Ints,
        load: Floats,
    ) -> tuple[int, ...] | Reason:
        parts = self.parts[int(positions[0])]
        return equal_cuts(lower, upper, parts) if parts else Reason.NO_POSITIONS


def test_the_same_bundles_are_split_in_every_round_and_the_same_hits_remembered(case: Case) -> None:
    strategy = configured(DefaultNamespaceBundleSplitStrategyImpl, case["config"])
    memory = strategy.initial_memory()
    given, expected = case["input"], case["expected"]
    counts = given["namespace_bundle_count"] | dict.fromkeys(given["count_fails"], _UNKNOWN)
    for turn, told in zip(given["rounds"], expected["rounds"], strict=True):
        names = sorted(turn["stats"])
        parts = [_PARTS[turn["split_boundary_mode"][n]] if n in turn["split_boundary_mode"] else 2 for n in names]
        order = np.array([names.index(name) for name in turn["stats"]], np.int64)
        playing = replace(strategy, algorithm=RecordedParts(parts))
        decision, memory = playing.decide_in_order(_view(turn, counts), memory, order)
        assert {split.bundle: _shown(split) for split in decision.splits} == told["decisions"]
        assert dict(memory.hits) == told["hit_counts"]


def _view(turn: Mapping[str, Any], counts: Mapping[str, int]) -> ClusterView:
    names = sorted(turn["stats"])
    stats = rows_of_4([turn["stats"][name][:4] for name in names])
    topics, producers, consumers = np.array([turn["stats"][n][4:] for n in names], np.int64).reshape(-1, 3).T
    owner = np.array([-1 if name in turn["not_owner"] else 0 for name in names], np.int64)
    bundles = bundle_table(names, owner, load=stats, topics=topics, producers=producers, consumers=consumers)
    none = np.zeros((1, 5))
    states = turn["ownership_states"]
    view = cluster_view(
        broker_table([_SELF], usage=none, limit=none),
        _with_rows_for_topics(bundles),
        bundle_count={space: count for space, count in counts.items() if space in bundles.namespaces},
    )
    return replace(view, splitting=frozenset(name for name, state in states.items() if state == "Splitting"))


def _with_rows_for_topics(bundles: BundleTable) -> BundleTable:
    rows = np.arange(len(bundles) + 1)
    return replace(bundles, detail=TopicDetail(starts=rows, position=rows[:-1], load=np.zeros((len(bundles), 4))))


def _shown(split: Split) -> dict[str, Any]:
    children = [f"0x{lower:08x}_0x{upper:08x}" for lower, upper in pairwise(split.boundaries)]
    return {"children": children, "source": split.broker, "reason": split.why.reason}
