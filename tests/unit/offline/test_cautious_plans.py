"""Plans that need room for bundles, of a cluster that is so even that its usage does not tell what bundles take."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from controller.model.load import BANDWIDTH_OUT, CPU, DIRECT_MEMORY
from controller.offline.plans.planner import PlannedCluster, PlanRequest, planned_cluster
from controller.offline.plans.rightsizing import rightsizing
from controller.offline.plans.source import PlanSource
from controller.offline.plans.today import today
from controller.planning.plans.plan import BALANCE, DRAIN
from controller.planning.problem import PlannedMove
from controller.simulator.cluster import ClusterShape
from controller.wire.plan import encode_plan, parse_plan
from tests.plan_sources import modelled_load, source

BROKERS = 3
BROKER = "broker-1:8080"
UNSURE = (
    "trimtab cannot tell how much {} leaves with a bundle, so it assumes all of it; if brokers share their machines,"
    " add --own {}: then bundles are spread by message rate"
)


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return modelled_load(tmp_path_factory.mktemp("even"), ClusterShape(brokers=BROKERS, bundles=48, topics=96))


def even(load: Path, resource: int, percent: float, brokers: int = BROKERS, **options: object) -> PlanSource:
    """Nearly equal bundles, as many on each broker, all with the same usage of *resource*, the only one that counts."""
    found = source(load, **options)
    bundles, table = found.view.bundles, found.view.brokers
    broker = np.arange(len(bundles)) % brokers
    # A per cent apart, which the usage does not follow.
    equal = np.outer(np.array([1.01, 1.0, 0.99])[broker % 3], bundles.short_term.mean(axis=0))
    usage = np.zeros_like(table.usage)
    usage[:, resource] = table.limit[:, resource] * percent / 100
    bundles = replace(bundles, broker=broker, short_term=equal, load=equal)
    return replace(found, view=replace(found.view, bundles=bundles, brokers=replace(table, usage=usage)))


def drained(source: PlanSource, *own: str) -> PlannedCluster:
    return planned_cluster(source, PlanRequest(kind=DRAIN, brokers=(BROKER,), own=own))


@pytest.mark.parametrize(("resource", "name"), [(CPU, "cpu"), (BANDWIDTH_OUT, "bandwidth out")])
def test_the_usage_of_a_drained_broker_goes_to_the_others(load: Path, resource: int, name: str) -> None:
    found = drained(even(load, resource, 60.0))
    assert UNSURE.format(name, name.replace(" ", "-")) in found.notes
    assert found.plan.steps[0].certificate.reached == pytest.approx(0.9, rel=0.02)


def test_a_drain_for_which_there_is_no_room_leaves_bundles_where_they_are(load: Path) -> None:
    found = drained(even(load, CPU, 80.0))
    assert found.stays
    assert found.plan.steps[0].certificate.reached <= 1.0


def test_usage_that_is_said_to_be_the_brokers_own_stays_with_them_also_in_the_file_of_the_plan(load: Path) -> None:
    source = even(load, CPU, 80.0)
    found = drained(source, "cpu")
    assert (found.stays, found.notes) == ({}, ())
    read, _ = parse_plan(encode_plan(found.plan))
    assert read.own == ("cpu",)
    assert today(read, 0, source, tolerance=0.1).changed == ()


def test_direct_memory_that_all_brokers_use_alike_stays_with_them(load: Path) -> None:
    found = drained(even(load, DIRECT_MEMORY, 80.0, loadBalancerDirectMemoryResourceWeight=1))
    assert (found.stays, found.notes) == ({}, ())


def test_the_brokers_that_a_headroom_needs_carry_the_usage_of_all(load: Path) -> None:
    assert rightsizing(even(load, CPU, 60.0), headroom=0.3, added=0).needed == BROKERS


def test_a_balance_counts_as_the_controllers_do(load: Path) -> None:
    careful = even(load, CPU, 60.0).problem(BALANCE, ())
    assert careful.assumed == ()
    assert not careful.problem.size.any()


def test_a_drain_is_compared_with_today_by_the_measure_of_the_plan(load: Path) -> None:
    now = today(drained(even(load, CPU, 60.0)).plan, 0, even(load, CPU, 60.0), tolerance=0.1)
    assert now.changed == ()


def uneven(source: PlanSource, moved: Sequence[PlannedMove]) -> PlanSource:
    """The cluster after *moved*: a third of the CPU is the brokers' own, the rest follows the load."""
    bundles, brokers = source.view.bundles, source.view.brokers
    owner = bundles.broker.copy()
    for move in moved:
        owner[move.bundle] = move.destination
    load = np.bincount(owner, weights=bundles.short_term[:, 0], minlength=len(brokers))
    usage = brokers.usage.copy()
    usage[:, CPU] = brokers.limit[:, CPU] * (0.2 + 0.4 * load / load.mean())
    usage[:, CPU] *= (1.003, 1.0, 0.998, 0.997, 1.004, 1.0)  # noise
    changed = replace(bundles, broker=owner), replace(brokers, usage=usage)
    return replace(source, view=replace(source.view, bundles=changed[0], brokers=changed[1]))


@pytest.mark.slow
def test_a_drain_does_not_take_what_it_has_done_for_a_change_of_the_load(tmp_path: Path) -> None:
    """The first waves make the brokers uneven, and that proves that a part of the CPU is their own."""
    source = even(modelled_load(tmp_path, ClusterShape(brokers=6, bundles=96, topics=192)), CPU, 60.0, brokers=6)
    found = planned_cluster(uneven(source, ()), PlanRequest(kind=DRAIN, brokers=(BROKER,), wave_moves=4))
    plan, _ = parse_plan(encode_plan(found.plan))
    assert UNSURE.format("cpu", "cpu") in found.notes
    step = plan.steps[0]
    for wave in range(len(step.waves)):
        done = [move for each in step.waves[:wave] for move in each]
        assert today(plan, 0, uneven(source, done), tolerance=0.05).changed == ()
    after = uneven(source, [move for wave in step.waves[:-1] for move in wave])
    assert today(replace(plan, fits=()), 0, after, tolerance=0.05).changed, "estimated anew, bundles are lighter"
