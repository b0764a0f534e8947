"""Pages of one bundle, one broker and one namespace, and how to find them."""

from typing import Any, Final

from starlette.responses import Response

from controller.model.decision import Reason
from controller.web.access.viewer import checked
from controller.web.control_actions import NEEDED
from controller.web.pages.frame import Context, context_of, render
from controller.web.pages.page import PageRequest
from controller.web.store.values import BundlePast, DecisionQuery, HotMoment
from controller.web.views import bundle as bundle_view
from controller.web.views.controls import excluded
from controller.web.views.decision import verdict_line
from controller.web.views.formats import BrokerNames, BundleLabel
from controller.web.views.past import chart, command_lines

_WEEK_MS: Final = 7 * 86_400_000
#: Of a chart, also where data have just begun.
_SHORTEST_MS: Final = 600_000
#: So many commands, and bundles of a broker or namespace, are listed.
_COMMANDS: Final = 20
_BUNDLES: Final = 32
_MATCHES: Final = 40
#: So many decisions are looked through for one in which the strategy acted.
_ROUNDS: Final = 60
_LONGEST: Final = 2_048


def _span(page: PageRequest, context: Context) -> tuple[int, int]:
    """The last seven days, or as far back as data reaches."""
    until = context.state.interval + context.state.period_ms if context.state else page.now_ms
    oldest = context.progress.oldest
    since = until - _WEEK_MS
    return (max(since, min(oldest, until - _SHORTEST_MS)) if oldest is not None else since), until


def bundle(page: PageRequest) -> Response:
    """A bundle: its load and owner, its moves, what binds it, its range."""
    context = context_of(page)
    name = str(page.request.path_params["name"])[:_LONGEST]
    since, until = _span(page, context)
    past = checked(lambda: page.data.bundle(name, since, until))
    names = context.names
    moment = _busiest_moment(page, past, context)
    return render(
        page,
        "bundle.html",
        "Find",
        context,
        name=BundleLabel.of(name),
        past=past,
        **_excluded(page, context, name, BundleLabel.of(name).namespace),
        heading=bundle_view.heading(past, context.state, names, page.now_ms),
        facts=bundle_view.facts(past),
        chart=chart(past.load, "rate", since, until, names, unit="msg/s", owners=past.owners, commands=past.commands),
        commands=command_lines(past.commands, _COMMANDS),
        verdicts=[verdict_line(verdict, names) for verdict in past.verdicts],
        ranges=bundle_view.ranges(past),
        hot_topics=bundle_view.hot_topics(past.hot_topics, page.topic_names(name, *past.hot_topics)),
        hot_moment=moment,
        hot_then=bundle_view.hot_topics(moment.topics, page.topic_names(name, *moment.topics)) if moment else (),
        last=context.state.interval if context.state else 0,
        asked=_newest_round(page, context),
        since=since,
        until=until,
    )


def _newest_round(page: PageRequest, context: Context) -> int:
    """The newest interval in which the strategy acted: of others "Why not?" has the same answer for all bundles."""
    rows = page.data.decisions(DecisionQuery(), limit=_ROUNDS).rows
    last = context.state.interval if context.state else 0
    return next((row.interval for row in rows if Reason.NOT_THIS_INTERVAL not in (row.reasons or {})), last)


def _busiest_moment(page: PageRequest, past: BundlePast, context: Context) -> HotMoment | None:
    """The hot topics of the time when the bundle was busiest; None: not known, or that is now."""
    step = bundle_view.busiest_step(past)
    moment = page.data.hot_topics(past.bundle, *step) if step is not None else None
    is_now = moment is None or (context.state is not None and moment.at_ms == context.state.interval)
    return None if is_now else moment


def broker(page: PageRequest) -> Response:
    """A broker: its usage, its bundles, what was moved off and to it."""
    context = context_of(page)
    name = str(page.request.path_params["name"])[:_LONGEST]
    since, until = _span(page, context)
    past = page.data.broker(name, since, until)
    brokers, names = page.data.brokers(), context.names
    return render(
        page,
        "broker.html",
        "Find",
        context,
        name=name,
        past=past,
        heading=bundle_view.broker_heading(past, brokers, context.state, names),
        facts=bundle_view.broker_facts(past),
        chart=chart(
            past.load,
            "usage",
            since,
            until,
            names,
            unit="%",
            commands=past.commands,
            limit=brokers.limit if brokers is not None else None,
            top=100.0,
        ),
        **_drained(page, context, name),
        last=context.state.interval if context.state else page.now_ms,
        resources=bundle_view.resources(past, brokers),
        commands=command_lines(past.commands, _COMMANDS),
        verdicts=[verdict_line(verdict, names) for verdict in past.verdicts],
        bundles=[BundleLabel.of(each) for each in past.bundles[:_BUNDLES]],
        bundles_left_out=max(0, len(past.bundles) - _BUNDLES),
        since=since,
        until=until,
    )


def _drained(page: PageRequest, context: Context, name: str) -> dict[str, Any]:
    """Whether people drained the broker *name*, whether the last decision was made with that, and who may change it."""
    read, not_read = page.controls_now()
    in_force = context.state is not None and name in context.state.controls.drained
    entry = None if read is None else next((each for each in read.controls.drained if each.broker == name), None)
    return {
        "why": page.why_not(NEEDED) or not_read,
        "is_drained": entry is not None,
        "drained_by": "" if entry is None else entry.by,
        "drained_at_ms": 0 if entry is None else entry.at_ms,
        "is_drained_in_force": in_force,
    }


def _excluded(page: PageRequest, context: Context, *names: str) -> dict[str, Any]:
    """Whether people excluded one of *names*, the first of them, and who may change it."""
    read, not_read = page.controls_now()
    entries = {each.name: each for each in excluded(None if read is None else read.controls, context.state)}
    return {
        "why": page.why_not(NEEDED) or not_read,
        "exclusion": next((entries[name] for name in names if name in entries), None),
    }


def namespace(page: PageRequest) -> Response:
    """A namespace: its bundles and their owners, and what was done to them."""
    context = context_of(page)
    name = str(page.request.path_params["name"])[:_LONGEST]
    since, until = _span(page, context)
    past = page.data.namespace(name, since, until)
    return render(
        page,
        "namespace.html",
        "Find",
        context,
        name=name,
        past=past,
        **_excluded(page, context, name),
        heading=bundle_view.namespace_heading(past, context.names),
        chart=chart(past.load, "rate", since, until, context.names, unit="msg/s", commands=past.commands),
        commands=command_lines(past.commands, _COMMANDS),
        bundles=[(BundleLabel.of(each), owner) for each, owner in past.bundles[:_BUNDLES]],
        bundles_left_out=max(0, len(past.bundles) - _BUNDLES),
        scalable=bundle_view.scalable_topics(past.scalable, page.scalable_names(name, past.scalable)),
        since=since,
        until=until,
    )


def find(page: PageRequest) -> Response:
    """Brokers, namespaces and bundles by a part of their name."""
    context = context_of(page)
    text = page.request.query_params.get("text", "").strip()[:_LONGEST]
    matches = page.data.search(text, limit=_MATCHES) if text else ()
    return render(
        page, "find.html", "Find", context, text=text, matches=matches, is_cut=len(matches) == _MATCHES, label=_label
    )


def _label(kind: str, name: str, names: BrokerNames) -> str:
    return names.label(name) if kind == "broker" else name
