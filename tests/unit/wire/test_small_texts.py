"""Texts that trimtab reads and writes itself, of which many are odd, are read and written as before.

The numbers are tests.small_worlds.digits.
"""

import json
from random import Random
from typing import Any, Final

from controller.aggregate.shard.fold import DetailLimits
from controller.model.errors import TrimtabError
from controller.wire.changes import apply, change
from controller.wire.journal_records import EntryWriter
from controller.wire.json_sweeps import JsonSweeps
from controller.wire.metrics import decode_metric
from controller.wire.readable import ago, amounts, compared, counted, duration, in_number, in_time, lasting, utc
from controller.wire.rows import Located, rows_from_records
from controller.wire.split_json import joined, split
from tests.journal_entries import UNLOAD, entry
from tests.records import CLUSTER, PERIOD, T, broker_sweep
from tests.small_worlds import digits
from tests.unit.wire.test_json_sweeps import PLACES, changed, compact, sweeps, text

NUMBERS: Final = (
    0.0, 0.4, 0.5, 0.999, 1.0, 1.5, 2.0, 9.99, 10.0, 12.345678, 59.0, 59.5, 60.0, 89.0, 99.5, 100.0, 119.0, 119.6,
    120.0, 121.0, 999.0, 1000.0, 1023.0, 1024.0, 3599.0, 3600.0, 7199.0, 7200.0, 9999.0, 86_399.0, 86_400.0,
    172_799.0, 172_800.0, 1e6, 1048576.0, 1e7, 1e9, 1073741824.0, 1e12, 1e18, float("inf"), float("nan"), 1e-9,
)  # fmt: skip
UNITS: Final = ("usage", "bytes/s", "msg/s", "topics", "unloads in 3600 s", "% of its capacity", "")


def told() -> int:
    """How numbers are told."""
    said: list[Any] = []
    for one in NUMBERS:
        for other in (one * 1.001, -1.0):
            for unit in UNITS:
                said += [amounts([one, other], unit), compared(one, other, unit), compared(one, None, unit)]
        if one < 1e12:
            said += [lasting(one), duration(one), ago(one * 1000, 0), ago(0, one * 1000), utc(int(one * 1000))]
            said += [counted(int(one), "bundle"), counted(int(one), "is", "are")]
            said += [in_number(f"{one:g} unloads, 1 splits"), in_time(f"bundles in {one:.0f} s")]
    return digits(said)


def an_object(chance: Random, depth: int = 3) -> Any:
    if not depth or chance.random() < 0.2:
        return chance.choice((None, 0, 1, 1.5, "", "x", "y" * 30, [], [1, 2]))
    return {
        key: an_object(chance, depth - 1) for key in "abcdefg"[: chance.choice((0, 1, 3, 7))] if chance.random() < 0.9
    }


def varied(chance: Random, value: Any) -> Any:
    if not isinstance(value, dict) or chance.random() < 0.1:
        return value if chance.random() < 0.6 else an_object(chance, 1)
    kept = {key: varied(chance, one) for key, one in value.items() if chance.random() < 0.9}
    return kept | ({chance.choice("aZ"): an_object(chance, 1)} if chance.random() < 0.2 else {})


def changes(seed: int) -> int:
    chance, said = Random(seed), list[Any]()
    for _ in range(40):
        old = {"kind": "a", **{key: an_object(chance) for key in "xyz"}}
        new = {"kind": chance.choice("aab"), **{key: varied(chance, old[key]) for key in "xyz"}}
        found = change(old, new)
        assert apply(old, found) == new
        said.append(json.dumps(found))
        try:
            said.append(json.dumps(apply({"kind": "a", "x": varied(chance, old["x"])}, found)))
        except (TrimtabError, ValueError) as error:
            said.append(type(error).__name__)
    return digits(said)


def parted(seed: int) -> int:
    """Numbers and texts of JSON, apart from each other."""
    chance, said = Random(seed), list[Any]()
    pieces = (
        *(
            "0",
            "-1",
            "1.0",
            "10.50",
            "1e5",
            "0.000",
            "123456789012345678",
            "1234567890123456789",
            "-0",
            "1.5",
            "9" * 23,
        ),
        *(
            "0.1234567890123456789012",
            ",",
            '"a"',
            '"1,2"',
            '"\\"3"',
            "[",
            "]",
            "{",
            "}",
            ":",
            " ",
            "null",
            "00",
            "-",
            ".",
        ),
    )
    for _ in range(60):
        value = "".join(chance.choice(pieces) for _ in range(chance.choice((1, 3, 8, 20)))).encode()
        found = split(value)
        said.append(None if found is None else [found.text.decode(), list(found.digits), list(found.decimals)])
        assert found is None or joined(found) == value
    return digits(said)


def taken() -> int:
    """Which sweeps are read as columns, and which are left to the decoder."""
    reader, said = sweeps(), list[Any]()
    for place in PLACES:
        for value in (-1, 1e12, 1e12 + 1, 10**12, 10**12 + 1, 1e15, (1 << 63) - 1):
            rows, others = reader.rows([text(compact(changed(place, value)).encode())])
            said.append([len(others), len(rows), rows.stats.sum(axis=0)])
    return digits(said)


def near() -> int:
    """The topics of which bundles are kept one by one, where loads are just at a limit, below it, or above."""
    said: list[Any] = []
    for form in (compact, json.dumps):
        for limit in ("topics", "sessions", "msg_rate", "throughput"):
            for below in (-1.0, 0.0, 1.0):
                most = {"topics": 1e9, "sessions": 1e9, "msg_rate": 1e18, "throughput": 1e18}
                amount = {"topics": 2.0, "sessions": 3.0, "msg_rate": 31.5, "throughput": 3150.75}[limit]
                detail = DetailLimits(**most | {limit: amount + below})
                reader = JsonSweeps(cluster=CLUSTER, period_ms=PERIOD, max_bytes=1 << 20, detail=detail)
                rows, others = reader.rows([text(form(broker_sweep()).encode())])
                for other in others:
                    record = decode_metric(other.whole, cluster=CLUSTER, period_ms=PERIOD)
                    rows = rows_from_records([Located(source=0, partition=0, offset=1, record=record)], detail)
                said.append([len(others), rows.detail_size.tolist()])
    return digits(said)


def journalled() -> int:
    """How long the records of a journal are, and which are whole."""
    writer, said = EntryWriter(whole_every_ms=3 * PERIOD, base=None), list[Any]()
    for turn in range(8):
        found = writer.encode(entry(T + turn * PERIOD, *([UNLOAD] * turn), samples=turn // 2))
        writer.wrote(found)
        said.append([found.whole, [len(record) for record in found.records]])
    return digits(said)


TOLD: Final = 22_926_686
CHANGES: Final = 49_407_358
PARTED: Final = 53_381_226
TAKEN: Final = 73_286_397
NEAR: Final = 71_566_728
JOURNALLED: Final = 12_026_583


def test_numbers_are_told_in_the_same_words() -> None:
    assert told() == TOLD


def test_changes_are_written_in_the_same_form() -> None:
    assert digits([changes(seed) for seed in range(14)]) == CHANGES


def test_numbers_are_parted_from_texts_in_the_same_places() -> None:
    assert digits([parted(seed) for seed in range(24)]) == PARTED


def test_the_same_sweeps_are_read_as_columns() -> None:
    assert taken() == TAKEN


def test_topics_of_the_same_bundles_are_kept_one_by_one() -> None:
    assert near() == NEAR


def test_entries_of_the_journal_are_as_long_and_whole_as_often() -> None:
    assert journalled() == JOURNALLED
