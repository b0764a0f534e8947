"""Split a bundle that was over a limit in so many rounds in a row, and only so many of a broker in one round.

The load of this interval counts, not an average.  In Pulsar every broker looks at its own bundles, and counts them in
its own memory; here that is done broker by broker, and they share the room that a namespace has left.  So a bundle that
went to another broker is counted anew there, and a bundle that no broker serves is neither counted nor split.  Where
the data of a broker are missing, its counts wait for them.

Pulsar: org.apache.pulsar.broker.loadbalance.extensions.strategy.DefaultNamespaceBundleSplitStrategyImpl
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final, Self

import numpy as np

from controller.model.decision import Reason, Split, SplitDecision, Verdict
from controller.model.load import UNOWNED, Bools, BundleTable, ClusterView, Ints
from controller.model.names import can_split, parse_bundle
from controller.model.option import option
from controller.model.strategy_memory import StrategyMemory
from controller.strategies.common.bundle_limits import BundleLimits
from controller.strategies.common.cutting import cut
from controller.strategies.common.unissued import restored
from controller.strategies.protocols import SplitAlgorithm

_BY: Final = "DefaultNamespaceBundleSplitStrategyImpl"
_MAX_SPLITS: Final = "loadBalancerMaxNumberOfBundlesToSplitPerCycle"


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitHitCounts(StrategyMemory):
    """Consecutive rounds in which a bundle was over a limit, by name; only bundles that are over one."""

    kind: ClassVar[str] = "split_hit_counts"
    hits: Mapping[str, int] = field(default_factory=dict)
    #: The broker that each of them was counted at; older entries have none.
    owners: Mapping[str, str] = field(default_factory=dict)

    def revert_unissued_splits(self, before: Self, bundles: Collection[str]) -> Self:
        """The hits that *bundles* had before."""
        return type(self)(
            hits=restored(before.hits, self.hits, bundles), owners=restored(before.owners, self.owners, bundles)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultNamespaceBundleSplitStrategyImpl(BundleLimits):
    """See the module docstring; a limit must be passed, reaching it is not enough."""

    max_splits: int = option(
        _MAX_SPLITS,
        default=10,
        unit="bundles",
        meaning="extensible load manager: bundles of one broker that are split in one round; 0 for no limit",
    )
    hit_count: int = option(
        "loadBalancerNamespaceBundleSplitConditionHitCountThreshold",
        default=3,
        unit="rounds",
        meaning="extensible load manager: a bundle is split when it was over a limit in more rounds in a row than this",
    )
    several_cuts: bool = option(
        "trimtabSplitStrategySeveralCuts",
        default=False,
        meaning="extensible load manager: where the algorithm finds several cuts, split at the middle one, and the"
        " parts in later rounds; Pulsar does not split such a bundle",
    )
    fixed_parents: bool = option(
        "trimtabSplitStrategyFixedParents",
        default=False,
        meaning="extensible load manager: a split under way holds up parts of the same bundle alone; in Pulsar also"
        " bundles that begin or end alike, in namespaces whose names begin alike",
    )
    #: Where a bundle will be cut.  None: that is computed later, and every cut counts as possible.
    algorithm: SplitAlgorithm | None = field(default=None, metadata={"meaning": "where a bundle is cut"})

    def initial_memory(self) -> SplitHitCounts:
        """No bundle was over a limit."""
        return SplitHitCounts()

    def decide(self, view: ClusterView, memory: SplitHitCounts) -> tuple[SplitDecision, SplitHitCounts]:
        """Every bundle that was over a limit for long enough: broker by broker, those of each in name order."""
        return self.decide_in_order(view, memory, np.argsort(view.bundles.broker, kind="stable"))

    def decide_in_order(
        self, view: ClusterView, memory: SplitHitCounts, order: Ints
    ) -> tuple[SplitDecision, SplitHitCounts]:
        """The same with bundles (rows) gone through in *order*: first come, first split.

        Bundles of a broker that may split no more in this round are not even counted.
        """
        bundles = view.bundles
        passed = self.passed_by(bundles, bundles.load)
        over, hits = passed.any, _still_counted(view, memory)
        count, of_broker = view.namespace_bundle_count.tolist(), Counter[int]()
        splits: list[Split] = []
        verdicts: list[Verdict] = []
        for row in _concerned(bundles, over, hits, order):
            bundle, space, broker = bundles.names[row], int(bundles.namespace[row]), int(bundles.broker[row])
            if self.max_splits and of_broker[broker] == self.max_splits:
                continue
            why = passed.verdict(row, _BY) if over[row] else None
            verdicts += [why] if why is not None else []
            refusal = self.too_few_topics(bundle, int(bundles.topics[row]), _BY) or _range_too_small(bundle)
            if why is not None and refusal is None:
                hits[bundle] = hits.get(bundle, 0) + 1
                refusal = self._refusal(view, bundle, hits[bundle], count[space])
            elif refusal is None:
                del hits[bundle]
            if why is None:
                continue
            cuts = refusal if refusal is not None else self._cuts(view, row)
            if isinstance(cuts, Verdict):
                verdicts.append(cuts)
                continue
            splits.append(_split(bundle, view.brokers.names[broker], why, cuts))
            count[space] += 1
            of_broker[broker] += 1
            del hits[bundle]
        verdicts += self._brokers_at_their_limit(view, of_broker)
        return SplitDecision(splits=tuple(splits), verdicts=tuple(verdicts)), _remembered(view, memory, hits)

    def _refusal(self, view: ClusterView, bundle: str, hits: int, count: int) -> Verdict | None:
        """Why *bundle*, over a limit for *hits* rounds in a namespace of *count* bundles, is not split now, or None."""
        if hits <= self.hit_count:
            return Verdict(
                subject=bundle, reason=Reason.HIT_COUNT, observed=hits, limit=self.hit_count, unit="rounds", by=_BY
            )
        refusal = self.no_room(bundle, count, _BY)
        if refusal is not None:
            return refusal
        under_way = next((parent for parent in sorted(view.splitting) if self._holds_up(parent, bundle)), None)
        if under_way is None:
            return None
        return Verdict(subject=bundle, reason=Reason.IN_FLIGHT, by=_BY, detail=f"{under_way} is being split")

    def _holds_up(self, parent: str, bundle: str) -> bool:
        """Whether *bundle* has to wait for the split of *parent*."""
        one, other = parse_bundle(bundle), parse_bundle(parent)
        if self.fixed_parents:
            return one.namespace == other.namespace and other.lower <= one.lower and one.upper <= other.upper
        return parent.startswith(one.namespace) and (one.lower == other.lower or one.upper == other.upper)

    def _cuts(self, view: ClusterView, row: int) -> tuple[int, ...] | Verdict:
        """Where the bundle at *row* is cut, () where that is not known yet, or why it is not."""
        if self.algorithm is None:
            return ()
        cuts = cut(view, row, self.algorithm)
        if isinstance(cuts, Verdict) or len(cuts) == 1:
            return cuts
        if self.several_cuts:
            # Pulsar's Split takes two parts and no more.
            return (cuts[len(cuts) // 2],)
        return Verdict(
            subject=view.bundles.names[row],
            reason=Reason.SEVERAL_CUTS,
            observed=len(cuts),
            limit=1,
            unit="cuts",
            by=self.algorithm.name,
            detail="with trimtabSplitStrategySeveralCuts it is split at one after the other",
        )

    def _brokers_at_their_limit(self, view: ClusterView, of_broker: Counter[int]) -> list[Verdict]:
        return [
            Verdict(
                subject=view.brokers.names[broker],
                reason=Reason.NOT_THIS_INTERVAL,
                observed=splits,
                limit=self.max_splits,
                unit="splits",
                by=_MAX_SPLITS,
            )
            for broker, splits in of_broker.items()
            if splits == self.max_splits
        ]


def _still_counted(view: ClusterView, memory: SplitHitCounts) -> dict[str, int]:
    """The hits of bundles that have not gone to another broker; those of a bundle without a broker wait for it."""
    hits = {name: n for name, n in memory.hits.items() if name in view.bundles.code_of}
    owners = {name: _owner(view, name) for name in hits}
    return {name: n for name, n in hits.items() if owners[name] in (None, memory.owners.get(name, owners[name]))}


def _remembered(view: ClusterView, before: SplitHitCounts, hits: Mapping[str, int]) -> SplitHitCounts:
    """*hits*, and at which broker they were counted; those of a broker whose data are missing stay as they were."""
    owners = {name: _owner(view, name) or before.owners.get(name) for name in hits}
    code_of, missing = view.bundles.code_of, frozenset(view.missing)
    away = {name: owner for name, owner in before.owners.items() if owner in missing and name not in code_of}
    return SplitHitCounts(
        hits={**hits, **{name: before.hits[name] for name in away}},
        owners={name: owner for name, owner in {**owners, **away}.items() if owner is not None},
    )


def _owner(view: ClusterView, bundle: str) -> str | None:
    broker = int(view.bundles.broker[view.bundles.code_of[bundle]])
    return None if broker == UNOWNED else view.brokers.names[broker]


def _concerned(bundles: BundleTable, over: Bools, hits: Collection[str], order: Ints) -> list[int]:
    """The rows of *order* that are over a limit or have *hits*, and that a broker owns."""
    concerned = over.copy()
    concerned[[bundles.code_of[name] for name in hits]] = True
    concerned &= bundles.owned
    rows: list[int] = order[concerned[order]].tolist()
    return rows


def _split(bundle: str, broker: str, why: Verdict, cuts: tuple[int, ...]) -> Split:
    """The split of *bundle* at *cuts*, or where the split algorithm will say."""
    name = parse_bundle(bundle)
    boundaries = (name.lower, *cuts, name.upper) if cuts else ()
    return Split(bundle=bundle, broker=broker, why=why, boundaries=boundaries)


def _range_too_small(bundle: str) -> Verdict | None:
    name = parse_bundle(bundle)
    return None if can_split(name.lower, name.upper) else Verdict(subject=bundle, reason=Reason.RANGE_TOO_SMALL, by=_BY)
