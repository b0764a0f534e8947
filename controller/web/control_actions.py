"""The table of what people do with the controls.  To add one: its body, its line here, its form in views/forms.py."""

import logging
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Annotated, Any, Final, Literal, NamedTuple

from pydantic import AfterValidator, Field

from controller.adapters.election import changes
from controller.adapters.election.changes import ControlsChange
from controller.doctor.before_acting import require_broker_balancing_off
from controller.log.fencing import fence
from controller.model.controls import Choice
from controller.model.errors import TrimtabError
from controller.settings.pulsar_names import is_bundle, namespace_or_bundle
from controller.settings.web import ViewerRole
from controller.web.access.viewer import RefusedError, Viewer
from controller.web.control_desk import ANY_VERSION, ControlsWrite, ControlsWritten
from controller.web.control_proposals import propose, proposer
from controller.web.parameters import Parameters
from controller.web.site import ShownCluster, Site
from controller.wire.base import Name
from controller.wire.controls import MAX_NAME, MAX_REASON

log = logging.getLogger(__name__)

_MINUTE_MS: Final = 60_000
_WEEK_MS: Final = 7 * 24 * 60 * _MINUTE_MS
_YEAR_MINUTES: Final = 366 * 24 * 60
_MOST_NAMES: Final = 100


class ReasonBody(Parameters):
    """What every change has."""

    reason: Annotated[str, Field(min_length=1, max_length=MAX_REASON, pattern=r"\S")]
    """Why; the history shows it."""


class PauseBody(ReasonBody):
    """A pause."""

    minutes: Annotated[int | None, Field(ge=1, le=_YEAR_MINUTES)] = None
    """It ends by itself after so many; without it, when somebody resumes."""


class ResumeBody(ReasonBody):
    """Whose pauses end."""

    of: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=MAX_NAME)], ...], Field(max_length=_MOST_NAMES)
    ] = ()
    """The persons; without any, your own."""
    everybody: bool = False
    """The pauses of all persons."""


class ModeBody(ReasonBody):
    """A mode."""

    mode: Literal["observe", "dry_run", "approve", "active", "settings"]
    """settings: decisions.mode of the settings."""


class BrokersBody(ReasonBody):
    """Brokers, by name."""

    brokers: Annotated[tuple[Name, ...], Field(min_length=1, max_length=_MOST_NAMES)]


class NamesBody(ReasonBody):
    """Bundles and namespaces, by name."""

    names: Annotated[
        tuple[Annotated[Name, AfterValidator(namespace_or_bundle)], ...], Field(min_length=1, max_length=_MOST_NAMES)
    ]


class PlanBody(ReasonBody):
    """The plan that is being applied."""

    plan: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    """Its hash."""


class ControlAction(NamedTuple):
    """A line of the table."""

    #: As addresses and the history have it.
    name: str
    #: What REST says that it does.
    summary: str
    body: type[ReasonBody]
    change: Callable[[Choice, Any], ControlsChange]
    #: It may allow more, so that it needs approvals where [approvals] demands them.
    allows_more: bool = False
    #: It makes less move, so it is done whatever others changed meanwhile, and where the controls cannot be read.
    is_safer: bool = False


def _paused(made: Choice, body: PauseBody) -> ControlsChange:
    return changes.paused(made, 0 if body.minutes is None else made.at_ms + body.minutes * _MINUTE_MS)


def _resumed(made: Choice, body: ResumeBody) -> ControlsChange:
    return changes.resumed(made, None if body.everybody else body.of or (made.by,))


ACTIONS: Final[Mapping[str, ControlAction]] = {
    each.name: each
    for each in (
        ControlAction("pause", "What `trimtab pause` does", PauseBody, _paused, is_safer=True),
        ControlAction("resume", "What `trimtab resume` does", ResumeBody, _resumed, allows_more=True),
        ControlAction(
            "mode",
            "What `trimtab mode` does",
            ModeBody,
            lambda made, _: changes.mode_set(made),
            allows_more=True,
        ),
        ControlAction(
            "drain",
            "Give brokers no more bundles, until they are released; the ones that they have stay",
            BrokersBody,
            lambda made, body: changes.drained(made, body.brokers),
        ),
        ControlAction(
            "release",
            "What `trimtab release` does",
            BrokersBody,
            lambda made, body: changes.released(made, body.brokers),
            allows_more=True,
        ),
        ControlAction(
            "exclude",
            "Keep bundles, and all bundles of namespaces, where they are and whole, until they are included",
            NamesBody,
            lambda made, body: changes.excluded(made, body.names),
        ),
        ControlAction(
            "include",
            "What `trimtab include` does",
            NamesBody,
            lambda made, body: changes.included(made, body.names),
            allows_more=True,
        ),
        ControlAction(
            "stop-all",
            "What `trimtab stop-all` does; without a number of the new epoch, executors may still begin older commands",
            ReasonBody,
            lambda made, _: changes.stopped(made),
            is_safer=True,
        ),
        ControlAction(
            "stop-plan",
            "End the plan that is being applied; what is in flight is finished, nothing else of it is issued",
            PlanBody,
            lambda made, body: changes.plan_stopped(made, body.plan),
        ),
    )
}
#: The role that all of them need.
NEEDED: Final = ViewerRole.OPERATOR


def carry_out(
    site: Site,
    cluster: ShownCluster,
    viewer: Viewer,
    action: ControlAction,
    body: ReasonBody,
    *,
    versions: frozenset[str],
    key: str,
) -> ControlsWritten:
    """Do *action* as *body* says in the name of *viewer*, who may.  RefusedError where that cannot be; see ControlDesk.

    The note of a stop of everything is the number of the new epoch; "": none could be started.
    """
    _refuse_active(cluster, body)
    if action.name == "drain" and isinstance(body, BrokersBody):
        _refuse_unknown(cluster, body, site.now_ms())
    if action.name == "exclude" and isinstance(body, NamesBody):
        _refuse_unseen(cluster, body, site.now_ms())
    value = body.mode if isinstance(body, ModeBody) else ""
    made = changes.choice_by(viewer.name, body.reason, site.now_ms(), value)
    # Whoever stops something is not to be told that another person was faster.
    allowed = versions if not action.is_safer else versions | {ANY_VERSION}
    write = ControlsWrite(
        by=viewer.name,
        at_ms=made.at_ms,
        change=action.change(made, body),
        versions=allowed,
        key=key,
        content=f"{action.name} {body.model_dump_json()}",
        may_replace=action.is_safer,
    )
    if action.allows_more and (how := proposer(cluster, action.name, made, write.change)) is not None:
        proposal = propose(site, cluster, viewer, write, how, body.reason)
        return ControlsWritten(at_ms=made.at_ms, version="", note="", key="", proposal=proposal)
    written = cluster.desk.write(write)
    if action.name == "stop-all" and not written.note:
        return _fenced(cluster, written)
    return written


def _fenced(cluster: ShownCluster, written: ControlsWritten) -> ControlsWritten:
    """*written* with the number of the epoch from which on executors begin nothing older, where one can be started."""
    try:
        with closing(cluster.open_controls()) as store:
            epoch = fence(cluster.settings, store)
    except TrimtabError as error:
        log.error("stop-all is stored, and executors are not told: %s", error)
        return written
    return cluster.desk.note(written, str(epoch))


def _refuse_unknown(cluster: ShownCluster, body: BrokersBody, now_ms: int) -> None:
    """RefusedError 409 where a broker of *body* was not seen lately: a name that is misspelt would drain nothing."""
    for name in body.brokers:
        if not cluster.data.broker(name, max(0, now_ms - _WEEK_MS), now_ms).known:
            raise RefusedError(409, "Not possible now", f"no broker {name!r} was seen in the last seven days")


def _refuse_unseen(cluster: ShownCluster, body: NamesBody, now_ms: int) -> None:
    """RefusedError 409 where a bundle or namespace of *body* was not seen lately: it may be misspelt."""
    data, since_ms = cluster.data, max(0, now_ms - _WEEK_MS)
    for name in body.names:
        if not (data.bundle if is_bundle(name) else data.namespace)(name, since_ms, now_ms).known:
            raise RefusedError(409, "Not possible now", f"{name!r} was not seen in the last seven days")


def _refuse_active(cluster: ShownCluster, body: ReasonBody) -> None:
    """RefusedError 409 where the mode is to be active, and the brokers balance by themselves."""
    if not isinstance(body, ModeBody):
        return
    mode = cluster.settings.decisions.mode if body.mode == changes.SETTINGS_MODE else body.mode
    try:
        require_broker_balancing_off(cluster.settings, mode=mode)
    except TrimtabError as error:
        raise RefusedError(409, "Not possible now", str(error)) from error
