"""Endpoints that answer from what the store knows, or from the cluster's status."""

from dataclasses import replace
from typing import Annotated, Final

from pydantic import Field

from controller.model.decision import Reason
from controller.web.access.viewer import RefusedError, bad_request, checked
from controller.web.issued_plan import issued_plan, orders_in_force
from controller.web.orders import bundle_name, namespace_name
from controller.web.rest.answers import (
    BrokerPastAnswer,
    BrokersAnswer,
    BundlePastAnswer,
    ClusterAnswer,
    ClustersAnswer,
    DecisionAnswer,
    DecisionsAnswer,
    HistoryAnswer,
    NamespacePastAnswer,
    PlanInForceAnswer,
    PlanMoveAnswer,
    PlanProgressAnswer,
)
from controller.web.rest.endpoint import LATEST_MS, ApiRequest, Query, Reply, Time
from controller.web.store.values import DecisionQuery
from controller.wire.answers.status import ControlChangeAnswer, StatusAnswer

_DAY_MS: Final = 86_400_000
_LONGEST_SPAN_MS: Final = 31 * _DAY_MS
#: An endpoint waits no longer for the cluster's status.
_STATUS_SECONDS: Final = 10.0
#: Nor for names of topics, without which it answers too.
_NAMES_SECONDS: Final = 2.0
#: Changes of controls that are looked through for plans.
_LOOKED_AT: Final = 500


class Paged(Query):
    """A list in pages."""

    cursor: Annotated[str | None, Field(max_length=200)] = None
    """As the page before gave it out; without it the first page."""
    limit: Annotated[int, Field(ge=1, le=500)] = 50
    """Of a page, at most."""


class SpanQuery(Query):
    """A time, of which something is asked."""

    since: Time | None = None
    """Epoch ms; without it a day before *until*."""
    until: Time | None = None
    """Epoch ms; without it now."""


class BundleQuery(SpanQuery):
    """The past of a bundle."""

    hot_at: Time | None = None
    """T of the interval whose hot topics are wanted, epoch ms; without it the last one."""


class DecisionsQuery(Paged):
    """Which decisions."""

    broker: Annotated[str | None, Field(min_length=1, max_length=1000)] = None
    """Source or destination of a command."""
    namespace: Annotated[str | None, Field(min_length=1, max_length=1000)] = None
    bundle: Annotated[str | None, Field(min_length=1, max_length=1000)] = None
    reason: Reason | None = None
    """Of a command, or of a verdict."""
    since: Time | None = None
    """First interval, epoch ms."""
    until: Time | None = None
    with_commands: bool = False
    """Only decisions with commands."""


def clusters(api: ApiRequest[Query, None]) -> ClustersAnswer:
    """The clusters, and who asks."""
    clusters = [ClusterAnswer.of(each.name, each.data.progress()) for each in api.site.clusters.values()]
    return ClustersAnswer(clusters=clusters, viewer=api.viewer.name, role=api.viewer.role)


def status(api: ApiRequest[Query, None]) -> StatusAnswer:
    """What `trimtab status` says, at most a few seconds old."""
    reading = api.cluster.status.reading(_STATUS_SECONDS, api.site.workers.wait)
    if reading.value is None or reading.error:
        raise not_known(reading.error or "the log has not answered yet")
    return reading.value


def controls(api: ApiRequest[Query, None]) -> Reply:
    """What is in force now, under the version of what people set; without one where that cannot be read."""
    set_by_people = api.cluster.set_by_people(_STATUS_SECONDS, api.site.workers.wait)
    return Reply(answer=status(api).guardrails, version="" if set_by_people is None else set_by_people.version)


def brokers(api: ApiRequest[Paged, None]) -> BrokersAnswer:
    """All brokers in the last interval."""
    cursor = api.query.cursor or "0"
    if not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 10):
        raise bad_request("cursor: nobody gave it out")
    return BrokersAnswer.of(api.cluster.data.brokers(), int(cursor), api.query.limit)


def broker(api: ApiRequest[SpanQuery, None]) -> BrokerPastAnswer:
    """One broker's past."""
    since, until = _span(api)
    name = str(api.path["name"])
    past = checked(lambda: api.cluster.data.broker(name, since, until))
    if not past.known:
        raise unknown(f"no broker {name!r} was seen in this span")
    return BrokerPastAnswer.of(past)


def bundle(api: ApiRequest[BundleQuery, None]) -> BundlePastAnswer:
    """One bundle's past."""
    since, until = _span(api)
    name, at = bundle_name(str(api.path["name"])), api.query.hot_at
    past = checked(lambda: api.cluster.data.bundle(name, since, until))
    if not past.known:
        raise unknown(f"no bundle {name!r} was seen in this span")
    if at is not None:
        moment = api.cluster.data.hot_topics(name, at, at + 1)
        past = replace(past, hot_topics=() if moment is None else moment.topics)
    places = [each.place for each in past.hot_topics]
    names = api.cluster.topic_names.at(name, places, _NAMES_SECONDS, api.site.workers.wait)
    return BundlePastAnswer.of(past, names)


def namespace(api: ApiRequest[SpanQuery, None]) -> NamespacePastAnswer:
    """One namespace's past."""
    since, until = _span(api)
    name = namespace_name(str(api.path["name"]))
    past = checked(lambda: api.cluster.data.namespace(name, since, until))
    if not past.known:
        raise unknown(f"no namespace {name!r} was seen in this span")
    places = [each.place for each in past.scalable]
    names = api.cluster.topic_names.at(name, places, _NAMES_SECONDS, api.site.workers.wait)
    return NamespacePastAnswer.of(past, names)


def decisions(api: ApiRequest[DecisionsQuery, None]) -> DecisionsAnswer:
    """A page of decisions."""
    query = api.query
    decision_query = DecisionQuery(
        broker=query.broker,
        namespace=query.namespace,
        bundle=query.bundle,
        reason=query.reason,
        since_ms=query.since,
        until_ms=query.until,
        with_commands=query.with_commands,
    )
    page = checked(lambda: api.cluster.data.decisions(decision_query, cursor=query.cursor, limit=query.limit))
    return DecisionsAnswer.of(page)


def decision(api: ApiRequest[Query, None]) -> DecisionAnswer:
    """One decision."""
    interval = interval_of(api)
    detail = checked(lambda: api.cluster.data.decision(interval))
    if detail is None:
        raise unknown(f"no decision of {interval} is known")
    return DecisionAnswer.of(detail)


def history(api: ApiRequest[Paged, None]) -> HistoryAnswer:
    """What people did."""
    query = api.query
    return HistoryAnswer.of(checked(lambda: api.cluster.data.controls(cursor=query.cursor, limit=query.limit)))


def plans(api: ApiRequest[Query, None]) -> PlanInForceAnswer:
    """The plan in force, how far it is, and the ones before it."""
    page = api.cluster.data.controls(limit=_LOOKED_AT)
    applied = [ControlChangeAnswer.from_object(each) for each in page.events if each.action == "apply"]
    return PlanInForceAnswer(plan=status(api).guardrails.plan, progress=_progress(api), applied=applied)


def _progress(api: ApiRequest[Query, None]) -> PlanProgressAnswer | None:
    data, now = api.cluster.data, api.site.now_ms()
    state = data.latest()
    orders = orders_in_force(state, now)
    if orders is None:
        return None
    progress = issued_plan(data, orders.plan, state, now)
    return PlanProgressAnswer(
        sha256=orders.plan,
        step=orders.step,
        wave=orders.wave,
        waves=orders.waves,
        by=orders.by,
        checked_at=orders.checked_at,
        expires_at_ms=orders.expires_at_ms,
        moves=[PlanMoveAnswer.from_object(each) for each in progress.moves],
        **{state: progress.counts.get(state, 0) for state in ("done", "in_flight", "failed", "waiting")},
    )


def interval_of(api: ApiRequest[Query, None]) -> int:
    """The interval that the path names.  RefusedError 404 where no interval can be so late."""
    interval = int(api.path["interval"])
    if interval > LATEST_MS:
        raise unknown("no decision is that late")
    return interval


def not_known(why: str) -> RefusedError:
    """503: what is asked cannot be found out now."""
    error = RefusedError(503, "Not known now", why)
    error.headers["Retry-After"] = "10"
    return error


def span_of(api: ApiRequest[SpanQuery, None], default_ms: int = _DAY_MS) -> tuple[int, int]:
    """First and last time of the query, epoch ms."""
    until = api.site.now_ms() if api.query.until is None else api.query.until
    return max(0, until - default_ms) if api.query.since is None else api.query.since, until


def _span(api: ApiRequest[SpanQuery, None]) -> tuple[int, int]:
    since, until = span_of(api)
    if not 0 <= until - since <= _LONGEST_SPAN_MS:
        raise bad_request(f"the span has to be between 0 and {_LONGEST_SPAN_MS // _DAY_MS} days long")
    return since, until


def unknown(detail: str) -> RefusedError:
    """404: there is no such thing."""
    return RefusedError(404, "Not known", detail)
