"""Plans: an uploaded file, what the page says of it, and how far a plan in force is."""

import asyncio
import gc
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.requests import Request
from starlette.testclient import TestClient

from controller.cycle.ordered import told_of
from controller.model.controls import Controls, OrderedMove, Orders
from controller.model.decision import Reason, Verdict
from controller.model.errors import PlanRefusedError
from controller.offline.plans.answer import plan_answer
from controller.offline.plans.plan_file import described_plan
from controller.planning.plans.plan import Plan
from controller.planning.plans.plan_steps import PlanLimits, empty_step, spread_step
from controller.planning.plans.waves import WaveLimits
from controller.planning.problem import RATE_SHARE, BalanceProblem
from controller.web import limits
from controller.web.access.viewer import RefusedError
from controller.web.app import create_app
from controller.web.issued_plan import NO_RESULT, IssuedPlan, issued_plan
from controller.web.jobs import Job, Jobs
from controller.web.orders import of_plan_file
from controller.web.site import Site
from controller.web.store.values import BrokerStates, IssuedCommand
from controller.web.uploads import job_with_file
from controller.web.views.formats import BrokerNames
from controller.web.views.plan_file import plan_view
from controller.web.views.plans import events, in_flight
from controller.wire.answers.plan import PlanAnswer
from controller.wire.plan import encode_plan, hash_of
from tests.invented_pages import HOSTILE, MINUTE, NOW, InventedData, T, broker_name, brokers_now, commands, latest
from tests.plans import plan_of
from tests.web_sites import site

OPERATOR = ("[web]", 'anonymous = "operator"', "requests_per_second = 10000.0")
JSON = {"Content-Type": "application/json"}


def problem() -> BalanceProblem:
    """Three brokers; the first has all twelve bundles."""
    return BalanceProblem(
        resources=("cpu",),
        capacity=np.full((3, 1), 100.0),
        fixed=np.zeros((3, 1)),
        size=np.full((12, 1), 5.0),
        owner=np.zeros(12, np.int64),
        connections=np.arange(12.0),
        disturbance=np.arange(12.0) + 10,
    )


def balance() -> Plan:
    return replace(plan_of(problem(), [spread_step(problem(), PlanLimits(), 1.05)], kind="balance"), cluster="east")


def drain() -> Plan:
    return replace(
        plan_of(problem(), [empty_step(problem(), [0], PlanLimits(waves=WaveLimits(max_moves=3)))]), cluster="east"
    )


@pytest.fixture
def shown(tmp_path: Path) -> Iterator[Site]:
    """A site whose jobs wait for ever: what they would print is for the tests to say."""
    made = site(tmp_path, "east", web=OPERATOR, data=InventedData(), now_ms=lambda: NOW)
    made.jobs = Jobs(0, 30)
    yield made
    made.jobs.close()


@pytest.fixture
def client(shown: Site) -> TestClient:
    return TestClient(create_app(shown), base_url="http://localhost")


def uploaded(client: TestClient, shown: Site, content: bytes = b"{}") -> Job:
    answer = client.post("/api/v1/plans", content=content, headers=JSON)
    assert answer.status_code == 202, answer.text
    job = shown.jobs.job(answer.json()["id"])
    assert job is not None
    assert answer.headers["Location"] == f"/api/v1/jobs/{job.id}"
    return job


def answered(shown: Site, plan: Plan) -> PlanAnswer:
    planned = described_plan(plan, shown.cluster("east").settings)
    return plan_answer(planned, file="", now_ms=0, deadline_ms=None)


def page_of(client: TestClient, shown: Site, answer: PlanAnswer) -> str:
    """The page of a job that printed *answer*."""
    job = uploaded(client, shown, answer.sha256.encode())
    job.result.write_text(answer.as_line(), encoding="utf-8")
    job.state = "done"
    page = client.get(f"/plans?job={job.id}")
    assert page.status_code == 200, page.text
    return page.text


# ---- the file ----


def test_an_uploaded_file_lies_in_the_folder_of_its_job_and_nowhere_else(client: TestClient, shown: Site) -> None:
    content = encode_plan(drain())
    job = uploaded(client, shown, content)
    assert [each.name for each in job.folder.iterdir()] == ["plan.json"]
    assert (job.folder / "plan.json").read_bytes() == content
    assert job.order.commands[0][:2] == ("show-plan", "{folder}/plan.json")
    assert job.folder.stat().st_mode & 0o077 == 0
    shown.jobs.cancel(job)
    assert not job.folder.exists()


def test_the_same_file_again_is_the_same_job_and_another_file_another_one(client: TestClient, shown: Site) -> None:
    first, again, other = (uploaded(client, shown, content) for content in (b"{}", b"{}", b"[]"))
    assert first is again
    assert other is not first
    assert len(shown.jobs.all()) == 2
    assert {each.name for each in first.folder.parent.iterdir() if each.is_dir()} == {
        first.folder.name,
        other.folder.name,
    }


def test_a_file_that_is_too_long_is_refused_and_not_kept(
    client: TestClient, shown: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LARGEST_UPLOAD", 1000)
    pieces = iter([b"x" * 600, b"x" * 600])  # without a length in front
    assert client.post("/api/v1/plans", content=pieces, headers=JSON).status_code == 413
    assert client.post("/api/v1/plans", content=b"x" * 1001, headers=JSON).status_code == 413
    assert shown.jobs.all() == []
    assert client.post("/api/v1/plans", content=b"x" * 1000, headers=JSON).status_code == 202


def test_an_answer_that_is_too_long_for_a_page_is_a_file_and_no_memory(
    client: TestClient, shown: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = uploaded(client, shown)
    with job.result.open("wb") as file:
        file.truncate(200 << 20)
    job.state, job.size, job.sha256 = "done", 200 << 20, "ab" * 32
    monkeypatch.setattr(Path, "read_bytes", lambda _: pytest.fail("a result was read as a whole"))
    page = client.get(f"/plans?job={job.id}")
    assert page.status_code == 413
    assert f"200 MiB, more than a page shows; as a file it is at /api/v1/jobs/{job.id}/result" in page.text
    tag = '"' + "ab" * 16 + '"'
    head = client.head(f"/api/v1/jobs/{job.id}/result")
    assert (head.headers["Content-Length"], head.headers["ETag"]) == (str(200 << 20), tag)
    assert client.get(f"/api/v1/jobs/{job.id}/result", headers={"If-None-Match": tag}).status_code == 304


def test_the_file_of_a_result_is_closed_where_the_client_leaves(client: TestClient, shown: Site) -> None:
    job = uploaded(client, shown)
    job.result.write_bytes(b"x" * (1 << 20))
    job.state, job.size, job.sha256 = "done", 1 << 20, "ab" * 32

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body":
            assert _is_open(job.result)
            await asyncio.Event().wait()  # the client does not read, and then it has left

    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "GET",
        "path": f"/api/v1/jobs/{job.id}/result",
        "query_string": b"",
        "headers": [(b"host", b"localhost")],
        "client": ("127.0.0.1", 1),
    }
    gc.disable()
    try:
        asyncio.run(asyncio.wait_for(create_app(shown)(scope, receive, send), 20))
        assert not _is_open(job.result)
    finally:
        gc.enable()


def _is_open(path: Path) -> bool:
    links = Path("/proc/self/fd").glob("*")
    return any(os.path.realpath(each) == os.path.realpath(path) for each in links)


@pytest.mark.parametrize("path", ["/api/v1/whatif", "/api/v1/plans/", "/plans", "/api/v1/plans/x"])
def test_only_a_plan_may_be_longer_than_other_bodies(client: TestClient, path: str) -> None:
    assert client.post(path, content=b"x" * (65 << 10), headers=JSON).status_code == 413


@pytest.mark.parametrize(
    ("role", "headers", "status"),
    [
        ("viewer", JSON, 403),
        ("operator", {**JSON, "Sec-Fetch-Site": "cross-site"}, 403),
        ("operator", {**JSON, "Origin": "http://elsewhere.example"}, 403),
        ("operator", {"Content-Type": "text/plain"}, 415),
        ("operator", {"Content-Type": "multipart/form-data; boundary=x"}, 415),
        ("operator", {**JSON, "Sec-Fetch-Site": "same-origin"}, 202),
    ],
)
def test_who_may_not_upload_is_refused_before_the_body_is_read(
    tmp_path: Path, role: str, headers: dict[str, str], status: int
) -> None:
    made = site(tmp_path, "east", web=("[web]", f'anonymous = "{role}"'))
    made.jobs = Jobs(0, 30)
    answer = TestClient(create_app(made), base_url="http://localhost").post(
        "/api/v1/plans", content=b"{}", headers=headers
    )
    assert answer.status_code == status
    assert len(made.jobs.all()) == (status == 202)
    made.jobs.close()


def test_there_are_places_for_few_files_at_once(client: TestClient, shown: Site) -> None:
    order = of_plan_file(shown.cluster("east"))
    for number in range(4):
        shown.jobs.reserve(order, f"user {number}")
    refused = client.post("/api/v1/plans", content=b"{}", headers=JSON)
    assert refused.status_code == 503
    assert "all places for files are taken" in refused.json()["detail"]


def test_a_person_has_so_many_uploads_as_other_jobs_at_most(client: TestClient, shown: Site) -> None:
    assert [client.post("/api/v1/plans", content=b"%d" % each, headers=JSON).status_code for each in range(5)] == [
        *(202,) * 4,
        503,
    ]
    shown.jobs.close()


def _request(*messages: dict[str, Any], before_each: Any = None) -> Request:
    pieces = iter(messages)

    async def receive() -> dict[str, Any]:
        if before_each is not None:
            before_each()
        return next(pieces)

    return Request({"type": "http", "method": "POST", "headers": []}, receive)


def test_of_a_file_that_breaks_off_nothing_is_left(shown: Site) -> None:
    request = _request(
        {"type": "http.request", "body": b"{", "more_body": True},
        {"type": "http.disconnect"},
    )
    with pytest.raises(RefusedError, match="did not arrive whole"):
        asyncio.run(job_with_file(request, shown, of_plan_file(shown.cluster("east")), "ann"))
    assert shown.jobs.all() == []


def test_an_upload_whose_job_is_cancelled_ends_with_the_next_piece(shown: Site) -> None:
    def cancel() -> None:
        [job] = shown.jobs.all()
        shown.jobs.cancel(job)

    endless = [{"type": "http.request", "body": b"x" * 1000, "more_body": True}] * 3
    request = _request(*endless, before_each=cancel)
    with pytest.raises(RefusedError, match="was cancelled"):
        asyncio.run(job_with_file(request, shown, of_plan_file(shown.cluster("east")), "ann"))


# ---- hostile plans ----


@pytest.mark.parametrize(
    "changes",
    [
        {"interval": 1 << 62},
        {"pace": replace(drain().pace, connections_per_second=1e-300, burst_seconds=None)},
        {"pace": replace(drain().pace, connections_per_second=1e-12, burst_seconds=None)},
    ],
)
def test_a_plan_whose_times_no_calendar_has_is_refused_by_name(shown: Site, changes: dict[str, Any]) -> None:
    with pytest.raises(PlanRefusedError, match="no calendar"):
        described_plan(replace(drain(), **changes), shown.cluster("east").settings)


def test_a_plan_with_usages_beyond_numbers_is_refused_by_name(shown: Site) -> None:
    huge = replace(problem(), capacity=np.full((3, 1), 1e-300), fixed=np.full((3, 1), 1e18))
    with pytest.raises(PlanRefusedError, match="no usage can be computed"):
        described_plan(replace(balance(), problem=huge), shown.cluster("east").settings)


def test_a_plan_without_steps_brokers_or_bundles_is_shown(client: TestClient, shown: Site) -> None:
    assert "This plan moves nothing" in page_of(client, shown, answered(shown, replace(balance(), steps=())))


def test_names_in_a_plan_are_text(client: TestClient, shown: Site) -> None:
    plan = drain()
    hostile = HOSTILE.replace("\u2028", "")  # no plan may have that
    names = tuple(f"{hostile}{each}" for each in plan.brokers)
    text = page_of(client, shown, answered(shown, replace(plan, brokers=names)))
    assert "<img src=x" not in text
    assert "</script><img" not in text


# ---- what the page says of it ----


def test_a_plan_is_shown_with_its_proof_its_waves_and_whom_it_disturbs(client: TestClient, shown: Site) -> None:
    plan = drain()
    answer = answered(shown, plan)
    text = page_of(client, shown, answer)
    assert "Empty brokers: 12 moves in" in text
    assert "Wherever else these bundles go, the fullest broker does not end below 30.0 %." in text
    assert "This one ends at 30.0 %: no better one exists." in text
    assert "What is not proved" in text
    assert text.count('<rect class="wave waiting"') == answer.waves
    assert f"--hash {hash_of(plan)}" in text
    for each in answer.disturbed:
        assert f'href="/namespaces/{each.namespace}"' in text
    assert all(plan.bundles[row].rpartition("/")[2] in text for row in range(12))


def test_a_bound_that_is_not_reached_says_by_how_much(client: TestClient, shown: Site) -> None:
    answer = answered(shown, balance())
    step = answer.steps[0].model_copy(update={"reached": 0.25, "bound": 0.2, "bound_kind": "mean"})
    text = page_of(client, shown, answer.model_copy(update={"steps": [step]}))
    assert "5.0 points above what is proved" in text
    assert 'By the bound <b class="strong">mean</b>' in text


def test_a_bound_of_a_later_release_is_named(client: TestClient, shown: Site) -> None:
    answer = answered(shown, balance())
    step = answer.steps[0].model_copy(update={"bound_kind": "flow"})
    assert ">flow</b></span>" in page_of(client, shown, answer.model_copy(update={"steps": [step]}))


def test_a_file_that_is_no_plan_says_why_and_an_unknown_one_is_not_found(client: TestClient, shown: Site) -> None:
    job = uploaded(client, shown)
    assert "The plan is being checked" in client.get(f"/plans?job={job.id}").text
    job.state, job.problem = "failed", f"plan.json is not a valid plan: {HOSTILE}"
    text = client.get(f"/plans?job={job.id}").text
    assert "This file cannot be shown as a plan" in text
    assert "<img src=x" not in text
    assert client.get("/plans?job=unknown").status_code == 404


def test_what_a_viewer_may_not_do_is_disabled_with_the_role_that_it_needs(tmp_path: Path) -> None:
    client = TestClient(create_app(site(tmp_path, "east", data=InventedData())), base_url="http://localhost")
    assert "The role operator is needed; yours is viewer." in client.get("/plans").text


# ---- a plan that is being applied ----


def orders(plan: Plan, *, wave: int = 2, expires: int = NOW + MINUTE) -> Orders:
    first = plan.steps[0].waves[0][0]
    move = OrderedMove(
        bundle=plan.bundles[first.bundle],
        source=plan.brokers[first.source],
        destination=plan.brokers[first.destination],
    )
    return Orders(
        plan=hash_of(plan), step=1, wave=wave, waves=6, moves=(move,), checked_at=T, expires_at_ms=expires,
        holder="h", by="duty-2",
    )  # fmt: skip


def command(bundle: str, interval: int, status: str, part: Orders, detail: str = "") -> IssuedCommand:
    why = Verdict(subject=broker_name(1), reason=Reason.PLANNED, by="plan", detail=told_of(part))
    return replace(commands(T)[0], id=f"{bundle}{interval}", bundle=bundle, interval=interval, status=status,
                   detail=detail, why=why)  # fmt: skip


def in_force(tmp_path: Path, plan: Plan, part: Orders, *issued: IssuedCommand) -> tuple[TestClient, Site]:
    state = latest(controls=Controls(mode="active", orders=part))
    data = InventedData(state=replace(state, in_flight=(), in_flight_total=0), of_plans=issued)
    made = site(tmp_path, "east", web=OPERATOR, data=data, now_ms=lambda: NOW)
    made.jobs = Jobs(0, 30)
    return TestClient(create_app(made), base_url="http://localhost"), made


def test_a_plan_in_force_says_what_is_done_in_flight_and_failed(tmp_path: Path) -> None:
    plan = drain()
    part = orders(plan)
    earlier = orders(plan, wave=1)
    names = [plan.bundles[move.bundle] for move in plan.steps[0].moves]
    client, _ = in_force(
        tmp_path,
        plan,
        part,
        command(names[1], T, "", part),
        command(names[2], T - MINUTE, "failed", earlier, "412: no such bundle"),
        command(names[3], T - MINUTE, "done", earlier),
        command(names[3], T - 2 * MINUTE, "expired", earlier),
        command(names[4], T - MINUTE, "fenced", earlier),
        command(names[5], T - MINUTE, "", earlier),
    )
    progress = client.get("/api/v1/plans").json()["progress"]
    states = {each["bundle"]: (each["state"], each["detail"]) for each in progress["moves"]}
    assert states == {
        names[0]: ("waiting", ""),
        names[1]: ("in_flight", ""),
        names[2]: ("failed", "failed: 412: no such bundle"),
        names[3]: ("done", ""),
        names[4]: ("waiting", "fenced"),
        names[5]: ("failed", NO_RESULT),
    }
    assert [progress[each] for each in ("done", "inFlight", "failed", "waiting")] == [1, 1, 2, 2]
    assert (progress["sha256"], progress["wave"]) == (hash_of(plan), 2)
    text = client.get("/plans").text
    assert "412: no such bundle" in text
    assert f'href="/decisions/{T - MINUTE}"' in text


def test_the_file_of_the_plan_in_force_shows_its_live_state(tmp_path: Path) -> None:
    plan = drain()
    part = orders(plan, wave=1)
    wave = plan.steps[0].waves[0]
    issued = [command(plan.bundles[move.bundle], T - MINUTE, "done", part) for move in wave]
    client, made = in_force(tmp_path, plan, part, *issued)
    text = page_of(client, made, answered(made, plan))
    assert "This plan is being applied" in text
    assert f"{len(wave)} done" in text
    assert '<rect class="wave done"' in text


def test_a_plan_in_force_lists_what_is_in_flight_by_age_and_what_came_of_it_the_newest_first(tmp_path: Path) -> None:
    plan, part = drain(), orders(drain())
    names = [plan.bundles[move.bundle] for move in plan.steps[0].moves]
    ended: dict[str, Any] = {"started_at": T - MINUTE + 2_000, "finished_at": T - MINUTE + 3_200}
    issued = (
        command(names[0], T, "", part),
        replace(command(names[1], T - MINUTE, "done", part), **ended),
        replace(command(names[2], T - MINUTE, "failed", part, "412: no such bundle"), **ended),
        command(names[3], T - 2 * MINUTE, "", part),
    )
    state = replace(latest(controls=Controls(mode="active", orders=part)), in_flight_total=513)
    data = InventedData(state=state, of_plans=issued)
    progress = issued_plan(data, hash_of(plan), state, NOW)
    flying = in_flight(progress, NOW)
    assert [(each.bundle.whole, each.age) for each in flying] == [(names[3], "2 min"), (names[0], "22 s")]
    seen = [(each.at_ms, each.bundle and each.bundle.whole, each.text) for each in events(progress, BrokerNames())]
    assert seen[0] == (T, None, "Wave 2: 1 move issued")
    assert (T - MINUTE + 3_000, names[1], f"on {broker_name(7)} after 1.2 s") in seen
    assert (T - MINUTE + 3_000, names[2], "failed: 412: no such bundle") in seen
    assert [at for at, *_ in seen] == sorted((at for at, *_ in seen), reverse=True)
    assert not any(names[0] in str(each) for each in seen), "nothing is said of it before its result is there"


def usages(plan: Plan, shown: Site, progress: IssuedPlan, nodes: BrokerStates, **changes: Any) -> list[float | None]:
    """What the page of *plan* says that its brokers use now; *changes*: of each broker's answer."""
    answer = answered(shown, plan)
    brokers = [each.model_copy(update=changes) for each in answer.brokers]
    view = plan_view(answer.model_copy(update={"brokers": brokers}), progress, BrokerNames(), nodes, NOW)
    return [each.now for each in view.brokers]


def test_brokers_are_shown_against_the_plan_once_something_of_it_was_issued(shown: Site) -> None:
    plan, part = drain(), orders(drain())
    issued = (command(plan.bundles[0], T, "", part),)
    data = InventedData(of_plans=issued)
    progress = issued_plan(data, hash_of(plan), data.state, NOW)
    known = replace(brokers_now().brokers[0], name=plan.brokers[0], fullest_usage=41.5, rate_in=30.0, rate_out=12.0)
    nodes = replace(brokers_now(), brokers=(known,))
    assert usages(plan, shown, progress, nodes) == [41.5, None, None]
    assert usages(plan, shown, replace(progress, moves=()), nodes) == [None, None, None]
    # Three brokers with 70 msg/s each, 10 of which stay: whatever is 100 % of the plan, 42 of 210 are a fifth.
    for share in (1.0, 1e-9):
        by_rate = {"resource": RATE_SHARE, "before": 0.7 * share, "fixed": 0.1 * share, "msg_rate_before": 60.0}
        assert [each for each in usages(plan, shown, progress, nodes, **by_rate) if each] == [pytest.approx(20.0)]
    assert usages(plan, shown, progress, nodes, resource="topics")[0] is None


@pytest.mark.parametrize("share", [1.0, 1e-9])
def test_what_is_proved_is_a_share_of_all_messages_where_the_plan_is_by_messages(shown: Site, share: float) -> None:
    answer, progress = answered(shown, drain()), issued_plan(InventedData(), "", None, NOW)
    brokers = [each.model_copy(update={"resource": RATE_SHARE, "before": share / 4}) for each in answer.brokers[:1]] * 4
    steps = [each.model_copy(update={"reached": share / 2, "bound": share / 2}) for each in answer.steps]
    by_rate = answer.model_copy(update={"brokers": brokers, "steps": steps})
    view = plan_view(by_rate, progress, BrokerNames(), None, NOW)
    assert "does not end below 50.0 %" in view.steps[0].certificate.proved
    assert "ends at 50.0 %" in view.steps[0].certificate.reached


def test_a_bundle_that_moves_in_two_steps_has_a_state_in_each(tmp_path: Path) -> None:
    plan = drain()
    first, second = orders(plan), replace(orders(plan), step=2, wave=1)
    name = plan.bundles[11]
    client, _ = in_force(tmp_path, plan, second, command(name, T, "", second), command(name, T - MINUTE, "done", first))
    moves = client.get("/api/v1/plans").json()["progress"]["moves"]
    assert [(each["step"], each["state"]) for each in moves if each["bundle"] == name] == [
        (2, "in_flight"),
        (1, "done"),
    ]


def test_a_plan_whose_apply_has_ended_is_not_in_force(tmp_path: Path) -> None:
    client, _ = in_force(tmp_path, drain(), orders(drain(), expires=NOW - 1))
    assert "No plan is being applied" in client.get("/plans").text
    assert client.get("/api/v1/plans").json()["progress"] is None


def test_a_page_of_a_job_whose_result_is_forgotten_or_that_does_something_else_is_not_there(
    client: TestClient, shown: Site
) -> None:
    plan = uploaded(client, shown)
    what_if = shown.jobs.job(client.post("/api/v1/whatif", json={"since": T, "until": T + 60_000}).json()["id"])
    assert what_if is not None
    for path, own, other in (("/plans", plan, what_if), ("/what-if", what_if, plan)):
        own.state = "done"
        for job in (own, other):
            page = client.get(f"{path}?job={job.id}")
            assert (page.status_code, "not kept any more" in page.text) == (404, True), (path, job.order.kind)
