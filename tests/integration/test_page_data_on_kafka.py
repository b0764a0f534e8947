"""Summaries in a real Kafka, as the page reads them."""

from pathlib import Path

import pytest

from controller.lab.servers import KafkaServer
from controller.log.kafka.log import KafkaLog
from tests.contracts.page_data import the_page_shows_what_the_leader_decided
from tests.kafka_log import named_topics
from tests.pure_controller import POLICY

pytestmark = pytest.mark.integration


def test_the_page_shows_what_the_leader_decided(kafka: KafkaServer, tmp_path: Path) -> None:
    settings = named_topics(kafka.bootstrap)
    the_page_shows_what_the_leader_decided(lambda: KafkaLog(settings, cluster=POLICY.cluster), tmp_path)
