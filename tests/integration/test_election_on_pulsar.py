"""The election in a topic of a real Pulsar."""

from functools import partial

import pytest

from controller.lab.pulsar_server import PulsarCluster
from controller.log.pulsar.log import PulsarLog
from controller.settings.pulsar_log import PulsarLogSettings
from tests.contracts.election_on_log import Connect, ElectionContracts
from tests.integration.election_on_log import ElectionOnServer
from tests.integration.pulsar_log import own_topics

pytestmark = pytest.mark.integration


@pytest.fixture
def settings(pulsar: PulsarCluster) -> PulsarLogSettings:
    return own_topics(pulsar, partitions=1)


@pytest.fixture
def connect(settings: PulsarLogSettings) -> Connect:
    return partial(PulsarLog, settings, cluster="east", seconds=20.0)


@pytest.fixture
def log_toml(settings: PulsarLogSettings) -> str:
    return "\n".join(
        [
            "[log]",
            'kind = "pulsar"',
            "[log.pulsar]",
            f'service_url = "{settings.service_url}"',
            f"admin_url = {list(settings.admin_url)}",
            f'namespace = "{settings.namespace}"',
            *(f'{key} = "{name}"' for key, name in settings if key.endswith("_topic")),
        ]
    )


@pytest.mark.extended
class TestContracts(ElectionContracts):
    """They stand on the log's port, so without "extended" those on memory have to do."""


class TestElection(ElectionOnServer):
    pass
