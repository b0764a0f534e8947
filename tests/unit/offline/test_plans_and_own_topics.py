"""Drains of brokers that hold trimtab's own topics, and bundles of namespaces of which nothing is known."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from controller.cycle.limits import Limits
from controller.model.memory import InFlight
from controller.offline.plans.planner import PlanRequest, planned_cluster
from controller.offline.plans.source import PlanSource
from controller.offline.plans.today import today
from controller.planning.plans.plan import DRAIN
from controller.simulator.cluster import ClusterShape
from tests.plan_sources import modelled_load, source

BROKER = "broker-1:8080"


def cluster(folder: Path) -> PlanSource:
    return source(modelled_load(folder, ClusterShape(brokers=3, bundles=24, topics=240), seed=1))


def on_the_broker(found: PlanSource) -> list[str]:
    table = found.view.bundles
    return [table.names[row] for row in table.of_broker(found.view.brokers.code_of[BROKER]).tolist()]


def owning(found: PlanSource, namespace: str) -> PlanSource:
    """*found*, whose *namespace* holds trimtab's own topics."""
    return replace(found, policy=replace(found.policy, own_namespaces=frozenset({namespace})))


def test_bundles_of_trimtabs_own_topics_are_no_failure_of_a_drain_and_the_command_for_them_is_given(
    tmp_path: Path,
) -> None:
    found = cluster(tmp_path)
    bundles = on_the_broker(found)
    namespace = bundles[0].rpartition("/")[0]
    own = sorted(name for name in bundles if name.startswith(f"{namespace}/"))
    planned = planned_cluster(owning(found, namespace), PlanRequest(kind=DRAIN, brokers=(BROKER,)))
    assert planned.stays == {}
    assert sorted(planned.by_hand) == own
    moved = {planned.plan.bundles[move.bundle] for move in planned.plan.moves}
    assert moved == {*bundles} - {*own}
    bounds = own[0].rpartition("/")[2]
    command = f"pulsar-admin namespaces unload {namespace} --bundle {bounds} --destinationBroker broker-"
    assert planned.by_hand[own[0]].startswith(command)
    assert BROKER not in planned.by_hand[own[0]]
    now = today(planned.plan, 0, owning(found, namespace), tolerance=0.25)
    assert now.changed == ()
    assert any(own[0] in note and "pulsar-admin" in note for note in now.notes)


def test_the_reason_of_trimtabs_own_topics_is_not_the_setting_of_excluded_names(tmp_path: Path) -> None:
    found = cluster(tmp_path)
    bundle = on_the_broker(found)[0]
    own = owning(found, bundle.rpartition("/")[0])
    assert own.why_guarded(own.view.bundles.code_of[bundle]) == "Excluded (log.pulsar.namespace)"


def test_a_bundle_that_waits_for_a_result_says_so_in_words(tmp_path: Path) -> None:
    found = cluster(tmp_path)
    bundle = on_the_broker(found)[0]
    waiting = InFlight(action="unload", bundle=bundle, source=BROKER, destination="", interval=0, expires_at_ms=1)
    busy = replace(found, memory=replace(found.memory, in_flight={"c-1": waiting}))
    why = busy.why_guarded(busy.view.bundles.code_of[bundle])
    assert why == "InFlight: a command has no result yet: see `trimtab status` if it does not come"


def test_namespaces_of_which_nothing_is_known_are_named(tmp_path: Path) -> None:
    found = cluster(tmp_path)
    bundle = on_the_broker(found)[0]
    namespace = bundle.rpartition("/")[0]
    counts = found.view.namespace_bundle_count.copy()
    counts[found.view.bundles.namespaces.index(namespace)] = -1
    unknown = replace(
        found,
        view=replace(found.view, namespace_bundle_count=counts),
        policy=replace(found.policy, limits=Limits(move_undescribed=False)),
    )
    number = int(np.isin(found.view.bundles.namespace, found.view.bundles.namespaces.index(namespace)).sum())
    notes = planned_cluster(unknown, PlanRequest()).notes
    [note] = [each for each in notes if namespace in each]
    assert note.startswith(f"{number} bundle")
    assert f"the policies of namespace {namespace} are not known yet" in note
