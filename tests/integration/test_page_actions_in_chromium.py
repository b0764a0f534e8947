"""The actions that test_page_writes_in_chromium leaves out, each clicked in a real Chromium: one server for all."""

import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page

from controller.adapters.approvals.making import Signer, approve, propose_plan
from controller.adapters.election.changes import change_controls
from controller.adapters.election.proposals import change_record, require
from controller.log.elections import election_system
from controller.model.controls import Drained, OperatorControls, Orders, Pause
from controller.model.proposals import ProposalState, StoredProposal
from controller.planning.plans.plan_steps import PlanLimits, empty_step
from controller.web.pages.page import PageRequest
from controller.web.site import Site
from controller.wire.plan import encode_plan
from tests.balance_problems import problem
from tests.chromium import chromium, watched_page
from tests.integration.test_page_writes_in_chromium import does, is_without_barrier, log_in
from tests.invented_pages import NOW, T, broker_name, states
from tests.plans import plan_of
from tests.proposals import key_of
from tests.web_people import WRITES, tokens_file
from tests.web_sites import served, site

pytestmark = [pytest.mark.integration, pytest.mark.extended]

CLUSTER: Final = "harbour-eu"
DRAINED: Final = broker_name(4)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site whose server signs for people; no log, so jobs end with why they did nothing."""
    folder: Path = tmp_path_factory.mktemp("actions")
    (folder / "page.key").write_bytes(key_of("page").pem)
    (folder / "page.key").chmod(0o600)
    approvals = ("[approvals.servers.page]", f'key = "{key_of("page").public_text}"')
    web = (*WRITES, tokens_file(folder), f'signing_key_file = "{folder / "page.key"}"', *approvals)
    lines = ('decisions.mode = "active"', *web)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(PageRequest, "findings", lambda _page: None)
        made = site(folder, CLUSTER, now_ms=lambda: NOW, data=states()["normal"], web=lines)
        yield made
        made.jobs.close()


@pytest.fixture(scope="module")
def address(shown: Site) -> Iterator[str]:
    with served(shown) as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


def controls_of(shown: Site) -> OperatorControls:
    return election_system(shown.clusters[CLUSTER].settings).controls().read()[0]


def set_controls(shown: Site, **changes: Any) -> None:
    store = election_system(shown.clusters[CLUSTER].settings).controls()
    change_controls(store, lambda now: replace(now, **changes))
    shown.clusters[CLUSTER].desk.cached.forget()


def signer(shown: Site, person: str) -> Signer:
    policy = shown.clusters[CLUSTER].settings.approvals
    return Signer(person=person, policy=policy, cluster=CLUSTER, key_name="page", key=key_of("page"))


def proposed(shown: Site, state: ProposalState, bundles: int) -> str:
    """The hash of a plan of so many bundles that otto proposed, which is in *state*."""
    one = problem([[100.0]] * 4, [(0, [2.0])] * bundles, connections=[1.0] * bundles)
    plan = replace(plan_of(one, [empty_step(one, [0], PlanLimits())]), cluster=CLUSTER)
    store = election_system(shown.clusters[CLUSTER].settings).proposals()
    key = propose_plan(store, signer(shown, "otto"), encode_plan(plan), now_ms=NOW).proposal.hash
    if state is ProposalState.APPROVED:
        approve(store, signer(shown, "anna"), key, now_ms=NOW)
    elif state is not ProposalState.PENDING:
        change_record(
            store, key, lambda now: replace(now.record, progress=replace(now.record.progress, state=state, step=1))
        )
    return key


def stored(shown: Site, key: str) -> StoredProposal:
    return require(election_system(shown.clusters[CLUSTER].settings).proposals(), key)


def last_change(shown: Site) -> tuple[str, str]:
    change = controls_of(shown).history[-1]
    return change.by, change.action


def waits_for(page: Page, text: str) -> None:
    """Load *page* until it says *text*."""
    ends = time.monotonic() + 90
    while text not in page.inner_text("main"):
        assert time.monotonic() < ends, page.inner_text("main")
        page.reload()


def is_approved(browser: Browser, address: str, key: str) -> None:
    """anna approves the change of the controls *key* on its page."""
    with watched_page(browser) as (page, trouble):
        log_in(page, address, "anna")
        page.goto(f"{address}/proposals/{key}")
        does(page, "Approve…", "Approve this hash")
        assert trouble == []


def proposal_of(page: Page) -> str:
    """The change of the controls that the page leads to, which waits."""
    page.wait_for_url(re.compile("/proposals/[0-9a-f]{64}$"))
    assert "approved 0 of 1" in page.inner_text(".steps")
    return page.url.rpartition("/")[2]


def test_a_pause_is_ended_once_another_person_approves(browser: Browser, address: str, shown: Site) -> None:
    set_controls(shown, pauses=(Pause(by="otto", reason="upgrade", at_ms=T),))
    with watched_page(browser) as (page, trouble):
        log_in(page, address, "otto")
        page.goto(f"{address}/controls")
        does(page, "Resume…", "Resume")
        key = proposal_of(page)
        assert controls_of(shown).pauses, "nobody has approved it"
        is_approved(browser, address, key)
        assert controls_of(shown).pauses == ()
        page.goto(f"{address}/history")
        assert "resume" in page.inner_text("main")
        assert trouble == []


def test_a_drained_broker_is_released_once_another_person_approves(browser: Browser, address: str, shown: Site) -> None:
    set_controls(shown, drained=(Drained(broker=DRAINED, by="otto", at_ms=T),))
    with watched_page(browser) as (page, trouble):
        log_in(page, address, "otto")
        page.goto(f"{address}/brokers/{quote(DRAINED)}")
        does(page, "Release…", "Release")
        key = proposal_of(page)
        assert controls_of(shown).drained, "nobody has approved it"
        is_approved(browser, address, key)
        assert controls_of(shown).drained == ()
        page.goto(f"{address}/brokers/{quote(DRAINED)}")
        assert page.locator("main a:has-text('Drain…')").count() == 1
        assert trouble == []


def test_the_plan_that_is_being_applied_is_stopped(browser: Browser, address: str, shown: Site) -> None:
    orders = Orders(
        plan="0f" * 32, step=1, wave=1, waves=2, checked_at=T, expires_at_ms=NOW + 600_000, holder="h", by="anna"
    )
    set_controls(shown, orders=orders)
    data: Any = shown.clusters[CLUSTER].data
    data.state = replace(data.state, controls=replace(data.state.controls, orders=orders))
    with watched_page(browser) as (page, trouble):
        log_in(page, address, "otto")
        page.goto(f"{address}/plans")
        does(page, "Stop the plan…", "Stop the plan")
        assert controls_of(shown).orders is None
        assert last_change(shown) == ("otto", "stop-plan")
        assert trouble == []
    data.state = replace(data.state, controls=replace(data.state.controls, orders=None))


def test_a_proposal_that_is_carried_out_is_paused_resumed_and_stopped(
    browser: Browser, address: str, shown: Site
) -> None:
    key = proposed(shown, ProposalState.APPLYING, 3)
    with watched_page(browser, "dark", 400) as (page, trouble):
        page.set_default_timeout(90_000)
        log_in(page, address, "otto")
        page.goto(f"{address}/proposals/{key}")
        for link, button, state in (
            ("Pause…", "Pause", ProposalState.PAUSED),
            ("Resume…", "Go on", ProposalState.APPLYING),
            ("Stop…", "Stop it", ProposalState.STOPPED),
        ):
            does(page, link, button)
            page.wait_for_url(f"**/proposals/{key}")
            assert stored(shown, key).record.progress.state is state
            assert (stored(shown, key).record.progress.by, last_change(shown)[0]) == ("otto", "otto")
        is_without_barrier(page, "a proposal that was stopped")
        assert trouble == []


def test_the_author_may_reject_and_what_is_rejected_offers_no_approval(
    browser: Browser, address: str, shown: Site
) -> None:
    key = proposed(shown, ProposalState.PENDING, 4)
    with watched_page(browser) as (page, trouble):
        page.set_default_timeout(90_000)
        log_in(page, address, "otto")
        page.goto(f"{address}/proposals/{key}")
        assert page.locator("button[disabled]:has-text('Approve…')").count() == 1
        does(page, "Reject…", "Reject")
        page.wait_for_url(f"**/proposals/{key}")
        assert [each.statement.person for each in stored(shown, key).record.statements] == ["otto"]
        assert page.locator("main :text('Approve…')").count() == 0
        assert last_change(shown) == ("otto", "reject")
        is_without_barrier(page, "a proposal that was rejected")
        assert trouble == []


def test_what_is_applied_or_planned_anew_leads_to_how_far_it_is_and_why_it_ended(
    browser: Browser, address: str, shown: Site
) -> None:
    key = proposed(shown, ProposalState.APPROVED, 5)
    with watched_page(browser) as (page, trouble):
        page.set_default_timeout(90_000)
        log_in(page, address, "otto")
        page.goto(f"{address}/proposals/{key}")
        does(page, "Apply…", "Carry it out")
        page.wait_for_url(f"**/proposals/{key}")
        assert last_change(shown) == ("otto", "apply")
        waits_for(page, "Apply, by otto, ended at")
        assert "no controller runs" in page.inner_text("main")
        assert "approved 1 of 1" in page.inner_text(".steps")
        is_without_barrier(page, "a proposal that could not be applied")
        does(page, "Refresh…", "Plan it anew")
        page.wait_for_url("**/plans?job=*")
        waits_for(page, "Nothing was proposed")
        assert "no interval" in page.inner_text("main")
        assert last_change(shown) == ("otto", "refresh")
        assert trouble == []
