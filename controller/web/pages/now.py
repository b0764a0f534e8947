"""The page "Now": what the cluster does, and what stops it."""

from typing import Final

from starlette.responses import Response

from controller.web.control_actions import NEEDED
from controller.web.pages.frame import commands_of, context_of, render
from controller.web.pages.page import PageRequest
from controller.web.store.queries import PageData
from controller.web.store.values import DecisionQuery, IssuedCommand
from controller.web.views.bridge import is_late
from controller.web.views.budgets import breaker, fullest, tightest
from controller.web.views.now import facts, heading, switches
from controller.web.views.processes import process_lines
from controller.web.views.sentences import decision_lines
from controller.web.views.strip import strip

_HOUR_MS: Final = 3_600_000
#: So many of the newest decisions are read, and so many lines are made of them.
_DECISIONS: Final = 60
_LINES: Final = 8
#: Promises are held against measurements of the longest of these spans, in hours, that has no more moves than this.
_SPANS: Final = (24, 6, 1)
_MOVES: Final = 400
#: So many findings of the doctor are listed.
_FINDINGS: Final = 5
#: Budgets that are shown, those of which most is used.
_BUDGETS: Final = 5


def now(page: PageRequest) -> Response:
    """What the cluster does now."""
    context = context_of(page)
    state, names, data = context.state, context.names, page.data
    brokers = data.brokers()
    values = {
        "heading": heading(state, brokers, names, context.progress, page.now_ms),
        "state": state,
        "late": state is not None and is_late(state, page.now_ms),
        "findings": _findings(page),
        "processes": process_lines(page.status(), page.now_ms),
    }
    if state is None:
        return render(page, "now.html", "Now", context, **values)
    hour = data.decisions(DecisionQuery(since_ms=state.interval - _HOUR_MS, with_commands=True), limit=100).rows
    decisions = data.decisions(DecisionQuery(), limit=_DECISIONS).rows
    lines = decision_lines(decisions, lambda interval: commands_of(data, interval), names, _LINES)
    budgets = tightest(state.budgets, names)
    return render(
        page,
        "now.html",
        "Now",
        context,
        **values,
        why=page.why_not(NEEDED),
        facts=facts(state, brokers, hour, _measured(data, state.interval), names, page.now_ms),
        strip=strip(brokers, names) if brokers is not None else None,
        strip_at=brokers.interval if brokers is not None else None,
        lines=lines,
        meters=fullest(budgets, _BUDGETS),
        budgets_left_out=max(0, len(budgets) - _BUDGETS),
        breaker=breaker(state.breaker),
        switches=switches(state, names, page.now_ms),
    )


def _measured(data: PageData, until_ms: int) -> tuple[IssuedCommand, ...]:
    for hours in _SPANS:
        moves = data.moves(until_ms - hours * _HOUR_MS, until_ms, limit=_MOVES)
        if moves:
            return moves
    return ()


def _findings(page: PageRequest) -> tuple[object, ...] | None:
    answer = page.findings()
    if answer is None:
        return None
    return tuple(each for each in answer.findings if each.severity != "ok")[:_FINDINGS]
