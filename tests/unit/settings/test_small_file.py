"""Files that are given in place of settings: one without end, one that is too long, a folder."""

from collections.abc import Callable
from pathlib import Path

import pytest

from controller.model.errors import SettingsError, TrimtabError
from controller.offline.namespaces import read_boundaries
from controller.settings.broker_conf import read_broker_conf
from controller.settings.capacity import read_capacity_overrides
from controller.settings.rebalance_group import read_rebalance_group
from controller.settings.scenario import read_scenario
from controller.settings.secret_files import read_secret
from controller.settings.small_file import LARGEST_FILE, read_small_file
from controller.settings.trimtab_toml import read_settings


def _secret(path: Path) -> str:
    return read_secret(str(path), "auth.token_file")


_READERS: list[Callable[[Path], object]] = [
    read_broker_conf, read_boundaries, read_capacity_overrides, read_rebalance_group, read_scenario, read_settings,
    _secret,
]  # fmt: skip


@pytest.mark.parametrize("reader", _READERS)
def test_a_file_without_end_is_refused_by_every_reader(reader: Callable[[Path], object]) -> None:
    with pytest.raises(TrimtabError, match="longer than 8 MiB"):
        reader(Path("/dev/zero"))


@pytest.mark.parametrize("reader", _READERS)
def test_a_folder_is_refused_by_every_reader(reader: Callable[[Path], object], tmp_path: Path) -> None:
    with pytest.raises((SettingsError, TrimtabError), match="directory"):
        reader(tmp_path)


def test_a_file_is_read_up_to_the_longest(tmp_path: Path) -> None:
    file = tmp_path / "file"
    with file.open("wb") as sparse:
        sparse.truncate(LARGEST_FILE)
    assert len(read_small_file(file)) == LARGEST_FILE
    with file.open("ab") as sparse:
        sparse.write(b"x")
    with pytest.raises(OSError, match="longer than"):
        read_small_file(file)
