import numpy as np

from controller.model.load import ClusterView
from controller.model.names import namespace_of
from controller.model.policies import Policies
from controller.strategies.filters.anti_affinity import AntiAffinity, owned_counts, should_unload
from controller.strategies.filters.fewest_bundles import FewestBundles
from controller.strategies.protocols import Filter
from tests.cluster import broker_table, bundle_table, cluster_view
from tests.conformance.vectors import Case, configured

COMPONENT = "anti_affinity_filter"
#: The last part of the name of the bundle that is asked about.
ASKED = "asked"


def view_of(given: Case) -> ClusterView:
    """The cluster, and the bundle that is asked about, which nobody owns, as row ``asked``.

    Brokers claim what they own without regard for each other, so a bundle is named after its claim.
    """
    names = sorted({*given["owned_bundles"], *given["candidates"]})
    owner = {f"{namespace_of(given['bundle'])}/{ASKED}": -1}
    for row, name in enumerate(names):
        for bundle in given["owned_bundles"].get(name, ()):
            owner[f"{namespace_of(bundle)}/{len(owner)}"] = row
    brokers = broker_table(names, usage=np.zeros((len(names), 5)), limit=np.zeros((len(names), 5)))
    bundles = bundle_table(sorted(owner), np.array([owner[name] for name in sorted(owner)], np.int64))
    groups = {name: group for name, group in given["namespace_groups"].items() if group is not None}
    policies = Policies(anti_affinity_group=groups, failure_domain=given["broker_domains"])
    return cluster_view(brokers, bundles, policies=policies)


def test_the_same_brokers_are_left_and_the_same_may_unload(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    view = view_of(given)
    names, row_of = view.brokers.names, view.brokers.code_of
    bundle = view.bundles.code_of[f"{namespace_of(given['bundle'])}/{ASKED}"]
    candidates = np.array(sorted(row_of[name] for name in given["candidates"]), np.int64)

    counts = owned_counts(view, bundle)
    owned = None if counts is None else {name: n for name, n in zip(names, counts.tolist(), strict=True) if n}
    assert owned == expected["owned_counts"]

    def left(by: Filter) -> list[str]:
        return [names[row] for row in by.keep(view, bundle, candidates).tolist()]

    assert left(configured(AntiAffinity, case["config"])) == sorted(expected["candidates_after_anti_affinity"])
    assert left(FewestBundles()) == sorted(expected["candidates_after_remove_most_servicing"])
    assert {
        name: counts is None or should_unload(counts, candidates, row_of[name])
        for name in expected["should_unload_by_current_broker"]
    } == expected["should_unload_by_current_broker"]
