"""Brokers that report in percent beside others that report in cores and kbit/s, as with ExtensibleLoadManagerImpl."""

from dataclasses import replace

import numpy as np
import pytest

from controller.model.load import ClusterView, Floats
from controller.planning.from_view import Counted, MappedProblem, map_problem
from controller.planning.objective import highest, loads
from controller.planning.units import of_one_unit
from controller.strategies.view_builder import Broker, Bundle, cluster_view

LIMIT = np.array([1600.0, 4096.0, 8192.0, 1e7, 1e7])
LOADS = (100.0, 80.0, 60.0, 40.0)


def cluster(in_percent: list[int]) -> ClusterView:
    """CPU follows the load; each broker of 16 cores has bundles of so many MB/s, a quarter each."""
    made = [
        Broker(f"b{n}:8080", bundles={f"x{n}{k}": Bundle(mbytes_in=load / 4) for k in range(4)})
        for n, load in enumerate(LOADS)
    ]
    view = cluster_view(*made)
    share = np.outer(np.array(LOADS) / 125, np.ones(5))
    usage, limit = share * LIMIT, np.tile(LIMIT, (len(LOADS), 1))
    usage[in_percent], limit[in_percent] = share[in_percent] * 100, 100.0
    return replace(view, brokers=replace(view.brokers, usage=usage, limit=limit))


def of(view: ClusterView) -> MappedProblem:
    weights = {"cpu": 1.0, "bandwidth in": 1.0}
    return map_problem(view, view.recently_unloaded, Counted(weights=weights, msg_rate=1000.0))


@pytest.mark.parametrize("in_percent", [[0], [3], [1, 2], [0, 1, 2]])
def test_a_broker_in_percent_is_as_large_as_its_smallest_neighbour(in_percent: list[int]) -> None:
    mixed, plain = of(cluster(in_percent)).problem, of(cluster([])).problem
    for name in ("capacity", "fixed", "size"):
        assert getattr(mixed, name) == pytest.approx(getattr(plain, name), abs=1e-3)
    assert highest(loads(mixed, mixed.owner), mixed.capacity) == pytest.approx(np.array(LOADS) / 125, rel=1e-3)


def test_a_limit_of_1_is_known_and_one_of_0_is_not() -> None:
    limit = np.array([[100.0] * 5, [1.0, 4096.0, 8192.0, 0.0, 0.5], [2.0, 4096.0, 8192.0, -1.0, 1.0]])
    assert of_one_unit(np.ones((3, 5)), limit)[1][0].tolist() == [1.0, 4096.0, 8192.0, 0.0, 0.5]


def test_a_broker_reports_in_amounts_where_one_of_its_limits_besides_cpu_is_above_1000() -> None:
    def of_percent(cpu: float, memory: float) -> list[float]:
        limit = np.array([[100.0] * 5, [cpu, memory, memory, memory, memory]])
        return [float(each) for each in of_one_unit(np.full((2, 5), 50.0), limit)[1][0]]

    assert of_percent(5000.0, 1000.0) == [100.0] * 5
    assert of_percent(50.0, 1001.0) == [50.0, *[1001.0] * 4]


def test_where_all_report_in_percent_or_none_does_nothing_changes() -> None:
    for each in ([], [0, 1, 2, 3]):
        brokers = cluster(each).brokers
        same: tuple[Floats, Floats] = of_one_unit(brokers.usage, brokers.limit)
        assert (same[0] is brokers.usage, same[1] is brokers.limit) == (True, True)


def test_a_limit_of_100_in_one_resource_alone_is_a_limit() -> None:
    brokers = cluster([]).brokers
    limit = brokers.limit.copy()
    limit[0, 0] = 100.0  # a single core
    assert of_one_unit(brokers.usage, limit)[1] is limit


def test_a_resource_of_which_nobody_else_knows_a_limit_does_not_count() -> None:
    view = cluster([0])
    limit = view.brokers.limit.copy()
    limit[1:, 3] = (np.nan, -1000.0, np.inf)
    view = replace(view, brokers=replace(view.brokers, limit=limit))
    assert of(view).problem.resources == ("cpu", "message rate")
    usage, found = of_one_unit(view.brokers.usage, limit)
    assert (found[0, 3], usage[0, 3]) == (0.0, 0.0)
    assert found[0, 0] == 1600.0
