"""Advise to add partitions where one carries more than a partition should: no split can divide it.

Pulsar has no such check; its operators do it by hand.
"""

from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

import numpy as np

from controller.model.decision import Reason, SplitDecision, Verdict
from controller.model.load import THROUGHPUT_IN, THROUGHPUT_OUT, ClusterView
from controller.model.option import option
from controller.model.segment_code import NO_SEGMENT
from controller.model.strategy_memory import StrategyMemory
from controller.strategies.protocols import SplitPolicy, SplitThresholds

M = TypeVar("M", bound=StrategyMemory)

_MB: Final = 1024 * 1024
_KEY: Final = "trimtabMaxPartitionMbytes"


@dataclass(frozen=True, slots=True, kw_only=True)
class LargePartition:
    """What is too much for one partition."""

    max_mbytes: int = option(
        _KEY,
        default=20,
        unit="MB/s",
        meaning="a partition, or a topic without partitions, above this (in + out) gets a verdict that advises to add"
        " partitions; 0: never.  Topics are kept one by one for bundles from a share of this on",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WithPartitionAdvice:
    """A split policy that also has a verdict for every partition that is too large."""

    policy: SplitPolicy[Any]
    large: LargePartition

    @property
    def wrapped(self) -> SplitPolicy[Any]:
        """The policy."""
        return self.policy

    @property
    def thresholds(self) -> SplitThresholds:
        """Those of the policy, lowered so that every large partition is seen."""
        thresholds = self.policy.thresholds
        if not self.large.max_mbytes:
            return thresholds
        return thresholds._replace(throughput=min(thresholds.throughput, self.large.max_mbytes * _MB))

    def initial_memory(self) -> StrategyMemory:
        """That of the policy."""
        memory: StrategyMemory = self.policy.initial_memory()
        return memory

    def decide(self, view: ClusterView, memory: M) -> tuple[SplitDecision, M]:
        """What the policy decides, and the advice after it."""
        decision, after = self.policy.decide(view, memory)
        return replace(decision, verdicts=(*decision.verdicts, *self._advice(view))), after

    def _advice(self, view: ClusterView) -> list[Verdict]:
        """A verdict for each large partition, by bundle, then by position; Python loops over the large ones alone."""
        detail, names = view.bundles.detail, view.bundles.names
        mbytes = (detail.load[:, THROUGHPUT_IN] + detail.load[:, THROUGHPUT_OUT]) / _MB
        large = np.flatnonzero(mbytes > self.large.max_mbytes) if self.large.max_mbytes else np.zeros(0, np.int64)
        bundle = np.searchsorted(detail.starts, large, side="right") - 1
        position = detail.position[large]
        # A scalable topic has no partitions.
        remedy = np.where(
            detail.segment[large] == NO_SEGMENT, "add partitions to the topic", "have Pulsar split the segment"
        )
        order = np.lexsort((position, bundle))
        return [
            Verdict(
                subject=names[row],
                reason=Reason.LARGE_PARTITION,
                observed=float(mbytes[topic]),
                limit=float(self.large.max_mbytes),
                unit="MB/s",
                by=_KEY,
                detail=f"{what} at 0x{at:08x}: no split can divide one",
            )
            for topic, row, at, what in zip(
                *(column[order].tolist() for column in (large, bundle, position, remedy)), strict=True
            )
        ]
