"""Journal entries as bytes."""

import json
import math
from dataclasses import replace

import pytest

from controller.model.controls import Controls
from controller.model.errors import WireError
from controller.model.journal import JournalEntry
from controller.model.memory import Breaker, Memory, Roster
from controller.model.strategy_memory import NoMemory
from controller.strategies.common.usage_history import UsageHistory
from controller.strategies.shedding.peak_shedder.memory import PeakHistory
from controller.wire.journal import EpochEntry, encode_entry, encode_epoch
from controller.wire.journal_records import LARGEST_ENTRY
from tests.journal_entries import SPLIT, UNLOAD, entry, parse_entry
from tests.records import CLUSTER, T, as_bytes, without


def test_an_entry_comes_back_as_it_was() -> None:
    written = entry(T, UNLOAD, SPLIT)
    assert parse_entry(encode_entry(written)) == written


def test_an_entry_of_a_controller_that_remembers_nothing_comes_back_too() -> None:
    written = replace(entry(), memory=Memory())
    read = parse_entry(encode_entry(written))
    assert read == written
    assert isinstance(read, JournalEntry)
    assert read.memory.shedder == NoMemory()


def test_equal_entries_have_equal_bytes_in_whatever_order_their_mappings_were_filled() -> None:
    one = entry(shedder=UsageHistory(usage={"b": 2.0, "a": 1.0}), recently_unloaded={"y": 2, "x": 1})
    other = entry(shedder=UsageHistory(usage={"a": 1.0, "b": 2.0}), recently_unloaded={"x": 1, "y": 2})
    assert one == other
    assert encode_entry(one) == encode_entry(other)


def test_a_memory_that_has_nothing_to_say_in_a_newer_field_is_written_as_before_there_was_one() -> None:
    newer = {"jumped_ms", "helped", "relieved", "gone", "returned"}
    said = PeakHistory(jumped_ms=T, helped={"a": T}, relieved={"b": T}, gone={"c": T}, returned={"d": T})
    for memory, names in ((PeakHistory(), set()), (said, newer)):
        told = encode_entry(entry(shedder=memory))
        assert newer & json.loads(told)["memory"]["shedder"].keys() == names
        assert parse_entry(told) == entry(shedder=memory)


def test_an_entry_from_before_failures_were_remembered_can_be_read() -> None:
    written = json.loads(encode_entry(entry()))
    del written["memory"]["failed"]
    read = parse_entry(as_bytes(written))
    assert isinstance(read, JournalEntry)
    assert read.memory == replace(entry().memory, failed={})


def test_an_entry_from_before_guardrails_were_remembered_can_be_read() -> None:
    written = json.loads(encode_entry(entry()))
    for key in ("issued", "failures", "breaker", "roster"):
        del written["memory"][key]
    for key in ("reason", "by", "sinceMs", "resumedMs", "maintenance", "unknown"):
        del written["controls"][key]
    del written["memory"]["inFlight"]["c-1"]["dryRun"]
    read = parse_entry(as_bytes(written))
    assert isinstance(read, JournalEntry)
    old = replace(entry().memory, issued={}, failures={}, breaker=Breaker(), roster=Roster())
    assert read.memory == old
    assert read.controls == Controls(mode="active", stale=True)


def test_a_number_that_is_none_comes_back_too() -> None:
    written = entry(shedder=UsageHistory(usage={"a": math.nan, "b": math.inf, "c": -math.inf}))
    read = parse_entry(encode_entry(written))
    assert isinstance(read, JournalEntry)
    assert isinstance(read.memory.shedder, UsageHistory)
    assert list(map(repr, read.memory.shedder.usage.values())) == ["nan", "inf", "-inf"]


def test_an_entry_says_nothing_of_epoch_or_clock() -> None:
    written = json.loads(encode_entry(entry(T, UNLOAD)))
    assert set(written) == {"v", "type", "cluster", "interval", "summary", "commands", "memory", "controls"}
    assert set(written["commands"][0]) == {"id", "type", "subject", "data"}


def test_a_memory_is_tagged_with_its_kind() -> None:
    memory = json.loads(encode_entry(entry()))["memory"]
    assert memory["shedder"]["kind"] == "usage_history"
    assert memory["placement"] == {"kind": "none"}


def test_an_epoch_comes_back_as_it_was() -> None:
    assert parse_entry(encode_epoch(CLUSTER, 4)) == EpochEntry(cluster=CLUSTER, epoch=4)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"v": 2}, "unknown_version"),
        ({"type": "thought"}, "unknown_type"),
        ({"memory": {}}, "missing_field"),
        ({"controls": None}, "bad_value"),
    ],
)
def test_an_entry_that_another_version_wrote_is_refused(change: dict[str, object], reason: str) -> None:
    written = {**json.loads(encode_entry(entry())), **change}
    with pytest.raises(WireError) as caught:
        parse_entry(as_bytes(written))
    assert caught.value.reason == reason


def test_an_entry_without_its_memory_is_refused() -> None:
    with pytest.raises(WireError, match="missing_field: memory"):
        parse_entry(as_bytes(without(json.loads(encode_entry(entry())), "memory")))


def test_the_longest_entry_with_commands_has_64_mib() -> None:
    assert LARGEST_ENTRY == 67_108_864
