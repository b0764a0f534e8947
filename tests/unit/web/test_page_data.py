"""Summaries by the leader's own sink, on logs without a server."""

from pathlib import Path

import pytest

from controller.log.files.log import FolderLog
from controller.log.memory import MemoryLog, MemoryServer
from tests.contracts.page_data import the_page_shows_what_the_leader_decided
from tests.pure_controller import POLICY


@pytest.mark.parametrize("atomic", [True, False])
def test_in_memory(tmp_path: Path, atomic: bool) -> None:
    server = MemoryServer(atomic=atomic, partitions=2)
    the_page_shows_what_the_leader_decided(lambda: MemoryLog(server), tmp_path)


def test_in_a_folder(tmp_path: Path) -> None:
    the_page_shows_what_the_leader_decided(lambda: FolderLog(tmp_path / "log", cluster=POLICY.cluster), tmp_path)
