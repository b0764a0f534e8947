"""The signatures of commands, in the journal and in the command topic."""

from dataclasses import replace

import pytest

from controller.log.journal_reading import JournalReader
from controller.model.decision import Command
from controller.wire import journal_records
from controller.wire.command_signatures import why_not_believed
from controller.wire.commands import EpochEvent, SplitEvent, UnloadEvent, command_event, parse_event
from controller.wire.ed25519 import SigningKey
from tests.journal_entries import UNLOAD, entry
from tests.records import CLUSTER, PERIOD, T
from tests.unit.log.places import MemoryPlace, Place
from tests.unit.log.test_crashes import Fault, kill, with_fault

KEY = SigningKey.new()


def commands(number: int, interval: int = T) -> list[Command]:
    return [replace(UNLOAD, id=f"{interval}-{each}", interval=interval) for each in range(number)]


def decide(place: Place, *wanted: Command, key: SigningKey | None = KEY, interval: int = T) -> None:
    """One leader decides one interval."""
    journal = place.journal(signing_key=key)
    epoch = journal.open().epoch + 1
    journal.begin_epoch(epoch)
    journal.append(entry(interval, *wanted), epoch=epoch, issued_at_ms=interval, before_commit=lambda: None)


def events(place: MemoryPlace) -> list[UnloadEvent | SplitEvent]:
    return [each for each in map(parse_event, place.events()) if not isinstance(each, EpochEvent)]


def crashed(*wanted: Command, key: SigningKey | None = KEY) -> MemoryPlace:
    """A followed log whose leader died once its entry was there, and before any command was."""
    for at in range(100):
        place = MemoryPlace(atomic=False, seed=0)
        with_fault(place, Fault(at, "after", kill), lambda place: decide(place, *wanted, key=key))
        journal = place.connect().read("journal").read_to_end()
        if any("interval" in record.headers for record in journal) and place.entries() and not events(place):
            return place
    raise AssertionError("no effect lies between the entry and its commands")


@pytest.mark.parametrize("number", [1, 7, 40])
def test_the_next_leader_issues_what_is_missing_with_the_signatures_of_the_one_that_decided(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_records, "_LARGEST_RECORD", 9_000)  # 40 commands are an entry of several parts
    monkeypatch.setattr(journal_records, "_PART_CHARACTERS", 3_000)
    wanted = commands(number)
    place = crashed(*wanted)
    place.journal(signing_key=SigningKey.new()).open()
    assert [event.id for event in events(place)] == [each.id for each in wanted]
    assert not any(why_not_believed(event, [KEY.public]) for event in events(place))


def test_a_leader_with_a_key_signs_nothing_that_it_did_not_decide() -> None:
    place = crashed(*commands(2), key=None)
    place.journal(signing_key=KEY).open()
    assert [event.signature for event in events(place)] == ["", ""]


def test_parts_of_an_entry_that_was_given_up_do_not_mix_with_the_next_entrys_signatures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(journal_records, "_LARGEST_RECORD", 3_000)
    monkeypatch.setattr(journal_records, "_PART_CHARACTERS", 3_000)

    def too_late() -> None:
        raise TimeoutError

    place = MemoryPlace(atomic=False, seed=0)
    journal = place.journal(signing_key=KEY)
    journal.open()
    journal.begin_epoch(1)
    with pytest.raises(TimeoutError):
        journal.append(entry(T, *commands(20)), epoch=1, issued_at_ms=T, before_commit=too_late)
    last = commands(3)
    journal.append(entry(T, *last), epoch=1, issued_at_ms=T, before_commit=lambda: None)
    end = JournalReader(place.connect(), CLUSTER).end()
    signed = [
        parse_event(command_event(command, 1, T, signature))
        for command, signature in zip(last, end.signatures, strict=True)
    ]
    assert not any(why_not_believed(event, [KEY.public]) for event in signed if not isinstance(event, EpochEvent))


def test_a_forged_command_with_the_id_of_a_decided_one_does_not_keep_it_from_being_issued() -> None:
    [wanted] = commands(1)
    place = crashed(wanted)
    place.issue(command_event(replace(wanted, destination="broker-9:8080"), 1, T))
    place.journal(signing_key=KEY).open()
    assert [not why_not_believed(event, [KEY.public]) for event in events(place)] == [False, True]


def test_what_was_issued_with_its_signature_is_not_issued_again() -> None:
    place = MemoryPlace(atomic=False, seed=0)
    decide(place, *commands(3))
    decide(place, *commands(2, T + PERIOD), interval=T + PERIOD)
    place.journal(signing_key=KEY).open()
    assert len(events(place)) == 5


@pytest.mark.parametrize("number", [1_200, 3_000])
def test_no_record_grows_above_what_kafka_takes(number: int) -> None:
    place = MemoryPlace(atomic=True, seed=0)
    decide(place, *commands(number))
    records = [each for each in place.connect().read("journal").read_to_end() if "interval" in each.headers]
    assert max(len(each.value) + sum(map(len, each.headers.values())) for each in records) < 1 << 20
    assert len(JournalReader(place.connect(), CLUSTER).end().signatures) == number
