"""Entries as the journal's records: what changed, now and then the whole memory, and parts of what is too long."""

import json
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import cache

import pytest

from controller.model.errors import DamagedJournalError, EntryTooLargeError, JournalError, WireError
from controller.model.journal import JournalEntry
from controller.strategies.common.usage_history import UsageHistory
from controller.wire import journal_records
from controller.wire.base import encode
from controller.wire.journal import EpochEntry, encode_entry, encode_epoch
from controller.wire.journal_records import (
    BackwardsReader,
    Decided,
    EntryReader,
    EntryWriter,
    PartEntry,
    PartJoiner,
    parse_record,
    record_at,
)
from controller.wire.readable import utc
from tests.journal_entries import UNLOAD, entry
from tests.records import CLUSTER, PERIOD, T

HOUR = 3_600_000
#: As many brokers as make the memory long beside the rest of an entry.
BROKERS = [f"broker-{number:03d}:8080" for number in range(200)]
START = T // HOUR * HOUR


def usage(turn: int, brokers: Sequence[str] = BROKERS) -> UsageHistory:
    return UsageHistory(usage={name: (number + turn) / 7 for number, name in enumerate(brokers)})


def entries(count: int, first: int = START) -> list[JournalEntry]:
    return [entry(first + i * PERIOD, shedder=usage(i)) for i in range(count)]


@cache
def records_of(count: int) -> Sequence[bytes]:
    """The records of so many ``entries``."""
    return written(entries(count))


def written(what: Sequence[JournalEntry], *, restart_before: frozenset[int] = frozenset()) -> list[bytes]:
    """The records of *what*, by a writer that is started anew before some of them, from what lies there then."""
    records: list[bytes] = []
    writer = EntryWriter(whole_every_ms=HOUR, base=None)
    for number, each in enumerate(what):
        if number in restart_before:
            writer = EntryWriter(whole_every_ms=HOUR, base=read(records)[-1].remembered)
        encoded = writer.encode(each)
        writer.wrote(encoded)
        records += encoded.records
    return records


def read(records: Sequence[bytes]) -> list[Decided]:
    reader = EntryReader(CLUSTER)
    return [found for record in records if isinstance(found := reader.read(record), Decided)]


def kinds(records: Sequence[bytes]) -> list[str]:
    return [json.loads(record)["type"] for record in records]


def test_entries_come_back_with_their_whole_memory_byte_for_byte() -> None:
    what = entries(70)
    found = read(records_of(70))
    assert [each.value for each in found] == [encode_entry(each) for each in what]
    assert [each.entry for each in found] == what


def test_the_first_entry_and_the_first_of_every_hour_hold_the_memory_whole() -> None:
    records = written(entries(90, START + 50 * PERIOD))
    whole = [number for number, kind in enumerate(kinds(records)) if kind == "decision"]
    assert whole == [0, 10, 70]
    assert set(kinds(records)) == {"decision", "decision_delta"}


def test_where_the_hours_first_interval_was_not_decided_the_next_one_holds_the_memory_whole() -> None:
    what = [each for each in entries(70, START + 55 * PERIOD) if each.interval % HOUR > 3 * PERIOD]
    whole = [each.interval for each, kind in zip(what, kinds(written(what)), strict=True) if kind == "decision"]
    assert whole == [what[0].interval, START + HOUR + 4 * PERIOD, START + 2 * HOUR + 4 * PERIOD]


def test_any_writer_that_continues_writes_the_same_bytes() -> None:
    what = entries(70)
    assert written(what, restart_before=frozenset({1, 2, 30, 60, 61})) == records_of(70)


def test_a_reader_says_which_entries_hold_their_memory_themselves() -> None:
    assert [each.whole for each in read(records_of(70))] == [number in (0, 60) for number in range(70)]
    assert not any(each.whole for each in read(records_of(70)[1:60]))


def test_what_is_no_record_is_told_with_its_place() -> None:
    with pytest.raises(JournalError, match=r"^journal, offset 7\b"):
        record_at(b"{}", "offset 7")


def test_an_entry_with_commands_may_be_as_long_as_the_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    one, writer = entry(START), EntryWriter(whole_every_ms=HOUR, base=None)
    one = replace(one, decision=replace(one.decision, commands=(UNLOAD,)))
    for most, fits in ((len(encode_entry(one)), True), (len(encode_entry(one)) - 1, False)):
        monkeypatch.setattr(journal_records, "LARGEST_ENTRY", most)
        with nullcontext() if fits else pytest.raises(EntryTooLargeError):
            writer.encode(one)


def test_what_did_not_change_is_not_repeated() -> None:
    what = [entry(START + i * PERIOD, shedder=usage(0)) for i in range(2)]
    whole, delta = written(what)
    assert len(delta) < len(whole) / 5
    assert b"shedder" not in delta


def test_a_reader_that_begins_in_the_middle_knows_no_memory_until_the_next_whole_entry() -> None:
    found = read(records_of(70)[50:])
    assert [each.missing is None for each in found] == [False] * 10 + [True] * 10
    assert found[-1].entry == entries(70)[-1]
    for each in found[:10]:
        with pytest.raises(
            JournalError,
            match=f"is stored as a difference to the entry of {utc(START + 49 * PERIOD)}.*restore the journal",
        ):
            _ = each.entry


def test_an_entry_whose_base_was_lost_is_told_from_one_whose_base_is_there() -> None:
    records = records_of(70)
    found = read([*records[:5], *records[6:]])
    assert [number for number, each in enumerate(found) if each.missing is not None] == [*range(5, 59)]
    assert {each.missing for each in found[5:59]} == {START + 5 * PERIOD}


def test_of_several_gaps_the_first_one_behind_the_last_whole_entry_is_named() -> None:
    records = records_of(130)
    found = read([*records[:5], *records[6:9], *records[10:70], *records[71:]])
    gone = {START + number * PERIOD for number in (5, 70)}
    assert {each.missing for each in found if each.missing is not None} == gone
    assert [each.missing for each in found if each.interval == START + 110 * PERIOD] == [START + 70 * PERIOD]


def test_epochs_and_other_clusters_do_not_mix_with_decisions() -> None:
    reader, (first, second) = EntryReader(CLUSTER), written(entries(2))
    others = written([replace(entry(START, shedder=usage(9)), cluster="other")])
    assert isinstance(reader.read(first), Decided)
    assert [reader.read(each) for each in others] == [None]
    assert reader.read(encode_epoch("other", 9)) is None
    assert reader.read(encode_epoch(CLUSTER, 4)) == EpochEntry(cluster=CLUSTER, epoch=4)
    found = reader.read(second)
    assert isinstance(found, Decided)
    assert found.entry == entries(2)[1]


# ---- parts ----


@pytest.fixture
def small_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_records, "_LARGEST_RECORD", 1_000)
    monkeypatch.setattr(journal_records, "_PART_CHARACTERS", 400)


@pytest.mark.usefixtures("small_records")
def test_an_entry_above_the_largest_record_is_several_and_comes_back_in_one_piece() -> None:
    what = entries(3)
    records = written(what)
    assert set(kinds(records)) == {"part"}
    assert max(map(len, records)) <= 1_000
    assert [each.entry for each in read(records)] == what


@pytest.mark.usefixtures("small_records")
def test_parts_whose_beginning_was_not_read_are_left_out() -> None:
    records = written(entries(70))
    behind = next(number for number, each in enumerate(map(parse_record, records)) if number and _begins(each))
    found = read(records[1:])
    assert found[0].interval == START + PERIOD
    assert found == read(records[behind:])


@pytest.mark.usefixtures("small_records")
def test_of_parts_that_are_cut_off_on_either_side_nothing_comes_and_the_next_entry_is_whole() -> None:
    parts = [part for part in map(parse_record, written(entries(1))) if isinstance(part, PartEntry)]
    assert len(parts) > 2
    for left in range(1, len(parts)):
        joiner = PartJoiner()
        assert [joiner.joined(part) for part in (*parts[left:], *parts[:left])] == [None] * len(parts)
        assert [joiner.joined(part) for part in parts][-1] is not None
        joiner = PartJoiner()
        assert [joiner.joined_backwards(part) for part in reversed(parts[:left])] == [None] * left
        assert [joiner.joined_backwards(part) for part in reversed(parts)][-1] is not None


@pytest.mark.usefixtures("small_records")
def test_a_part_that_would_end_an_entry_of_fewer_parts_is_no_part_of_the_longer_one() -> None:
    first, second, third, *_ = [part for part in map(parse_record, written(entries(1))) if isinstance(part, PartEntry)]
    longer = [part.model_copy(update={"parts": 3}) for part in (first, second, third)]
    foreign = second.model_copy(update={"parts": 2})
    joiner = PartJoiner()
    assert [joiner.joined(part) for part in (longer[0], foreign, longer[2])] == [None] * 3
    assert [joiner.joined(part) for part in longer][-1] is not None


@pytest.mark.parametrize(("limit", "text"), [("_LONGEST_JOINED", "x" * 100), ("_MOST_PARTS", "")])
@pytest.mark.parametrize("backwards", [False, True])
def test_an_entry_that_never_ends_is_refused_and_the_next_one_is_read(
    monkeypatch: pytest.MonkeyPatch, limit: str, text: str, *, backwards: bool
) -> None:
    monkeypatch.setattr(journal_records, limit, 250)
    joiner = PartJoiner()

    def joined(part: int, parts: int) -> bytes | None:
        number = parts - 1 - part if backwards else part
        each = PartEntry(cluster=CLUSTER, interval=START, part=number, parts=parts, text=text)
        return joiner.joined_backwards(each) if backwards else joiner.joined(each)

    with pytest.raises(WireError, match="too_large: an entry of interval"):
        [joined(part, 10**9) for part in range(300)]
    assert [joined(part, 2) for part in range(2)] == [None, 2 * text.encode()]


def test_parts_that_never_end_are_an_error_of_the_journal_newest_first_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_records, "_MOST_PARTS", 3)
    reader = BackwardsReader(CLUSTER)
    parts = [encode(PartEntry(cluster=CLUSTER, interval=START, part=9 - part, parts=10, text="")) for part in range(4)]
    assert [reader.read(value, "offset 7") for value in parts[:3]] == [None] * 3
    with pytest.raises(JournalError, match="journal, offset 7: too_large: an entry of interval"):
        reader.read(parts[3], "offset 7")


def _begins(record: object) -> bool:
    return isinstance(record, PartEntry) and record.part == 0


@pytest.mark.usefixtures("small_records")
def test_parts_are_joined_newest_first_too() -> None:
    records, joiner = written(entries(2)), PartJoiner()
    joined = []
    for record in map(parse_record, reversed(records)):
        assert isinstance(record, PartEntry)
        value = joiner.joined_backwards(record)
        if value is not None:
            joined.append(parse_record(value))
    assert [each.interval for each in joined if not isinstance(each, EpochEntry)] == [START + PERIOD, START]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "detail"), [(1_200, 10_000), pytest.param(40_000, 0, marks=pytest.mark.integration)]
)
def test_very_many_commands_are_parts_below_kafkas_largest_message(number: int, detail: int) -> None:
    why = replace(UNLOAD.why, detail="d" * detail)
    many = tuple(replace(UNLOAD, id=f"0c5c2b9e-0000-5000-8000-{nth:012d}", why=why) for nth in range(number))
    records = written([entry(START, *many)])
    assert sum(map(len, records)) > 12_000_000
    assert max(map(len, records)) <= 1_000_000
    [found] = read(records)
    assert found.entry.decision.commands == many


def test_a_part_of_many_byte_characters_fits_too() -> None:
    summary = "\N{GRINNING FACE}" * 600_000
    what = replace(entry(START), decision=replace(entry(START).decision, summary=summary))
    records = written([what])
    assert max(map(len, records)) < 1_048_000
    assert read(records)[0].entry == what


def test_an_entry_with_more_commands_than_any_journal_holds_is_refused_before_it_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(journal_records, "LARGEST_ENTRY", 5_000)
    writer = EntryWriter(whole_every_ms=HOUR, base=None)
    with pytest.raises(EntryTooLargeError, match=f"interval {utc(START)}: 20 commands make a journal entry of .* 5000"):
        writer.encode(entry(START, *[UNLOAD] * 20, shedder=usage(0)))
    # Without commands it is written, however long the memory is: it cannot be held back.
    assert writer.encode(entry(START, shedder=usage(0))).records


# ---- what is no record ----


@pytest.mark.parametrize(
    "changes",
    [
        {"to": 3},
        {"set": 1},
        {"removed": "seed"},
        {"removed": ["nobody"]},
        {"changed": {"nobody": {}}},
        {"changed": {"seed": {}}},
        {"changed": {"shedder": {"changed": {"usage": {"values": [1]}}}}},
        {"changed": {"shedder": []}},
    ],
)
def test_changes_that_do_not_fit_their_base_are_refused(changes: object) -> None:
    first, second = written(entries(2))
    reader = EntryReader(CLUSTER)
    reader.read(first)
    with pytest.raises(WireError, match="bad_value: changes: "):
        reader.read(json.dumps({**json.loads(second), "changes": changes}).encode())


def test_changes_after_which_the_memory_makes_no_sense_are_a_damaged_entry_that_is_named() -> None:
    reader = EntryReader(CLUSTER)
    writer = EntryWriter(whole_every_ms=2 * PERIOD, base=None)
    first = T // (2 * PERIOD) * 2 * PERIOD
    whole = writer.encode(entry(first))
    writer.wrote(whole)
    reader.read(whole.value)
    delta = json.loads(writer.encode(entry(first + PERIOD)).value)
    assert delta["type"] == "decision_delta"
    delta["changes"] = {"set": {"samples": "many"}}
    decided = reader.read(json.dumps(delta).encode())
    assert isinstance(decided, Decided)
    with pytest.raises(DamagedJournalError, match=f"journal, the entry of {utc(first + PERIOD)}: .*samples") as damaged:
        _ = decided.entry
    assert damaged.value.exit_code == 2
