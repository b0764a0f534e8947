"""Brokers that report all of their limit: what they are asked for beyond it is estimated from the others."""

import pytest

from controller.model.load import ClusterView
from controller.planning.from_view import Counted, MappedProblem, map_problem
from controller.planning.objective import highest, loads
from controller.strategies.view_builder import Broker, Bundle, cluster_view


def cluster(*brokers: float) -> ClusterView:
    """Each broker has a bundle of so many MB/s, each of which takes 1 % of the CPU; brokers report at most 100 %."""
    made = [
        Broker(f"b{number}:8080", cpu=min(1.0, load / 100), bundles={f"x{number}": Bundle(mbytes_in=load)})
        for number, load in enumerate(brokers)
    ]
    return cluster_view(*made)


def of(view: ClusterView) -> MappedProblem:
    return map_problem(view, view.recently_unloaded, Counted(weights={"cpu": 1.0}))


def test_a_full_broker_counts_for_what_its_load_would_take() -> None:
    found = of(cluster(300.0, 20.0, 30.0, 40.0))
    problem = found.problem
    assert highest(loads(problem, problem.owner), problem.capacity) == pytest.approx([3.0, 0.2, 0.3, 0.4])
    assert problem.size[0, 0] == pytest.approx(300.0)
    assert found.fits["cpu"].error == pytest.approx(0.0, abs=1e-4)


def test_where_most_brokers_are_full_their_reports_are_all_there_is() -> None:
    problem = of(cluster(300.0, 200.0, 150.0, 40.0)).problem
    assert (loads(problem, problem.owner) / problem.capacity).max() == pytest.approx(1.0, rel=0.5)


def test_brokers_below_their_limits_are_taken_at_their_word() -> None:
    problem = of(cluster(90.0, 20.0, 30.0)).problem
    assert highest(loads(problem, problem.owner), problem.capacity) == pytest.approx([0.9, 0.2, 0.3])
