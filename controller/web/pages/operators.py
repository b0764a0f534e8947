"""Controls as they are in force and as people set them, and the history of what people did, also as files."""

import csv
import io
from collections.abc import Iterator
from typing import Final

from starlette.responses import Response

from controller.settings.guardrails import maintenance_of
from controller.web.access.viewer import checked
from controller.web.control_actions import NEEDED
from controller.web.pages.frame import context_of, render
from controller.web.pages.page import PageRequest
from controller.web.rest.answers import HistoryAnswer
from controller.web.store.values import ControlEvent, LatestState
from controller.web.views.budgets import breaker, meters
from controller.web.views.controls import MODES, excluded, heading, history_title, pauses
from controller.web.views.formats import iso
from controller.web.views.forms import last_change, not_in_force
from controller.web.views.week import week
from controller.wire.answers.status import ControlChangeAnswer

_PAGE: Final = 50
#: Of a file with the history, at once and in all.
_EVENTS: Final = 500
_MOST_EVENTS: Final = 20_000
#: So many budgets of single brokers and namespaces are listed.
_METERS: Final = 24


def controls(page: PageRequest) -> Response:
    """Mode, pauses, budgets, windows and drained brokers; and where each is changed."""
    context = context_of(page)
    controls_read, not_read = page.controls_now()
    state, settings = context.state, page.cluster.settings
    maintenance = maintenance_of(settings.guardrails)
    all_meters = meters(state.budgets, context.names) if state is not None else ()
    return render(
        page,
        "controls.html",
        "Controls",
        context,
        heading=heading(state, page.now_ms),
        state=state,
        modes=MODES,
        settings_mode=settings.decisions.mode,
        controls=controls_read,
        why=page.why_not(NEEDED) or not_read,
        not_in_force=[]
        if controls_read is None
        else not_in_force(controls_read.controls, state, settings.decisions.mode, page.now_ms),
        last_change="" if controls_read is None else last_change(controls_read.controls, page.now_ms),
        pauses=pauses(None if state is None else state.controls.pauses, page.now_ms)
        if controls_read is None
        else pauses(controls_read.controls.pauses_at(page.now_ms), page.now_ms),
        drained=_drained(state) if controls_read is None else [each.broker for each in controls_read.controls.drained],
        excluded=excluded(None if controls_read is None else controls_read.controls, state),
        exclusions=settings.decisions.excluded,
        meters=all_meters[:_METERS],
        meters_left_out=max(0, len(all_meters) - _METERS),
        breaker=breaker(state.breaker) if state is not None else None,
        week=week(maintenance, page.now_ms),
        maintenance=maintenance,
        events=page.data.controls(limit=5).events
        if controls_read is None
        else tuple(reversed(controls_read.controls.events[-5:])),
    )


def _drained(state: LatestState | None) -> list[str]:
    return [] if state is None else list(state.controls.drained)


def history_csv(page: PageRequest) -> Response:
    """The history as a file for spreadsheets."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["time", "by", "action", "detail", "reason"])
    for each in _all_events(page):
        writer.writerow(_cell(text) for text in (iso(each.at_ms), each.by, each.action, each.detail, each.reason))
    return _file(page, out.getvalue(), "csv", "text/csv")


def history_json(page: PageRequest) -> Response:
    """The history as `GET /api/v1/history` answers it, all of it."""
    answer = HistoryAnswer(events=[ControlChangeAnswer.from_object(each) for each in _all_events(page)], cursor=None)
    return _file(page, f"{answer.as_line()}\n", "json", "application/json")


def _file(page: PageRequest, content: str, suffix: str, media_type: str) -> Response:
    name = "".join(each if each.isascii() and each.isalnum() else "-" for each in page.cluster.name)
    headers = {"Content-Disposition": f'attachment; filename="trimtab-history-{name}.{suffix}"'}
    return Response(content, headers=headers, media_type=media_type)


def _all_events(page: PageRequest) -> Iterator[ControlEvent]:
    """All that is known, the newest first, up to a bound."""
    cursor: str | None = None
    for _ in range(_MOST_EVENTS // _EVENTS):
        events = page.data.controls(cursor=cursor, limit=_EVENTS)
        yield from events.events
        cursor = events.cursor
        if cursor is None:
            return


def _cell(text: str) -> str:
    """*text* for a cell: spreadsheets take what begins with one of these signs for a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def history(page: PageRequest) -> Response:
    """What people did with the controls, the newest first."""
    context = context_of(page)
    cursor = page.request.query_params.get("cursor")
    events = checked(lambda: page.data.controls(cursor=cursor, limit=_PAGE))
    older = page.href("/history", cursor=events.cursor) if events.cursor is not None else ""
    return render(
        page,
        "history.html",
        "History",
        context,
        title=history_title(events.events, page.now_ms),
        events=events.events,
        older=older,
    )
