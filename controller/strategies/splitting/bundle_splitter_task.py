"""Split a bundle that has too many topics or sessions, or too much traffic over the long term.

Pulsar: org.apache.pulsar.broker.loadbalance.impl.BundleSplitterTask
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from controller.model.decision import Split, SplitDecision
from controller.model.load import ClusterView
from controller.model.strategy_memory import NoMemory
from controller.strategies.common.bundle_limits import BundleLimits

_BY: Final = "BundleSplitterTask"


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleSplitterTask(BundleLimits):
    """See the module docstring; a limit must be passed, reaching it is not enough."""

    def initial_memory(self) -> NoMemory:
        """Nothing is remembered."""
        return NoMemory()

    def decide(self, view: ClusterView, memory: NoMemory) -> tuple[SplitDecision, NoMemory]:
        """Every bundle over a limit, in name order, as long as its namespace may have another bundle."""
        bundles = view.bundles
        passed = self.passed_by(bundles, bundles.long_term)
        count = view.namespace_bundle_count.tolist()
        splits, verdicts = [], []
        for row in np.flatnonzero(passed.any & bundles.owned).tolist():
            why, space = passed.verdict(row, _BY), int(bundles.namespace[row])
            refusal = self.too_few_topics(why.subject, int(bundles.topics[row]), _BY) or self.no_room(
                why.subject, count[space], _BY
            )
            verdicts.append(why)
            if refusal is not None:
                verdicts.append(refusal)
                continue
            count[space] += 1
            broker = view.brokers.names[int(bundles.broker[row])]
            splits.append(Split(bundle=why.subject, broker=broker, why=why))
        return SplitDecision(splits=tuple(splits), verdicts=tuple(verdicts)), memory
