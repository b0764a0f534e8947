"""The store: what the page and REST know, in one file of bounded size.

``Feed`` fills it from the log; pages ask it.  Losing the file costs a few seconds of reading, never a fact.
"""

import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from controller.cycle.ordered import plan_named
from controller.model.controls import ControlChange
from controller.model.decision import Decision, Reason
from controller.model.errors import StateError, TrimtabError
from controller.web.store.database import Database, StoreDamagedError
from controller.web.store.decisions import Decisions
from controller.web.store.filling import StoreWriter
from controller.web.store.now import broker_states, latest_state
from controller.web.store.pasts import Pasts
from controller.web.store.tiles import Tiles
from controller.web.store.values import (
    BrokerMetric,
    BrokerPast,
    BrokerStates,
    BundlePast,
    ControlPage,
    DecisionDetail,
    DecisionPage,
    DecisionQuery,
    HotMoment,
    IssuedCommand,
    KeyspaceMetric,
    LatestState,
    NameMatch,
    NamespacePast,
    Progress,
    RowOrder,
    SourceProgress,
    Tile,
)
from controller.wire.journal import ControlsRecord
from controller.wire.results import Result
from controller.wire.summary import ReadSummary

FILE_NAME: Final = "page.sqlite"
_DAY_MS: Final = 86_400_000
_MAX_BYTES: Final = 1_000_000_000
#: Commands of one plan that are answered: as many as a plan has moves, unless more are asked for.
_PLAN_COMMANDS: Final = 10_000
#: Results after which nothing is wrong with a plan: it was done, was not begun, or is only tried.
_NO_FAILURE: Final = ("done", "already_done", "expired", "fenced", "dry_run")


class Store:
    """``queries.PageData``, and the methods by which a Feed fills it."""

    def __init__(
        self, folder: Path, *, cluster: str, retention_ms: int = 7 * _DAY_MS, max_bytes: int = _MAX_BYTES
    ) -> None:
        """Open the store in *folder*, or create it; a damaged file is built anew.

        *retention_ms*: how far back it reaches.  *max_bytes*: of its file.  TrimtabError where *folder* cannot be
        used, or another process uses it.
        """
        self._database = Database(folder / FILE_NAME, cluster=cluster)
        self._cluster, self._retention_ms, self._max_bytes = cluster, retention_ms, max_bytes
        self._changed = threading.Condition()
        self._version = 1
        #: Grows when the store lost what came after the last ``flush``, or all by a ``rebuild``: ``positions`` says up
        #: to where it has everything.
        self.generation = 0
        self._sources: dict[str, SourceProgress] = {}
        try:
            self._begin_or_rebuild()
        except BaseException:
            self._database.close()
            raise

    @property
    def cluster(self) -> str:
        """Whose store it is."""
        return self._cluster

    @property
    def retention_ms(self) -> int:
        """How far back it reaches."""
        return self._retention_ms

    @property
    def damage(self) -> str:
        """What was found to be damaged, also by a query; "": nothing."""
        return self._database.damage

    # ---- filling ----

    def rebuild(self, why: str) -> None:
        """Empty the store, since its file is damaged: *why*.  A Feed has to read everything again."""
        self._forget_progress()  # before it is empty: it must not seem complete meanwhile
        self._database.rebuild(why)
        self._begin_again()

    def add_summaries(self, summaries: Sequence[ReadSummary]) -> int:
        """Take summaries in, oldest first; returns how many were newer than the last one that was there.

        TrimtabError where they cannot be stored, as on a full disk; then the store is as it was at the last ``flush``.
        """
        try:
            added = self._filling.add_summaries(summaries)
        except TrimtabError:
            self._begin_again()  # pictures and names in memory have what the file has not
            raise
        if added:
            self._touch()
        return added

    def add_decisions(self, decisions: Sequence[tuple[Decision, ControlsRecord, int]]) -> None:
        """Take decisions in, each with its controls and its epoch."""
        self._filling.add_decisions(decisions)
        self._touch()

    def add_results(self, results: Sequence[tuple[Result, int]]) -> None:
        """Take results of commands in, each with its append time."""
        self._filling.add_results(results)
        self._touch()

    def add_controls(self, history: Iterable[ControlChange]) -> None:
        """Take in what people did."""
        if self._filling.add_controls(history):
            self._touch()

    def expect(self, interval: int) -> None:
        """Summaries up to *interval*, T, will be added soon: what would be too fine for older ones is left out."""
        self._filling.horizon_ms = interval

    def set_progress(self, progress: SourceProgress) -> None:
        """How far a source is read."""
        with self._changed:
            before = self._sources.get(progress.source)
            self._sources[progress.source] = progress
        if before is None or (before.error, before.done) != (progress.error, progress.done):
            self._touch()

    def flush(self, positions: dict[str, int]) -> None:
        """Make everything durable, and *positions*: source -> append time up to which it is read, epoch ms."""
        self._filling.flush(positions)

    def positions(self) -> dict[str, int]:
        """What the last ``flush`` stored."""
        return self._filling.positions()

    # ---- PageData ----

    def progress(self) -> Progress:
        """See PageData."""
        with self._changed:
            sources = tuple(self._sources[name] for name in sorted(self._sources))
        oldest, newest = self._database.read("SELECT min(interval), max(interval) FROM decisions WHERE verdicts >= 0")[
            0
        ]
        missing = 0
        if oldest is not None:
            query = "SELECT count(*) FROM decisions WHERE verdicts IS NULL AND interval BETWEEN ? AND ?"
            missing = self._database.read(query, (oldest, newest))[0][0]
        return Progress(
            complete=bool(sources) and all(each.done >= 1.0 for each in sources),
            sources=sources,
            oldest=oldest,
            newest=newest,
            missing=missing,
            rebuilt=self._database.rebuilt,
        )

    def version(self) -> int:
        """See PageData."""
        return self._version

    def wait(self, version: int, timeout_seconds: float) -> int:
        """See PageData."""
        with self._changed:
            self._changed.wait_for(lambda: self._version != version, timeout_seconds)
            return self._version

    def latest(self) -> LatestState | None:
        """See PageData."""
        latest = self._filling.latest
        return None if latest is None else latest_state(latest)

    def brokers(self) -> BrokerStates | None:
        """See PageData."""
        latest = self._filling.latest
        return None if latest is None else broker_states(latest)

    def broker_tile(
        self,
        metric: BrokerMetric,
        since_ms: int,
        until_ms: int,
        *,
        width: int,
        height: int,
        order: RowOrder = "usage",
    ) -> Tile:
        """See PageData."""
        tile = self._tiles.brokers(metric, since_ms, until_ms, width=width, height=height, order=order)
        return self._finished(tile)

    def keyspace_tile(
        self,
        metric: KeyspaceMetric,
        since_ms: int,
        until_ms: int,
        *,
        width: int,
        height: int,
        namespace: str | None = None,
        owner: str = "",
    ) -> Tile:
        """See PageData."""
        tile = self._tiles.keyspace(
            metric, since_ms, until_ms, width=width, height=height, namespace=namespace, owner=owner
        )
        return self._finished(tile)

    def moves(self, since_ms: int, until_ms: int, *, limit: int = 90) -> tuple[IssuedCommand, ...]:
        """See PageData."""
        if not 1 <= limit <= 500:
            raise ValueError(f"limit {limit}: expected 1 to 500")
        where = "c.interval >= ? AND c.interval < ?"
        moves = self._decisions.commands(where, (since_ms, until_ms), order="c.interval, c.place", limit=limit + 1)
        return moves if len(moves) <= limit else ()

    def plan_commands(self, plan: str, *, limit: int = _PLAN_COMMANDS) -> tuple[IssuedCommand, ...]:
        """See PageData."""
        if not 1 <= limit <= _PLAN_COMMANDS:
            raise ValueError(f"limit {limit}: expected 1 to {_PLAN_COMMANDS}")
        # The detail of why, as told_of writes it: JSON text, in which no character of it is escaped.
        return self._decisions.commands(
            "c.reason = ? AND instr(c.why, ?) > 0", (Reason.PLANNED, f'"{plan_named(plan)}, step '), limit=limit
        )

    def plan_failures(self, since_ms: int, *, limit: int = 500) -> tuple[IssuedCommand, ...]:
        """See PageData."""
        fine = ", ".join(f"'{status}'" for status in _NO_FAILURE)
        where = f"c.interval >= ? AND c.reason = ? AND r.status NOT IN ({fine})"
        return self._decisions.commands(where, (since_ms, Reason.PLANNED), limit=limit)

    def undone_moves(self, since_ms: int, *, limit: int = 500) -> tuple[IssuedCommand, ...]:
        """See PageData."""
        where = "c.interval >= ? AND json_extract(o.outcome, '$.undone') = 1"
        return self._decisions.commands(where, (since_ms,), limit=limit)

    def move_counts(self, since_ms: int, until_ms: int, *, bins: int) -> tuple[int, ...]:
        """See PageData."""
        return self._decisions.counts(since_ms, until_ms, bins)

    def decisions(self, query: DecisionQuery, *, cursor: str | None = None, limit: int = 50) -> DecisionPage:
        """See PageData."""
        return self._decisions.page(query, cursor, limit)

    def decision(self, interval: int) -> DecisionDetail | None:
        """See PageData."""
        return self._decisions.detail(interval)

    def bundle(self, bundle: str, since_ms: int, until_ms: int) -> BundlePast:
        """See PageData."""
        return self._pasts.bundle(bundle, since_ms, until_ms)

    def hot_topics(self, bundle: str, since_ms: int, until_ms: int) -> HotMoment | None:
        """See PageData."""
        return self._pasts.hot_topics(bundle, since_ms, until_ms)

    def broker(self, broker: str, since_ms: int, until_ms: int) -> BrokerPast:
        """See PageData."""
        return self._pasts.broker(broker, since_ms, until_ms)

    def namespace(self, namespace: str, since_ms: int, until_ms: int) -> NamespacePast:
        """See PageData."""
        return self._pasts.namespace(namespace, since_ms, until_ms)

    def controls(self, *, cursor: str | None = None, limit: int = 50) -> ControlPage:
        """See PageData."""
        return self._decisions.controls(cursor, limit)

    def search(self, text: str, limit: int = 20) -> tuple[NameMatch, ...]:
        """See PageData."""
        return self._pasts.search(text, limit)

    def close(self) -> None:
        """See PageData."""
        self._database.close()

    def _begin_or_rebuild(self) -> None:
        try:
            self._begin()
        except (StoreDamagedError, StateError, KeyError) as error:
            self.rebuild(str(error))

    def _begin(self) -> None:
        self._filling = StoreWriter(self._database, retention_ms=self._retention_ms, max_bytes=self._max_bytes)
        self._tiles = Tiles(self._database, self._filling, retention_ms=self._retention_ms)
        self._decisions = Decisions(self._database)
        self._pasts = Pasts(self._database, self._filling, self._tiles, self._decisions)

    def _begin_again(self) -> None:
        self._begin()
        self._forget_progress()
        self.generation += 1
        self._touch()

    def _forget_progress(self) -> None:
        with self._changed:
            self._sources = {name: replace(each, done=0.0) for name, each in self._sources.items()}

    def _finished(self, tile: Tile) -> Tile:
        """*tile*, final only if nothing that is still loading may change it."""
        source = self._sources.get("summaries")
        return tile if source is not None and source.done >= 1.0 else replace(tile, final=False)

    def _touch(self) -> None:
        with self._changed:
            self._version += 1
            self._changed.notify_all()
