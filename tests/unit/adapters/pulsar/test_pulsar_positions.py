"""Places in a topic of Pulsar: as one number, and in Spark's checkpoint."""

import json
from itertools import pairwise

import pytest

from controller.adapters.pulsar.log.offsets import VERSION, LogOffset, from_json, to_json
from controller.adapters.pulsar.log.positions import BEGINNING, Entry, before, entry_of, number_of
from controller.model.errors import StateError, TrimtabError

LAST_LEDGER, LAST_ENTRY = (1 << 33) - 1, (1 << 22) - 1
#: In the order of a partition.
PLACES = [(0, 0, -1), (0, 1, 0), (0, 1, 1), (0, 1, 255), (0, LAST_ENTRY, 3), (1, 0, -1), (7, 5, 9), (LAST_LEDGER, 0, 0)]
TOPIC = "persistent://public/trimtab/metrics"


def test_numbers_rise_in_the_order_in_which_messages_were_written() -> None:
    numbers = [number_of(*place) for place in PLACES]
    assert all(one < other for one, other in pairwise(numbers))
    assert [entry_of(number) for number in numbers] == [Entry(ledger, entry) for ledger, entry, _ in PLACES]


def test_the_largest_number_fits_into_63_bits() -> None:
    assert number_of(LAST_LEDGER, LAST_ENTRY, 255) == (1 << 63) - 1


def test_a_message_alone_in_its_entry_has_the_number_of_a_first_one() -> None:
    assert number_of(3, 4, -1) == number_of(3, 4, 0)


def test_messages_beyond_the_255th_of_a_batch_share_a_number_that_stays_in_their_entry() -> None:
    assert number_of(3, 4, 255) == number_of(3, 4, 99_999) < number_of(3, 5, 0)


@pytest.mark.parametrize("place", [(LAST_LEDGER + 1, 0), (0, LAST_ENTRY + 1), (-1, 0), (0, -1)])
def test_a_place_that_has_no_number_is_an_error_that_names_it_and_the_brokers_setting(place: tuple[int, int]) -> None:
    with pytest.raises(TrimtabError, match=rf"{place[0]}:{place[1]}.*managedLedgerMaxEntriesPerLedger"):
        number_of(*place, 0)


def test_the_place_before_the_first_entry_of_a_ledger_is_its_beginning() -> None:
    assert before(Entry(3, 0)) == Entry(3, -1)
    assert before(Entry(3, 5)) == Entry(3, 4)


def test_an_offset_is_read_back_as_it_was_written_and_written_the_same_each_time() -> None:
    read = {(TOPIC, 10): Entry(3, 4), (TOPIC, 2): Entry(5, -1), ("persistent://a/b/c", 0): BEGINNING}
    offset = LogOffset(time_ms=1_732_000_000_000, read=read)
    told = json.dumps(to_json(offset))
    assert from_json(json.loads(told)) == offset
    assert json.dumps(to_json(LogOffset(time_ms=offset.time_ms, read=dict(reversed(read.items()))))) == told
    assert json.loads(told)["topics"][TOPIC] == {"2": [5, -1, -1], "10": [3, 4, -1]}


def test_the_version_of_another_trimtab_is_refused_by_name() -> None:
    told = to_json(LogOffset(time_ms=1, read={})) | {"version": VERSION + 1}
    with pytest.raises(StateError, match=r"version 2; this trimtab reads version 1"):
        from_json(told)


@pytest.mark.parametrize(
    "told",
    [
        None,
        [],
        {},
        {"trimtab-metrics": {"0": 12}},
        {"version": 1},
        {"version": 1, "time": 1, "topics": []},
        {"version": 1, "time": 1, "topics": {"t": []}},
        {"version": 1, "time": True, "topics": {}},
        {"version": 1, "time": 1.5, "topics": {}},
        {"version": 1, "time": 1, "topics": {"t": {"x": [1, 2, -1]}}},
        {"version": 1, "time": 1, "topics": {"t": {"0": [1, 2]}}},
        {"version": 1, "time": 1, "topics": {"t": {"0": [1, 2, 0]}}},
        {"version": 1, "time": 1, "topics": {"t": {"0": [1, -2, -1]}}},
        {"version": 1, "time": 1, "topics": {"t": {"0": ["1", 2, -1]}}},
        {"version": 1, "time": 1, "topics": {"t": {"0": "1:2"}}},
    ],
)
def test_whatever_else_a_checkpoint_holds_is_refused(told: object) -> None:
    with pytest.raises(StateError, match="checkpoint"):
        from_json(told)
