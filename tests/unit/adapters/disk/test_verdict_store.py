"""Verdicts on disk."""

import errno
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from controller.adapters.disk.verdicts import VerdictStore
from controller.model.decision import Decision, Reason, Verdict
from tests.records import PERIOD, T

VERDICTS = (
    Verdict(
        subject="broker-2:8080",
        reason=Reason.OVERLOADED,
        observed=1 / 3,
        limit=0.25,
        unit="usage",
        by="ThresholdShedder",
    ),
    Verdict(subject="broker-1:8080", reason=Reason.BALANCED),
    Verdict(subject="cluster", reason=Reason.PAUSED, detail="by an operator"),
)
DECISION = Decision(interval=T, verdicts=VERDICTS, summary="")


def test_verdicts_come_back_as_they_were_and_in_their_order(tmp_path: Path) -> None:
    store = VerdictStore(tmp_path / "verdicts")
    store.write(DECISION)
    assert store.read(T) == VERDICTS


def test_where_somebody_may_not_look_there_are_none_and_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(folder: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(folder))

    store = VerdictStore(tmp_path / "verdicts")
    store.write(DECISION)
    monkeypatch.setattr("os.scandir", refuse)
    assert store.intervals() == []
    assert f"{tmp_path / 'verdicts'} cannot be read, so no verdicts are shown: Permission denied" in caplog.text


def test_an_interval_without_verdicts_is_kept_too(tmp_path: Path) -> None:
    store = VerdictStore(tmp_path)
    store.write(replace(DECISION, verdicts=()))
    assert store.intervals() == [T]
    assert store.read(T) == ()


def test_an_interval_written_again_is_kept_once(tmp_path: Path) -> None:
    store = VerdictStore(tmp_path)
    store.write(DECISION)
    store.write(DECISION)
    assert store.intervals() == [T]


def test_only_the_newest_intervals_stay(tmp_path: Path) -> None:
    store = VerdictStore(tmp_path, keep=2)
    for i in range(4):
        store.write(replace(DECISION, interval=T + i * PERIOD))
    assert store.intervals() == [T + 2 * PERIOD, T + 3 * PERIOD]
    with pytest.raises(FileNotFoundError):
        store.read(T)


def test_verdicts_take_so_much_room_and_the_oldest_go_first(tmp_path: Path) -> None:
    VerdictStore(tmp_path).write(DECISION)
    size = sum(path.stat().st_size for path in tmp_path.iterdir())
    store = VerdictStore(tmp_path, keep_bytes=2 * size + size // 2)
    for i in range(1, 4):
        store.write(replace(DECISION, interval=T + i * PERIOD))
    assert store.intervals() == [T + 2 * PERIOD, T + 3 * PERIOD]


def test_the_last_verdicts_stay_however_large_they_are(tmp_path: Path) -> None:
    store = VerdictStore(tmp_path, keep_bytes=1)
    store.write(DECISION)
    store.write(replace(DECISION, interval=T + PERIOD))
    assert store.intervals() == [T + PERIOD]


def test_verdicts_of_a_time_when_a_clock_was_ahead_go_before_those_of_today(tmp_path: Path) -> None:
    store, ahead = VerdictStore(tmp_path, keep=2), T + 100 * PERIOD
    for interval in (ahead, ahead + PERIOD, T, T + PERIOD, T + 2 * PERIOD):
        store.write(replace(DECISION, interval=interval))
        store.read(interval)
    assert store.intervals() == [T + PERIOD, T + 2 * PERIOD]


def test_verdicts_that_are_damaged_or_of_a_later_release_are_gone_and_other_files_are_none(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = VerdictStore(tmp_path)
    store.write(DECISION)
    [path] = tmp_path.iterdir()
    (tmp_path / "notes.parquet").write_bytes(b"x")
    intact = path.read_bytes()
    later, other = tmp_path / "later", tmp_path / "other"
    pq.write_table(pa.table({"subject": ["b"], "reason": ["OfALaterRelease"]}), later)
    pq.write_table(pa.table({"a": [1]}), other)
    for content in (b"", b"\xff" * 100, intact[:200], later.read_bytes(), other.read_bytes()):
        path.write_bytes(content)
        caplog.clear()
        with pytest.raises(FileNotFoundError):
            store.read(T)
        assert f"{path} cannot be read, so verdicts of this interval are not shown" in caplog.messages[0]
    assert store.intervals() == [T]
