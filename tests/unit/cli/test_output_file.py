"""Files that options name to be written: what cannot be one is refused before the work, and left as it is."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from controller.adapters.disk import files
from controller.cli.shared.output_file import require_writable, write_output
from controller.model.errors import SettingsError, TrimtabError
from tests.command_runs import output_of


@pytest.mark.parametrize(
    ("make", "says"),
    [(os.mkfifo, "it is not a file"), (os.mkdir, "it is not a file"), (lambda _: None, "no such folder")],
)
def test_what_is_no_file_is_refused_and_stays(tmp_path: Path, make: Callable[[Path], object], says: str) -> None:
    path = tmp_path / "out" if says == "it is not a file" else tmp_path / "none" / "out"
    make(path)
    for write in (require_writable, lambda path, option: write_output(path, b"x", option)):
        with pytest.raises(SettingsError, match=f"--html {path}: .*{says}"):
            write(path, "--html")
    assert not path.is_file()


def test_a_pipe_in_place_of_a_report_or_an_incident_is_no_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for words in (
        ("compare", "no-room", "--strategies", "ThresholdShedder,AvgShedder", "--html", pipe),
        ("incident", "make", "--around", "2025-01-01T00:00:00Z", "--output", pipe),
        ("plan", "--load", tmp_path, "--output", pipe),
    ):
        assert "it is not a file" in output_of(*words, code=2)
    assert pipe.is_fifo()


def test_no_command_overwrites_a_file(tmp_path: Path) -> None:
    there = tmp_path / "approved"
    there.write_text("mine")
    dangling = tmp_path / "link"
    dangling.symlink_to("nowhere")
    for words in (
        ("compare", "no-room", "--strategies", "ThresholdShedder,AvgShedder", "--html", there),
        ("incident", "make", "--around", "2025-01-01T00:00:00Z", "--output", there),
        ("plan", "--load", tmp_path, "--output", there),
        ("apply", there, "--hash", "0" * 64, "--repair", "--output", there),
    ):
        assert f"{there}: it already exists, and is not overwritten: choose another" in output_of(*words, code=2)
    with pytest.raises(SettingsError, match="link: it is not a file"):
        write_output(dangling, b"x", "--output")
    assert there.read_text() == "mine"


def test_of_two_that_write_a_file_at_the_same_time_the_first_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def meanwhile(path: Path, content: bytes) -> None:
        path.write_text("theirs")
        create(path, content)

    create = files.create
    monkeypatch.setattr(files, "create", meanwhile)
    with pytest.raises(SettingsError, match=r"--output .*: it already exists"):
        write_output(tmp_path / "plan.json", b"ours", "--output")
    assert (tmp_path / "plan.json").read_text() == "theirs"


def test_a_write_that_fails_names_the_file_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    path = tmp_path / "out"
    with pytest.raises(OSError, match=f"{path}"):
        files.replace(path, b"x")
    with pytest.raises(TrimtabError, match=f"--output {path}: No space left on device"):
        write_output(path, b"x", "--output")
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_written_also_where_the_file_system_knows_no_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))  # as a stick does

    monkeypatch.setattr(os, "link", refuse)
    path = tmp_path / "plan.json"
    write_output(path, b"plan", "--output")
    with pytest.raises(SettingsError, match="it already exists"):
        write_output(path, b"other", "--output")
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("plan.json", b"plan")]
