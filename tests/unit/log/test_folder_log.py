"""The log in a folder."""

from pathlib import Path

import pytest

from controller.log.files.log import FolderLog
from tests.contracts.bytes_log import BytesLogContract, ClaimsContract, FencedContract
from tests.records import CLUSTER


class _Place:
    partitions = 1
    atomic = False
    keys = False

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def log(self) -> FolderLog:
        return FolderLog(self._folder, cluster=CLUSTER)


@pytest.fixture
def place(tmp_path: Path) -> _Place:
    return _Place(tmp_path)


class TestFolderLog(BytesLogContract, FencedContract, ClaimsContract):
    """One partition, no keys, headers in journal and ticks."""
