"""REST against its own OpenAPI document, by requests that schemathesis makes up: no 500, no undocumented answer."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from controller.adapters.approvals.making import Signer, propose_plan
from controller.adapters.election.changes import change_controls
from controller.adapters.election.proposals import change_record
from controller.log.elections import election_system
from controller.model.controls import Drained, ExcludedName, OperatorControls, Orders, Pause
from controller.model.errors import TrimtabError
from controller.model.proposals import ProposalProgress, ProposalRecord, ProposalState
from controller.web.app import create_app
from controller.web.control_actions import ACTIONS as CONTROL_ACTIONS
from controller.web.jobs import Around, Job, JobOrder, Jobs
from controller.web.limits import EVENTS
from controller.web.proposal_actions import ACTIONS as PROPOSAL_ACTIONS
from controller.web.rest.openapi import document
from controller.web.site import Site
from tests.page_data import BROKERS, NAMESPACE
from tests.unit.web.test_proposals_by_rest import plan_file
from tests.web_people import WRITES, token_of, tokens_file
from tests.web_sites import site

pytestmark = pytest.mark.extended

_CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


class _NoJobs(Jobs):
    """Takes any number of orders, and begins none; nobody waits for them."""

    def submit(self, order: JobOrder, by: str, around: Around | None = None) -> Job:
        job = Job(id="job", order=order, by=by, created_ms=0, folder=Path("/nowhere"))
        job.ended.set()
        self._jobs = type(self._jobs)(job=job)
        return job

    def start(self, job: Job, sha256: str, size: int) -> Job:
        self.withdraw(job)
        return job


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Site:
    folder = tmp_path_factory.mktemp("rest")
    made = site(folder, "east", web=(*WRITES, 'hosts = ["testserver"]', tokens_file(folder)))
    made.jobs = _NoJobs(1, 1)
    return made


@pytest.fixture(scope="module")
def schema(shown: Site) -> Any:
    return schemathesis.openapi.from_asgi("/api/v1/openapi.json", create_app(shown))


@pytest.mark.parametrize("kind", list(GenerationMode))
@pytest.mark.parametrize("path", [path for path in document()["paths"] if path != EVENTS])  # a stream has no end
def test_every_answer_is_in_the_document(schema: Any, path: str, kind: GenerationMode) -> None:
    for operation in schema[path].values():
        try:
            cases = operation.as_strategy(generation_mode=kind)
        except Unsatisfiable:
            continue

        @given(case=cases)
        @settings(
            max_examples=50,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        def answers(case: "Case[Any]") -> None:
            # An approver may do everything, so that what is refused is refused for what it says.
            case.call_and_validate(checks=_CHECKS, headers={"Authorization": f"Bearer {token_of('anna')}"})

        answers()


#: The state in which a proposal has to be for what is done with it; None: it waits.
_STATES: Final = {
    **dict.fromkeys(("apply", "pause", "stop"), ProposalState.APPLYING),
    "resume": ProposalState.PAUSED,
}


@pytest.mark.parametrize("path", [*(f"/api/v1/proposals/{{id}}/{each}" for each in PROPOSAL_ACTIONS)])
def test_what_is_done_with_a_proposal_is_answered_as_the_document_says(schema: Any, shown: Site, path: str) -> None:
    settings_there, now_ms = shown.clusters["east"].settings, shown.now_ms()
    store = election_system(settings_there).proposals()
    otto = Signer(person="otto", policy=settings_there.approvals, cluster="east")
    action = path.rpartition("/")[2]
    with suppress(TrimtabError):  # an earlier test has proposed it
        propose_plan(store, otto, plan_file(), now_ms=now_ms)
    (stored,) = store.read_all().proposals

    def ready(case: "Case[Any]") -> None:
        state = _STATES.get(action)
        change_record(store, stored.proposal.hash, lambda _: ProposalRecord(progress=ProposalProgress(state=state)))
        case.path_parameters["id"] = stored.proposal.hash

    assert _carried_out(schema[path]["POST"], ready)


@pytest.mark.parametrize("action", CONTROL_ACTIONS)
def test_what_is_done_with_the_controls_is_answered_as_the_document_says(schema: Any, shown: Site, action: str) -> None:
    store = election_system(shown.clusters["east"].settings).controls()

    def ready(case: "Case[Any]") -> None:
        body: Any = case.body if isinstance(case.body, dict) else {}
        if action == "drain":
            body["brokers"] = list(BROKERS[:1])  # no others are drained
        if action in ("exclude", "include"):
            body["names"] = [NAMESPACE]  # no others were seen
        of, plan = body.get("of") or (), body.get("plan", "")
        brokers = body.get("brokers", ()) if action == "release" else ()
        now = OperatorControls(
            pauses=tuple(Pause(by=name, reason="", at_ms=1) for name in of),
            drained=tuple(Drained(broker=name, by="otto", at_ms=1) for name in sorted(set(brokers))),
            excluded=_EXCLUDED if action == "include" else (),
            orders=replace(_ORDERS, plan=plan, expires_at_ms=shown.now_ms() + 60_000) if plan else None,
        )
        with suppress(TrimtabError, ValueError):  # names that no controls can have
            change_controls(store, lambda _: now)

    assert _carried_out(schema[f"/api/v1/controls/{action}"]["POST"], ready)


def _carried_out(operation: Any, ready: Callable[["Case[Any]"], None]) -> bool:
    """Whether one of the requests of *operation*, each of which *ready* prepares for, was carried out."""
    done = list[bool]()

    @given(case=operation.as_strategy(generation_mode=GenerationMode.POSITIVE))
    @settings(
        max_examples=10,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def answers(case: "Case[Any]") -> None:
        ready(case)
        headers = {"Authorization": f"Bearer {token_of('anna')}", "If-Match": "*"}
        done.append(case.call_and_validate(checks=_CHECKS, headers=headers).status_code < 300)

    answers()
    return any(done)


_EXCLUDED: Final = (ExcludedName(name=NAMESPACE, by="otto", reason="", at_ms=1),)
_ORDERS: Final = Orders(plan="", step=1, wave=1, waves=1, checked_at=1, expires_at_ms=1, holder="h", by="otto")
