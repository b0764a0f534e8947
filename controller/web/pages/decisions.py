"""Decisions: the list, and one of them."""

from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.responses import Response

from controller.web.access.viewer import checked
from controller.web.pages.frame import Context, commands_of, context_of, newest_end, render
from controller.web.pages.page import PageRequest
from controller.web.pages.spans import form_time, time_of, usual_spans
from controller.web.store.values import DecisionDetail, DecisionPage, DecisionQuery
from controller.web.views import decision as view
from controller.web.views.sentences import decision_lines
from controller.wire.readable import counted

_PAGE: Final = 50
_LONGEST: Final = 2_048
#: Parameters of the list that are texts.
_TEXTS: Final = ("broker", "namespace", "bundle", "reason")
#: So many brokers are listed as destinations.
_DESTINATIONS: Final = 40


def decisions(page: PageRequest) -> Response:
    """The newest decisions, or those that were looked for."""
    context = context_of(page)
    filters = _filters(page, context)
    rows = _rows(page, filters)
    lines = decision_lines(
        rows.rows,
        lambda interval: commands_of(page.data, interval),
        context.names,
        _PAGE,
    )
    return render(
        page,
        "decisions.html",
        "Decisions",
        context,
        title=_title(rows, filters),
        lines=lines,
        filters=filters,
        without_commands={name: text for name, text in filters.items() if name != "with_commands"},
        form_since=form_time(int(filters["since"])) if "since" in filters else "",
        form_until=form_time(int(filters["until"]), round_up=True) if "until" in filters else "",
        spans=usual_spans(context.progress.oldest, newest_end(context, page.now_ms)),
        newer=_link(page, filters, rows.newer) if rows.newer is not None else "",
        older=_link(page, filters, rows.cursor) if rows.cursor is not None else "",
    )


def _filters(page: PageRequest, context: Context) -> dict[str, str]:
    """The parameters that say what is looked for, those that are not empty; the broker by its whole name."""
    parameters = page.request.query_params
    names = (*_TEXTS, "since", "until", "with_commands")
    filters = {name: parameters[name].strip() for name in names if parameters.get(name, "").strip()}
    for name, text in filters.items():
        if len(text) > _LONGEST:
            raise HTTPException(400, f"{name} has {len(text):,} characters, more than any name")
    if "broker" in filters:
        filters["broker"] = _whole(page, context, filters["broker"])
    return filters | {name: str(time_of(name, filters[name])) for name in ("since", "until") if name in filters}


def _whole(page: PageRequest, context: Context, text: str) -> str:
    brokers = page.data.brokers()
    return context.names.whole(text, [] if brokers is None else [node.name for node in brokers.brokers])


def _rows(page: PageRequest, filters: dict[str, str]) -> DecisionPage:
    texts = {name: filters.get(name) for name in _TEXTS}
    query = DecisionQuery(
        broker=texts["broker"],
        namespace=texts["namespace"],
        bundle=texts["bundle"],
        reason=texts["reason"],
        since_ms=int(filters["since"]) if "since" in filters else None,
        until_ms=int(filters["until"]) if "until" in filters else None,
        with_commands="with_commands" in filters,
    )
    cursor = page.request.query_params.get("cursor")
    return checked(lambda: page.data.decisions(query, cursor=cursor, limit=_PAGE))


def _title(page: DecisionPage, filters: dict[str, str]) -> str:
    rows = page.rows
    if not rows:
        return "No decision matches" if filters else "Nothing has been decided yet"
    moving = sum(row.commands > 0 for row in rows)
    of_them = "matching " if set(filters) - {"with_commands"} else ""
    which = "older " if page.newer is not None else "newest " if page.cursor is not None else ""
    these = f"{'the ' if which == 'newest ' else ''}{counted(len(rows), f'{which}{of_them}decision')}"
    if moving == len(rows):
        return f"{these[:1].upper()}{these[1:]} with commands"
    return f"{moving:,} of {these} issued commands"


def _link(page: PageRequest, filters: dict[str, str], cursor: str) -> str:
    return page.href("/decisions", **filters, cursor=cursor)


def decision(page: PageRequest) -> Response:
    """One decision, whole."""
    context = context_of(page)
    interval = int(page.request.path_params["interval"])
    detail = page.data.decision(interval) if interval < 1 << 53 else None
    if detail is None:
        raise HTTPException(404, "there is no decision of this interval, or it is older than what is kept")
    brokers = page.data.brokers()
    parameters = page.request.query_params
    kind, text = parameters.get("kind", ""), parameters.get("text", "")[:_LONGEST]
    return render(
        page,
        "decision.html",
        "Decisions",
        context,
        detail=detail,
        heading=view.heading(detail, page.now_ms),
        facts=view.facts(detail),
        goal=brokers.goal if brokers is not None else None,
        moves=view.moves(detail.commands, context.names),
        moves_left_out=max(0, len(detail.commands) - view.COMMANDS),
        shares=view.parts(detail.row.reasons or {}),
        reasons=sorted((detail.row.reasons or {}).items(), key=lambda pair: -pair[1]),
        lines=view.verdict_lines(detail.verdicts, context.names, kind=kind, text=text),
        kind=kind,
        text=text,
        **_why_not(page, context, detail),
    )


def _why_not(page: PageRequest, context: Context, detail: DecisionDetail) -> dict[str, Any]:
    """What is answered about the bundle or broker that ?about= names."""
    about = _whole(page, context, page.request.query_params.get("about", "").strip()[:_LONGEST])
    if not about:
        return {"about": "", "explained": None, "explained_not": ""}
    answer = page.explain(detail.row.interval, about, flip="flip" in page.request.query_params)
    if answer is None or isinstance(answer, str):
        return {"about": about, "explained": None, "explained_not": answer or "Not known."}
    brokers = (answer.brokers or [])[:_DESTINATIONS]
    return {"about": about, "explained": answer, "explained_not": "", "destinations": brokers}
