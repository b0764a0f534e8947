"""Laws of split policies, which choose bundles to split, and of split algorithms, which say where to cut."""

from dataclasses import replace
from typing import Any, Final

import numpy as np
from hypothesis import strategies as st

from controller.cycle.checked import CheckedAlgorithm, splits_by
from controller.laws.clusters import NAMESPACE, bundle_name, clusters
from controller.laws.descriptions import describe_cluster, describe_load
from controller.laws.law import Law
from controller.laws.memory import MEMORY_LAW, memory_flaw
from controller.laws.shedding import ROUNDS
from controller.laws.verdicts import on_wrong_side
from controller.model.decision import SplitDecision, Verdict
from controller.model.load import ClusterView, TopicDetail
from controller.model.names import FULL_UPPER, can_split, parse_bundle
from controller.strategies.common.cutting import cut
from controller.strategies.view_builder import Broker, Bundle, cluster_view

#: Pulsar's default of loadBalancerNamespaceMaximumBundles.
_MAX_BUNDLES: Final = 128


def first_splits(policy: Any, view: ClusterView) -> SplitDecision:
    """The first decision with splits, or the last one: some policies wait until they have seen the same for rounds."""
    memory = policy.initial_memory()
    for _ in range(ROUNDS):
        decision, memory = splits_by(policy, view, memory)
        if decision.splits:
            break
    return decision


def _wrong_split(policy: Any, view: ClusterView) -> str | None:
    decision = first_splits(policy, view)
    for split in decision.splits:
        if split.why not in decision.verdicts:
            return f"the verdict that {split.bundle} is split for is not among its verdicts"
    return None if decision == first_splits(policy, view) else "asked twice, it gives two answers"


def _too_many_splits(policy: Any, view: ClusterView) -> str | None:
    splits = len(first_splits(policy, view).splits)
    for count in view.namespace_bundle_count.tolist():
        if count < 0 and splits:
            return "it splits bundles of a namespace without knowing how many bundles that has"
        if count >= 0 and splits > max(0, _MAX_BUNDLES - count):
            return f"it splits {splits} bundles of a namespace that has {count}; {_MAX_BUNDLES} are allowed"
    return None


def _splits_nothing(policy: Any, view: ClusterView) -> str | None:
    return None if first_splits(policy, view).splits else f"it splits nothing in {ROUNDS} intervals"


def _wrong_numbers(policy: Any, view: ClusterView) -> str | None:
    memory = policy.initial_memory()
    for _ in range(ROUNDS):
        decision, memory = splits_by(policy, view, memory)
        wrong = on_wrong_side(decision.verdicts)
        if wrong is not None:
            return f"it says {wrong}"
    return None


def _wrong_memory(policy: Any, view: ClusterView) -> str | None:
    return memory_flaw(policy, view, splits_by)


def _many_topics() -> ClusterView:
    return cluster_view(Broker("b", cpu=0.5, bundles={bundle_name(0, 0): Bundle(topics=5000)}))


#: Of every split policy with its default options.
SPLIT_POLICY_LAWS: Final = (
    Law(
        sentence="It splits bundles of the brokers that own them, each once, for a reason that is among its verdicts.",
        examples=clusters(),
        flaw=_wrong_split,
        describe=describe_cluster,
    ),
    Law(
        sentence="It splits no more bundles of a namespace than that has room for.",
        examples=clusters(),
        flaw=_too_many_splits,
        describe=describe_cluster,
    ),
    Law(
        sentence="The numbers of a verdict are those that decided.",
        examples=clusters(),
        flaw=_wrong_numbers,
        describe=describe_cluster,
    ),
    Law(
        sentence=f"It splits a bundle of 5000 topics within {ROUNDS} intervals.",
        examples=st.builds(_many_topics),
        flaw=_splits_nothing,
        describe=describe_cluster,
    ),
    Law(sentence=MEMORY_LAW, examples=clusters(), flaw=_wrong_memory, describe=describe_cluster),
)


@st.composite
def bundles_with_topics(draw: st.DrawFn) -> ClusterView:
    """One bundle of any range, and topics inside of it, or none that are known."""
    lower, upper = sorted(draw(st.sets(st.integers(0, FULL_UPPER), min_size=2, max_size=2)))
    places = draw(st.lists(st.integers(lower, upper - 1), max_size=8))
    loads = draw(st.lists(st.lists(st.floats(0, 1e8), min_size=4, max_size=4), min_size=8, max_size=8))
    name = f"{NAMESPACE}/0x{lower:08x}_0x{upper:08x}"
    view = cluster_view(Broker("b", cpu=0.5, bundles={name: Bundle(topics=max(2, len(places)))}))
    detail = TopicDetail(
        starts=np.array([0, len(places)], np.int64),
        position=np.array(places, np.int64),
        load=np.array(loads)[: len(places)],
    )
    return replace(view, bundles=replace(view.bundles, detail=detail))


def _wrong_cut(algorithm: Any, view: ClusterView) -> str | None:
    bundle, algorithm = parse_bundle(view.bundles.names[0]), CheckedAlgorithm(algorithm)
    flaw = cut(view, 0, algorithm)
    if flaw != cut(view, 0, algorithm):
        return "asked twice, it gives two answers"
    if isinstance(flaw, Verdict):
        if algorithm.needs_topic_detail or not can_split(bundle.lower, bundle.upper):
            return None
        return f"it needs no topic detail, and cuts nothing: {flaw}"
    inside = bundle.lower < flaw[0] <= flaw[-1] < bundle.upper
    return None if inside and list(flaw) == sorted(set(flaw)) else f"its cuts {flaw} do not ascend inside the bundle"


def _describe_topics(view: ClusterView) -> list[str]:
    detail = view.bundles.detail
    topics = zip(detail.position.tolist(), detail.load, strict=True)
    return [
        f"bundle {view.bundles.names[0]}",
        *(f"  topic at 0x{position:08x}: {describe_load(load)}" for position, load in topics),
    ]


#: Of every split algorithm with its default options.
SPLIT_ALGORITHM_LAWS: Final = (
    Law(
        sentence="It cuts a bundle at ascending positions inside of it, always the same, or says why it does not.",
        examples=bundles_with_topics(),
        flaw=_wrong_cut,
        describe=_describe_topics,
    ),
)
