"""Every assignment of a sequence, each counted before the next: who is acceptable, and who the candidates were."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from controller.model.load import DEFAULT_LOAD, ClusterView, Ints
from controller.model.policies import Policies
from controller.model.strategy_memory import NoMemory
from controller.model.topic_kinds import NON_PERSISTENT, PERSISTENT
from controller.strategies.catalogue import FILTERS
from controller.strategies.filters.modular_select_broker import ModularSelectBroker
from controller.strategies.placement.least_long_term_message_rate import LeastLongTermMessageRate
from controller.strategies.protocols import Filter
from tests.cluster import broker_table, bundle_table, cluster_view
from tests.conformance.vectors import Case, configured, isolation_policies, resources, rows_of_4

COMPONENT = "modular_select_broker"


class Remembering:
    """The placement under test, and the last candidates it was given."""

    def __init__(self, placement: LeastLongTermMessageRate) -> None:
        self._placement = placement
        self.given: Ints | None = None

    def initial_memory(self) -> NoMemory:
        return self._placement.initial_memory()

    def acceptable(self, view: ClusterView, bundle: int, candidates: Ints, memory: NoMemory) -> tuple[Ints, NoMemory]:
        self.given = candidates
        return self._placement.acceptable(view, bundle, candidates, memory)


def options_of(cls: type[Any], case: Case) -> Any:
    return configured(cls, case["config"], unused=case["config"], pulsar=case["pulsar"])


def view_of(given: Case) -> ClusterView:
    brokers = sorted(given["brokers"], key=lambda broker: str(broker["name"]))
    names = [broker["name"] for broker in brokers]
    usage, limit = resources(brokers)
    table = replace(
        broker_table(
            names,
            usage=usage,
            limit=limit,
            long_term=rows_of_4([[*broker["long_term_rate"], 0, 0] for broker in brokers]),
        ),
        topic_count=np.array([broker["num_topics"] for broker in brokers], np.int64),
    )
    owner = {bundle: row for row, broker in enumerate(brokers) for bundle in broker["bundles"]}
    known = given["bundle_data"]
    rows = sorted({*owner, *known, *(one["bundle"] for one in given["assignments"])})
    bundles = bundle_table(
        rows,
        np.array([owner.get(name, -1) for name in rows], np.int64),
        long_term=rows_of_4([known[name]["lt"] if name in known else DEFAULT_LOAD.tolist() for name in rows]),
        topics=np.array([known[name]["topics"] if name in known else 0 for name in rows], np.int64),
    )
    policies = Policies(
        isolation=isolation_policies(given["policies"]),
        anti_affinity_group=given["namespace_groups"],
        failure_domain=given["broker_domains"],
        without_persistent=frozenset(broker["name"] for broker in brokers if not broker["persistent"]),
        without_non_persistent=frozenset(broker["name"] for broker in brokers if not broker["non_persistent"]),
    )
    return cluster_view(table, bundles, policies=policies)


def asked_for(view: ClusterView, bundle: int, *, non_persistent: bool) -> ClusterView:
    """*view* in which *bundle* holds the kind of topic that is looked up; under a policy Pulsar asks for no kind."""
    kinds = view.bundles.kinds.copy()
    policy = view.policies.isolation_of(view.bundles.namespaces[view.bundles.namespace[bundle]])
    kinds[bundle] = 0 if policy else NON_PERSISTENT if non_persistent else PERSISTENT
    return replace(view, bundles=replace(view.bundles, kinds=kinds))


def assigned(
    select: ModularSelectBroker, view: ClusterView, bundle: int, filters: Sequence[Filter], placement: Remembering
) -> Ints:
    """A bundle on its way keeps its destination.  Pulsar: ModularLoadManagerImpl.selectBrokerForAssignment."""
    sent: Ints = view.preallocated.broker[view.preallocated.bundle == bundle]
    if len(sent):
        return sent[-1:]
    candidates = select.candidates(view, bundle, filters)
    found, _ = select.acceptable(view, bundle, candidates, placement, placement.initial_memory())
    return found


def test_the_same_brokers_are_acceptable_for_one_bundle_after_the_other(case: Case) -> None:
    given = case["input"]
    select, filters = options_of(ModularSelectBroker, case), [options_of(cls, case) for cls in FILTERS.values()]
    view = view_of(given)
    for asked, expected in zip(given["assignments"], case["expected"]["assignments"], strict=True):
        placement = Remembering(options_of(LeastLongTermMessageRate, case))
        bundle = view.bundles.code_of[asked["bundle"]]
        view = asked_for(view, bundle, non_persistent=asked["has_non_persistent_topic"])
        already = bool((view.preallocated.bundle == bundle).any())
        found = assigned(select, view, bundle, filters, placement)

        assert already == expected["already_preallocated"]
        names = view.brokers.names
        assert [names[row] for row in found.tolist()] == sorted(expected["acceptable_brokers"])
        candidates = None if placement.given is None else [names[row] for row in placement.given.tolist()]
        final = expected["final_candidates"]
        assert candidates == (None if final is None else sorted(final))
        if not already and asked["chosen"] is not None:
            view = view.with_preallocated(bundle, view.brokers.code_of[asked["chosen"]])
