"""Summaries in a real Pulsar, as the page reads them."""

from pathlib import Path

import pytest

from controller.lab.pulsar_server import PulsarCluster
from controller.log.pulsar.log import PulsarLog
from tests.contracts.page_data import the_page_shows_what_the_leader_decided
from tests.integration.pulsar_log import own_topics
from tests.pure_controller import POLICY

pytestmark = [pytest.mark.integration, pytest.mark.any_pulsar]


def test_the_page_shows_what_the_leader_decided(pulsar: PulsarCluster, tmp_path: Path) -> None:
    settings = own_topics(pulsar)
    the_page_shows_what_the_leader_decided(lambda: PulsarLog(settings, cluster=POLICY.cluster), tmp_path)
