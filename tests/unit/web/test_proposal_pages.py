"""Pages of proposals: what they say, what their forms do without a script, and to whom they offer what."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from controller.model.controls import Controls
from controller.model.proposals import ProposalState
from controller.model.proposed import PredictedBroker, ProposedDecision
from controller.web.jobs import Job, JobOrder
from controller.web.site import Site
from tests.invented_pages import NOW, T, broker_name, latest, states
from tests.unit.web.test_control_forms import OWN, logged_in, submitted
from tests.unit.web.test_proposals_by_rest import history, page_of, proposed, put, stored
from tests.web_people import WRITES, tokens_file
from tests.web_sites import site


@pytest.fixture
def shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    def submit(self: Any, order: JobOrder, by: str, around: Any = None) -> Job:
        job = Job(id="job-1", order=order, by=by, created_ms=0, folder=Path("/nowhere"))
        job.state, job.problem = "failed", "nobody checks it here"
        job.ended.set()
        self._jobs[job.id] = job
        return job

    monkeypatch.setattr("controller.web.jobs.Jobs.submit", submit)
    return page_of(tmp_path)


def test_the_list_and_the_page_of_a_proposal_say_what_waits_for_whom(shown: Site) -> None:
    key, anna = proposed(shown), logged_in(shown, "anna")
    assert key in anna.get("/plans").text
    assert '1<span class="unseen"> wait for your approval' in anna.get("/plans").text
    assert "wait for your approval" not in logged_in(shown, "otto").get("/plans").text
    text = anna.get(f"/proposals/{key}").text
    assert "approved 0 of 1" in text
    assert "otto is the author and may not" in text
    assert f'href="/proposals/{key}/approve"' in text
    assert key[:32] in text


def test_the_plans_without_one_lead_whoever_may_propose_to_the_form_and_nobody_else(shown: Site) -> None:
    hint = "“Propose a plan…” makes one."
    otto, vera = logged_in(shown, "otto").get("/plans").text, logged_in(shown, "vera").get("/plans").text
    assert hint in otto
    assert 'href="/proposals/new"' in otto
    assert hint not in vera
    assert "This needs the role operator" in vera


def test_the_button_of_the_author_is_disabled_and_says_why(shown: Site) -> None:
    key = proposed(shown, author="anna")
    text = logged_in(shown, "anna").get(f"/proposals/{key}").text
    assert 'title="You are the author: another person has to approve it."' in text
    assert f'href="/proposals/{key}/approve"' not in text


def test_a_form_approves_the_hash_under_the_name_of_the_login(shown: Site) -> None:
    key, anna = proposed(shown), logged_in(shown, "anna")
    form = anna.get(f"/proposals/{key}/approve").text
    assert "Approve this hash" in form
    assert key[32:] in form
    answer = submitted(anna, f"/proposals/{key}/approve")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/proposals/{key}")
    assert [each.statement.person for each in stored(shown, key).record.statements] == ["anna"]
    assert history(shown) == [("anna", "approve")]
    assert "approved 1 of 1" in anna.get(f"/proposals/{key}").text


def test_a_form_that_may_not_be_sent_changes_nothing_and_is_in_the_history(shown: Site) -> None:
    key, vera = proposed(shown), logged_in(shown, "vera")
    for action in ("approve", "reject", "apply", "refresh"):
        answer = vera.post(f"/proposals/{key}/{action}", data={"reason": "x"}, headers=OWN)
        assert answer.status_code == 403, action
    assert vera.post("/proposals/new", data={"reason": "x"}, headers=OWN).status_code == 403
    assert stored(shown, key).record.statements == ()
    assert {name for name, _ in history(shown)} == {"vera"}
    assert logged_in(shown, "anna").post(f"/proposals/{key}/approve", data={"reason": "x"}).status_code == 403, "CSRF"


@pytest.mark.parametrize(
    ("state", "offered"),
    [("applying", ("pause", "stop")), ("paused", ("resume", "stop")), ("done", ()), ("stopped", ("refresh",))],
)
def test_each_state_offers_what_can_be_done_in_it(shown: Site, state: str, offered: tuple[str, ...]) -> None:
    key = proposed(shown)
    put(shown, key, ProposalState(state))
    text = logged_in(shown, "otto").get(f"/proposals/{key}").text
    for action in ("approve", "reject", "apply", "pause", "resume", "stop", "refresh"):
        assert (f"/proposals/{key}/{action}" in text) == (action in offered), action
    assert ("If you stop now" in text) == (state in ("applying", "paused"))


def test_a_plan_is_proposed_by_a_form(shown: Site) -> None:
    otto = logged_in(shown, "otto")
    answer = submitted(otto, "/proposals/new?kind=drain", kind="drain", brokers="b-1:8080\r\nb-2:8080")
    assert (answer.status_code, answer.headers["location"]) == (303, "/plans?job=job-1")
    job = shown.jobs.job("job-1")
    assert job is not None
    assert job.order.commands[0][2:6] == ("--drain", "b-1:8080", "--drain", "b-2:8080")
    wrong = submitted(otto, "/proposals/new?kind=drain", kind="move", moves="nothing")
    assert wrong.status_code == 400
    assert "BUNDLE=BROKER" in wrong.text


@pytest.mark.parametrize("key", ["x", "0" * 64, "../etc"])
def test_a_proposal_that_is_none_is_not_found(shown: Site, key: str) -> None:
    assert logged_in(shown, "anna").get(f"/proposals/{key}").status_code == 404


def test_the_decision_of_mode_approve_is_approved_on_its_page(tmp_path: Path) -> None:
    decision = ProposedDecision(
        cluster="harbour-eu",
        interval=T,
        expires_at_ms=NOW + 60_000,
        commands=(),
        connections=7,
        usage={broker_name(1): PredictedBroker(before=0.9, after=0.7)},
    )
    state = replace(latest(controls=Controls(mode="approve")), proposed=decision)
    data = states()["normal"]
    data.state = state
    shown = site(tmp_path, "harbour-eu", now_ms=lambda: NOW, data=data, web=(*WRITES, tokens_file(tmp_path)))
    anna = logged_in(shown, "anna")
    assert decision.hash in anna.get("/plans").text
    text = anna.get(f"/proposals/{decision.hash}").text
    assert "90 → <b" in text
    assert "It has no certificate" in text
    assert submitted(anna, f"/proposals/{decision.hash}/approve").status_code == 303
    controls = shown.clusters["harbour-eu"].desk.read().controls
    assert [(each.decision, each.by) for each in controls.approvals] == [(decision.hash, ("anna",))]
