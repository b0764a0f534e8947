"""Endpoints whose answer takes long: they wait a moment, then answer 202 with the address of the job."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field

from controller.model.decision import Reason
from controller.settings.web import ViewerRole
from controller.web import orders
from controller.web.access.viewer import RefusedError, bad_request
from controller.web.admission import require
from controller.web.jobs import Job, JobOrder
from controller.web.parameters import Parameters
from controller.web.rest.answers import JobAnswer, JobsAnswer
from controller.web.rest.endpoint import BASE, ApiRequest, FileContent, Query, Reply, Time
from controller.web.rest.reading import SpanQuery, interval_of, not_known, span_of, unknown
from controller.wire.readable import utc

#: A request waits no longer for its job.
_WAIT_SECONDS: Final = 5.0
_AGAIN_SECONDS: Final = "2"
_MINUTE_MS: Final = 60_000
#: Of a live log, unless a query says otherwise: moves of the last hour are not known whole.
_AUDITED_MS: Final = 3 * 3_600_000


class AuditQuery(SpanQuery):
    """Which moves."""

    bundle: Annotated[str | None, Field(min_length=1, max_length=1000)] = None
    namespace: Annotated[str | None, Field(min_length=1, max_length=1000)] = None


class ExplainQuery(Query):
    """About whom."""

    subject: Annotated[str | None, Field(min_length=1, max_length=1000)] = None
    """A bundle or a broker; without it the decision itself."""
    flip: bool = False
    """Also search for the smallest change of load or of an option that would have changed this."""


class JournalQuery(Query):
    """Which decisions, as the options of `trimtab journal` say."""

    bundle: Annotated[str | None, Field(min_length=1, max_length=1000)] = None
    broker: Annotated[str | None, Field(min_length=1, max_length=1000)] = None
    """Source or destination of a command, or what a verdict is about."""
    reason: Reason | None = None
    since: Time | None = None
    """Epoch ms."""
    until: Time | None = None
    issued: bool = False
    """Only decisions with commands, without verdicts."""
    limit: Annotated[int, Field(ge=1, le=500)] = 20


class WhatIfBody(Parameters):
    """A span, and what is tried on it."""

    since: Time
    """Epoch ms."""
    until: Time
    strategies: Annotated[tuple[Annotated[str, Field(min_length=1, max_length=200)], ...], Field(max_length=8)] = ()
    """Each a shedder, or SHEDDER+PLACEMENT.  Without any: the recorded settings alone."""


class IncidentBody(Parameters):
    """What an incident is about."""

    around: Time
    """Epoch ms."""
    minutes: Annotated[int, Field(ge=1, le=720)] = 15
    """So many before and after it."""
    anonymise: bool = False
    """Replace the names of tenants, namespaces, topics and hosts."""


def audit(api: ApiRequest[AuditQuery, None]) -> Reply:
    """What became of the moves."""
    since, until = span_of(api, _AUDITED_MS)
    if api.query.until is None:  # who asks again within the minute gets the same answer
        since, until = since // _MINUTE_MS * _MINUTE_MS, until // _MINUTE_MS * _MINUTE_MS
    order = orders.of_audit(api.site, api.cluster, (since, until), api.query.bundle, api.query.namespace)
    return worked_out(api, order)


def explain(api: ApiRequest[ExplainQuery, None]) -> Reply:
    """Why."""
    return worked_out(api, orders.of_explain(api.cluster, interval_of(api), api.query.subject, flip=api.query.flip))


def bundle_status(api: ApiRequest[Query, None]) -> Reply:
    """Who owns it now, and why it was or was not moved last."""
    return worked_out(api, orders.of_bundle(api.cluster, str(api.path["name"]), api.site.now_ms()))


def topic_status(api: ApiRequest[Query, None]) -> Reply:
    """Which brokers serve its segments now."""
    return worked_out(api, orders.of_topic(api.cluster, str(api.path["name"]), api.site.now_ms()))


def journal(api: ApiRequest[JournalQuery, None]) -> Reply:
    """Decisions with their commands, results and verdicts."""
    query = api.query
    filters = {
        "bundle": None if query.bundle is None else orders.bundle_name(query.bundle),
        "broker": None if query.broker is None else orders.subject_name(query.broker),
        "reason": query.reason,
        "since": None if query.since is None else utc(query.since),
        "until": None if query.until is None else utc(query.until),
    }
    if query.since is not None and query.until is not None and query.since > query.until:
        raise bad_request("since is later than until")
    order = orders.of_journal(api.cluster, filters, query.limit, issued=query.issued)
    # The newest decisions are others a moment later.
    return worked_out(api, replace(order, as_of_ms=api.site.now_ms() // _MINUTE_MS * _MINUTE_MS))


def doctor(api: ApiRequest[Query, None]) -> Reply:
    """What the doctor finds, at most some minutes old."""
    return worked_out(api, orders.of_doctor(api.cluster, api.site.now_ms()))


def what_if(api: ApiRequest[Query, WhatIfBody]) -> Reply:
    """What would have happened."""
    body = api.body
    return _accepted(api, orders.of_what_if(api.site, api.cluster, (body.since, body.until), body.strategies))


def incident(api: ApiRequest[Query, IncidentBody]) -> Reply:
    """All around a time, as a file."""
    body = api.body
    order = orders.of_incident(api.site, api.cluster, body.around, body.minutes, anonymise=body.anonymise)
    return _accepted(api, order)


def plan_file(api: ApiRequest[Query, Job]) -> Reply:
    """What is in a plan's file."""
    return under_way(api.body)


def jobs(api: ApiRequest[Query, None]) -> JobsAnswer:
    """All that are remembered."""
    return JobsAnswer(jobs=[_answer(each) for each in api.site.jobs.all()])


def job(api: ApiRequest[Query, None]) -> JobAnswer:
    """One of them."""
    return _answer(_job(api))


def result(api: ApiRequest[Query, None]) -> Reply:
    """What a job has worked out: the JSON of its command, or a file."""
    job = _job(api)
    if job.state in ("failed", "cancelled"):
        raise RefusedError(404, "No result", job.problem or "it was cancelled")
    if job.state != "done":
        error = RefusedError(404, "Not done yet", f"the job is {job.state}: ask for it until it is done")
        error.headers["Retry-After"] = _AGAIN_SECONDS
        raise error
    return _result(job)


def cancel(api: ApiRequest[Query, None]) -> Reply:
    """End a job: one's own, or as an operator anybody's."""
    job = _job(api)
    if job.by != api.viewer.name:
        require(api.viewer, ViewerRole.OPERATOR)
    api.site.jobs.cancel(job)
    return Reply(status=204)


def worked_out(api: ApiRequest[Query, None], order: JobOrder) -> Reply:
    """The answer, where it comes soon; else 202."""
    job = api.site.jobs.submit(order, api.viewer.name)
    api.site.workers.wait(job.ended, _WAIT_SECONDS)
    if job.state == "done":
        return _result(job)
    if job.found_nothing:
        raise unknown(job.problem)
    if job.state in ("failed", "cancelled"):
        raise not_known(job.problem or "it was cancelled")
    return under_way(job)


def _accepted(api: ApiRequest[Query, Parameters], order: JobOrder) -> Reply:
    return under_way(api.site.jobs.submit(order, api.viewer.name))


def under_way(job: Job) -> Reply:
    """202 with the address of *job*."""
    headers = {"Location": f"{BASE}/jobs/{job.id}", "Retry-After": _AGAIN_SECONDS}
    return Reply(status=202, answer=_answer(job), headers=headers)


def _result(job: Job) -> Reply:
    try:
        file = job.result.open("rb")
    except FileNotFoundError:
        raise not_known("its result is forgotten: order it again") from None
    content = FileContent(file=file, size=job.size, sha256=job.sha256)
    if not job.order.file:
        return Reply(content=content)
    name = f"trimtab-{job.order.kind}-{job.id}{Path(job.order.file).suffix}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Reply(content=content, media_type="application/octet-stream", headers=headers)


def _job(api: ApiRequest[Query, None]) -> Job:
    job = api.site.jobs.job(str(api.path["id"]))
    if job is None:
        raise RefusedError(404, "No such job", "it never was, or it is forgotten")
    return job


def _answer(job: Job) -> JobAnswer:
    return JobAnswer.from_object(job, kind=job.order.kind, cluster=job.order.cluster)
