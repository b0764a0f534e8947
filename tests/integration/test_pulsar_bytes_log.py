"""The log's port on a real Pulsar."""

from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest

from controller.adapters.pulsar.log.topics import log_admin
from controller.lab.pulsar_server import PulsarCluster
from controller.log.port import LogTopic
from controller.log.pulsar.log import PulsarLog
from controller.settings.pulsar_log import PulsarLogSettings
from tests.contracts.bytes_log import (
    BytesLogContract,
    ClaimsContract,
    FencedContract,
    GrowingTopicContract,
    HungExecutorContract,
)
from tests.integration.pulsar_log import PARTITIONS, own_topics
from tests.records import CLUSTER

pytestmark = pytest.mark.integration


class Place:
    """Topics of the test's own."""

    partitions, atomic, keys = PARTITIONS, False, True

    def __init__(self, settings: PulsarLogSettings, opened: ExitStack) -> None:
        self.settings, self._opened = settings, opened
        self._executors = 100

    def log(self) -> PulsarLog:
        self._executors -= 1  # the brokers give the first partitions to the lowest names
        name = f"executor-{self._executors:03d}"
        made = PulsarLog(self.settings, cluster=CLUSTER, executor=name, claim_seconds=2.0)
        return self._opened.enter_context(closing(made))

    def add_partition(self, topic: LogTopic) -> None:
        with closing(log_admin(self.settings)) as admin:
            name = self.log().name(topic)
            path = f"/admin/v2/persistent/{self.settings.namespace}/{name}/partitions"
            admin._call("POST", path, {}, body=str(PARTITIONS + 1).encode())

    def expel(self) -> None:
        """Whoever comes next has a lower name, and gets the first partition."""


@pytest.fixture
def place(pulsar: PulsarCluster) -> Iterator[Place]:
    with ExitStack() as opened:
        yield Place(own_topics(pulsar), opened)


class TestBytesLog(BytesLogContract):
    pass


class TestGrowingTopics(GrowingTopicContract):
    pass


class TestFenced(FencedContract):
    pass


class TestClaims(ClaimsContract):
    pass


class TestHungExecutor(HungExecutorContract):
    pass
