"""The election in a topic of a real Kafka."""

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from controller.lab.servers import KafkaServer
from controller.log.election.system import LogElection
from controller.log.kafka.log import KafkaLog
from controller.log.port import Log
from controller.model.errors import LeadershipLostError
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
from tests.kafka_log import as_toml, named_topics

__all__ = ["opened"]

pytestmark = pytest.mark.integration


@pytest.fixture
def connect(kafka: KafkaServer) -> Callable[[], Log]:
    return partial(KafkaLog, named_topics(kafka.bootstrap, 1), cluster="east", seconds=20.0)


@pytest.fixture
def open_election(connect: Callable[[], Log]) -> OpenElection:
    return lambda cluster: LogElection(
        connect, cluster=cluster, session_seconds=SESSION_SECONDS, where="the topic of the election"
    )


@pytest.fixture
def toml(kafka: KafkaServer, tmp_path: Path) -> Path:
    path = tmp_path / "trimtab.toml"
    path.write_text(
        "\n".join(
            [
                'cluster.name = "east"',
                f'election = {{kind = "log", session_timeout_seconds = {SESSION_SECONDS:.0f}}}',
                'checkpoint.path = "checkpoint"',
                "[log]",
                'kind = "kafka"',
                "[log.kafka]",
                as_toml(named_topics(kafka.bootstrap, 1)),
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


def test_a_topic_that_was_deleted_and_created_again_ends_the_leadership_and_is_started_anew(
    kafka: KafkaServer, connect: Callable[[], Log], open_election: OpenElection, opened: ExitStack
) -> None:
    leadership, log = open_election("east").leadership(), connect()
    opened.callback(log.close)
    opened.callback(leadership.release)
    assert leadership.acquire(lambda: False)
    assert leadership.claim(0) == 1
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    [deleted] = admin.delete_topics([log.name("election")]).values()
    deleted.result()

    def check_often() -> None:
        for _ in range(1_000):
            leadership.check()

    with pytest.raises(LeadershipLostError):
        check_often()
    successor = open_election("east").leadership()
    opened.callback(successor.release)
    assert successor.acquire(lambda: False)
    assert successor.claim(5) == 6
    successor.check()
