"""Plans: the one that is being applied, one whose file a person uploaded, and what people did about plans."""

from typing import Final

from starlette.responses import Response

from controller.settings.web import ViewerRole
from controller.web.control_actions import NEEDED
from controller.web.issued_plan import IssuedPlan, issued_plan, orders_in_force
from controller.web.jobs import Job
from controller.web.orders import PLAN, answer_of
from controller.web.pages.frame import Context, context_of, render
from controller.web.pages.page import PageRequest
from controller.web.pages.proposals import proposal_answers
from controller.web.proposal_actions import PROPOSE
from controller.web.rest.answers import ProposedAnswer
from controller.web.views.certificate import CHECKED, NOT_PROVED
from controller.web.views.formats import BundleLabel
from controller.web.views.now import Heading
from controller.web.views.plan_file import NOTES, STATE_WORDS, PlanView, plan_view
from controller.web.views.plans import facts, heading, waves
from controller.web.views.proposal import line
from controller.wire.answers.plan import PlanAnswer

#: So many entries of the history are looked through.
_HISTORY: Final = 200
#: So many moves of the plan in force are listed.
_MOVES: Final = 50


def plans(page: PageRequest) -> Response:
    """The plan in force and what became of its moves; of an uploaded file all that it says."""
    context = context_of(page)
    job = page.job(PLAN, PROPOSE)
    answers, not_read = proposal_answers(page, ended="ended" in page.request.query_params)
    view = _view(page, context, job)
    orders = orders_in_force(context.state, page.now_ms)
    progress = None if orders is None else issued_plan(page.data, orders.plan, context.state, page.now_ms)
    events = [event for event in page.data.controls(limit=_HISTORY).events if event.action in ("apply", "release")]
    moves = () if progress is None else progress.moves
    return render(
        page,
        "plans.html",
        "Plans",
        context,
        heading=_heading(job, view) or heading(orders, page.now_ms),
        orders=orders,
        facts=() if progress is None else facts(progress),
        waves=waves(orders, progress),
        moves=[(BundleLabel.of(move.bundle), move, STATE_WORDS[move.state]) for move in moves[:_MOVES]],
        moves_left_out=max(0, len(moves) - _MOVES),
        events=events,
        job=job,
        plan=view,
        is_in_force=view is not None and orders is not None and view.answer.sha256 == orders.plan,
        checked=CHECKED,
        not_proved=NOT_PROVED,
        most_notes=NOTES,
        why=page.why_not(NEEDED),
        with_ended="ended" in page.request.query_params,
        proposals=[line(each, page.now_ms) for each in answers],
        proposals_not_read=not_read,
        proposed=_proposed(job),
        may_start=page.viewer.role.may(ViewerRole.OPERATOR),
    )


def _proposed(job: Job | None) -> str:
    """The hash of the proposal that *job* made; "" where it made none."""
    if job is None or job.order.kind != PROPOSE or job.state != "done":
        return ""
    return answer_of(job, ProposedAnswer).proposal


def _view(page: PageRequest, context: Context, job: Job | None) -> PlanView | None:
    if job is None or job.state != "done" or job.order.kind != PLAN:
        return None
    answer = answer_of(job, PlanAnswer)
    progress: IssuedPlan = issued_plan(page.data, answer.sha256, context.state, page.now_ms)
    return plan_view(answer, progress, context.names, page.data.brokers(), page.now_ms)


def _heading(job: Job | None, view: PlanView | None) -> Heading | None:
    if view is not None:
        return view.heading
    if job is None:
        return None
    if job.order.kind == PROPOSE and job.state == "done":
        return Heading(title="It is proposed", text="It waits for approval, with its certificate and its waves.")
    if job.order.kind == PROPOSE and job.state in ("waiting", "running"):
        return Heading(title="The plan is being made", text=job.progress or "Load the page again in a moment.")
    if job.order.kind == PROPOSE:
        return Heading(title="Nothing was proposed", text=job.problem or "It was cancelled.")
    if job.state in ("waiting", "running"):
        return Heading(title="The plan is being checked", text=job.progress or "Load the page again in a moment.")
    return Heading(title="This file cannot be shown as a plan", text=job.problem or "It was cancelled.")
