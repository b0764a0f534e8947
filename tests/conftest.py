"""Real servers for the whole test session, each started when the first test asks for it."""

from collections.abc import Iterator

import pytest

from controller.adapters.pulsar_server import PulsarCluster, pulsar_cluster
from controller.adapters.servers import KafkaServer, ZooKeeperServer, kafka_server, zookeeper_server


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
