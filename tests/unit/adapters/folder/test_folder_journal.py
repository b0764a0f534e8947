"""The journal and the log in a folder."""

import errno
import json
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from controller.adapters.folder import journal as folder_module
from controller.adapters.folder.journal import FolderJournal, newest_decision, read_journal
from controller.adapters.folder.log import FolderCommandLog, FolderDeadLetterLog, FolderMetricsLog
from controller.adapters.folder.records import FolderRecords
from controller.model.errors import (
    AnotherClusterError,
    DamagedJournalError,
    JournalError,
    LeadershipLostError,
    NewerJournalError,
    TrimtabError,
    WireError,
)
from controller.model.journal import JournalEntry
from controller.ports.journal import JournalHead
from controller.strategies.common.usage_history import UsageHistory
from controller.wire.commands import EpochEvent, SplitEvent, UnloadEvent, parse_event
from controller.wire.dead_letter import Source
from controller.wire.journal import encode_entry
from controller.wire.metrics import TickRecord, decode_metric
from controller.wire.results import decode_result
from tests.contracts.journal import JournalContract
from tests.journal_entries import SPLIT, UNLOAD, entry
from tests.records import CLUSTER, PERIOD, T, as_bytes, dead_letter_of, result, topic_stats

NEXT = T + PERIOD


HOUR = 3_600_000
#: Long beside the rest of an entry.
USAGE = UsageHistory(usage={f"broker-{number:03d}:8080": number / 7 for number in range(100)})


class Place:
    """A journal in a folder."""

    module = folder_module

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def journal(self) -> FolderJournal:
        return FolderJournal(self._folder, cluster=CLUSTER)

    def entries(self) -> list[JournalEntry]:
        return [*read_journal(self._folder)]

    def events(self) -> list[bytes]:
        return FolderCommandLog(self._folder).poll()


class TestFolderJournal(JournalContract):
    @pytest.fixture
    def place(self, tmp_path: Path) -> Place:
        return Place(tmp_path)


def nothing() -> None:
    pass


def opened_head(folder: Path) -> JournalHead:
    return FolderJournal(folder, cluster=CLUSTER).open()


def opened(folder: Path) -> FolderJournal:
    journal = FolderJournal(folder, cluster=CLUSTER)
    journal.open()
    return journal


def append(
    journal: FolderJournal, what: JournalEntry, *, epoch: int = 1, before_commit: Callable[[], None] = nothing
) -> None:
    journal.append(what, epoch=epoch, issued_at_ms=T + 1, before_commit=before_commit)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def ids(events: list[bytes]) -> list[str]:
    return [parse_event(event).id for event in events]


def test_commands_are_issued_under_their_epoch_at_their_time(tmp_path: Path) -> None:
    append(opened(tmp_path), entry(T, UNLOAD, SPLIT), epoch=7)
    epoch, unload, split = map(parse_event, FolderCommandLog(tmp_path).poll())
    assert isinstance(epoch, EpochEvent)
    assert epoch.data.epoch == 7
    assert isinstance(unload, UnloadEvent)
    assert isinstance(split, SplitEvent)
    assert (unload.id, split.id) == (UNLOAD.id, SPLIT.id)
    assert {(event.epoch, event.time_ms) for event in (epoch, unload, split)} == {(7, T + 1)}


def test_the_first_to_decide_an_interval_wins_and_the_other_leads_no_longer(tmp_path: Path) -> None:
    first, second = opened(tmp_path), opened(tmp_path)
    append(first, entry(T, UNLOAD))
    with pytest.raises(LeadershipLostError, match=str(T)):
        append(second, entry(T, SPLIT))
    assert list(read_journal(tmp_path)) == [entry(T, UNLOAD)]
    assert UNLOAD.id in ids(FolderCommandLog(tmp_path).poll())


def test_of_many_at_once_one_decides(tmp_path: Path) -> None:
    lost: list[LeadershipLostError] = []
    together = threading.Barrier(4)

    def decide() -> None:
        try:
            append(opened(tmp_path), entry(T, UNLOAD), before_commit=lambda: (together.wait(10), None)[1])
        except LeadershipLostError as error:
            lost.append(error)

    threads = [threading.Thread(target=decide) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(lost) == 3
    assert list(read_journal(tmp_path)) == [entry(T, UNLOAD)]


def test_an_epoch_belongs_to_one_leader(tmp_path: Path) -> None:
    opened(tmp_path).begin_epoch(3)
    with pytest.raises(LeadershipLostError, match="epoch 3"):
        opened(tmp_path).begin_epoch(3)


def test_what_is_raised_before_the_commit_leaves_nothing_behind(tmp_path: Path) -> None:
    journal = opened(tmp_path)

    def lose() -> None:
        assert names(tmp_path / "journal") != [], "called with the entry written"
        raise LeadershipLostError("another leads")

    with pytest.raises(LeadershipLostError, match="another leads"):
        append(journal, entry(T, UNLOAD), before_commit=lose)
    assert names(tmp_path / "journal") == []
    assert names(tmp_path / "commands") == []
    append(journal, entry(T, UNLOAD))
    assert list(read_journal(tmp_path)) == [entry(T, UNLOAD)]


class Killed(BaseException):
    """Like a signal, it is no error that anybody catches."""


def die_at(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def failpoint(passed: str) -> None:
        if passed == name:
            raise Killed

    monkeypatch.setattr(folder_module, "failpoint", failpoint)


def test_dying_inside_the_transaction_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = opened(tmp_path)
    die_at(monkeypatch, "inside-transaction")
    with pytest.raises(Killed):
        append(journal, entry(T, UNLOAD))
    assert FolderJournal(tmp_path, cluster=CLUSTER).open().last is None
    assert FolderCommandLog(tmp_path).poll() == []


def test_commands_that_the_last_writer_did_not_come_to_issue_are_issued_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = opened(tmp_path)
    journal.begin_epoch(5)
    with monkeypatch.context() as patched:
        die_at(patched, "after-commit")
        with pytest.raises(Killed):
            append(journal, entry(T, UNLOAD), epoch=5)
    log = FolderCommandLog(tmp_path)
    assert log.poll() == []

    head = FolderJournal(tmp_path, cluster=CLUSTER).open()
    assert head.last == entry(T, UNLOAD)
    events = log.poll()
    assert ids(events) == ["epoch/5", UNLOAD.id]
    assert {parse_event(event).epoch for event in events} == {5}
    FolderJournal(tmp_path, cluster=CLUSTER).open()
    assert log.poll() == []


def test_a_file_left_half_written_is_not_read(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    append(journal, entry(T))
    (tmp_path / "journal" / f".{NEXT:015d}.json.abc").write_bytes(encode_entry(entry(NEXT))[:50])
    assert journal.open().last == entry(T)


def test_a_broken_journal_is_named(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    append(journal, entry(T))
    (tmp_path / "journal" / f"{NEXT:015d}.json").write_text("{}")
    with pytest.raises(
        DamagedJournalError, match=f"{NEXT:015d}.json: missing_field.*it is damaged: restore the journal"
    ) as caught:
        journal.open()
    assert caught.value.exit_code == 2


def test_a_file_that_cannot_be_read_now_is_no_damage_so_a_restart_may_help(tmp_path: Path) -> None:
    opened(tmp_path)
    (tmp_path / "journal" / f"{NEXT:015d}.json").mkdir()
    with pytest.raises(JournalError, match="Is a directory") as caught:
        opened(tmp_path)
    assert caught.value.exit_code == 1


def hours(folder: Path, count: int) -> list[int]:
    """A journal of as many hours, four entries each, under one epoch an hour; the intervals."""
    intervals = []
    for hour in range(count):
        journal = opened(folder)
        journal.begin_epoch(hour + 1)
        for quarter in range(4):
            intervals.append(T // HOUR * HOUR + hour * HOUR + quarter * 900_000)
            command = replace(UNLOAD, id=f"command-{len(intervals)}", interval=intervals[-1])
            append(journal, entry(intervals[-1], command, shedder=USAGE), epoch=hour + 1)
    return intervals


def test_entries_hold_what_changed_and_are_read_with_their_whole_memory(tmp_path: Path) -> None:
    intervals = hours(tmp_path, 2)
    kinds = [json.loads(path.read_bytes())["type"] for path in sorted((tmp_path / "journal").glob("[0-9]*"))]
    assert kinds == ["decision", *["decision_delta"] * 3] * 2
    memories = [each.memory for each in read_journal(tmp_path)]
    assert memories == [entry(t, shedder=USAGE).memory for t in intervals]
    assert opened_head(tmp_path).last == [*read_journal(tmp_path)][-1]


def test_pruning_keeps_the_last_whole_entry_that_is_old_enough_and_all_behind_it(tmp_path: Path) -> None:
    intervals = hours(tmp_path, 4)
    before, last = [*read_journal(tmp_path)], opened_head(tmp_path)
    opened(tmp_path).prune(committed=intervals[-1], before=intervals[10])
    assert [each.interval for each in read_journal(tmp_path)] == intervals[8:]
    assert [*read_journal(tmp_path)] == before[8:]
    assert opened_head(tmp_path) == last
    assert names(tmp_path / "commands") == [f"{t:015d}.jsonl" for t in intervals[8:]]
    assert [name for name in names(tmp_path / "journal") if name.startswith("epoch")] == ["epoch-000000004.json"]


def test_pruning_that_is_broken_off_leaves_a_journal_in_one_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    intervals, left = hours(tmp_path, 2), 3

    def unlink(path: Path, **_: object) -> None:
        nonlocal left
        left -= 1
        if not left:
            raise OSError(errno.EACCES, "Permission denied")
        os.unlink(path)

    journal, last = opened(tmp_path), opened_head(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", unlink)
        with pytest.raises(JournalError, match="Permission denied"):
            journal.prune(committed=intervals[-1], before=intervals[-1])
    assert opened_head(tmp_path) == last
    assert [each.interval for each in read_journal(tmp_path)] == intervals[4:]


def test_an_entry_whose_base_is_gone_says_what_to_do(tmp_path: Path) -> None:
    intervals = hours(tmp_path, 1)
    (tmp_path / "journal" / f"{intervals[0]:015d}.json").unlink()
    with pytest.raises(DamagedJournalError, match="is not in the journal: restore the journal") as caught:
        opened(tmp_path)
    assert caught.value.exit_code == 2


def test_each_poll_gives_what_is_new(tmp_path: Path) -> None:
    journal, log = opened(tmp_path), FolderCommandLog(tmp_path)
    assert log.poll() == []
    append(journal, entry(T, UNLOAD))
    assert ids(log.poll()) == ["epoch/1", UNLOAD.id]
    append(journal, entry(NEXT, SPLIT))
    assert ids(log.poll()) == ["epoch/1", SPLIT.id]
    assert log.poll() == []


def test_an_event_is_read_with_the_place_where_it_lies(tmp_path: Path) -> None:
    append(opened(tmp_path), entry(T, UNLOAD))
    path = str(tmp_path / "commands" / f"{T:015d}.jsonl")
    found = [(event.source.file, event.source.offset) for event in FolderCommandLog(tmp_path).read()]
    assert found == [(path, 0), (path, 1)]


# ---- the log ----


def lines(folder: Path) -> list[bytes]:
    return [line for path in sorted(folder.glob("*.jsonl")) for line in path.read_bytes().splitlines()]


def test_records_and_ticks_lie_in_the_order_they_were_written(tmp_path: Path) -> None:
    log = FolderMetricsLog(tmp_path, cluster=CLUSTER)
    sent = [as_bytes(topic_stats(topic=f"persistent://tenant/ns/{i}")) for i in range(4)]
    log.publish([("a", sent[0]), ("b", sent[1])])
    log.tick(T, {"b:1": None, "a:1": "sweep"})
    log.publish([("a", sent[2])])
    log.publish([("a", sent[3])])
    log.tick(NEXT, {})
    found = lines(tmp_path / "metrics")
    assert [line in sent for line in found] == [True, True, False, True, True, False]
    assert [line for line in found if line in sent] == sent

    first = decode_metric(found[2], cluster=CLUSTER, period_ms=PERIOD)
    assert isinstance(first, TickRecord)
    assert first.interval == T
    assert [(each.broker, each.sweep_id) for each in first.roster or ()] == [("a:1", "sweep"), ("b:1", None)]


def test_the_result_log_is_ticked_too_and_has_no_roster(tmp_path: Path) -> None:
    log = FolderMetricsLog(tmp_path, cluster=CLUSTER)
    log.results([("c", as_bytes(result()))])
    log.tick(T, {"a:1": None})
    answer, tick = lines(tmp_path / "results")
    assert answer == as_bytes(result())
    decoded = decode_result(tick, cluster=CLUSTER, period_ms=PERIOD)
    assert isinstance(decoded, TickRecord)
    assert decoded.roster is None


def test_a_writer_goes_on_where_the_last_one_stopped(tmp_path: Path) -> None:
    for value in (1, 2):
        log = FolderMetricsLog(tmp_path, cluster=CLUSTER)
        log.publish([("a", b"%d" % value)])
        log.tick(T + value * PERIOD, {})
    found = lines(tmp_path / "metrics")
    assert found[0::2] == [b"1", b"2"]
    assert [json.loads(line)["interval"] for line in found[1::2]] == [T + PERIOD, T + 2 * PERIOD]


def test_files_are_as_old_as_their_names_say(tmp_path: Path) -> None:
    log = FolderMetricsLog(tmp_path, cluster=CLUSTER)
    for i in range(30):
        log.publish([("a", b"%d" % i)])
        log.tick(T + i * PERIOD, {})
    modified = [path.stat().st_mtime_ns // 1_000_000 for path in sorted((tmp_path / "metrics").glob("*.jsonl"))]
    assert len(modified) == 60
    assert modified == sorted(set(modified))


def test_a_record_of_several_lines_is_refused(tmp_path: Path) -> None:
    log = FolderMetricsLog(tmp_path, cluster=CLUSTER)
    for value in (b'{\n"v": 1}', b'{\r"v": 1}'):
        with pytest.raises(TrimtabError, match="one JSON record a line"):
            log.publish([("a", value)])
    assert names(tmp_path / "metrics") == []


def test_dead_letters_of_a_batch_that_runs_again_are_kept_once(tmp_path: Path) -> None:
    log = FolderDeadLetterLog(tmp_path)
    letter = dead_letter_of(b"?", WireError("not_json"), Source(file="x.jsonl", offset=3))
    log.write(0, [letter])
    log.write(0, [letter])
    log.write(1, [])
    (line,) = lines(tmp_path / "dead_letters")
    assert json.loads(line)["source"] == {"topic": None, "file": "x.jsonl", "partition": 0, "offset": 3}


def test_dead_letters_stay_when_a_new_checkpoint_counts_batches_anew(tmp_path: Path) -> None:
    log = FolderDeadLetterLog(tmp_path)
    for offset in (3, 4):
        log.write(0, [dead_letter_of(b"?", WireError("not_json"), Source(file="x.jsonl", offset=offset))])
    assert {json.loads(line)["source"]["offset"] for line in lines(tmp_path / "dead_letters")} == {3, 4}


def test_a_folder_that_is_another_clusters_log_is_refused_by_name(tmp_path: Path) -> None:
    append(opened(tmp_path), entry(T))
    refusal = f"is of cluster '{CLUSTER}': give cluster 'other' a folder of its own"
    with pytest.raises(AnotherClusterError, match=refusal) as caught:
        FolderJournal(tmp_path, cluster="other").open()
    assert caught.value.exit_code == 2


def test_an_entry_of_a_later_release_is_refused_by_name_with_an_exit_code_for_a_person(tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    (tmp_path / "journal" / f"{T:015d}.json").write_bytes(b'{"v":2,"type":"decision","cluster":"demo"}')
    with pytest.raises(NewerJournalError) as caught:
        newest_decision(tmp_path)
    assert "v is 2, known: 1: a later release of trimtab wrote it.  Start that release again" in str(caught.value)
    assert caught.value.exit_code == 2


def test_offsets_of_the_journal_stay_while_decisions_and_leaderships_come_behind_them(tmp_path: Path) -> None:
    def told() -> list[tuple[int, bytes]]:
        log = FolderRecords(tmp_path)
        return [(each.offset, each.value) for each in log.read("journal", log.extents("journal"))]

    journal, before = opened(tmp_path), list[tuple[int, bytes]]()
    for epoch in (1, 2):
        journal.begin_epoch(epoch)
        for number in range(2):
            what = entry(T + (2 * epoch + number) * PERIOD)
            journal.append(what, epoch=epoch, issued_at_ms=T + 1, before_commit=nothing)
            assert told()[:-1] == before
            before = told()
    journal.prune(committed=T, before=T)  # deletes the first leadership
    assert told() == before
    assert len(before) == 4
