import numpy as np
import pytest

from controller.strategies.common.top_bundles import TopBundles
from controller.strategies.filters.shedding_excluded_namespaces import SheddingExcludedNamespaces
from controller.strategies.shedding.peak_shedder import PeakShedder
from controller.strategies.shedding.peak_shedder.memory import PeakHistory
from controller.strategies.view_builder import Broker, Bundle, cluster_view
from tests.cluster import broker, view
from tests.filters import accepted_brokers

FREE, OTHER, EXCLUDED = "acme/a/0", "acme/bb/0", "acme/b/0"
CLUSTER = view(broker("x", **{FREE: 1.0, OTHER: 1.0, EXCLUDED: 1.0}), broker("y"))
BY = SheddingExcludedNamespaces(names=frozenset({"acme/b", "acme/away"}))


def test_bundles_of_a_namespace_that_is_named_stay_and_no_others() -> None:
    everyone = np.arange(2, dtype=np.int64)
    leaving = [name for name, row in CLUSTER.bundles.code_of.items() if BY.may_leave(CLUSTER, row, everyone)]
    assert leaving == [FREE, OTHER]


def test_it_does_not_say_where_to() -> None:
    assert accepted_brokers(BY, CLUSTER, EXCLUDED) == ["x", "y"]


def test_such_bundles_are_not_reported_to_the_extensible_load_manager() -> None:
    reports = TopBundles(excluded_namespaces=BY.names)
    assert reports.reportable(CLUSTER.bundles).tolist() == [name != EXCLUDED for name in CLUSTER.bundles.names]


@pytest.mark.parametrize("filters", [(), (BY,)])
def test_peak_shedder_moves_others_in_their_place(filters: tuple[SheddingExcludedNamespaces, ...]) -> None:
    better, first, second = (f"acme/{name}/0x00000000_0xffffffff" for name in "bac")
    bundles = {better: Bundle(mbytes_in=30), first: Bundle(mbytes_in=20), second: Bundle(mbytes_in=10)}
    view = cluster_view(Broker("b0:8080", cpu=0.6, bundles=bundles), Broker("b1:8080", cpu=0.0))
    decision, _ = PeakShedder(filters=filters, hold=1).decide(view, PeakHistory())
    assert {one.bundle for one in decision.unloads} == ({first, second} if filters else {better})
