"""Which entries of a log in Pulsar a micro-batch reads."""

from itertools import product

import pytest

from controller.adapters.pulsar.log.positions import BEGINNING, Entry
from controller.adapters.pulsar.log.ranges import Ledgers, LedgerSize, ends, missing, replaced

TOPIC = "persistent://public/trimtab/metrics"
PLACE = (TOPIC, 0)
#: Twelve entries, an empty ledger between them, and an empty one that is open.
EXTENT = Ledgers(ledgers=(LedgerSize(3, 5), LedgerSize(4, 0), LedgerSize(8, 7), LedgerSize(9, 0)))
EMPTY = Ledgers(ledgers=(LedgerSize(3, 0),))
NOTHING = Ledgers(ledgers=())
#: Every entry of EXTENT, in order.
ENTRIES = [Entry(3, entry) for entry in range(5)] + [Entry(8, entry) for entry in range(7)]
#: Wherever a reader of EXTENT may stand, in order.
STARTS = [BEGINNING, Entry(2, 9), Entry(3, -1), *ENTRIES[:5], Entry(4, -1), Entry(8, -1), *ENTRIES[5:], Entry(9, -1)]


@pytest.mark.parametrize("start", STARTS)
def test_so_many_entries_are_taken_in_order_and_none_is_left_out(start: Entry) -> None:
    left = [entry for entry in ENTRIES if entry > start]
    assert EXTENT.after(start) == len(left)
    for most in range(14):
        taken = left[:most]
        end = EXTENT.advanced(start, most)
        assert [entry for entry in ENTRIES if start < entry <= end] == taken
        assert end == (taken[-1] if taken else start)


@pytest.mark.parametrize("end", STARTS)
def test_what_lies_after_an_end_can_be_left_out(end: Entry) -> None:
    cut = EXTENT.up_to(end)
    assert cut.entries == len([entry for entry in ENTRIES if entry <= end])
    for start in STARTS:
        assert cut.after(start) == len([entry for entry in ENTRIES if start < entry <= end])


@pytest.mark.parametrize("start", STARTS[3:])
def test_going_back_leaves_so_many_entries_before_the_start(start: Entry) -> None:
    behind = [entry for entry in ENTRIES if entry <= start]
    for most in range(1, 14):
        back = EXTENT.before(start, most)
        assert [entry for entry in behind if entry > back] == behind[-most:]


@pytest.mark.parametrize(
    ("extent", "end"),
    [
        (EXTENT, Entry(8, 6)),
        (EMPTY, Entry(3, -1)),
        (NOTHING, BEGINNING),
        (Ledgers(ledgers=(LedgerSize(5, 1),)), Entry(5, 0)),
    ],
)
def test_the_end_is_the_last_entry(extent: Ledgers, end: Entry) -> None:
    assert extent.end == end


def test_without_a_limit_all_is_read_and_a_new_partition_from_its_beginning() -> None:
    extents = {(TOPIC, 0): EXTENT, (TOPIC, 1): EXTENT, (TOPIC, 2): EMPTY, (TOPIC, 3): NOTHING}
    found = ends({(TOPIC, 0): Entry(3, 2)}, extents, None)
    assert found == {(TOPIC, 0): EXTENT.end, (TOPIC, 1): EXTENT.end, (TOPIC, 2): BEGINNING, (TOPIC, 3): BEGINNING}


@pytest.mark.parametrize("most", [1, 2, 5, 11, 12, 13, 100])
def test_a_limit_is_shared_out_and_every_partition_with_entries_goes_on(most: int) -> None:
    extents = {(TOPIC, 0): EXTENT, (TOPIC, 1): Ledgers(ledgers=(LedgerSize(5, 1),)), (TOPIC, 2): EMPTY}
    read: dict[tuple[str, int], Entry] = {}
    seen: dict[int, list[Entry]] = {0: [], 1: []}
    for _ in range(13):
        found = ends(read, extents, most)
        taken = {
            place: [e for e in entries if read.get(place, BEGINNING) < e <= found[place]]
            for place, entries in (((TOPIC, 0), ENTRIES), ((TOPIC, 1), [Entry(5, 0)]))
        }
        assert sum(map(len, taken.values())) <= max(most, 2)
        for (_, partition), entries in taken.items():
            seen[partition] += entries
        if found == read:
            break
        read = found
    assert seen == {0: ENTRIES, 1: [Entry(5, 0)]}


def test_ends_never_lie_before_what_is_read() -> None:
    for start, extent in product(STARTS, (EXTENT, EMPTY, NOTHING, Ledgers(ledgers=(LedgerSize(8, 2),)))):
        assert ends({PLACE: start}, {PLACE: extent}, 5)[PLACE] >= start


@pytest.mark.parametrize("start", [BEGINNING, Entry(3, -1), Entry(3, 4), Entry(8, 6)])
def test_nothing_is_missing_where_the_ledger_that_was_read_last_is_there(start: Entry) -> None:
    assert missing(PLACE, start, EXTENT, None) is None


def test_entries_that_retention_took_are_named() -> None:
    now = Ledgers(ledgers=(LedgerSize(8, 7), LedgerSize(9, 0)))
    found = missing(PLACE, Entry(3, 1), now, EXTENT)
    assert found is not None
    assert str(found) == (
        f"{TOPIC}, partition 0: retention has deleted at least 3 entries that were not read, after 3:1 and before"
        " 8:0; continuing at 8:0"
    )


def test_it_is_not_known_how_many_are_missing_where_nobody_looked_before() -> None:
    now = Ledgers(ledgers=(LedgerSize(8, 7), LedgerSize(9, 0)))
    for earlier in (None, Ledgers(ledgers=(LedgerSize(1, 5), LedgerSize(3, 2)))):
        found = missing(PLACE, Entry(3, 1), now, earlier)
        assert found is not None
        assert "may have deleted entries that were not read, after 3:1 and before 8:0" in str(found)


def test_a_ledger_that_was_read_to_its_end_may_be_deleted() -> None:
    now = Ledgers(ledgers=(LedgerSize(8, 7), LedgerSize(9, 0)))
    assert missing(PLACE, Entry(3, 4), now, EXTENT) is None


def test_a_ledger_that_may_have_grown_before_it_was_deleted_counts_as_not_read_to_its_end() -> None:
    now = Ledgers(ledgers=(LedgerSize(12, 1),))
    assert missing(PLACE, Entry(8, 6), now, EXTENT) is not None, "ledger 9 was open when it was last looked at"


@pytest.mark.parametrize(
    ("start", "is_replaced"),
    [
        (BEGINNING, False),
        (Entry(3, 4), False),
        (Entry(3, 5), True),
        (Entry(4, -1), False),
        (Entry(8, 6), False),
        (Entry(8, 7), True),
        (Entry(9, -1), False),
        (Entry(9, 0), False),
        (Entry(10, -1), True),
        (Entry(10, 3), True),
    ],
)
def test_a_partition_that_ends_before_what_was_read_is_another_one(start: Entry, is_replaced: bool) -> None:
    found = replaced(PLACE, start, EXTENT)
    assert (found is not None) == is_replaced
    assert replaced(PLACE, start, NOTHING) is None
