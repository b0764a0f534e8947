"""What if: a span of the past, decided again with another strategy, beside what happened; and incident files."""

from typing import Final

from starlette.responses import Response

from controller.settings.web import ViewerRole
from controller.strategies.catalogue import SHEDDERS
from controller.web.orders import INCIDENT, WHAT_IF, answer_of
from controller.web.pages.frame import context_of, newest_end, render
from controller.web.pages.page import PageRequest
from controller.web.pages.spans import form_time, time_of, usual_spans
from controller.web.views.comparison import comparison
from controller.wire.answers.what_if import WhatIfAnswer

_MINUTE_MS: Final = 60_000
_HOUR_MS: Final = 60 * _MINUTE_MS


def what_if(page: PageRequest) -> Response:
    """The form, how far a job is, or what it found out."""
    context = context_of(page)
    end, oldest = newest_end(context, page.now_ms), context.progress.oldest
    parameters = page.request.query_params
    hour_ago = end - _HOUR_MS
    since = _time(page, "since", hour_ago if oldest is None else max(hour_ago, min(oldest, end - _MINUTE_MS)))
    until = _time(page, "until", end)
    job = page.job(WHAT_IF, INCIDENT)
    result = None
    if job is not None and job.state == "done" and job.order.kind == WHAT_IF:
        result = comparison(answer_of(job, WhatIfAnswer))
    return render(
        page,
        "what_if.html",
        "What if",
        context,
        since=since,
        until=until,
        form_since=form_time(since),
        form_until=form_time(until, round_up=True),
        spans=usual_spans(oldest, end),
        strategies=sorted(SHEDDERS),
        strategy=parameters.get("strategy", ""),
        job=job,
        result=result,
        may_start=page.viewer.role.may(ViewerRole.OPERATOR),
    )


def _time(page: PageRequest, name: str, otherwise: int) -> int:
    text = page.request.query_params.get(name, "")
    return time_of(name, text) if text else otherwise
