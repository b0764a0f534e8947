"""Proposals: one of them with all that is in it, and the forms of what people do with it."""

from collections.abc import Mapping, Sequence
from typing import Final

from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from controller.model.proposals import ENDED, ProposalState
from controller.settings.web import ViewerRole
from controller.web import orders
from controller.web.access.viewer import RefusedError
from controller.web.access.writers import require_writer
from controller.web.control_actions import ReasonBody
from controller.web.decisions_waiting import waiting_decision
from controller.web.issued_plan import issued_plan
from controller.web.jobs import Job
from controller.web.pages.form_pages import body_of, first, form_page, query_values
from controller.web.pages.frame import Context, context_of, render
from controller.web.pages.page import PageRequest
from controller.web.proposal_actions import (
    ACTIONS,
    PROPOSE,
    PlanRequestBody,
    ProposalAction,
    ProposalCall,
    carry_out,
    newest_apply,
    propose_plan,
    stored_answer,
    stored_answers,
    stored_statements,
    why_unable,
)
from controller.web.views import proposal as view
from controller.web.views.certificate import CHECKED, NOT_PROVED
from controller.web.views.formats import clock
from controller.web.views.plan_file import NOTES, plan_view
from controller.web.views.plans import events, in_flight
from controller.web.views.plans import facts as progress_facts
from controller.web.views.proposal_forms import plan_form, proposal_form
from controller.wire.answers.proposals import ProposalAnswer, ProposalDetailAnswer

#: A page waits no longer for the verification of a proposal.
_DETAIL_SECONDS: Final = 8.0
#: Nor for the list of proposals after one of them changed.
_READ_SECONDS: Final = 1.0
#: So many commands of a decision are listed.
_MOVES: Final = 50
#: Fields of the form of a plan that are lists, and what separates their items.
_LISTS: Final = {"brokers": "\n", "moves": "\n", "own": ""}
_OPERATOR: Final = ViewerRole.OPERATOR


def proposal_answers(page: PageRequest, *, ended: bool) -> tuple[list[ProposalAnswer], str]:
    """The proposals, the newest first, with those that have *ended*, too; and why they are not known, or ""."""
    reading = page.cluster.proposals.cached.reading(2.0, page.site.workers.wait)
    if reading.value is None or reading.error:
        return [], reading.error or "the proposals have not been read yet: load the page again in a moment"
    controls, _ = page.controls_now()
    answers = stored_answers(page.cluster, reading.value, None if controls is None else controls.controls, page.now_ms)
    return [each for each in reversed(answers) if ended or each.state not in ENDED], ""


def proposal(page: PageRequest) -> Response:
    """What is proposed, verified, whether it can still be carried out, who approved it, and how far it is."""
    context, key = context_of(page), str(page.request.path_params["id"])[:64]
    answer, statements = stored_statements(page.cluster, key, page.now_ms)
    decision = waiting_decision(page.cluster)
    is_waiting = decision is not None and decision.hash == key
    detail, checking = (None, "") if is_waiting else _detail(page, answer)
    progress = issued_plan(page.data, key, context.state, page.now_ms)
    if detail is not None and detail.state == "rejected" and not detail.rejected_by:
        # Its content is not what its hash says, which only the check finds.
        answer = answer.model_copy(update={"state": detail.state})
    plan = None
    if detail is not None and detail.plan is not None:
        plan = plan_view(detail.plan, progress, context.names, page.data.brokers(), page.now_ms)
    is_running = answer.state in (ProposalState.APPLYING, ProposalState.PAUSED)
    drained = () if context.state is None else context.state.controls.drained
    return render(
        page,
        "proposal.html",
        "Plans",
        context,
        answer=answer,
        heading=view.heading(answer, statements, page.now_ms),
        steps=view.steps(answer, page.now_ms),
        drift=None
        if detail is None or answer.state in ENDED
        else view.drift_text(detail.drift, page.now_ms, has_begun=is_running),
        checking=checking,
        flaws=dict.fromkeys((*answer.flaws, *(() if detail is None else detail.flaws))),
        facts=view.facts(answer, page.now_ms) if plan is None else (*plan.facts, view.expiry(answer, page.now_ms)),
        approvals=view.approvals(answer, statements, page.now_ms),
        content=[] if detail is None else detail.content,
        plan=plan,
        progress=progress_facts(progress) if answer.state in view.STARTED and answer.kind == "plan" else (),
        is_running=is_running,
        counts=progress.counts,
        in_flight=in_flight(progress, page.now_ms),
        events=events(progress, context.names),
        stop_text=view.stop_text(progress, answer.moves, drained, context.names) if is_running else "",
        moves=view.decision_moves(decision, _MOVES) if decision is not None and is_waiting else (),
        usage=view.decision_usage(decision) if decision is not None and is_waiting else (),
        actions=_actions(page, answer),
        apply_problem=_apply_problem(page, answer),
        is_in_force=False,
        checked=CHECKED,
        not_proved=NOT_PROVED,
        most_notes=NOTES,
        job=None,
    )


#: Which actions a proposal in a state offers, the one that goes on first.
_OFFERED: Final[Mapping[ProposalState, Sequence[str]]] = {
    ProposalState.PENDING: ("approve", "reject", "refresh"),
    ProposalState.APPROVED: ("apply", "reject", "refresh"),
    ProposalState.APPLYING: ("pause", "stop"),
    ProposalState.PAUSED: ("resume", "stop"),
    ProposalState.EXPIRED: ("refresh",),
    ProposalState.FAILED: ("refresh",),
    ProposalState.STOPPED: ("refresh",),
    ProposalState.REJECTED: ("refresh",),
}


def _actions(page: PageRequest, answer: ProposalAnswer) -> list[tuple[str, str]]:
    """Name of an action -> why it cannot be done, of those that the proposal's state offers."""
    names = _OFFERED.get(ProposalState(answer.state), ())
    if answer.kind != "plan":
        names = [name for name in names if name in ("approve", "reject")]
    return [(name, why_unable(page.site, page.cluster, page.viewer, ACTIONS[name], answer)) for name in names]


def _apply_problem(page: PageRequest, answer: ProposalAnswer) -> str:
    """Why this server has ended to carry it out although it goes on, or that it has not begun yet; or ""."""
    job = newest_apply(page.site, answer.id)
    if job is None or answer.state in ENDED:
        return ""
    if job.ended_ms is None:
        return "" if answer.state in view.STARTED else f"The server begins to carry it out. {job.progress}"
    at = clock(job.ended_ms, page.now_ms)
    return f"Apply, by {job.by}, ended at {at}: {job.problem}" if job.state == "failed" else ""


def _detail(page: PageRequest, answer: ProposalAnswer) -> tuple[ProposalDetailAnswer | None, str]:
    """The content, as it was verified last; and why it is not there, or not as new as it should be."""
    has_ended = answer.state in ENDED
    order = orders.of_proposal(page.cluster, answer.id, answer.proposed_at if has_ended else page.now_ms)
    newest = orders.answer_in_time(page.site, page.viewer, order, ProposalDetailAnswer, _DETAIL_SECONDS)
    if newest.value is None or not newest.missing or has_ended:
        return newest.value, "" if newest.value is not None else newest.missing
    return newest.value, f"This was found at {clock(newest.at_ms, page.now_ms)}; now {newest.missing}"


# ---- forms ----


def form(page: PageRequest) -> Response:
    """The form of an action on a proposal."""
    return _form_of(page, _action(page), {})


def submit(page: PageRequest) -> Response:
    """Do what the form asks; or show it again, with why it was not done."""
    action = _action(page)
    try:
        require_writer(page.viewer, page.site.settings, _OPERATOR)
        body = body_of(ReasonBody, page.form, {})
        _, job = carry_out(_call(page, body.reason), action)
        # The page that follows counts those that wait.
        page.cluster.proposals.cached.reading(_READ_SECONDS, page.site.workers.wait)
    except RefusedError as error:
        page.refused = error
        return _form_of(page, action, page.form)
    if job is not None and job.order.kind == PROPOSE:
        return RedirectResponse(page.href("/plans", job=job.id), 303)
    return RedirectResponse(page.href(f"/proposals/{page.request.path_params['id']}"), 303)


def _action(page: PageRequest) -> ProposalAction:
    action = ACTIONS.get(str(page.request.path_params["action"]))
    if action is None:
        raise HTTPException(404)
    return action


def _call(page: PageRequest, reason: str) -> ProposalCall:
    return ProposalCall(
        site=page.site,
        cluster=page.cluster,
        viewer=page.viewer,
        id=str(page.request.path_params.get("id", ""))[:64],
        reason=reason,
        key=first(page.form, "key"),
    )


def _form_of(page: PageRequest, action: ProposalAction, values: Mapping[str, Sequence[str]]) -> Response:
    context, key = context_of(page), str(page.request.path_params["id"])[:64]
    answer = stored_answer(page.cluster, key, page.now_ms)
    why = why_unable(page.site, page.cluster, page.viewer, action, answer)
    made = proposal_form(action.name, answer, page.now_ms)
    return form_page(page, "Plans", context, made, values, why=why, back=page.href(f"/proposals/{key}"))


def new_form(page: PageRequest) -> Response:
    """The form of a plan that is made and proposed."""
    return _new_form(page, context_of(page), query_values(page))


def new_submit(page: PageRequest) -> Response:
    """Begin to make the plan."""
    try:
        require_writer(page.viewer, page.site.settings, _OPERATOR)
        body = body_of(PlanRequestBody, page.form, _LISTS)
        job: Job = propose_plan(_call(page, body.reason), body)
    except RefusedError as error:
        page.refused = error
        return _new_form(page, context_of(page), page.form)
    return RedirectResponse(page.href("/plans", job=job.id), 303)


def _new_form(page: PageRequest, context: Context, values: Mapping[str, Sequence[str]]) -> Response:
    made = plan_form({name: "\n".join(texts) for name, texts in values.items()}, context.names)
    return form_page(page, "Plans", context, made, values, why=page.why_not(_OPERATOR), back=page.href("/plans"))
