"""What people do with proposals: the table of it, and how each is done in the name of who logged in."""

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple

from pydantic import Field

from controller.adapters.approvals import making
from controller.adapters.approvals.control_changes import enact_approved
from controller.adapters.approvals.requests import pause_proposal, resume_proposal, stop_proposal
from controller.adapters.election.proposals import Proposals, ProposalStore, require
from controller.model.controls import ControlChange, OperatorControls
from controller.model.errors import ProposalRefusedError, TrimtabError
from controller.model.proposals import ProposalKind, ProposalState, Standing, StoredProposal
from controller.offline.plans.proposal_hold import step_to_do
from controller.offline.plans.proposal_view import decision_answer, proposal_answer
from controller.offline.plans.waiting_decision import propose_waiting
from controller.settings.web import ViewerRole
from controller.web import orders
from controller.web.access.viewer import RefusedError, Viewer, bad_request, forbidden
from controller.web.access.writers import why_not
from controller.web.control_actions import ReasonBody
from controller.web.control_desk import ANY_VERSION, ControlsWrite
from controller.web.decisions_waiting import decide_unsigned, waiting_decision
from controller.web.desk import as_refusals
from controller.web.jobs import FOLDER, Around, Job, JobOrder, last_line
from controller.web.signing import signer_of_viewer, why_no_signature
from controller.web.site import ShownCluster, Site
from controller.wire.answers.proposals import ProposalAnswer, StatementAnswer, statement_answers
from controller.wire.base import Name, printable
from controller.wire.controls import MAX_REASON

_OPERATOR: Final = ViewerRole.OPERATOR
#: Digits of a hash that name a proposal to people.
_SHORT: Final = 12
_MOST_NAMES: Final = 100
_MINUTE_MS: Final = 60_000
_PLAN: Final = "plan.json"
_NEW_PLAN: Final = "new.json"
APPLY: Final = "apply"
PROPOSE: Final = "propose"


class PlanRequestBody(ReasonBody):
    """A plan that is to be made, and proposed."""

    kind: Literal["balance", "drain", "move"] = "balance"
    """Spread the load; empty *brokers*; or make *moves*."""
    brokers: Annotated[tuple[Name, ...], Field(max_length=_MOST_NAMES)] = ()
    moves: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=1000)], ...], Field(max_length=_MOST_NAMES)
    ] = ()
    """Each BUNDLE=BROKER."""
    own: tuple[Literal["cpu", "bandwidth-in", "bandwidth-out"], ...] = ()
    """Usage that stays with the brokers when bundles leave, as where their hosts do other work."""
    wave_moves: Annotated[int | None, Field(ge=1, le=100)] = None
    """Maximum moves of one wave; half as many off, or to, any one broker.  None: as `trimtab plan` has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalCall:
    """Somebody who does something with a proposal, and may, by the role."""

    site: Site
    cluster: ShownCluster
    viewer: Viewer
    #: The proposal's hash; "": there is none yet.
    id: str
    reason: str
    #: Of the request (Idempotency-Key); "" without one.
    key: str

    @property
    def now_ms(self) -> int:
        """The time."""
        return self.site.now_ms()


class ProposalAction(NamedTuple):
    """A line of the table."""

    name: str
    #: What REST says that it does.
    summary: str
    needs: ViewerRole
    run: Callable[[ProposalCall], Job | None]
    #: The states in which it can be done.
    states: frozenset[ProposalState]


_WAITING: Final = frozenset({ProposalState.PENDING, ProposalState.APPROVED})
_RUNNING: Final = frozenset({ProposalState.APPLYING, ProposalState.PAUSED})


def carry_out(call: ProposalCall, action: ProposalAction) -> tuple[ProposalAnswer, Job | None]:
    """Do *action*; the proposal afterwards, and the job that goes on with it, if any.

    RefusedError: 403 not by this person, 404 no such proposal, 409 not now, 422 the key was used for something else,
    503 the store cannot be reached.
    """
    content = f"{action.name} {call.id} {call.reason}"
    with _answered(call, content) as answered:
        if answered is not None:
            return stored_answer(call.cluster, call.id, call.now_ms), call.site.jobs.job(answered)
        refuse_unable(call.site, call.cluster, call.viewer, action, stored_answer(call.cluster, call.id, call.now_ms))
        with as_refusals():
            job = action.run(call)
        call.cluster.proposals.cached.forget()
        answer = stored_answer(call.cluster, call.id, call.now_ms)
        note_done(call, action.name, _detail(answer), content, "" if job is None else job.id)
        return answer, job


def why_unable(
    site: Site, cluster: ShownCluster, viewer: Viewer, action: ProposalAction, proposal: ProposalAnswer
) -> str:
    """Why *viewer* cannot do *action* with *proposal* now; "" where they can."""
    error = _flaw(site, cluster, viewer, action, proposal)
    return "" if error is None else error.detail


def refuse_unable(
    site: Site, cluster: ShownCluster, viewer: Viewer, action: ProposalAction, proposal: ProposalAnswer
) -> None:
    """RefusedError where *viewer* cannot do *action* with *proposal* now."""
    error = _flaw(site, cluster, viewer, action, proposal)
    if error is not None:
        raise error


def _flaw(
    site: Site, cluster: ShownCluster, viewer: Viewer, action: ProposalAction, proposal: ProposalAnswer
) -> RefusedError | None:
    policy = cluster.settings.approvals
    is_author = policy.is_same(viewer.name, proposal.author)
    needed = _OPERATOR if action.name == "reject" and is_author else action.needs
    if why := why_not(viewer, site.settings, needed):
        return forbidden(why)
    if action.name == "approve" and is_author:
        return forbidden("You are the author: another person has to approve it.")
    if ProposalState(proposal.state) not in action.states:
        return RefusedError(409, "Not possible now", f"It is {proposal.state}.")
    if action.name == "approve" and any(policy.is_same(viewer.name, each) for each in proposal.approved_by):
        return RefusedError(409, "Not possible now", "You have approved it already.")
    if action.name in ("apply", "refresh") and proposal.kind != "plan":
        return RefusedError(409, "Not possible now", "Only a plan is carried out: controllers do the rest themselves.")
    if action.name in ("approve", "reject", "refresh") and (why := why_no_signature(site, cluster)):
        return RefusedError(409, "Not possible here", why)
    return None


def stored_answer(cluster: ShownCluster, key: str, now_ms: int) -> ProposalAnswer:
    """The proposal *key* as it is stored now.  RefusedError 404, 503."""
    return stored_statements(cluster, key, now_ms)[0]


def stored_statements(cluster: ShownCluster, key: str, now_ms: int) -> tuple[ProposalAnswer, list[StatementAnswer]]:
    """The proposal *key* as it is stored now, and what people said about it.  RefusedError 404, 503."""
    decision = waiting_decision(cluster)
    with as_refusals(), cluster.proposals.store() as store:
        if decision is not None and decision.hash == key:
            if not cluster.settings.approvals.demanded:
                return decision_answer(decision, cluster.settings, cluster.desk.read().controls, now_ms), []
            if store.read(key) is None:
                return decision_answer(decision, cluster.settings, None, now_ms), []
        stored = require(store, key)
        return proposal_answer(stored, cluster.settings, now_ms), statement_answers(stored)


def stored_answers(
    cluster: ShownCluster, stored: Proposals, controls: OperatorControls | None, now_ms: int
) -> list[ProposalAnswer]:
    """All proposals, the oldest first, with the decision that waits in mode approve."""
    answers = list(cluster.proposal_answers(stored, now_ms))
    decision = waiting_decision(cluster)
    if decision is not None and all(each.id != decision.hash for each in answers):
        answers.append(decision_answer(decision, cluster.settings, controls, now_ms))
    return answers


def propose_upload(call: ProposalCall) -> tuple[JobOrder, Around]:
    """The job that checks an uploaded plan's file, and proposes it."""
    # A proposal counts for a minute at least: sent again within it the same file is the same job, later it is proposed
    # anew, where the earlier proposal has expired.
    minute = call.now_ms // _MINUTE_MS * _MINUTE_MS
    order = replace(orders.of_plan_file(call.cluster), kind=PROPOSE, as_of_ms=minute)
    return order, Around(after=lambda folder: _proposed(call, folder / order.upload))


def propose_plan(call: ProposalCall, body: PlanRequestBody) -> Job:
    """The job that makes the plan of *body*, and proposes it."""
    content = f"propose {body.model_dump_json()}"
    with _answered(call, content) as answered:
        job = None if answered is None else call.site.jobs.job(answered)
        if job is None:
            job = _planned(call, body)
            remember(call, content, job.id)
        return job


def _planned(call: ProposalCall, body: PlanRequestBody) -> Job:
    _refuse_unsigned(call)
    words = ("plan", "--json", *_plan_words(body), *_limit_words(body), "--output", f"{FOLDER}/{_PLAN}")
    words = (*words, *orders.conf_words(call.cluster))
    order = JobOrder(
        kind=PROPOSE, cluster=call.cluster.name, commands=(words,), answered_by=(0, 1), as_of_ms=call.now_ms
    )
    return call.site.jobs.submit(order, call.viewer.name, Around(after=lambda folder: _proposed(call, folder / _PLAN)))


def _limit_words(body: PlanRequestBody) -> list[str]:
    waves = [] if body.wave_moves is None else ["--wave-moves", str(body.wave_moves)]
    return [*(word for name in body.own for word in ("--own", name)), *waves]


def _plan_words(body: PlanRequestBody) -> list[str]:
    """The options of ``trimtab plan``.  RefusedError 400."""
    if body.kind == "drain":
        if not body.brokers or body.moves:
            raise bad_request("brokers: name the brokers to be emptied, and nothing else")
        return [word for name in body.brokers for word in ("--drain", orders.subject_name(name))]
    if body.kind == "move":
        if not body.moves or body.brokers:
            raise bad_request("moves: name each as BUNDLE=BROKER, and nothing else")
        return [word for move in body.moves for word in ("--move", _move(move))]
    if body.brokers or body.moves:
        raise bad_request("to spread the load, no brokers and no moves are named")
    return []


def _move(text: str) -> str:
    bundle, equals, broker = text.partition("=")
    if not equals:
        raise bad_request(f"{text[:200]!r} is no move: expected is BUNDLE=BROKER")
    return f"{orders.bundle_name(bundle)}={orders.subject_name(broker)}"


def _proposed(call: ProposalCall, file: Path) -> bytes:
    """Propose the plan in *file*; the job's result.  TrimtabError."""
    if not file.exists():
        raise TrimtabError(last_line(file.parent) or "there is no plan")
    signer = signer_of_viewer(call.site, call.cluster, call.viewer)
    with call.cluster.proposals.store() as store:
        stored = making.propose_plan(store, signer, file.read_bytes(), now_ms=call.now_ms, reason=call.reason)
    call.cluster.proposals.cached.forget()
    answer = proposal_answer(stored, call.cluster.settings, call.now_ms)
    note_done(call, "propose", _detail(answer), "", "")
    return json.dumps({"proposal": stored.proposal.hash}).encode()


def _refuse_unsigned(call: ProposalCall) -> None:
    if why := why_no_signature(call.site, call.cluster):
        raise RefusedError(409, "Not possible here", why)


def _approve(call: ProposalCall) -> None:
    if _decided_unsigned(call, approves=True):
        return
    signer = signer_of_viewer(call.site, call.cluster, call.viewer)
    with call.cluster.proposals.store() as store:
        _store_waiting(call, store)
        standing = making.approve(store, signer, call.id, now_ms=call.now_ms, reason=call.reason)
        _enact(call, store, require(store, call.id), standing)


def _decided_unsigned(call: ProposalCall, *, approves: bool) -> bool:
    """Whether it is a decision of mode approve, and nothing is signed; then it is approved or rejected."""
    decision = waiting_decision(call.cluster)
    if decision is None or decision.hash != call.id or call.cluster.settings.approvals.demanded:
        return False
    name, reason = call.viewer.name, call.reason
    decide_unsigned(call.cluster, decision, by=name, reason=reason, now_ms=call.now_ms, approves=approves)
    return True


def _store_waiting(call: ProposalCall, store: ProposalStore) -> None:
    """Where it is the decision that waits in mode approve, put it where statements about it lie."""
    decision = waiting_decision(call.cluster)
    if decision is not None and decision.hash == call.id:
        propose_waiting(store, decision, call.now_ms)


def _enact(call: ProposalCall, store: ProposalStore, stored: StoredProposal, standing: Standing) -> None:
    """Make the change of the controls that has the approvals that it needs."""
    if stored.proposal.kind is ProposalKind.CONTROL and standing.state is ProposalState.APPROVED:
        settings = call.cluster.settings
        with call.cluster.desk.store() as controls:
            enact_approved(store, controls, call.id, settings.approvals, settings.cluster.name, now_ms=call.now_ms)
        call.cluster.desk.cached.forget()


def _reject(call: ProposalCall) -> None:
    if _decided_unsigned(call, approves=False):
        return
    signer = signer_of_viewer(call.site, call.cluster, call.viewer)
    with call.cluster.proposals.store() as store:
        _store_waiting(call, store)
        making.reject(store, signer, call.id, now_ms=call.now_ms, reason=call.reason)


def _request(how: Callable[..., StoredProposal]) -> Callable[[ProposalCall], None]:
    def run(call: ProposalCall) -> None:
        with call.cluster.proposals.store() as store, call.cluster.desk.store() as controls:
            how(store, controls, call.id, by=call.viewer.name, reason=call.reason, now_ms=call.now_ms)
        call.cluster.desk.cached.forget()

    return run


def newest_apply(site: Site, key: str) -> Job | None:
    """The newest job of this server that carries out the proposal *key*, or has; None: it remembers none."""
    return next((job for job in site.jobs.all() if job.order.kind == APPLY and key in job.order.commands[0]), None)


def _apply(call: ProposalCall) -> Job:
    """The job that carries the proposal out; the one that does so already, if this server runs it."""
    running = newest_apply(call.site, call.id)
    if running is not None and running.ended_ms is None:
        return running
    name, reason = call.viewer.name, call.reason.replace(FOLDER, "folder")
    words = (APPLY, "--proposal", call.id, f"--by={name}", f"--reason={reason}", "--json")
    order = JobOrder(
        kind=APPLY,
        cluster=call.cluster.name,
        commands=((*words, *orders.conf_words(call.cluster)),),
        answered_by=(0, 1),
        as_of_ms=call.now_ms,
        is_endless=True,
    )
    return call.site.jobs.submit(order, name)


def _refresh(call: ProposalCall) -> Job:
    """The job that plans what is left anew, and proposes it."""
    with call.cluster.proposals.store() as store:
        stored = require(store, call.id)
        plan = making.verified(store, stored).plan
    if plan is None:
        raise ProposalRefusedError(f"proposal {call.id[:_SHORT]} is no plan: it cannot be made anew")
    step = step_to_do(stored.record.progress, len(plan.steps), None)

    def written(folder: Path) -> None:
        with call.cluster.proposals.store() as store:
            (folder / _PLAN).write_bytes(store.content(call.id))

    words = (APPLY, f"{FOLDER}/{_PLAN}", "--hash", call.id, "--step", str(step), "--repair")
    output = ("--output", f"{FOLDER}/{_NEW_PLAN}", "--json")
    order = JobOrder(
        kind=PROPOSE,
        cluster=call.cluster.name,
        commands=((*words, *output, *orders.conf_words(call.cluster)),),
        answered_by=(0, 1),
        as_of_ms=call.now_ms,
    )
    around = Around(before=written, after=lambda folder: _proposed(call, folder / _NEW_PLAN))
    return call.site.jobs.submit(order, call.viewer.name, around)


ACTIONS: Final[Mapping[str, ProposalAction]] = {
    each.name: each
    for each in (
        ProposalAction("approve", "Approve it, in your name", ViewerRole.APPROVER, _approve, _WAITING),
        ProposalAction("reject", "Reject it; its author may, too", ViewerRole.APPROVER, _reject, _WAITING),
        ProposalAction(
            "refresh",
            "Begin to plan what is left of it anew; the result is a proposal of its own",
            _OPERATOR,
            _refresh,
            frozenset(ProposalState) - {ProposalState.DONE},
        ),
        ProposalAction(
            "apply",
            "Begin to carry it out, as `trimtab apply --proposal` does",
            _OPERATOR,
            _apply,
            frozenset({ProposalState.APPROVED, *_RUNNING}),
        ),
        ProposalAction(
            "pause",
            "Hand over no more of its moves; what is issued is finished",
            _OPERATOR,
            _request(pause_proposal),
            frozenset({ProposalState.APPLYING}),
        ),
        ProposalAction(
            "resume", "Go on with it", _OPERATOR, _request(resume_proposal), frozenset({ProposalState.PAUSED})
        ),
        ProposalAction(
            "stop", "End it for good; what is issued is finished", _OPERATOR, _request(stop_proposal), _RUNNING
        ),
    )
}


def note_done(call: ProposalCall, action: str, detail: str, content: str, answer: str) -> None:
    """Have the controls' history say what *call* did; best effort: the proposal itself says it, too."""
    decision = waiting_decision(call.cluster)
    is_unsigned = decision is not None and decision.hash == call.id and not call.cluster.settings.approvals.demanded
    if is_unsigned or action in ("pause", "resume", "stop"):  # the change itself has noted it
        entry = None
    else:
        entry = ControlChange(
            at_ms=call.now_ms,
            by=call.viewer.name,
            action=action,
            detail=printable(detail)[:MAX_REASON],
            reason=call.reason,
        )
    remember(call, content, answer, entry)


def remember(call: ProposalCall, content: str, answer: str, entry: ControlChange | None = None) -> None:
    """Have the same request answered alike when it comes again, and the history say what was done; best effort."""

    def change(now: OperatorControls) -> OperatorControls:
        return now if entry is None else now.with_change(entry)

    write = ControlsWrite(
        by=call.viewer.name,
        at_ms=call.now_ms,
        change=change,
        versions=frozenset({ANY_VERSION}),
        key=call.key if content else "",
        content=content,
    )
    call.cluster.desk.write_after(write, answer)


def _answered(call: ProposalCall, content: str) -> AbstractContextManager[str | None]:
    """What the same request was answered before: the id of a job, or ""; None: it is a new one.  RefusedError 422."""
    return call.cluster.desk.answered(by=call.viewer.name, key=call.key, content=content, now_ms=call.now_ms)


def _detail(answer: ProposalAnswer) -> str:
    count = f", {len(answer.approved_by)} of {answer.required} approvals" if answer.required else ""
    return f"proposal {answer.id[:_SHORT]} of {answer.author}: {answer.title}{count}"
