"""An unload to a destination, beside lookups of clients: the modular load manager forgets it at the first one."""

from collections.abc import Callable, Iterator

import pytest

from controller.adapters.pulsar.admin import PulsarAdmin
from controller.executor.attempt import Outcome, PulsarTarget, carry_out
from tests.commands import unload
from tests.modular_brokers import CLUSTER, ModularPulsar, modular_brokers


@pytest.fixture
def cluster() -> Iterator[ModularPulsar]:
    with modular_brokers() as made:
        yield made


def obey(cluster: ModularPulsar, destination: str, sleep: Callable[[float], None] = lambda _: None) -> Outcome:
    admin = PulsarAdmin([f"http://{broker}" for broker in cluster.brokers], cluster=CLUSTER, sleep=sleep)
    try:
        command = unload(source=cluster.owner, destination=destination)
        return carry_out(command, PulsarTarget(admin).within(20), may_act=lambda: None, sleep=lambda _: None)
    finally:
        admin.close()


def test_a_bundle_comes_to_its_destination_though_a_client_was_first_and_made_the_leader_forget_it(
    cluster: ModularPulsar,
) -> None:
    destination = cluster.brokers[2]
    cluster.unloaded = lambda: cluster.lookup(cluster.leader, authoritative=False)
    outcome = obey(cluster, destination)
    assert (outcome.answer.status, outcome.owner_after, outcome.attempts) == ("done", destination, 1)


def test_whom_the_leader_chooses_after_that_is_not_asked_to_take_it(cluster: ModularPulsar) -> None:
    _, source, destination = cluster.brokers
    cluster.unloaded = lambda: cluster.lookup(cluster.leader, authoritative=False)
    obey(cluster, destination)
    assert (source, True) not in cluster.asked


@pytest.mark.parametrize("at", [0, 2])
def test_no_destination_stays_with_the_leader_also_where_that_is_itself_the_destination(
    cluster: ModularPulsar, at: int
) -> None:
    # So long as nobody has the bundle for the leader, it forgets; here it is asked in time.
    cluster.stale = 1
    destination = cluster.brokers[at]
    assert obey(cluster, destination).answer.status == "done"
    assert (cluster.owner, cluster.wanted) == (destination, {})


def test_a_destination_that_still_names_the_old_owner_is_asked_again(cluster: ModularPulsar) -> None:
    destination = cluster.brokers[2]
    cluster.unloaded = lambda: cluster.lookup(cluster.leader, authoritative=False)
    cluster.stale = 3
    pauses = list[float]()
    assert obey(cluster, destination, pauses.append).answer.status == "done"
    assert pauses == [0.005, 0.01, 0.02]
    # The leader only once, besides the client and the look behind it: by now it would take the bundle itself.
    assert cluster.asked.count((cluster.leader, False)) == 3


def test_a_leader_that_has_forgotten_that_it_was_the_destination_itself_takes_the_bundle(
    cluster: ModularPulsar,
) -> None:
    def forget() -> None:
        cluster.wanted.clear()

    cluster.unloaded = forget
    outcome = obey(cluster, cluster.leader)
    assert (outcome.answer.status, outcome.owner_after) == ("done", cluster.leader)


def test_a_bundle_that_came_back_at_once_is_asked_for_a_few_times_and_not_unloaded_again(
    cluster: ModularPulsar,
) -> None:
    leader, source, destination = cluster.brokers

    def back() -> None:
        cluster.lookup(leader, authoritative=False)
        cluster.lookup(source, authoritative=True)

    cluster.unloaded = back
    outcome = obey(cluster, destination)
    assert (outcome.answer.status, outcome.answer.detail) == ("failed", f"it came back to {source}")
    assert outcome.attempts == 1
    assert cluster.asked.count((destination, True)) == 4


def test_without_a_leader_that_is_known_the_bundle_is_unloaded_and_looked_up(cluster: ModularPulsar) -> None:
    leader, destination = cluster.leader, cluster.brokers[2]
    cluster.leader = ""

    def elected() -> None:
        cluster.leader = leader

    cluster.unloaded = elected
    assert obey(cluster, destination).answer.status == "done"
    assert (leader, False) in cluster.asked


def test_a_leader_that_is_no_active_broker_is_not_asked(cluster: ModularPulsar) -> None:
    destination, strange = cluster.brokers[2], cluster.brokers.pop(0)
    outcome = obey(cluster, destination)
    assert (outcome.answer.status, outcome.owner_after) == ("done", destination)
    assert strange not in dict(cluster.asked)
