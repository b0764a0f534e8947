"""Which rows each shard gets, as the query deals them (streaming/jvm/RecordRows.java); an integration test compares.

Ticks and reports go to every shard, a bundle's rows to the one that its name and the cluster's name lead to, everything
else to shard 0.
"""

from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from typing import Any, Final

import numpy as np

from controller.aggregate.columns.name_column import NameColumn
from controller.aggregate.columns.rows import BUNDLE, REPORT, REPORT_BUNDLE, TICK, TOPIC, Rows
from controller.model.load import Ints, ragged
from controller.model.records import BundleSeed

#: Spark's seed of xxhash64.
_SEED: Final = 42
_MASK: Final = (1 << 64) - 1
_P1, _P2, _P3, _P4, _P5 = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)


@cache
def shard_of(bundle: str, *, cluster: str, shards: int) -> int:
    """The shard that keeps *bundle*, from 0."""
    return _signed(xxhash64(bundle.encode(), xxhash64(cluster.encode(), _SEED))) % shards


def rows_of_shards(rows: Rows, *, cluster: str, shards: int) -> Iterator[Rows]:
    """The rows of each shard, shard 0 first."""
    owner = np.zeros(len(rows), np.int64)
    for i in np.flatnonzero(np.isin(rows.kind, (BUNDLE, TOPIC, REPORT_BUNDLE))).tolist():
        owner[i] = shard_of(rows.bundle[i], cluster=cluster, shards=shards)
    for i, fact in rows.facts.items():
        if isinstance(fact, BundleSeed):
            owner[i] = shard_of(fact.bundle, cluster=cluster, shards=shards)
    for_all = np.isin(rows.kind, (TICK, REPORT))
    for shard in range(shards):
        yield chosen_rows(rows, np.flatnonzero(for_all | (owner == shard)))


def chosen_rows(rows: Rows, chosen: Ints) -> Rows:
    """The rows at *chosen*, in that order."""
    topics = ragged(rows.detail_size, chosen)
    picked = chosen.tolist()
    columns: dict[str, Any] = {}
    for name, value in ((f.name, getattr(rows, f.name)) for f in fields(rows)):
        if isinstance(value, dict):
            columns[name] = {new: value[old] for new, old in enumerate(picked) if old in value}
        elif isinstance(value, NameColumn):
            columns[name] = value.take(chosen)
        elif value is not None:
            columns[name] = value[topics if name in ("detail_position", "detail_load", "detail_segment") else chosen]
    return Rows(**{"file": None, **columns})


def xxhash64(data: bytes, seed: int) -> int:
    """XXH64 of *data*, unsigned: the hash behind Spark's function of that name."""
    rest = len(data) % 32
    stripes, tail = data[: len(data) - rest], data[len(data) - rest :]
    if stripes:
        lanes = [seed + _P1 + _P2, seed + _P2, seed, seed - _P1]
        for at in range(0, len(stripes), 8):
            lanes[at // 8 % 4] = _round(lanes[at // 8 % 4], int.from_bytes(stripes[at : at + 8], "little"))
        state = sum(_rotate(lane & _MASK, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
        for lane in lanes:
            state = ((state ^ _round(0, lane)) * _P1 + _P4) & _MASK
    else:
        state = (seed + _P5) & _MASK
    state = (state + len(data)) & _MASK
    while len(tail) >= 8:
        state = (_rotate(state ^ _round(0, int.from_bytes(tail[:8], "little")), 27) * _P1 + _P4) & _MASK
        tail = tail[8:]
    if len(tail) >= 4:
        state = (_rotate(state ^ int.from_bytes(tail[:4], "little") * _P1 & _MASK, 23) * _P2 + _P3) & _MASK
        tail = tail[4:]
    for byte in tail:
        state = _rotate(state ^ byte * _P5 & _MASK, 11) * _P1 & _MASK
    state = (state ^ state >> 33) * _P2 & _MASK
    state = (state ^ state >> 29) * _P3 & _MASK
    return state ^ state >> 32


def _round(lane: int, word: int) -> int:
    return _rotate((lane + word * _P2) & _MASK, 31) * _P1 & _MASK


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _MASK


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value
