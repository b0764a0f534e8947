"""Decisions, their commands, and what people did: lists and details."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from controller.model.controls import Controls
from controller.model.decision import Reason, Verdict
from controller.model.errors import WireError
from controller.web.store.database import Database
from controller.web.store.values import (
    BrokerMeasure,
    BudgetUse,
    ControlEvent,
    ControlPage,
    DecisionDetail,
    DecisionPage,
    DecisionQuery,
    DecisionRow,
    IssuedCommand,
    Measured,
)
from controller.wire.base import validate
from controller.wire.journal import ControlsRecord, to_controls
from controller.wire.summary import read_details

#: Rows of a page at most.
_LONGEST_PAGE: Final = 500
_COMMANDS: Final = (
    "SELECT c.id, c.interval, c.action, c.bundle, c.namespace, c.source, c.destination, c.mode, c.why,"
    " r.status, r.detail, r.started_at, r.finished_at, o.outcome"
    " FROM commands c LEFT JOIN results r ON r.id = c.id LEFT JOIN outcomes o ON o.id = c.id"
)
_ROWS: Final = "SELECT d.interval, d.epoch, d.summary, d.mode, d.paused, d.commands, d.reasons FROM decisions d"
#: A decision of which the journal's entry was read: without it nobody knows what was decided.
_KNOWN: Final = "d.summary IS NOT NULL"


class Decisions:
    """Reads *database*.  For several threads."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def page(self, query: DecisionQuery, cursor: str | None, limit: int) -> DecisionPage:
        """See PageData.decisions."""
        limit = _checked_limit(limit)
        conditions, values = _conditions(query)
        newer, interval = _decoded_cursor(cursor)
        if interval is not None:
            conditions.append("d.interval > ?" if newer else "d.interval < ?")
            values.append(interval)
        order = "ASC" if newer else "DESC"
        where = " AND ".join([_KNOWN, *conditions])
        rows = self._database.read(
            f"{_ROWS} WHERE {where} ORDER BY d.interval {order} LIMIT ?",
            (*values, limit + 1),
        )
        more, rows = len(rows) > limit, rows[:limit]
        rows = rows[::-1] if newer else rows
        older_there, newer_there = (True, more) if newer else (more, interval is not None)
        return DecisionPage(
            rows=self._decision_rows(rows),
            cursor=f"o{rows[-1][0]}" if rows and older_there else None,
            newer=f"n{rows[0][0]}" if rows and newer_there else None,
        )

    def detail(self, interval: int) -> DecisionDetail | None:
        """See PageData.decision."""
        rows = self._database.read(f"{_ROWS} WHERE {_KNOWN} AND d.interval = ?", (interval,))
        if not rows:
            return None
        extra = self._database.read(
            "SELECT controls, verdicts, decided_at_ms, tick_ms, details FROM decisions WHERE interval = ?", (interval,)
        )
        controls, total, decided_at_ms, tick_ms, details = extra[0]
        budgets, verdicts = details_in(details)
        return DecisionDetail(
            row=self._decision_rows(rows)[0],
            decided_at_ms=decided_at_ms,
            tick_to_decision_ms=tick_ms,
            controls=_controls(controls),
            commands=self.commands("c.interval = ?", (interval,), order="c.place"),
            verdicts=verdicts,
            verdicts_total=total,
            budgets=budgets,
            earlier=self._neighbour("max", "<", interval),
            later=self._neighbour("min", ">", interval),
        )

    def commands(
        self, where: str, values: Sequence[Any], *, order: str = "c.interval DESC, c.place", limit: int = _LONGEST_PAGE
    ) -> tuple[IssuedCommand, ...]:
        """The commands that *where* selects; it must not contain text of a caller."""
        rows = self._database.read(f"{_COMMANDS} WHERE {where} ORDER BY {order} LIMIT ?", (*values, limit))
        return tuple(map(_command, rows))

    def counts(self, since_ms: int, until_ms: int, bins: int) -> tuple[int, ...]:
        """See PageData.move_counts."""
        if not 0 <= since_ms < until_ms or not 1 <= bins <= 4_096:
            raise ValueError(f"since {since_ms}, until {until_ms}, bins {bins}: expected a span and 1 to 4096 bins")
        rows = self._database.read(
            "SELECT (interval - ?) * ? / ? AS bin, count(*) FROM commands WHERE interval >= ? AND interval < ?"
            " GROUP BY bin",
            (since_ms, bins, until_ms - since_ms, since_ms, until_ms),
        )
        counts = dict(rows)
        return tuple(counts.get(each, 0) for each in range(bins))

    def controls(self, cursor: str | None, limit: int) -> ControlPage:
        """See PageData.controls."""
        limit = _checked_limit(limit)
        skip = 0
        if cursor is not None:
            if not cursor.isdecimal() or len(cursor) > 9:
                raise ValueError(f"cursor {cursor[:40]!r}: expected one that an earlier answer gave")
            skip = int(cursor)
        rows = self._database.read(
            'SELECT at_ms, "by", action, detail, reason FROM controls ORDER BY at_ms DESC, rowid DESC LIMIT ? OFFSET ?',
            (limit + 1, skip),
        )
        events = tuple(
            ControlEvent(at_ms=at_ms, by=by, action=action, detail=detail, reason=reason)
            for at_ms, by, action, detail, reason in rows[:limit]
        )
        return ControlPage(events=events, cursor=str(skip + limit) if len(rows) > limit else None)

    def _decision_rows(self, rows: Sequence[tuple[Any, ...]]) -> tuple[DecisionRow, ...]:
        statuses = self._statuses([row[0] for row in rows])
        return tuple(
            DecisionRow(
                interval=interval,
                epoch=epoch or 0,
                summary=summary,
                mode=mode,
                paused=bool(paused),
                commands=commands,
                statuses=statuses.get(interval, {}),
                reasons=None if reasons is None else json.loads(reasons),
            )
            for interval, epoch, summary, mode, paused, commands, reasons in rows
        )

    def _statuses(self, intervals: Sequence[int]) -> Mapping[int, Mapping[str, int]]:
        marks = ", ".join("?" * len(intervals))
        rows = self._database.read(
            "SELECT c.interval, coalesce(r.status, ''), count(*) FROM commands c LEFT JOIN results r ON r.id = c.id"
            f" WHERE c.interval IN ({marks}) GROUP BY 1, 2",
            tuple(intervals),
        )
        statuses: dict[int, Counter[str]] = {}
        for interval, status, count in rows:
            statuses.setdefault(interval, Counter())[status] = count
        return {interval: dict(each) for interval, each in statuses.items()}

    def _neighbour(self, which: str, side: str, interval: int) -> int | None:
        query = f"SELECT {which}(d.interval) FROM decisions d WHERE {_KNOWN} AND d.interval {side} ?"
        neighbour: int | None = self._database.read(query, (interval,))[0][0]
        return neighbour


def _conditions(query: DecisionQuery) -> tuple[list[str], list[Any]]:
    conditions, values = list[str](), list[Any]()
    for condition, value in (
        (
            "d.interval IN (SELECT interval FROM commands WHERE source = ? UNION SELECT interval FROM commands"
            " WHERE destination = ?)",
            query.broker,
        ),
        ("d.interval IN (SELECT interval FROM commands WHERE namespace = ?)", query.namespace),
        ("d.interval IN (SELECT interval FROM commands WHERE bundle = ?)", query.bundle),
        (
            "d.interval IN (SELECT interval FROM commands WHERE reason = ? UNION SELECT interval FROM reasons"
            " WHERE reason = ?)",
            query.reason,
        ),
        ("d.interval >= ?", query.since_ms),
        ("d.interval <= ?", query.until_ms),
    ):
        if value is not None:
            conditions.append(condition)
            values += [value] * condition.count("?")
    if query.with_commands:
        conditions.append("d.commands > 0")
    return conditions, values


def _checked_limit(limit: int) -> int:
    if not 1 <= limit <= _LONGEST_PAGE:
        raise ValueError(f"limit {limit}: expected 1 to {_LONGEST_PAGE}")
    return limit


def _decoded_cursor(cursor: str | None) -> tuple[bool, int | None]:
    """Whether newer rows are asked for, and from which interval on."""
    if cursor is None:
        return False, None
    side, digits = cursor[:1], cursor[1:]
    if side not in ("o", "n") or not (digits.isascii() and digits.isdecimal()) or len(digits) > 18:
        raise ValueError(f"cursor {cursor[:40]!r}: expected one that an earlier answer gave")
    return side == "n", int(digits)


def details_in(packed: bytes | None) -> tuple[tuple[BudgetUse, ...], tuple[Verdict, ...]]:
    """The budgets and the verdicts in the details of a summary; none where they cannot be used."""
    if packed is None:
        return (), ()
    try:
        budgets, verdicts = read_details(packed)
    except WireError:
        return (), ()
    uses = (
        BudgetUse(key=each.key, scope=each.scope, of=each.of, used=each.used, limit=each.limit, unit=each.unit)
        for each in budgets
    )
    return tuple(uses), verdicts


def _controls(text: str) -> Controls:
    return to_controls(validate(ControlsRecord, text))


def _command(row: tuple[Any, ...]) -> IssuedCommand:
    key, interval, action, bundle, namespace, source, destination, mode, why, *result, outcome = row
    status, detail, started_at, finished_at = result
    return IssuedCommand(
        id=key,
        interval=interval,
        action=action,
        bundle=bundle,
        namespace=namespace,
        source=source,
        destination=destination,
        mode=mode,
        why=_why(why),
        status=status or "",
        detail=detail or "",
        started_at=started_at,
        finished_at=finished_at,
        measured=None if outcome is None else _measured(json.loads(outcome)),
    )


def _why(text: str) -> Verdict:
    observed, limit, subject, reason, unit, by, detail = json.loads(text)
    return Verdict(
        subject=subject, reason=Reason(reason), observed=observed, limit=limit, unit=unit, by=by, detail=detail
    )


def _measured(outcome: Mapping[str, Any]) -> Measured:
    return Measured(
        outcome=outcome["outcome"],
        source=BrokerMeasure(**outcome["source"]),
        destination=BrokerMeasure(**outcome["destination"]),
        came_to=outcome["came_to"],
        undone=outcome["undone"],
        undone_by=outcome["undone_by"],
    )
