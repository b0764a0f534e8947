"""What is deleted from a log in a folder: old files that trimtab wrote and the query has read, and nothing else."""

import os
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import pytest

from controller.adapters.folder.names import numbered
from controller.adapters.folder.retention import AT_ONCE, FolderRetention
from controller.model.errors import TrimtabError
from tests.folders import inbox_in, issue, journal_in, metrics_in
from tests.journal_entries import UNLOAD, entry
from tests.records import CLUSTER, PERIOD, T

KEPT = 10 * PERIOD
LAST = T + 20 * PERIOD
OLD, YOUNG = range(10), range(10, 21)


def put(log: Path, name: str, written_ms: int) -> None:
    path = log / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"{}\n")
    os.utime(path, ns=(written_ms * 1_000_000,) * 2)


def of_intervals(log: Path, numbers: Iterable[int] = range(21)) -> None:
    """A log as trimtab writes it: files of each interval, some seconds after its begin."""
    for number in numbers:
        interval = T + number * PERIOD
        for part in ("metrics", "results"):
            put(log, f"{part}/{interval:015d}-000000.jsonl", interval + 10_000)
            put(log, f"{part}/{interval:015d}-000001.jsonl", interval + 20_000)
        put(log, f"commands/{numbered(number + 1)}", interval + 30_000)
        put(log, f"ticks/{numbered(number + 1)}", interval + 5_000)
        put(log, f"dead_letters/{number:015d}-0-{number:016x}.jsonl", interval + 30_000)


def names(log: Path) -> set[str]:
    return {str(path.relative_to(log)) for path in log.rglob("*") if path.is_file()}


def pruned(log: Path, read: int) -> set[str]:
    """What a controller deletes that has read the log up to the interval *read*."""
    before = names(log)
    FolderRetention(log, kept_ms=KEPT).prune(read=read)
    assert names(log) <= before
    return before - names(log)


def test_what_is_older_than_the_retention_goes_and_all_else_stays(tmp_path: Path) -> None:
    of_intervals(tmp_path / "old", OLD)
    of_intervals(tmp_path / "log")
    assert pruned(tmp_path / "log", LAST) == names(tmp_path / "old")
    assert pruned(tmp_path / "log", LAST) == set()


def test_age_counts_from_what_was_read_so_files_that_nobody_has_read_stay(tmp_path: Path) -> None:
    of_intervals(tmp_path)
    assert pruned(tmp_path, T + 10 * PERIOD) == set()
    found = {name.split("/")[1][:15] for name in pruned(tmp_path, T + 11 * PERIOD)}
    assert found == {f"{T:015d}", "0" * 15, numbered(1)[:15]}


def test_files_of_others_and_copies_stay_however_old(tmp_path: Path) -> None:
    others = [
        "metrics/mine.jsonl",
        f"metrics/{T}.jsonl",
        f"metrics/{T:015d}-000000 copy.jsonl",
        f"commands/{numbered(1)}.bak",
        "dead_letters/kept.jsonl",
        "executor/position.json",
        f"recording/metrics/{T:015d}-000000.jsonl",
        f"metrics/.{T:015d}-000000.jsonl",
    ]
    for name in others:
        put(tmp_path, name, T)
    put(tmp_path, f"metrics/{LAST:015d}-000000.jsonl", LAST)
    assert pruned(tmp_path, LAST) == set()


def test_a_log_that_was_copied_here_later_stays_whole(tmp_path: Path) -> None:
    of_intervals(tmp_path)
    for path in tmp_path.rglob("*.jsonl"):
        os.utime(path)
    assert pruned(tmp_path, LAST) == set()


def test_what_a_killed_writer_left_goes_with_the_files_of_its_time(tmp_path: Path) -> None:
    left = f"metrics/.{T:015d}-000000.jsonl.{'0' * 32}"
    put(tmp_path, left, T)
    put(tmp_path, left.replace("0" * 32, "1" * 32), LAST)
    assert pruned(tmp_path, LAST) == {left}


def test_the_newest_file_stays_so_that_its_writer_goes_on_behind_it(tmp_path: Path) -> None:
    put(tmp_path, f"results/{T:015d}-000007.jsonl", T)
    assert pruned(tmp_path, LAST) == set()
    metrics_in(tmp_path, cluster=CLUSTER).results([("", b"{}")])
    assert f"results/{T:015d}-000008.jsonl" in names(tmp_path)


def test_a_result_under_an_old_name_that_was_just_written_stays(tmp_path: Path) -> None:
    for number in range(3):
        metrics_in(tmp_path, cluster=CLUSTER).results([("", b"%d" % number)])
    assert pruned(tmp_path, LAST) == set()


def test_so_many_files_go_at_once_and_the_others_with_the_next_batches(tmp_path: Path) -> None:
    for number in range(AT_ONCE + 10):
        put(tmp_path, f"dead_letters/{number:015d}-0-{number:016x}.jsonl", T)
    retention = FolderRetention(tmp_path, kept_ms=KEPT)
    retention.prune(read=LAST)
    assert len(names(tmp_path)) == 10
    retention.prune(read=LAST)
    assert names(tmp_path) == set()


def test_a_file_that_cannot_be_deleted_is_named_and_keeps_no_other(tmp_path: Path) -> None:
    of_intervals(tmp_path)
    place = tmp_path / "commands" / numbered(1)
    place.unlink()
    (place / "in it").mkdir(parents=True)
    os.utime(place, (0, 0))
    with pytest.raises(TrimtabError, match=rf"{place.name} cannot be deleted: "):
        FolderRetention(tmp_path, kept_ms=KEPT).prune(read=LAST)
    assert len(names(tmp_path)) == 7 * len(YOUNG)


def test_controller_and_executor_go_on_after_it(tmp_path: Path) -> None:
    journal = journal_in(tmp_path, cluster=CLUSTER)
    journal.open()
    journal.append(entry(T, UNLOAD), epoch=1, issued_at_ms=T, before_commit=lambda: None)
    commands = [*(tmp_path / "commands").iterdir()]
    head = journal_in(tmp_path).open()
    issue(tmp_path, [b'{"id":"new"}'])
    of_intervals(tmp_path, YOUNG)
    for path in commands:
        os.utime(path, ns=(T * 1_000_000,) * 2)
    decided = names(tmp_path / "journal")
    FolderRetention(tmp_path, kept_ms=KEPT).prune(read=LAST)
    assert not any(path.exists() for path in commands)
    assert names(tmp_path / "journal") == decided
    with closing(inbox_in(tmp_path)) as inbox:
        assert b'{"id":"new"}' in [each.value for each in inbox.poll(1000, 0)]
    assert journal_in(tmp_path).open() == head


def test_the_newest_commands_stay_so_that_numbers_grow(tmp_path: Path) -> None:
    of_intervals(tmp_path, YOUNG)
    for path in (tmp_path / "commands").iterdir():
        os.utime(path, ns=(T * 1_000_000,) * 2)
    pruned(tmp_path, LAST)
    assert [path.name for path in (tmp_path / "commands").iterdir()] == [numbered(21)]
