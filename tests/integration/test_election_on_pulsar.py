"""The election in a topic of a real Pulsar."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from controller.lab.pulsar_server import PulsarCluster
from controller.log.election.system import LogElection
from controller.log.port import Log
from controller.log.pulsar.log import PulsarLog
from controller.settings.pulsar_log import PulsarLogSettings
from tests.contracts.election_on_log import (
    ControlsOnLog,
    GroupOnLog,
    LeadershipOnLog,
    NotificationsOnLog,
    OpenElection,
    ProposalsOnLog,
    RegistryOnLog,
    opened,
)
from tests.integration.election_on_log import (
    SESSION_SECONDS,
    a_killed_and_a_hung_leader_are_replaced,
    calls_of_many_can_be_put_in_order,
    snapshots_bound_the_topic,
)
from tests.integration.pulsar_log import own_topics

__all__ = ["opened"]

pytestmark = pytest.mark.integration


@pytest.fixture
def settings(pulsar: PulsarCluster) -> PulsarLogSettings:
    return own_topics(pulsar, partitions=1)


@pytest.fixture
def connect(settings: PulsarLogSettings) -> Callable[[], Log]:
    return partial(PulsarLog, settings, cluster="east", seconds=20.0)


@pytest.fixture
def open_election(connect: Callable[[], Log]) -> OpenElection:
    return lambda cluster: LogElection(
        connect, cluster=cluster, session_seconds=SESSION_SECONDS, where="the topic of the election"
    )


@pytest.fixture
def toml(settings: PulsarLogSettings, tmp_path: Path) -> Path:
    path = tmp_path / "trimtab.toml"
    path.write_text(
        "\n".join(
            [
                'cluster.name = "east"',
                f'election = {{kind = "log", session_timeout_seconds = {SESSION_SECONDS:.0f}}}',
                'checkpoint.path = "checkpoint"',
                "[log]",
                'kind = "pulsar"',
                "[log.pulsar]",
                f'service_url = "{settings.service_url}"',
                f"admin_url = {list(settings.admin_url)}",
                f'namespace = "{settings.namespace}"',
                *(f'{key} = "{name}"' for key, name in settings if key.endswith("_topic")),
            ]
        )
    )
    return path


class TestLeadership(LeadershipOnLog):
    pass


class TestControls(ControlsOnLog):
    pass


class TestProposals(ProposalsOnLog):
    pass


class TestGroup(GroupOnLog):
    pass


class TestRegistry(RegistryOnLog):
    pass


class TestNotifications(NotificationsOnLog):
    pass


def test_a_leader_that_is_killed_and_one_that_hangs_are_replaced_and_refused(toml: Path) -> None:
    a_killed_and_a_hung_leader_are_replaced(toml)


def test_calls_of_many_processes_can_be_put_in_one_order(open_election: OpenElection) -> None:
    calls_of_many_can_be_put_in_order(open_election)


def test_who_comes_later_begins_with_a_snapshot_and_who_is_behind_reads_anew(connect: Callable[[], Log]) -> None:
    snapshots_bound_the_topic(connect)
