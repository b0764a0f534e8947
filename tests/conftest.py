"""Real servers for the whole test session, each started when the first test asks for it; how hard properties try."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from controller.lab.pulsar_server import PulsarCluster, pulsar_cluster
from controller.lab.servers import KafkaServer, ZooKeeperServer, kafka_server, zookeeper_server
from tests.conformance.summary import ConformanceSummary

# Their asserts are to say as much as those of test files.
pytest.register_assert_rewrite(
    *(f"tests.contracts.{port}" for port in ("collectors", "controls", "journal", "leadership"))
)

# Busy machines make any deadline a matter of luck.  scripts/test asks for the thorough profile, and scripts/mutate for
# the same examples each time.
_PATIENT: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("quick", max_examples=4, **_PATIENT)
settings.register_profile("thorough", max_examples=80, **_PATIENT)
settings.register_profile("repeatable", max_examples=4, derandomize=True, **_PATIENT)
settings.load_profile("quick")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(ConformanceSummary())


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    """One broker for all: a test uses topics of its own."""
    with kafka_server(tmp_path_factory.mktemp("kafka")) as server:
        yield server


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    """One server for all: a test uses paths of its own."""
    with zookeeper_server(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


@pytest.fixture(scope="session")
def pulsar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PulsarCluster]:
    """Three brokers for all, in one JVM: a test uses namespaces of its own."""
    with pulsar_cluster(tmp_path_factory.mktemp("pulsar")) as cluster:
        yield cluster
