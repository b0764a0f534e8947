"""Controls as they are in force, and the history of what people did.  Both are for reading."""

from typing import Final

from starlette.responses import Response

from controller.settings.guardrails import maintenance_of
from controller.web.access.viewer import checked
from controller.web.pages.frame import context_of, render
from controller.web.pages.page import PageRequest
from controller.web.views.budgets import breaker, meters
from controller.web.views.controls import MODES, heading, history_title, pauses
from controller.web.views.week import week

_PAGE: Final = 50
#: So many budgets of single brokers and namespaces are listed.
_METERS: Final = 24


def controls(page: PageRequest) -> Response:
    """Mode, pauses, budgets, windows and drained brokers."""
    context = context_of(page)
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
        pauses=pauses(state, page.now_ms),
        meters=all_meters[:_METERS],
        meters_left_out=max(0, len(all_meters) - _METERS),
        breaker=breaker(state.breaker) if state is not None else None,
        week=week(maintenance, page.now_ms),
        maintenance=maintenance,
        events=page.data.controls(limit=5).events,
    )


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
