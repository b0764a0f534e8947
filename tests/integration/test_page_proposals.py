"""Proposals on the page with the commands behind them: a plan's file is proposed, shown, approved, and applied."""

import time
from pathlib import Path
from typing import Any

import pytest

from controller.web.site import Site
from tests.unit.web.test_proposals_by_rest import Person, history, page_of, plan_file, proposed, stored

pytestmark = pytest.mark.integration


def _ended(person: Person, answer: Any) -> Any:
    """The job that *answer* names, once it has ended."""
    assert answer.status_code == 202, answer.text
    ends = time.monotonic() + 60
    while (job := person.client.get(answer.headers["location"]).json())["state"] in ("waiting", "running"):
        assert time.monotonic() < ends
        time.sleep(0.2)
    return job


@pytest.fixture
def shown(tmp_path: Path) -> Any:
    site = page_of(tmp_path)
    yield site
    site.jobs.close()


def test_a_file_is_checked_proposed_and_shown(shown: Site) -> None:
    otto = Person(shown, "otto")
    headers = {"Content-Type": "application/json"}
    path = "/api/v1/proposals?reason=disk%20swap"
    answer = otto.client.post(path, content=plan_file(), headers=headers)
    job = _ended(otto, answer)
    assert job["state"] == "done", job["problem"]
    key = otto.client.get(f"{answer.headers['location']}/result").json()["proposal"]
    statement = stored(shown, key).proposal.statement.statement
    assert (statement.author, statement.key, statement.reason) == ("otto", "page", "disk swap")
    assert history(shown) == [("otto", "propose")]
    detail = otto.client.get(f"/api/v1/proposals/{key}")
    while detail.status_code == 202:
        time.sleep(0.5)
        detail = otto.client.get(f"/api/v1/proposals/{key}")
    assert detail.json()["plan"]["moves"] == 6
    assert detail.json()["drift"]["verdict"] == "unknown", "the log has no interval"


def test_a_file_that_was_changed_is_not_proposed(shown: Site) -> None:
    otto = Person(shown, "otto")
    changed = plan_file().replace(b'"broker-001:8080"', b'"broker-009:8080"', 1)
    answer = otto.client.post(
        "/api/v1/proposals?reason=x", content=changed, headers={"Content-Type": "application/json"}
    )
    job = _ended(otto, answer)
    assert job["state"] == "failed"
    assert job["problem"]
    assert otto.client.get("/api/v1/proposals").json()["proposals"] == []


def test_what_is_applied_without_a_controller_says_so_and_stays_approved(shown: Site) -> None:
    key, otto = proposed(shown), Person(shown, "otto")
    assert Person(shown, "anna").does("approve", key).status_code == 200
    job = _ended(otto, otto.does("apply", key))
    assert job["state"] == "failed"
    assert "run" in job["problem"]
    assert otto.client.get("/api/v1/proposals").json()["proposals"][0]["state"] == "approved"


def test_a_plan_of_a_cluster_without_load_is_no_proposal_and_says_why(shown: Site) -> None:
    otto = Person(shown, "otto")
    answer = otto.client.post("/api/v1/proposals/plan", json={"reason": "even it out"})
    job = _ended(otto, answer)
    assert (job["state"], otto.client.get("/api/v1/proposals").json()["proposals"]) == ("failed", [])
    assert "no interval" in job["problem"]


def test_what_is_left_of_a_proposal_cannot_be_planned_without_load(shown: Site) -> None:
    key, otto = proposed(shown), Person(shown, "otto")
    job = _ended(otto, otto.does("refresh", key))
    assert job["state"] == "failed"
    assert job["problem"]
