"""A log that is made for this test alone: what the port asks for is enough for everything that stands on it."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from controller.log.port import LogTopic
from tests.contracts import bytes_log
from tests.contracts.collectors import CollectorLogContract
from tests.contracts.inbox import InboxContract
from tests.contracts.journal import JournalContract
from tests.contracts.log import CommandLogContract, DeadLetterLogContract, MetricsLogContract
from tests.sqlite_log import SqliteLog
from tests.unit.log.places import Place

PARTITIONS = 2


class _BytesPlace:
    partitions, atomic, keys = PARTITIONS, True, True

    def __init__(self, path: Path, stack: ExitStack) -> None:
        self._path, self._stack = path, stack

    def log(self) -> SqliteLog:
        opened = SqliteLog(self._path, partitions=PARTITIONS)
        self._stack.callback(opened.close)
        return opened

    def add_partition(self, topic: LogTopic) -> None:
        self.log().add_partitions(topic, 1)

    def expel(self) -> None:
        self.log().expel(bytes_log.GROUP)


@pytest.fixture
def bytes_place(tmp_path: Path) -> Iterator[_BytesPlace]:
    with ExitStack() as stack:
        yield _BytesPlace(tmp_path / "log", stack)


class TestBytes(
    bytes_log.BytesLogContract,
    bytes_log.GrowingTopicContract,
    bytes_log.FencedContract,
    bytes_log.ClaimsContract,
    bytes_log.HungExecutorContract,
):
    @pytest.fixture
    def place(self, bytes_place: _BytesPlace) -> _BytesPlace:
        return bytes_place


class TestDomain(
    JournalContract, CollectorLogContract, MetricsLogContract, CommandLogContract, DeadLetterLogContract, InboxContract
):
    @pytest.fixture
    def place(self, bytes_place: _BytesPlace) -> Place:
        made = Place(bytes_place.log)
        made.partitions = PARTITIONS
        return made
