"""The sender of notifications on one machine."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from controller.adapters.folder.notifications import FileNotifications
from controller.model.errors import AnotherClusterError
from tests.contracts.notifications import NotificationStoreContract, OpenStore


class TestFileNotifications(NotificationStoreContract):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> Iterator[OpenStore]:
        with ExitStack() as stores:
            yield lambda: stores.enter_context(closing(FileNotifications(tmp_path, cluster="standalone")))


def test_the_folder_of_another_cluster_is_refused(tmp_path: Path) -> None:
    assert FileNotifications(tmp_path, cluster="one").sends()
    with pytest.raises(AnotherClusterError):
        FileNotifications(tmp_path, cluster="another").sends()


def test_who_does_not_hold_the_lock_writes_nothing(tmp_path: Path) -> None:
    one, other = (FileNotifications(tmp_path, cluster="standalone") for _ in range(2))
    assert one.sends()
    version = other.read()[1]
    assert other.write(b"1", version) is None
    assert one.write(b"1", version) is not None
    one.close()
