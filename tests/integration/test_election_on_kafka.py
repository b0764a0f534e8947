"""The election in a topic of a real Kafka."""

from contextlib import ExitStack
from functools import partial

import pytest
from confluent_kafka.admin import AdminClient

from controller.lab.servers import KafkaServer
from controller.log.kafka.log import KafkaLog
from controller.model.errors import LeadershipLostError
from controller.settings.log import KafkaLogSettings
from tests.contracts.election_on_log import Connect, ElectionContracts, OpenElection
from tests.integration.election_on_log import ElectionOnServer
from tests.kafka_log import as_toml, named_topics

pytestmark = pytest.mark.integration


@pytest.fixture
def settings(kafka: KafkaServer) -> KafkaLogSettings:
    return named_topics(kafka.bootstrap, 1)


@pytest.fixture
def connect(settings: KafkaLogSettings) -> Connect:
    return partial(KafkaLog, settings, cluster="east", seconds=20.0)


@pytest.fixture
def log_toml(settings: KafkaLogSettings) -> str:
    return f'[log]\nkind = "kafka"\n[log.kafka]\n{as_toml(settings)}'


@pytest.mark.extended
class TestContracts(ElectionContracts):
    """They stand on the log's port, so without "extended" those on memory have to do."""


class TestElection(ElectionOnServer):
    def test_a_topic_that_was_deleted_and_created_again_ends_the_leadership_and_is_started_anew(
        self, kafka: KafkaServer, connect: Connect, open_election: OpenElection, opened: ExitStack
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
