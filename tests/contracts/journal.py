"""The contract of controller.model.journal.Journal."""

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Protocol

import pytest

from controller.log.journal import LogJournal
from controller.model.errors import EntryTooLargeError, LeadershipLostError
from controller.model.journal import Journal, JournalEntry, JournalHead
from controller.strategies.common.usage_history import UsageHistory
from controller.wire import journal_records
from controller.wire.command_signatures import signed_bytes
from controller.wire.commands import EpochEvent, SplitEvent, UnloadEvent, parse_event
from controller.wire.ed25519 import SigningKey
from controller.wire.readable import utc
from tests.journal_entries import SPLIT, UNLOAD, entry
from tests.records import PERIOD, T

NEXT = T + PERIOD
HOUR = 3_600_000
#: Long beside the rest of an entry.
USAGE = UsageHistory(usage={f"broker-{number:03d}:8080": number / 7 for number in range(100)})


class JournalPlace(Protocol):
    """Where a journal is kept, as a test sees it."""

    #: Of the implementation: the one that passes the failpoints.
    module: ModuleType

    def journal(self, *, signing_key: SigningKey | None = None) -> LogJournal:
        """A journal of one more process, not opened yet, that signs commands with *signing_key*."""
        ...

    def entries(self) -> list[JournalEntry]:
        """What a reader finds, oldest first."""
        ...

    def events(self) -> list[bytes]:
        """What readers of commands get, epochs included."""
        ...


def open_journal(place: JournalPlace) -> Journal:
    journal = place.journal()
    journal.open()
    return journal


def head(place: JournalPlace) -> JournalHead:
    return place.journal().open()


def append(
    journal: Journal, what: JournalEntry, *, epoch: int = 1, before_commit: Callable[[], None] = lambda: None
) -> None:
    journal.append(what, epoch=epoch, issued_at_ms=T + 1, before_commit=before_commit)


def issued(place: JournalPlace) -> list[str]:
    """The ids of all commands."""
    events = map(parse_event, place.events())
    return sorted(event.id for event in events if not isinstance(event, EpochEvent))


def hours(place: JournalPlace, count: int) -> list[JournalEntry]:
    """The entries of as many hours, four an hour, with a new leader every hour."""
    written = list[JournalEntry]()
    for hour in range(count):
        journal = open_journal(place)
        journal.begin_epoch(hour + 1)
        for quarter in range(4):
            interval = T // HOUR * HOUR + hour * HOUR + quarter * 900_000
            command = replace(UNLOAD, id=f"command-{len(written)}", interval=interval)
            written.append(entry(interval, command, shedder=USAGE))
            append(journal, written[-1], epoch=hour + 1)
    return written


def lose() -> None:
    raise LeadershipLostError("another leads")


class JournalContract:
    """Inherited by the tests of each implementation, which give the fixture ``place``."""

    def test_an_empty_one_holds_nothing_and_no_epoch(self, place: JournalPlace) -> None:
        assert head(place) == JournalHead(last=None, epoch=0)
        assert place.entries() == []

    def test_an_epoch_alone_is_found_again(self, place: JournalPlace) -> None:
        open_journal(place).begin_epoch(4)
        assert head(place) == JournalHead(last=None, epoch=4)

    def test_an_epoch_that_no_leader_can_have_is_not_the_newest(self, place: JournalPlace) -> None:
        open_journal(place).begin_epoch(3)
        open_journal(place).begin_epoch(900_000_000)
        assert head(place).epoch == 3

    def test_what_was_appended_last_is_where_the_next_one_starts_from(self, place: JournalPlace) -> None:
        journal = open_journal(place)
        journal.begin_epoch(4)
        append(journal, entry(T, UNLOAD), epoch=4)
        append(journal, entry(NEXT), epoch=4)
        assert head(place) == JournalHead(last=entry(NEXT), epoch=4)
        assert place.entries() == [entry(T, UNLOAD), entry(NEXT)]

    def test_commands_are_issued_under_their_epoch_at_their_time(self, place: JournalPlace) -> None:
        append(open_journal(place), entry(T, UNLOAD, SPLIT), epoch=6)
        events = [event for event in map(parse_event, place.events()) if not isinstance(event, EpochEvent)]
        assert [type(event) for event in events] == [UnloadEvent, SplitEvent]
        assert [event.id for event in events] == [UNLOAD.id, SPLIT.id]
        assert {(event.epoch, event.time_ms) for event in events} == {(6, T + 1)}

    def test_each_command_carries_its_leaders_signature_and_the_entry_stays_as_it_is(self, place: JournalPlace) -> None:
        key = SigningKey.new()
        journal = place.journal(signing_key=key)
        journal.open()
        append(journal, entry(T, UNLOAD, SPLIT), epoch=6)
        events = [event for event in map(parse_event, place.events()) if not isinstance(event, EpochEvent)]
        expected = {each.id: key.sign(signed_bytes(each, 6)) for each in (UNLOAD, SPLIT)}
        assert {event.id: event.signature for event in events} == expected
        assert place.entries() == [entry(T, UNLOAD, SPLIT)]

    def test_an_interval_without_commands_is_journalled_and_issues_nothing(self, place: JournalPlace) -> None:
        append(open_journal(place), entry(T))
        assert place.entries() == [entry(T)]
        assert issued(place) == []

    def test_nothing_is_issued_before_the_commit(self, place: JournalPlace) -> None:
        seen: list[tuple[list[JournalEntry], list[str]]] = []
        append(
            open_journal(place), entry(T, UNLOAD), before_commit=lambda: seen.append((place.entries(), issued(place)))
        )
        assert seen == [([], [])]
        assert issued(place) == [UNLOAD.id]

    def test_what_is_raised_before_the_commit_leaves_nothing_behind(self, place: JournalPlace) -> None:
        journal = open_journal(place)
        with pytest.raises(LeadershipLostError, match="another leads"):
            append(journal, entry(T, UNLOAD), before_commit=lose)
        assert (place.entries(), issued(place)) == ([], [])
        append(journal, entry(T, SPLIT))
        assert (place.entries(), issued(place)) == ([entry(T, SPLIT)], [SPLIT.id])

    def test_leadership_is_checked_with_the_decision_made_and_the_entry_written(
        self, place: JournalPlace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        passed: list[str] = []
        monkeypatch.setattr(place.module, "failpoint", passed.append)
        append(open_journal(place), entry(T, UNLOAD), before_commit=lambda: passed.append("before_commit"))
        assert passed == ["after-decide", "before_commit", "inside-transaction", "after-commit"]

    def test_of_two_that_decide_an_interval_one_wins_and_the_other_leads_no_longer(self, place: JournalPlace) -> None:
        lost = []
        for journal, command in [*zip([open_journal(place), open_journal(place)], [UNLOAD, SPLIT], strict=True)]:
            try:
                append(journal, entry(T, command))
            except LeadershipLostError:
                lost.append(command)
        assert len(lost) == 1
        [winner] = {UNLOAD.id, SPLIT.id} - {command.id for command in lost}
        assert issued(place) == [winner]
        assert [command.id for each in place.entries() for command in each.decision.commands] == [winner]

    def test_of_two_that_begin_an_epoch_one_leads_no_longer(self, place: JournalPlace) -> None:
        lost = 0
        for journal in [open_journal(place), open_journal(place)]:
            try:
                journal.begin_epoch(3)
            except LeadershipLostError:
                lost += 1
        assert lost == 1
        assert head(place).epoch == 3

    def test_a_leader_that_is_fenced_leads_no_longer_and_its_epoch_is_known(self, place: JournalPlace) -> None:
        leader, fencing = open_journal(place), place.journal()
        leader.begin_epoch(4)
        append(leader, entry(T, UNLOAD), epoch=4)
        assert fencing.fence() == 4
        fencing.begin_epoch(5)
        with pytest.raises(LeadershipLostError):
            leader.begin_epoch(5)
        assert head(place) == JournalHead(last=entry(T, UNLOAD), epoch=5)

    def test_an_empty_one_is_fenced_for_its_first_epoch(self, place: JournalPlace) -> None:
        fencing = place.journal()
        assert fencing.fence() == 0
        fencing.begin_epoch(1)
        assert head(place) == JournalHead(last=None, epoch=1)

    def test_more_commands_than_an_entry_holds_are_refused_and_nothing_is_written(
        self, place: JournalPlace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        journal = open_journal(place)
        with monkeypatch.context() as patched:
            patched.setattr(journal_records, "LARGEST_ENTRY", 100)
            with pytest.raises(EntryTooLargeError, match=f"interval {utc(T)}: 1 commands"):
                append(journal, entry(T, UNLOAD))
        assert (place.entries(), issued(place)) == ([], [])
        append(journal, entry(T))
        assert place.entries() == [entry(T)]

    def test_entries_are_read_with_their_whole_memory(self, place: JournalPlace) -> None:
        written = hours(place, 2)
        assert place.entries() == written
        assert head(place) == JournalHead(last=written[-1], epoch=2)

    def test_pruning_keeps_the_last_whole_entry_that_is_old_enough_and_all_behind_it(self, place: JournalPlace) -> None:
        written = hours(place, 4)
        before = head(place)
        open_journal(place).prune(committed=written[-1].interval, before=written[10].interval)
        assert place.entries() == written[8:]
        assert head(place) == before

    def test_what_is_not_committed_is_not_pruned_however_old_it_is(self, place: JournalPlace) -> None:
        written = hours(place, 3)
        open_journal(place).prune(committed=written[5].interval, before=written[-1].interval + HOUR)
        assert place.entries() == written[4:]

    def test_the_last_whole_entry_is_never_pruned(self, place: JournalPlace) -> None:
        written = hours(place, 2)
        for _ in range(2):
            open_journal(place).prune(committed=written[-1].interval + HOUR, before=written[-1].interval + HOUR)
            assert place.entries() == written[4:]
