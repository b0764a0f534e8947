"""Journal entries as bytes."""

import json
import math
from dataclasses import replace

import pytest

from controller.model.errors import WireError
from controller.model.journal import JournalEntry
from controller.model.memory import BrokerDeaths, Memory, OwnBalancing
from controller.model.strategy_memory import NoMemory
from controller.strategies.common.usage_history import UsageHistory
from controller.wire.journal import EpochEntry, encode_entry, encode_epoch
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


def test_a_number_that_is_none_comes_back_too() -> None:
    written = entry(shedder=UsageHistory(usage={"a": math.nan, "b": math.inf, "c": -math.inf}))
    read = parse_entry(encode_entry(written))
    assert isinstance(read, JournalEntry)
    assert isinstance(read.memory.shedder, UsageHistory)
    assert list(map(repr, read.memory.shedder.usage.values())) == ["nan", "inf", "-inf"]


def test_what_is_known_of_the_brokers_comes_back_with_its_lists() -> None:
    known = BrokerDeaths(brokers=("a:80", "b:80"), alive=("a:80",), died=("b:80",))
    written = entry(balancing=OwnBalancing(why="a:80 sheds", unknown={"b:80": T}), deaths=known)
    assert parse_entry(encode_entry(written)) == written


@pytest.mark.parametrize("part", ["balancing", "deaths"])
def test_a_part_of_the_memory_that_is_null_is_an_empty_one(part: str) -> None:
    """Schemas of earlier releases allow null there."""
    written = json.loads(encode_entry(entry()))
    written["memory"][part] = None
    assert parse_entry(as_bytes(written)) == entry()


def test_an_entry_says_nothing_of_epoch_or_clock() -> None:
    written = json.loads(encode_entry(entry(T, UNLOAD)))
    assert set(written) == {"v", "type", "cluster", "interval", "summary", "commands", "memory", "controls"}
    assert set(written["commands"][0]) == {"id", "type", "subject", "data"}


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
