"""Drains, removals and restarts where a filter keeps the best of the brokers: what is emptied is none of them."""

from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from controller.model.decision import Reason
from controller.model.errors import TrimtabError
from controller.model.load import ClusterView, Ints
from controller.offline.plans.planner import PlanRequest, planned_cluster
from controller.offline.plans.source import PlanSource
from controller.offline.plans.today import today
from controller.planning.objective import highest, load_after
from controller.planning.plans.plan import DRAIN, EMPTY, REMOVE, RESTART
from controller.simulator.cluster import ClusterShape
from tests.plan_sources import modelled_load, source

BROKERS = 6
EACH = 20


@pytest.fixture(scope="module")
def even(tmp_path_factory: pytest.TempPathFactory) -> PlanSource:
    """Brokers with as many bundles of every namespace, under Pulsar's default filters."""
    shape = ClusterShape(brokers=BROKERS, bundles=BROKERS * EACH, topics=240)
    found = source(modelled_load(tmp_path_factory.mktemp("even"), shape, seed=1))
    table = found.view.bundles
    spread = replace(table, broker=np.arange(len(table)) % BROKERS)
    return replace(found, view=replace(found.view, bundles=spread))


@pytest.mark.parametrize("nth", range(1, 1 + BROKERS))
def test_every_bundle_leaves_a_drained_broker(even: PlanSource, nth: int) -> None:
    found = planned_cluster(even, PlanRequest(kind=DRAIN, brokers=(f"broker-{nth}:8080",)))
    assert found.stays == {}
    assert len(found.plan.moves) == found.fewest_moves == EACH


def test_a_drain_is_possible_as_planned_before_the_broker_is_marked_as_drained(even: PlanSource) -> None:
    plan = planned_cluster(even, PlanRequest(kind=DRAIN, brokers=("broker-1:8080",))).plan
    now = today(plan, 0, even, tolerance=0.25)
    assert now.changed == ()
    assert sum(map(len, now.waves)) == EACH


def test_even_spreading_fills_no_broker_above_the_threshold_of_overload_while_others_are_below_it(
    tmp_path: Path,
) -> None:
    shape = ClusterShape(brokers=BROKERS, bundles=60, topics=600)
    found = planned_cluster(
        source(modelled_load(tmp_path, shape, seed=1)),
        PlanRequest(kind=DRAIN, brokers=("broker-1:8080", "broker-2:8080", "broker-3:8080")),
    )
    after = highest(load_after(found.plan.problem, found.plan.moves), found.plan.problem.capacity)
    assert found.stays == {}
    # The fullest one was the emptiest before: nothing but the number of its bundles would make it fuller than others.
    assert float(after.max()) - float(after[after > 0.5].min()) < 0.05
    assert float(after.max()) < 0.98


def test_a_broker_can_be_removed(even: PlanSource) -> None:
    assert len(planned_cluster(even, PlanRequest(kind=REMOVE, number=1)).plan.moves) == EACH


def test_brokers_that_were_restarted_count_as_empty_in_the_next_step_of_a_rolling_restart(even: PlanSource) -> None:
    found = planned_cluster(even, PlanRequest(kind=RESTART))
    emptied = [step for step in found.plan.steps if step.task == EMPTY]
    assert found.stays == {}
    assert sum(len(step.moves) for step in emptied) == found.fewest_moves == (BROKERS + 1) * EACH
    for before, step in pairwise(emptied[1:]):
        assert {move.destination for move in step.moves} == set(before.brokers)


@dataclass(frozen=True)
class Nowhere:
    """A filter that lets nothing go anywhere."""

    reason: ClassVar[Reason] = Reason.ISOLATION_POLICY
    binding: ClassVar[bool] = True

    def keep(self, _view: ClusterView, _bundle: int, candidates: Ints) -> Ints:
        return candidates[:0]


@pytest.fixture
def isolated(even: PlanSource) -> PlanSource:
    return replace(even, policy=replace(even.policy, filters=(Nowhere(), *even.policy.filters)))


def test_of_what_stays_the_filter_is_named_without_which_it_could_leave(isolated: PlanSource) -> None:
    found = planned_cluster(isolated, PlanRequest(kind=DRAIN, brokers=("broker-1:8080",)))
    assert len(found.stays) == EACH
    assert set(found.stays.values()) == {"filters allow no other: without IsolationPolicy there is one"}


def test_a_removal_that_filters_forbid_is_not_said_to_lack_room(isolated: PlanSource) -> None:
    with pytest.raises(TrimtabError) as refused:
        planned_cluster(isolated, PlanRequest(kind=REMOVE, number=1))
    assert str(refused.value) == (
        "no way was found to remove 1 broker: 0 can go; of the next one filters let 20 bundles go nowhere"
    )


def test_a_removal_without_room_says_so(even: PlanSource) -> None:
    with pytest.raises(TrimtabError, match=r"of the next one [0-9]+ bundles? fit nowhere below 55% of the capacity$"):
        planned_cluster(even, PlanRequest(kind=REMOVE, number=1, ceiling=0.55))
