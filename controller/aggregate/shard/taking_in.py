"""Adds the rows of a batch to what waits in a shard: claims, headers and facts."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from controller.aggregate.columns.name_column import NameColumn
from controller.aggregate.columns.rows import BUNDLE, NUMBERS, REPORT, REPORT_BUNDLE, SWEEP, TOPIC, Rows
from controller.aggregate.shard.shard_state import ShardState
from controller.aggregate.ticks.intervals import LATE
from controller.aggregate.waiting.claims import Claims, ragged
from controller.aggregate.waiting.headers import WaitingFacts, WaitingHeaders
from controller.model.load import Ints


def with_claims(state: ShardState, rows: Rows, offset: Ints, due: Ints, upto: Ints) -> ShardState:
    """*state* with the claims of *rows* added, without LATE ones.  ``due``, ``upto``: (rows,), as in Claims."""
    chosen = np.flatnonzero(rows.of_kind([BUNDLE, TOPIC, REPORT_BUNDLE]) & (due != LATE))
    if len(chosen) == 0:
        return state
    named = rows.bundle.take(chosen)
    bundles, moved = state.bundles.with_names(named.used())
    pool, told = _told(state.pool, rows, offset, due, upto, chosen)
    topics = ragged(rows.detail_size, chosen)
    new = Claims(
        **told,
        kind=rows.kind[chosen],
        bundle=named.numbered(bundles.row_of.__getitem__),
        stats=rows.stats[chosen],
        kinds=rows.kinds[chosen],
        topic=rows.topic[chosen],
        detail_size=rows.detail_size[chosen],
        detail_position=rows.detail_position[topics],
        detail_load=rows.detail_load[topics],
    )
    waiting = replace(state.claims, bundle=moved[state.claims.bundle])
    return replace(state, bundles=bundles, pool=pool, claims=Claims.concat([waiting, new]))


def with_headers(state: ShardState, rows: Rows, offset: Ints, due: Ints, upto: Ints) -> ShardState:
    """*state* with the headers (SWEEP and REPORT rows) of *rows* added, without LATE ones."""
    chosen = np.flatnonzero(rows.of_kind([SWEEP, REPORT]) & (due != LATE))
    if len(chosen) == 0:
        return state
    pool, told = _told(state.pool, rows, offset, due, upto, chosen)
    new = WaitingHeaders(
        **told,
        chunks=rows.chunks[chosen],
        numbers=np.array([rows.numbers[i] for i in chosen.tolist()]).reshape(-1, NUMBERS),
    )
    return replace(state, pool=pool, headers=WaitingHeaders.concat([state.headers, new]))


def with_facts(
    state: ShardState, rows: Rows, offset: Ints, due: Ints, upto: Ints, texts: Mapping[int, str]
) -> ShardState:
    """*state* with the facts of *rows* added; *texts*: row -> the text of its fact."""
    if not texts:
        return state
    chosen = np.array(list(texts), np.int64)
    new = WaitingFacts(
        due=due[chosen],
        source=rows.source[chosen],
        partition=rows.partition[chosen],
        offset=offset[chosen],
        upto=upto[chosen],
        texts=list(texts.values()),
    )
    return replace(state, facts=WaitingFacts.concat([state.facts, new]))


def _told(
    pool: list[str], rows: Rows, offset: Ints, due: Ints, upto: Ints, chosen: Ints
) -> tuple[list[str], dict[str, Ints]]:
    """The pool extended by the names of the *chosen* rows, and the columns that claims and headers both have."""
    pool, (broker, sweep) = _coded(pool, rows.broker.take(chosen), rows.sweep.take(chosen))
    return pool, {
        "due": due[chosen],
        "source": rows.source[chosen],
        "partition": rows.partition[chosen],
        "offset": offset[chosen],
        "upto": upto[chosen],
        "broker": broker,
        "sweep": sweep,
        "chunk": rows.chunk[chosen],
        "last_update": rows.last_update[chosen],
    }


def _coded(pool: list[str], *columns: NameColumn) -> tuple[list[str], list[Ints]]:
    """The pool extended by the names in *columns*, and *columns* as positions in it."""
    code_of = {name: i for i, name in enumerate(pool)}
    coded = [column.numbered(lambda name: code_of.setdefault(name, len(code_of))) for column in columns]
    return list(code_of), coded
