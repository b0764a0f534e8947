"""Rows of a recording's file that repeat the text of the row before: what is read is what was written, or refused."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.adapters.recordings import repeated
from controller.adapters.recordings.manifest import RecordingError
from controller.adapters.recordings.record_log import StoredRecord
from controller.adapters.recordings.records_file import SCHEMA, packed, records_of, unpacked
from controller.adapters.recordings.repeated import MARK, whole
from tests.recordings import stored
from tests.records import LEFT, RIGHT, T, broker_sweep, bundle_stats

INT64 = np.iinfo(np.int64).max


def read(content: bytes) -> list[StoredRecord]:
    return records_of(unpacked(content, "file"), "file")


def sweep(number: int, *, broker: str = "b:1", chunk: int = 0, **changed: Any) -> bytes:
    told = {
        "interval": T + 60_000 * number,
        "sweepId": f"{broker}@{number}#a",
        "chunk": chunk,
        "chunks": 2,
        "bundleStats": [bundle_stats((LEFT, RIGHT)[chunk])],
    }
    return json.dumps(broker_sweep(broker, **told, **changed), separators=(",", ":")).encode()


def test_sweeps_of_an_hour_come_back_byte_for_byte_and_take_little() -> None:
    """Two chunks of two brokers, by turns, in two partitions."""
    places = [(i, chunk, broker) for i in range(60) for chunk in (0, 1) for broker in ("b:1", "c:1")]
    records = [
        stored(n, sweep(i, broker=broker, chunk=chunk, msgRateIn=1000.5 + i), partition=n % 2, key=broker.encode())
        for n, (i, chunk, broker) in enumerate(places)
    ]
    content = packed(records)
    assert sorted(read(content)) == sorted(records)
    assert len(content) < sum(len(each.value) for each in records) / 50
    values = _column(content, "value")
    assert sum(not value.startswith(MARK) for value in values) == 4


def _column(content: bytes, name: str) -> list[Any]:
    found: list[Any] = pq.read_table(pa.BufferReader(content)).column(name).to_pylist()
    return found


NUMBER = st.integers(0, INT64) | st.integers(0, 9) | st.floats(0, 1e15)
VALUES = st.lists(st.lists(NUMBER, max_size=4), max_size=6).flatmap(
    lambda rows: st.permutations([json.dumps({"sweepId": f"s{i}", "a": row}).encode() for i, row in enumerate(rows)])
)


@given(
    VALUES,
    st.lists(st.sampled_from([b"", MARK, MARK + b"{}", b"{}", b"\0", b'{"a":1}', b'{"sweepId":""}']), max_size=6),
)
def test_whatever_is_written_is_read(values: list[bytes], others: list[bytes]) -> None:
    records = [stored(i, value) for i, value in enumerate([*values, *others, *values])]
    if records:
        assert read(packed(records)) == records


def test_the_largest_steps_there_are() -> None:
    for largest in (INT64, 10**18 - 1):
        records = [stored(i, b'{"a":[%d,%d]}' % (i % 2 * largest, (1 - i % 2) * largest)) for i in range(5)]
        assert read(packed(records)) == records


def table(**changed: list[Any]) -> pa.Table:
    rows = {
        "partition": [0, 0], "offset": [0, 1], "timestamp": [0, 0], "key": [None, None],
        "value": [b'{"a":\0}', MARK], "headers": [[], []], "digits": [[5], [2]], "decimals": [b"\0", b"\0"],
    }  # fmt: skip
    return pa.table({**rows, **changed}, schema=SCHEMA)


def test_a_step_is_a_whole_number_from_0_on() -> None:
    assert [each.value for each in _read_table(table())] == [b'{"a":5}', b'{"a":6}']
    assert [each.value for each in _read_table(table(digits=[[5], [1]]))] == [b'{"a":5}', b'{"a":4}']


def _read_table(of: pa.Table) -> list[StoredRecord]:
    sink = pa.BufferOutputStream()
    pq.write_table(of, sink, use_dictionary=False, store_schema=False)
    return read(sink.getvalue().to_pybytes())


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"value": [MARK, MARK]}, "begins with a row that repeats"),
        ({"digits": [[5], [2, 3]]}, "other numbers"),
        ({"digits": [[5], None]}, "other numbers"),
        ({"digits": [[5], [None]]}, "digits that are not valid"),
        ({"digits": [[5], [99]]}, "digits that are not valid"),
        ({"digits": [[5], [-1]]}, "digits that are not valid"),
        ({"digits": [[5], [-2]]}, "digits that are not valid"),
        ({"value": [b'{"a":\0}', MARK + b"id"]}, "sweep's id in a text that has none"),
        ({"value": [b'{"a":1}', MARK]}, "numbers for"),
        ({"value": [b'{"sweepId":"","a":\0}', MARK + b"\0"]}, "numbers for"),
        ({"decimals": [b"\0", b""]}, "numbers for"),
    ],
)
def test_rows_that_do_not_fit_together_are_refused(changed: dict[str, list[Any]], says: str) -> None:
    with pytest.raises(RecordingError, match=f"file: .*{says}"):
        _read_table(table(**changed))


def test_a_text_that_is_repeated_too_often_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A large text in one row, and thousands that repeat it."""
    monkeypatch.setattr(repeated, "LARGEST_FILE", 1 << 20)
    ends = np.zeros(2000, np.int64)
    with pytest.raises(RecordingError, match="unpacks to more than"):
        whole([b"{" + b" " * 1000, *[MARK] * 1999], [False, *[True] * 1999], ends[:0], ends, "file")


_CHANGES: list[Callable[[bytes], bytes]] = [lambda value: value, lambda value: value + b" "]


@pytest.mark.parametrize("change", _CHANGES, ids=["none", "another text"])
def test_a_text_that_changes_begins_anew(change: Callable[[bytes], bytes]) -> None:
    records = [stored(i, change(sweep(i)) if i == 3 else sweep(i)) for i in range(6)]
    assert read(packed(records)) == records
