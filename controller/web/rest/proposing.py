"""Endpoints of proposals: lists, what is in one, and what people do with them."""

from typing import Annotated

from pydantic import Field

from controller.model.proposals import ENDED
from controller.web import orders
from controller.web.access.viewer import RefusedError
from controller.web.control_actions import ReasonBody
from controller.web.jobs import Around, Job, JobOrder
from controller.web.proposal_actions import (
    PlanRequestBody,
    ProposalAction,
    ProposalCall,
    carry_out,
    propose_plan,
    propose_upload,
    stored_answers,
)
from controller.web.rest.answers import ProposalsAnswer, ProposalWrittenAnswer
from controller.web.rest.endpoint import BASE, ApiRequest, Query, Reply, Upload
from controller.web.rest.reading import not_known
from controller.web.rest.working import under_way, worked_out
from controller.wire.controls import MAX_REASON

_WAIT_SECONDS = 5.0
#: A hash is so long; a shorter name could be that of another proposal.
_DIGITS = 64


class ProposalsQuery(Query):
    """Which proposals."""

    ended: bool = False
    """Those that have ended, too."""


class ProposeQuery(Query):
    """Why a plan is proposed."""

    reason: Annotated[str, Field(min_length=1, max_length=MAX_REASON, pattern=r"\S")]
    """The history shows it."""


def proposals(api: ApiRequest[ProposalsQuery, None]) -> ProposalsAnswer:
    """All that wait or are carried out, the oldest first."""
    reading = api.cluster.proposals.cached.reading(_WAIT_SECONDS, api.site.workers.wait)
    if reading.value is None or reading.error:
        raise not_known(reading.error or "the store of proposals has not answered yet")
    now = api.site.now_ms()
    controls = api.cluster.set_by_people(_WAIT_SECONDS, api.site.workers.wait)
    answers = stored_answers(api.cluster, reading.value, None if controls is None else controls.controls, now)
    return ProposalsAnswer(
        proposals=[each for each in answers if api.query.ended or each.state not in ENDED],
        unreadable=dict(reading.value.unreadable),
    )


def proposal(api: ApiRequest[Query, None]) -> Reply:
    """What is in it, verified, who said what about it, and whether it can still be carried out."""
    return worked_out(api, orders.of_proposal(api.cluster, _id(api), api.site.now_ms()))


def upload(upload: Upload) -> tuple[JobOrder, Around]:
    """What is done with a plan's file."""
    return propose_upload(
        ProposalCall(
            site=upload.site,
            cluster=upload.cluster,
            viewer=upload.viewer,
            id="",
            reason=upload.query.reason,
            key="",
        )
    )


def uploaded(api: ApiRequest[ProposeQuery, Job]) -> Reply:
    """The job that proposes a plan's file."""
    return under_way(api.body)


def planned(api: ApiRequest[Query, PlanRequestBody]) -> Reply:
    """The job that makes a plan and proposes it."""
    return under_way(propose_plan(_call(api, ""), api.body))


def changed(api: ApiRequest[Query, ReasonBody], action: ProposalAction) -> Reply:
    """Do *action*: 200, or 202 where a job goes on with it."""
    answer, job = carry_out(_call(api, _id(api)), action)
    location = {} if job is None else {"Location": f"{BASE}/jobs/{job.id}", "Retry-After": "2"}
    written = ProposalWrittenAnswer(proposal=answer, job=None if job is None else job.id)
    return Reply(status=200 if job is None else 202, answer=written, headers=location)


def _call(api: ApiRequest[Query, ReasonBody], key: str) -> ProposalCall:
    return ProposalCall(
        site=api.site,
        cluster=api.cluster,
        viewer=api.viewer,
        id=key,
        reason=api.body.reason,
        key=api.precondition.key,
    )


def _id(api: ApiRequest[Query, ReasonBody | None]) -> str:
    key = str(api.path["id"])
    if len(key) != _DIGITS or not set(key) <= set("0123456789abcdef"):
        raise RefusedError(404, "No such proposal", "the id is the whole hash, 64 digits: GET /proposals has it")
    return key
