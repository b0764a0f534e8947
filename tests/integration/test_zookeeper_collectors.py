"""The group of collectors, on a real ZooKeeper."""

from collections.abc import Iterator
from contextlib import ExitStack
from uuid import uuid4

import pytest

from controller.adapters.zookeeper.access import ZooKeeperAccess
from controller.adapters.zookeeper.collectors import ZooKeeperGroup
from controller.lab.servers import ZooKeeperServer
from tests.contracts.collectors import CollectorGroupContract, Member

pytestmark = pytest.mark.integration


class TestZooKeeperGroup(CollectorGroupContract):
    @pytest.fixture
    def member(self, zookeeper: ZooKeeperServer) -> Iterator[Member]:
        cluster = uuid4().hex
        with ExitStack() as members:

            def join() -> ZooKeeperGroup:
                group = ZooKeeperGroup(
                    access=ZooKeeperAccess(hosts=zookeeper.hosts),
                    path="/trimtab",
                    cluster=cluster,
                    session_timeout_seconds=4,
                )
                members.callback(group.leave)
                return group

            yield join
