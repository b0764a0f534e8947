"""Adds the rows of a batch to the waiting claims, headers and facts of a shard."""

from dataclasses import replace

import numpy as np

from controller.aggregate.columns.rows import BUNDLE, REPORT, REPORT_BUNDLE, SWEEP, TOPIC, DatedRows
from controller.aggregate.shard.shard_state import ShardState
from controller.aggregate.ticks.intervals import LATE
from controller.aggregate.waiting.waiting_rows import WaitingClaims, WaitingFacts, WaitingHeaders
from controller.model.load import Ints


def ingest(state: ShardState, rows: DatedRows) -> ShardState:
    """*state* with the claims, headers and facts of *rows*, without LATE ones."""
    return _with_facts(_with_headers(_with_claims(state, rows), rows), rows)


def _with_claims(state: ShardState, rows: DatedRows) -> ShardState:
    chosen = np.flatnonzero(rows.of_kind([BUNDLE, TOPIC, REPORT_BUNDLE]) & (rows.due != LATE))
    if len(chosen) == 0:
        return state
    pool, broker, sweep = _coded(state.pool, rows, chosen)
    named = rows.bundle.take(chosen)
    bundles, moved = state.bundles.with_names(named.used())
    bundle = named.numbered(bundles.row_of.__getitem__)
    new = WaitingClaims.of(rows, chosen, broker=broker, sweep=sweep, bundle=bundle)
    claims = replace(state.claims, bundle=moved[state.claims.bundle]).with_rows(new)
    return replace(state, bundles=bundles, pool=pool, claims=claims)


def _with_headers(state: ShardState, rows: DatedRows) -> ShardState:
    chosen = np.flatnonzero(rows.of_kind([SWEEP, REPORT]) & (rows.due != LATE))
    if len(chosen) == 0:
        return state
    pool, broker, sweep = _coded(state.pool, rows, chosen)
    numbers = np.array([rows.numbers[i] for i in chosen.tolist()])
    new = WaitingHeaders.of(rows, chosen, broker=broker, sweep=sweep, numbers=numbers)
    return replace(state, pool=pool, headers=state.headers.with_rows(new))


def _with_facts(state: ShardState, rows: DatedRows) -> ShardState:
    if not rows.texts:
        return state
    new = WaitingFacts.of(rows, np.array([*rows.texts]), texts=np.array([*rows.texts.values()], np.object_))
    return replace(state, facts=state.facts.with_rows(new))


def _coded(pool: list[str], rows: DatedRows, chosen: Ints) -> tuple[list[str], Ints, Ints]:
    """The pool with the names of brokers and sweeps of the *chosen* rows, and those as positions in it."""
    code_of = {name: i for i, name in enumerate(pool)}
    broker, sweep = (
        column.take(chosen).numbered(lambda name: code_of.setdefault(name, len(code_of)))
        for column in (rows.broker, rows.sweep)
    )
    return list(code_of), broker, sweep
