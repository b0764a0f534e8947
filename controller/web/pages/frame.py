"""What surrounds every page: the bridge, the places one can go, and the foot."""

import threading
from dataclasses import dataclass
from typing import Any, Final

from starlette.responses import Response

from controller.settings.web import ViewerRole
from controller.web.pages.page import PageRequest
from controller.web.proposal_actions import stored_answers
from controller.web.store.queries import PageData
from controller.web.store.values import IssuedCommand, LatestState, Progress
from controller.web.views.bridge import Bridge, bridge
from controller.web.views.formats import BrokerNames, clock
from controller.wire.readable import counted

_MINUTE_MS: Final = 60_000
#: Of more commands in a decision a line gives the number alone.
_NAMED_COMMANDS: Final = 500


@dataclass(frozen=True, slots=True)
class RailItem:
    """A line of the rail."""

    name: str
    path: str
    icon: str
    #: Keys that lead there.
    keys: str = ""


PLACES: Final = (
    RailItem("Now", "/", "now", "g n"),
    RailItem("Map", "/map", "map", "g m"),
    RailItem("Decisions", "/decisions", "decisions", "g d"),
    RailItem("Plans", "/plans", "plans", "g p"),
    RailItem("Find", "/find", "find", "/"),
    RailItem("What if", "/what-if", "what-if"),
    RailItem("Controls", "/controls", "controls", "g c"),
    RailItem("History", "/history", "history"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFrame:
    """The values that base.html needs."""

    bridge: Bridge
    #: Which of PLACES is marked.
    place: str
    #: "12 brokers, 1,148 bundles"; "" before the first interval.
    size: str
    names: BrokerNames
    #: How far back data reaches.
    reach: str
    #: Sources that cannot be read, or that are loading, in words.
    loading: str
    version: int
    now_ms: int
    #: Proposals that wait for who looks.
    waiting: int


@dataclass(frozen=True, slots=True)
class Context:
    """What all handlers need of the last interval."""

    state: LatestState | None
    progress: Progress
    names: BrokerNames


def context_of(page: PageRequest) -> Context:
    """The last interval, and the names of its brokers."""
    brokers = page.data.brokers()
    names = BrokerNames.of(node.name for node in brokers.brokers) if brokers is not None else BrokerNames()
    return Context(page.data.latest(), page.data.progress(), names)


def newest_end(context: Context, now_ms: int) -> int:
    """When the newest interval ends, epoch ms; near *now_ms* where none is known."""
    if context.state is not None:
        return context.state.interval + context.state.period_ms
    return (context.progress.newest or now_ms) + _MINUTE_MS


def commands_of(data: PageData, interval: int) -> tuple[IssuedCommand, ...]:
    """The commands of a decision for a line of a list; empty where they are too many to be named.

    Not by ``PageData.decision``, which also unpacks every verdict: a list of 50 took seconds in a large cluster.
    """
    return data.moves(interval, interval + 1, limit=_NAMED_COMMANDS)


def render(page: PageRequest, template: str, place: str, context: Context, /, **values: Any) -> Response:
    """The page that *template* makes of *values*, in its frame."""
    state = context.state
    frame = PageFrame(
        bridge=bridge(state, context.progress, page.status(), page.now_ms),
        place=place,
        size="" if state is None else f"{counted(state.brokers, 'broker')}, {counted(state.bundles, 'bundle')}",
        names=context.names,
        reach=_reach(context.progress, page.now_ms),
        loading=_loading(context.progress),
        version=page.data.version(),
        now_ms=page.now_ms,
        waiting=_waiting(page),
    )
    return page.render(template, frame=frame, places=PLACES, now_ms=page.now_ms, names=context.names, **values)


def _waiting(page: PageRequest) -> int:
    """How many proposals whoever looks could approve, as far as that is known without waiting."""
    if page.why_not(ViewerRole.APPROVER):
        return 0
    stored = page.cluster.proposals.cached.reading(0.0, _no_wait).value
    controls = page.cluster.desk.cached.reading(0.0, _no_wait).value
    if stored is None:
        return 0
    answers = stored_answers(page.cluster, stored, None if controls is None else controls.controls, page.now_ms)
    is_same = page.cluster.settings.approvals.is_same
    name = page.viewer.name
    return sum(
        each.state == "pending" and not any(is_same(name, other) for other in (each.author, *each.approved_by))
        for each in answers
    )


def _no_wait(_event: threading.Event, _seconds: float) -> None:
    """A page does not wait for a number beside a link."""


def _reach(progress: Progress, now_ms: int) -> str:
    if progress.oldest is None:
        return "No data yet."
    missing = f" {counted(progress.missing, 'interval')} in between without a picture." if progress.missing else ""
    return f"Data since {clock(progress.oldest, now_ms)}.{missing}"


def _loading(progress: Progress) -> str:
    failed: dict[str, list[str]] = {}
    for source in progress.sources:
        if source.error:
            failed.setdefault(source.error.rstrip("."), []).append(source.source)
    if failed:
        return "".join(f"Not readable now: {', '.join(names)}: {error}. " for error, names in failed.items()).strip()
    if progress.complete:
        return ""
    done = min((source.done for source in progress.sources), default=0.0)
    return f"Still loading: {100 * done:.0f} % of the last days is read."
