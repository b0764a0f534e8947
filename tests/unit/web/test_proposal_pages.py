"""Pages of proposals: what they say, what their forms do without a script, and to whom they offer what."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from threading import Barrier, BrokenBarrierError
from typing import Any

import pytest

from controller.adapters.approvals.making import Signer
from controller.adapters.election.proposals import Proposals
from controller.model.controls import Controls, DecisionApproval, OperatorControls
from controller.model.proposals import ProposalState, StoredProposal
from controller.model.proposed import PredictedBroker, ProposedDecision
from controller.offline.plans.answer import plan_answer
from controller.offline.plans.plan_file import described_plan
from controller.offline.plans.proposal_view import proposal_answer
from controller.settings.trimtab_toml import Settings
from controller.web.jobs import Job, JobOrder
from controller.web.proposal_actions import stored_answer, stored_answers
from controller.web.signing import signer_of_viewer
from controller.web.site import Site
from controller.web.views.formats import clock
from controller.wire.answers.proposals import DriftAnswer, ProposalAnswer, ProposalDetailAnswer, statement_answers
from controller.wire.plan import parse_plan
from tests.invented_pages import NOW, T, broker_name, latest, states
from tests.unit.web.test_control_forms import OWN, fields_of, logged_in, submitted
from tests.unit.web.test_proposals_by_rest import history, page_of, plan_file, proposed, put, settings_of, stored
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


def test_no_text_of_a_proposal_reads_as_another_one(shown: Site) -> None:
    russian = "\u201c\u043f\u0430\u0443\u0437\u0430 \u0441 \u0443\u0442\u0440\u0430\u201d"
    key = proposed(shown, reason=f"move \u202e2-rekorb ot\u202c to br\u043eker-3, {russian}")
    page = logged_in(shown, "anna").get(f"/proposals/{key}").text
    assert "move \\u202e2-rekorb ot\\u202c to br\\u043eker-3" in page
    assert russian in page


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
    assert f"{state.capitalize()}." in text
    assert "1970" not in text, "when it began is not known"


def test_who_paused_a_proposal_when_and_why_is_in_its_first_lines(shown: Site) -> None:
    key = proposed(shown)
    put(shown, key, ProposalState.PAUSED, by="anna", detail="wait <b>", at_ms=NOW)
    text = logged_in(shown, "otto").get(f"/proposals/{key}").text
    assert f"Paused since {clock(NOW, shown.now_ms())}, by anna: “wait &lt;b&gt;”." in text


def test_signatures_are_verified_once_for_all_pages_until_the_proposals_are_read_anew(
    shown: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, verified = proposed(shown), list[StoredProposal]()

    def answer(each: StoredProposal, settings: Settings, now_ms: int) -> ProposalAnswer:
        verified.append(each)
        return proposal_answer(each, settings, now_ms)

    monkeypatch.setattr("controller.web.site.proposal_answer", answer)
    anna = logged_in(shown, "anna")
    for path in ("/plans", "/", "/controls", "/plans?ended=1"):
        assert '1<span class="unseen"> wait for your approval' in anna.get(path).text
    assert len(verified) == len({id(each) for each in verified}), "once for each reading"
    at = shown.now_ms()
    shown.now_ms = partial(int, at + 30 * 86_400_000)
    assert key not in anna.get("/plans").text, "it has expired meanwhile"


def test_pages_that_are_loaded_at_the_same_time_verify_a_signature_once(
    shown: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    proposed(shown)
    cluster, verified, both = next(iter(shown.clusters.values())), list[StoredProposal](), Barrier(2)

    def answer(each: StoredProposal, settings: Settings, now_ms: int) -> ProposalAnswer:
        verified.append(each)
        with suppress(BrokenBarrierError):
            both.wait(0.05)
        return proposal_answer(each, settings, now_ms)

    monkeypatch.setattr("controller.web.site.proposal_answer", answer)
    stored = cluster.proposals.read()
    with ThreadPoolExecutor(2) as pages:
        first, second = pages.map(partial(cluster.proposal_answers, stored), [shown.now_ms()] * 2)
    assert first == second
    assert len(verified) == 1


@pytest.mark.parametrize(
    ("form", "place", "done"),
    [
        ("/controls/resume", "control_proposals", ("otto", "propose")),
        ("/proposals/{key}/approve", "proposal_actions", ("anna", "approve")),
    ],
)
def test_a_form_that_is_sent_by_two_clicks_is_carried_out_once_and_answered_alike(
    shown: Site, monkeypatch: pytest.MonkeyPatch, form: str, place: str, done: tuple[str, str]
) -> None:
    key, both = proposed(shown), Barrier(2)

    def signer(*given: Any) -> Signer:
        with suppress(BrokenBarrierError):
            both.wait(0.05)
        return signer_of_viewer(*given)

    monkeypatch.setattr(f"controller.web.{place}.signer_of_viewer", signer)
    shown.now_ms = partial(next, count(shown.now_ms()))
    made = fields_of(logged_in(shown, done[0]).get(form.format(key=key)).text)
    clients = [logged_in(shown, done[0]) for _ in range(2)]
    with ThreadPoolExecutor(2) as clicks:
        answers = clicks.map(
            lambda client: client.post(made.action, data={**made.fields, "reason": "x"}, headers=OWN), clients
        )
        places = {(each.status_code, each.headers.get("location")) for each in answers}
    assert len(places) == 1, places
    assert [status for status, _ in places] == [303]
    assert history(shown) == [done]


@pytest.fixture
def checks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Job]:
    """Jobs that nobody begins, the oldest first; a test ends them."""
    jobs: list[Job] = []

    def submit(self: Any, order: JobOrder, by: str, around: Any = None) -> Job:
        job: Job | None = self._same(order)
        if job is None:
            job = Job(id=f"job-{len(jobs)}", order=order, by=by, created_ms=0, folder=tmp_path / f"job-{len(jobs)}")
            self._jobs[job.id] = job
            jobs.append(job)
        return job

    monkeypatch.setattr("controller.web.jobs.Jobs.submit", submit)
    monkeypatch.setattr("controller.web.workers.Workers.wait", lambda *_: None)
    return jobs


def end(job: Job, shown: Site, key: str, **changes: Any) -> None:
    """Have *job* end with what a check of the proposal finds; *changes*: of its answer."""
    fields = proposal_answer(stored(shown, key), settings_of(shown), shown.now_ms()).model_dump(by_alias=False)
    drift = DriftAnswer(verdict="still valid", step=1, interval=T, moves_done=0, moves_left=6, changed=[], notes=[])
    said = statement_answers(stored(shown, key))
    detail = ProposalDetailAnswer(**fields, statements=said, plan=None, drift=drift, content=["the content"])
    job.result.write_text(detail.model_copy(update=changes).model_dump_json(by_alias=True))
    job.state, job.ended_ms = "done", shown.now_ms()


def test_the_last_check_stays_with_its_time_while_a_new_one_runs(tmp_path: Path, checks: list[Job]) -> None:
    shown = page_of(tmp_path)
    key, anna, at = proposed(shown), logged_in(shown, "anna"), shown.now_ms()
    assert "is being worked out" in anna.get(f"/proposals/{key}").text
    end(checks[0], shown, key)
    assert "This was found at" not in anna.get(f"/proposals/{key}").text
    shown.now_ms = lambda: at + 60_000
    for _ in range(2):
        text = anna.get(f"/proposals/{key}").text
        assert "Still valid." in text
        assert f"This was found at {clock(at, at + 60_000)}; now it is being worked out" in text
    shown.now_ms = lambda: at + 120_000
    anna.get(f"/proposals/{key}")
    assert len(checks) == 2, "no other check begins while one runs"


def test_a_plan_with_more_moves_than_a_page_lists_says_where_all_are(tmp_path: Path, checks: list[Job]) -> None:
    shown = page_of(tmp_path)
    content = plan_file(bundles=60)
    key, anna = proposed(shown, content=content), logged_in(shown, "anna")
    anna.get(f"/proposals/{key}")
    planned = described_plan(parse_plan(content)[0], settings_of(shown))
    plan = plan_answer(planned, file="", now_ms=0, deadline_ms=None)
    end(checks[0], shown, key, plan=plan)
    answer = anna.get(f"/proposals/{key}")
    assert answer.status_code == 200
    assert f'20 more; <a href="/api/v1/proposals/{key}">all of them as JSON</a>' in answer.text


def test_an_approval_is_shown_beside_a_check_that_is_older(tmp_path: Path, checks: list[Job]) -> None:
    shown = page_of(tmp_path)
    key, anna = proposed(shown), logged_in(shown, "anna")
    anna.get(f"/proposals/{key}")
    end(checks[0], shown, key)
    submitted(anna, f"/proposals/{key}/approve")
    assert '<b class="strong">anna</b> <span class="soft">approved' in anna.get(f"/proposals/{key}").text


@pytest.mark.parametrize("state", ["done", "failed", "stopped", "rejected", "expired"])
def test_a_proposal_that_has_ended_is_checked_once_and_not_called_valid(
    tmp_path: Path, checks: list[Job], state: str
) -> None:
    shown = page_of(tmp_path)
    key, anna = proposed(shown), logged_in(shown, "anna")
    put(shown, key, ProposalState(state))
    times = [shown.now_ms() + 60_000 * minute for minute in range(3)]
    for time in times:
        shown.now_ms = partial(int, time)
        assert "Still valid." not in anna.get(f"/proposals/{key}").text
        end(checks[0], shown, key)
    assert len(checks) == 1


def test_a_proposal_whose_content_is_another_one_is_shown_as_rejected(tmp_path: Path, checks: list[Job]) -> None:
    shown = page_of(tmp_path)
    key, anna = proposed(shown), logged_in(shown, "anna")
    anna.get(f"/proposals/{key}")
    end(checks[0], shown, key, state="rejected", flaws=["its content has <another> hash"])
    text = anna.get(f"/proposals/{key}").text
    assert "its content has &lt;another&gt; hash" in text
    assert f'href="/proposals/{key}/approve"' not in text


def test_a_check_that_is_too_long_to_show_takes_nothing_from_the_rest_of_the_page(
    tmp_path: Path, checks: list[Job]
) -> None:
    shown = page_of(tmp_path)
    key, anna = proposed(shown), logged_in(shown, "anna")
    anna.get(f"/proposals/{key}")
    end(checks[0], shown, key)
    with checks[0].result.open("r+b") as file:
        file.truncate(17 << 20)
    answer = anna.get(f"/proposals/{key}")
    assert (answer.status_code, f'href="/proposals/{key}/approve"' in answer.text) == (200, True)
    assert "more than a page shows" in answer.text


def test_a_plan_is_proposed_by_a_form(shown: Site) -> None:
    otto = logged_in(shown, "otto")
    fields: dict[str, Any] = {"kind": "drain", "brokers": "b-1:8080\r\nb-2:8080", "waveMoves": "4", "own": "cpu"}
    answer = submitted(otto, "/proposals/new?kind=drain", **fields)
    assert (answer.status_code, answer.headers["location"]) == (303, "/plans?job=job-1")
    job = shown.jobs.job("job-1")
    assert job is not None
    words = ("--drain", "b-1:8080", "--drain", "b-2:8080", "--own", "cpu", "--wave-moves", "4")
    assert job.order.commands[0][2:10] == words
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


def test_under_a_policy_a_decision_needs_as_many_approvals_as_it_says_and_unsigned_ones_do_not_count(
    tmp_path: Path,
) -> None:
    decision = ProposedDecision(cluster="east", interval=T, expires_at_ms=NOW + 60_000, commands=())
    cluster = page_of(tmp_path, "required = 2").clusters["east"]
    data = states()["normal"]
    data.state = replace(latest(controls=Controls(mode="approve")), proposed=decision)
    cluster.data = data
    controls = OperatorControls().with_approval(DecisionApproval(decision=decision.hash, by=("otto",), at_ms=NOW))
    (answer,) = stored_answers(cluster, Proposals((), {}), controls, NOW)
    assert (answer.state, answer.approved_by, answer.required) == ("pending", [], 2)
    assert answer.proposed_at == T
    assert stored_answer(cluster, decision.hash, NOW) == answer
