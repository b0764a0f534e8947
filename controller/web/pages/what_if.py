"""What if: a span of the past, decided again with another strategy, beside what happened; and incident files."""

from typing import Final

from starlette.exceptions import HTTPException
from starlette.responses import Response

from controller.settings.web import ViewerRole
from controller.strategies.catalogue import SHEDDERS
from controller.web.orders import answer_of
from controller.web.pages.frame import context_of, render
from controller.web.pages.page import PageRequest
from controller.web.views.comparison import comparison
from controller.wire.answers.what_if import WhatIfAnswer

_HOUR_MS: Final = 3_600_000


def what_if(page: PageRequest) -> Response:
    """The form, how far a job is, or what it found out."""
    context = context_of(page)
    end = context.state.interval if context.state is not None else page.now_ms
    since, until = _time(page, "since", end - _HOUR_MS), _time(page, "until", end)
    key = page.request.query_params.get("job", "")[:200]
    job = page.site.jobs.job(key) if key else None
    if key and (job is None or job.order.cluster != page.cluster.name):
        raise HTTPException(404, "there is no such job, or its result is not kept any more: start it again")
    result = None
    if job is not None and job.state == "done" and job.order.kind == "whatif":
        result = comparison(answer_of(job, WhatIfAnswer))
    return render(
        page,
        "what_if.html",
        "What if",
        context,
        since=since,
        until=until,
        strategies=sorted(SHEDDERS),
        job=job,
        result=result,
        may_start=page.viewer.role.may(ViewerRole.OPERATOR),
    )


def _time(page: PageRequest, name: str, otherwise: int) -> int:
    text = page.request.query_params.get(name, "")
    if not text:
        return otherwise
    if not (text.isascii() and text.isdigit() and len(text) < 17):
        raise HTTPException(400, f"{name} must be a time, epoch ms, not {text[:40]!r}")
    return int(text)
