"""The registry of processes in a folder."""

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from controller.adapters.election.registry import LASTS_SECONDS, MOST_ENTRIES
from controller.adapters.folder.registry import FileRegistry
from controller.model.errors import AnotherClusterError, TrimtabError
from tests.contracts.registry import OpenRegistry, RegistryContract, written


class TestFileRegistry(RegistryContract):
    @pytest.fixture
    def open_registry(self, tmp_path: Path) -> Iterator[OpenRegistry]:
        with ExitStack() as registries:
            yield lambda: registries.enter_context(closing(FileRegistry(tmp_path, cluster="standalone")))


def registry(folder: Path, cluster: str = "standalone") -> FileRegistry:
    return FileRegistry(folder, cluster=cluster)


def aged(path: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


def test_to_read_creates_nothing(tmp_path: Path) -> None:
    assert registry(tmp_path / "none").read(10) == ((), 0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("seconds", [LASTS_SECONDS + 5, -LASTS_SECONDS - 5])
def test_what_a_killed_process_left_does_not_count_and_the_next_one_deletes_it(tmp_path: Path, seconds: float) -> None:
    registry(tmp_path).write("killed", b"1")
    left = tmp_path / "processes" / "killed.json"
    aged(left, seconds)
    other = registry(tmp_path)
    assert written(other) == {}
    other.write("next", b"2")
    assert written(other) == {"next": b"2"}
    assert not left.exists()


@pytest.mark.slow
def test_no_more_entries_are_read_than_a_cluster_can_have_processes(tmp_path: Path) -> None:
    (tmp_path / "processes").mkdir()
    for number in range(MOST_ENTRIES + 2):
        (tmp_path / "processes" / f"{number:05}.json").touch()
    found = registry(tmp_path).read(10)
    assert len(found.entries) == MOST_ENTRIES
    assert found.left_out == 2


def test_a_pipe_a_folder_and_a_broken_link_are_entries_without_a_value(tmp_path: Path) -> None:
    place = tmp_path / "processes"
    place.mkdir()
    os.mkfifo(place / "pipe.json")
    (place / "folder.json").mkdir()
    (place / "link.json").symlink_to("nowhere")
    (place / "zero.json").symlink_to("/dev/zero")
    assert written(registry(tmp_path)) == {"folder": None, "pipe": None, "zero": None}


def test_the_folder_of_another_cluster_is_not_written_to(tmp_path: Path) -> None:
    registry(tmp_path, "one").write("a", b"1")
    with pytest.raises(AnotherClusterError):
        registry(tmp_path, "other").write("b", b"2")
    assert written(registry(tmp_path, "one")) == {"a": b"1"}


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    (tmp_path / "processes").write_text("a file")
    with pytest.raises(TrimtabError, match="processes"):
        registry(tmp_path).write("a", b"1")
