import pytest

from controller.log.memory import MemoryLog, MemoryServer
from controller.log.port import LogTopic
from tests.contracts.bytes_log import (
    GROUP,
    BytesLogContract,
    ClaimsContract,
    FencedContract,
    GrowingTopicContract,
    HungExecutorContract,
)
from tests.unit.log.places import MODE_PARAMS


class _Place:
    keys = True

    def __init__(self, *, atomic: bool, seed: int) -> None:
        self.partitions, self.atomic = 1 + seed % 3, atomic
        self._server = MemoryServer(partitions=self.partitions, atomic=atomic, seed=seed)

    def log(self) -> MemoryLog:
        return MemoryLog(self._server)

    def add_partition(self, topic: LogTopic) -> None:
        self._server.add_partitions(topic)

    def expel(self) -> None:
        self._server.expel(GROUP)


@pytest.fixture(params=MODE_PARAMS, ids=str)
def place(request: pytest.FixtureRequest) -> _Place:
    atomic, seed = request.param
    return _Place(atomic=atomic, seed=seed)


class TestMemoryLog(BytesLogContract, GrowingTopicContract, FencedContract, ClaimsContract, HungExecutorContract):
    """In both modes, with gaps between positions."""
