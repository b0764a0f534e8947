"""A full disk: a file is written completely or not at all, and the error says why."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from controller.adapters.disk import files
from controller.model.errors import JournalError
from tests.folders import commands_in, journal_in
from tests.journal_entries import UNLOAD, entry
from tests.records import CLUSTER


def no_room(_: int) -> NoReturn:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("write", [files.create, files.replace])
def test_a_file_that_cannot_be_written_whole_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[Path, bytes], None]
) -> None:
    monkeypatch.setattr(os, "fsync", no_room)
    with pytest.raises(OSError, match="No space left"):
        write(tmp_path / "file", b"content")
    assert list(tmp_path.iterdir()) == []


def test_a_journal_without_room_says_so_and_goes_on_when_there_is_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = journal_in(tmp_path, cluster=CLUSTER)
    journal.open()
    journal.begin_epoch(1)
    decided = entry(UNLOAD.interval, UNLOAD)
    with monkeypatch.context() as full:
        full.setattr(os, "fsync", no_room)
        with pytest.raises(JournalError, match=r"journal/\d+\.jsonl: No space left"):
            journal.append(decided, epoch=1, issued_at_ms=0, before_commit=lambda: None)
        with pytest.raises(JournalError, match=r"journal/\d+\.jsonl: No space left"):
            journal.begin_epoch(2)
    assert journal.open().last is None
    assert UNLOAD.id.encode() not in b"".join(commands_in(tmp_path).poll())
    journal.append(decided, epoch=1, issued_at_ms=0, before_commit=lambda: None)
    head = journal.open()
    assert head.last is not None
    assert head.last.interval == UNLOAD.interval
    assert head.epoch == 1
