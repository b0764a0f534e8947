"""Proposals by REST: who may do what, under which signature, and that nothing is done twice."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from controller.adapters.approvals.making import Signer, propose_control, propose_plan
from controller.adapters.approvals.standing import standing_of
from controller.adapters.election.proposals import change_record
from controller.log.elections import election_system
from controller.model.controls import OperatorControls, Pause
from controller.model.errors import ControlsUnreachableError
from controller.model.proposals import ProposalRecord, ProposalState, StoredProposal
from controller.planning.plans.plan_steps import PlanLimits, empty_step
from controller.settings.trimtab_toml import Settings
from controller.settings.web import ViewerRole
from controller.web.access.viewer import Viewer
from controller.web.app import create_app
from controller.web.control_desk import ControlDesk
from controller.web.desk import Desk
from controller.web.jobs import Job, JobOrder
from controller.web.proposal_actions import ProposalCall, propose_upload
from controller.web.site import Site
from controller.wire.plan import encode_plan
from tests.balance_problems import problem
from tests.plans import plan_of
from tests.proposals import key_of
from tests.web_people import WRITES, token_of, tokens_file
from tests.web_sites import site

NOW = 1_735_689_600_000


def plan_file(bundles: int = 6) -> bytes:
    """The file of a plan for the cluster east that empties a broker."""
    one = problem([[100.0]] * 4, [(0, [2.0])] * bundles, connections=list(map(float, range(bundles))))
    return encode_plan(replace(plan_of(one, [empty_step(one, [0], PlanLimits())]), cluster="east"))


def page_of(folder: Path, *lines: str, signs: bool = True) -> Site:
    """A site whose policy trusts its key, and, if *signs*, that has it."""
    (folder / "page.key").write_bytes(key_of("page").pem)
    (folder / "page.key").chmod(0o600)
    approvals = (*lines, "[approvals.servers.page]", f'key = "{key_of("page").public_text}"')
    web = [*WRITES, tokens_file(folder), *([f'signing_key_file = "{folder / "page.key"}"'] if signs else [])]
    return site(folder, "east", now_ms=lambda: NOW, web=(*web, "[approvals]", *approvals))


def settings_of(shown: Site) -> Settings:
    return shown.clusters["east"].settings


def proposed(shown: Site, author: str = "otto", content: bytes = b"", reason: str = "") -> str:
    """The hash of a plan that *author* proposed on the page."""
    signer = Signer(
        person=author, policy=settings_of(shown).approvals, cluster="east", key_name="page", key=key_of("page")
    )
    store = election_system(settings_of(shown)).proposals()
    return propose_plan(store, signer, content or plan_file(), now_ms=NOW, reason=reason).proposal.hash


def stored(shown: Site, key: str) -> StoredProposal:
    found = election_system(settings_of(shown)).proposals().read(key)
    assert found is not None
    return found


def history(shown: Site) -> list[tuple[str, str]]:
    controls = election_system(settings_of(shown)).controls().read()[0]
    return [(each.by, each.action) for each in controls.events]


def put(shown: Site, key: str, state: ProposalState, **changes: Any) -> None:
    """Have the proposal be in *state*, with *changes* of its progress."""

    def how(now: StoredProposal) -> ProposalRecord:
        return replace(now.record, progress=replace(now.record.progress, state=state, step=1, **changes))

    change_record(election_system(settings_of(shown)).proposals(), key, how)


class Person:
    """Sends requests under a name."""

    def __init__(self, shown: Site, name: str) -> None:
        self.client = TestClient(create_app(shown), base_url="http://localhost")
        self.client.headers["Authorization"] = f"Bearer {token_of(name)}"

    def does(self, action: str, key: str, idempotency: str = "", reason: str = "checked") -> Any:
        headers = {"Idempotency-Key": idempotency} if idempotency else {}
        return self.client.post(f"/api/v1/proposals/{key}/{action}", json={"reason": reason}, headers=headers)


@pytest.fixture
def shown(tmp_path: Path) -> Site:
    return page_of(tmp_path)


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[JobOrder]:
    """The orders of jobs, which nobody begins."""
    orders: list[JobOrder] = []

    def submit(self: Any, order: JobOrder, by: str, around: Any = None) -> Job:
        orders.append(order)
        job = Job(id=f"job-{len(orders)}", order=order, by=by, created_ms=0, folder=Path("/nowhere"))
        self._jobs[job.id] = job
        return job

    monkeypatch.setattr("controller.web.jobs.Jobs.submit", submit)
    return orders


def test_an_approval_by_the_page_is_signed_for_the_person_who_logged_in(shown: Site) -> None:
    key = proposed(shown)
    answer = Person(shown, "anna").does("approve", key)
    assert answer.status_code == 200, answer.text
    assert (answer.json()["proposal"]["state"], answer.json()["proposal"]["approvedBy"]) == ("approved", ["anna"])
    policy = settings_of(shown).approvals
    assert standing_of(stored(shown, key), policy, cluster="east", now_ms=NOW).approved_by == ("anna",)
    assert history(shown) == [("anna", "approve")]


def test_nobody_approves_what_they_proposed_and_the_attempt_is_in_the_history(shown: Site) -> None:
    key = proposed(shown, author="Anna")
    refused = Person(shown, "anna").does("approve", key)
    assert refused.status_code == 403
    assert "You are the author" in refused.json()["detail"]
    assert stored(shown, key).record.statements == ()
    assert history(shown) == [("anna", "refused")]


@pytest.mark.parametrize(("name", "status"), [("vera", 403), ("otto", 403), ("olga", 403)])
def test_a_role_that_does_not_suffice_is_refused(shown: Site, name: str, status: int) -> None:
    key = proposed(shown)
    assert Person(shown, name).does("approve", key).status_code == status
    assert stored(shown, key).record.statements == ()


def test_the_author_may_take_a_proposal_back_and_other_operators_may_not(shown: Site) -> None:
    key = proposed(shown)
    assert Person(shown, "olga").does("reject", key).status_code == 403
    assert Person(shown, "otto").does("reject", key).json()["proposal"]["state"] == "rejected"
    assert Person(shown, "anna").does("approve", key).status_code == 409


def test_nobody_without_a_name_does_anything(shown: Site) -> None:
    key = proposed(shown)
    client = TestClient(create_app(shown), base_url="http://localhost")
    for action in ("approve", "reject", "apply", "refresh", "stop"):
        assert client.post(f"/api/v1/proposals/{key}/{action}", json={"reason": "x"}).status_code == 403
    assert client.post("/api/v1/proposals/plan", json={"reason": "x"}).status_code == 403
    headers = {"Content-Type": "application/json"}
    assert client.post("/api/v1/proposals?reason=x", content=b"{}", headers=headers).status_code == 403


@pytest.mark.parametrize(("key_of_page", "why"), [("", "signing_key_file"), ("mallory", "not in [approvals.servers]")])
def test_a_server_that_controllers_would_not_believe_says_so(tmp_path: Path, key_of_page: str, why: str) -> None:
    shown = page_of(tmp_path, signs=bool(key_of_page))
    key = proposed(shown)
    if key_of_page:
        (tmp_path / "page.key").write_bytes(key_of(key_of_page).pem)
    refused = Person(shown, "anna").does("approve", key)
    assert refused.status_code == 409
    assert why in refused.json()["detail"]
    assert stored(shown, key).record.statements == ()


def test_an_approval_that_is_sent_again_is_answered_alike(shown: Site) -> None:
    key, anna = proposed(shown), Person(shown, "anna")
    first, again = anna.does("approve", key, "k"), anna.does("approve", key, "k")
    assert (first.status_code, first.json()) == (again.status_code, again.json())
    assert len(stored(shown, key).record.statements) == 1
    assert anna.does("reject", key, "k").status_code == 422
    assert anna.does("approve", key, "k", reason="other").status_code == 422
    assert anna.does("approve", key).status_code == 409


def test_only_what_is_approved_is_applied_and_once(shown: Site, jobs: list[JobOrder]) -> None:
    key, otto = proposed(shown), Person(shown, "otto")
    assert otto.does("apply", key).status_code == 409
    assert Person(shown, "anna").does("approve", key).status_code == 200
    begun = otto.does("apply", key, "k")
    assert begun.status_code == 202
    assert begun.headers["location"] == "/api/v1/jobs/job-1"
    assert otto.does("apply", key, "k").headers["location"] == "/api/v1/jobs/job-1"
    assert Person(shown, "olga").does("apply", key).headers["location"] == "/api/v1/jobs/job-1"
    words = jobs[0].commands[0]
    assert words[:3] == ("apply", "--proposal", key)
    assert "--by=otto" in words
    assert jobs[0].is_endless
    assert len(jobs) == 1


@pytest.mark.parametrize(
    ("action", "before", "after"),
    [("pause", "applying", "paused"), ("resume", "paused", "applying"), ("stop", "applying", "stopped")],
)
def test_what_is_applied_is_paused_resumed_and_stopped(shown: Site, action: str, before: str, after: str) -> None:
    key, otto = proposed(shown), Person(shown, "otto")
    assert otto.does(action, key).status_code == 409, "nobody has begun"
    put(shown, key, ProposalState(before))
    assert otto.does(action, key).json()["proposal"]["state"] == after
    assert history(shown) == [("otto", f"{action}-plan")]


@pytest.mark.parametrize("key", ["", "ab", "AB" * 32, "0" * 63, "../x", "0" * 64])
def test_a_name_that_is_no_proposal_is_not_found(shown: Site, key: str) -> None:
    assert Person(shown, "anna").does("approve", key).status_code in (404, 405)


def test_a_plan_is_made_as_a_job_and_its_result_is_proposed(shown: Site, jobs: list[JobOrder]) -> None:
    otto = Person(shown, "otto")
    body = {"kind": "drain", "brokers": ["b-1:8080"], "reason": "disk swap"}
    answer = otto.client.post("/api/v1/proposals/plan", json=body, headers={"Idempotency-Key": "k"})
    assert (answer.status_code, answer.headers["location"]) == (202, "/api/v1/jobs/job-1")
    again = otto.client.post("/api/v1/proposals/plan", json=body, headers={"Idempotency-Key": "k"})
    assert again.headers["location"] == "/api/v1/jobs/job-1"
    assert jobs[0].commands[0][2:4] == ("--drain", "b-1:8080")


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "drain"},
        {"kind": "drain", "brokers": ["--conf=/etc/passwd"]},
        {"kind": "move", "moves": ["a/b/0x00000000_0x80000000"]},
        {"kind": "move", "moves": ["--load=x=b"]},
        {"kind": "balance", "brokers": ["b"]},
        {"kind": "restart"},
        {"kind": "drain", "brokers": ["b"], "reason": " "},
    ],
)
def test_a_plan_of_something_that_cannot_be_is_refused(shown: Site, jobs: list[JobOrder], body: Any) -> None:
    answer = Person(shown, "otto").client.post("/api/v1/proposals/plan", json={"reason": "x", **body})
    assert (answer.status_code, jobs) == (400, [])


def test_a_file_is_proposed_anew_once_its_proposal_may_have_expired(shown: Site) -> None:
    otto = Viewer(name="otto", role=ViewerRole.OPERATOR, login="token")

    def order_after(ms: int) -> JobOrder:
        shown.now_ms = lambda: NOW + ms
        call = ProposalCall(site=shown, cluster=shown.clusters["east"], viewer=otto, id="", reason="x", key="")
        return propose_upload(call)[0]

    assert order_after(0) == order_after(59_999), "sent again, it is the same job"
    assert order_after(0) != order_after(60_000)


def test_a_list_has_what_waits_and_what_cannot_be_read(shown: Site) -> None:
    key = proposed(shown)
    put(shown, proposed(shown, content=plan_file(7)), ProposalState.DONE)
    vera = Person(shown, "vera").client
    assert [each["id"] for each in vera.get("/api/v1/proposals").json()["proposals"]] == [key]
    assert len(vera.get("/api/v1/proposals?ended=true").json()["proposals"]) == 2


def test_a_change_of_the_controls_takes_effect_with_the_approval_that_it_lacked(shown: Site) -> None:
    controls = election_system(settings_of(shown)).controls()
    controls.write(OperatorControls(pauses=(Pause(by="ada", reason="", at_ms=5),)), controls.version())
    signer = Signer(
        person="otto", policy=settings_of(shown).approvals, cluster="east", key_name="page", key=key_of("page")
    )
    store = election_system(settings_of(shown)).proposals()
    key = propose_control(store, signer, "resume", ("5",), now_ms=NOW).proposal.hash
    assert Person(shown, "anna").does("approve", key).json()["proposal"]["state"] == "done"
    after = controls.read()[0]
    assert (after.pauses, len(after.grants)) == ((), 1)


def test_what_allows_more_waits_for_another_person_where_the_policy_says_so(shown: Site) -> None:
    controls = election_system(settings_of(shown)).controls()
    controls.write(OperatorControls(pauses=(Pause(by="otto", reason="", at_ms=5),)), controls.version())
    otto = Person(shown, "otto").client
    headers = {"If-Match": otto.get("/api/v1/controls").headers["etag"], "Idempotency-Key": "k"}
    answer = otto.post("/api/v1/controls/resume", json={"reason": "over"}, headers=headers)
    key = answer.json()["proposal"]
    assert (answer.status_code, answer.headers["location"]) == (202, f"/api/v1/proposals/{key}")
    assert len(controls.read()[0].pauses) == 1, "nothing is changed yet"
    assert otto.post("/api/v1/controls/resume", json={"reason": "over"}, headers=headers).json()["proposal"] == key
    assert Person(shown, "anna").does("approve", key).status_code == 200
    assert controls.read()[0].pauses == ()
    assert otto.post("/api/v1/controls/pause", json={"reason": "x"}, headers={"If-Match": "*"}).status_code == 200
    late = {"If-Match": headers["If-Match"]}
    assert otto.post("/api/v1/controls/mode", json={"reason": "x", "mode": "active"}, headers=late).status_code == 412


@pytest.mark.parametrize("silent", ["proposals", "controls"])
def test_a_change_that_waits_for_approval_is_asked_for_again_later_where_a_store_does_not_answer(
    shown: Site, silent: str
) -> None:
    def unreachable() -> Any:
        raise ControlsUnreachableError("ZooKeeper at 127.0.0.1:1 does not answer")

    cluster = shown.clusters["east"]
    controls = election_system(cluster.settings).controls()
    controls.write(OperatorControls(pauses=(Pause(by="otto", reason="", at_ms=5),)), controls.version())
    otto = Person(shown, "otto").client
    headers = {"If-Match": otto.get("/api/v1/controls").headers["etag"]}
    if silent == "controls":
        cluster.desk = ControlDesk(unreachable)
    else:
        cluster.proposals = Desk(unreachable, lambda store: store.read_all(), name=silent, seconds=1.0)
    answer = otto.post("/api/v1/controls/resume", json={"reason": "over"}, headers=headers)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "10")
    assert "does not answer" in answer.json()["detail"]


def test_who_waits_in_vain_for_others_reads_why_in_a_sentence(shown: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("controller.web.desk.TURN_SECONDS", 0.01)
    for desk in (shown.clusters["east"].desk, shown.clusters["east"].proposals):
        with desk.store():
            reading = desk.cached.reading(5.0)
            desk.close()  # the end of the server does not wait for it
        assert reading.error.startswith("others wait for the ")
