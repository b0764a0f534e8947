"""What people change on the page, in a real Chromium: each action by its dialog, and without a script."""

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from controller.adapters.approvals.making import Signer, propose_plan
from controller.adapters.election.proposals import change_record
from controller.cycle.ordered import told_of
from controller.log.elections import election_system
from controller.model.controls import OperatorControls, Orders
from controller.model.decision import Reason, Verdict
from controller.model.proposals import ProposalState
from controller.planning.plans.plan_steps import PlanLimits, empty_step
from controller.web.pages.page import PageRequest
from controller.web.site import Site
from controller.wire.plan import encode_plan
from tests.balance_problems import problem
from tests.chromium import AXE_TAGS, chromium, watched_page
from tests.invented_pages import NOW, InventedData, T, broker_name, brokers_now, commands, states
from tests.plans import plan_of
from tests.proposals import key_of
from tests.web_people import WRITES, token_of, tokens_file
from tests.web_sites import served, site

pytestmark = [pytest.mark.integration, pytest.mark.extended]

CLUSTER: Final = "harbour-eu"
LOOKS: Final = (("light", 1280), ("dark", 400))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture
def shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setattr(PageRequest, "findings", lambda _page: None)
    (tmp_path / "page.key").write_bytes(key_of("page").pem)
    (tmp_path / "page.key").chmod(0o600)
    approvals = ("[approvals.servers.page]", f'key = "{key_of("page").public_text}"')
    web = (*WRITES, tokens_file(tmp_path), f'signing_key_file = "{tmp_path / "page.key"}"', *approvals)
    lines = ('decisions.mode = "active"', *web)
    return site(tmp_path, CLUSTER, now_ms=lambda: NOW, data=states()["normal"], web=lines)


def log_in(page: Page, address: str, name: str) -> None:
    page.goto(f"{address}/login")
    page.fill("[name=token]", token_of(name))
    page.click("button.primary")
    page.wait_for_url(f"{address}/")


def is_without_barrier(page: Page, where: str) -> None:
    report: Any = Axe().run(page, options=AXE_TAGS)
    assert report.violations_count == 0, f"{where}: {report.generate_report()}"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{where} scrolls sideways"


def does(page: Page, link: str, button: str) -> None:
    """Open the dialog of *link*, say why, and press *button*."""
    page.click(f"main a:has-text('{link}')")
    page.wait_for_selector("dialog[open]")
    is_without_barrier(page, link)
    page.fill("dialog [name=reason]", "tried in a browser")
    with page.expect_navigation():
        page.click(f"dialog button:has-text('{button}')")


def stored(shown: Site) -> OperatorControls:
    return election_system(shown.clusters[CLUSTER].settings).controls().read()[0]


def proposed(shown: Site) -> str:
    """The hash of a plan that otto proposed."""
    settings = shown.clusters[CLUSTER].settings
    one = problem([[100.0]] * 4, [(0, [2.0])] * 6, connections=[1.0] * 6)
    plan = replace(plan_of(one, [empty_step(one, [0], PlanLimits())]), cluster=CLUSTER)
    signer = Signer(person="otto", policy=settings.approvals, cluster=CLUSTER, key_name="page", key=key_of("page"))
    store = election_system(settings).proposals()
    return propose_plan(store, signer, encode_plan(plan), now_ms=NOW).proposal.hash


@pytest.mark.parametrize(("theme", "width"), LOOKS)
def test_the_controls_are_changed_by_dialogs(browser: Browser, shown: Site, theme: str, width: int) -> None:
    with served(shown) as address, watched_page(browser, theme, width) as (page, trouble):
        log_in(page, address, "otto")
        page.goto(f"{address}/controls")
        does(page, "Pause…", "Pause")
        assert "Stored, and not in force yet: the pause of otto" in page.inner_text("main")
        is_without_barrier(page, "/controls")
        does(page, "dry run…", "Set dry run")
        does(page, "Stop all…", "Stop all")
        page.goto(f"{address}/brokers/{quote(broker_name(4))}")
        does(page, "Drain…", "Drain")
        assert "Drained by otto" in page.inner_text("main")
        is_without_barrier(page, "a drained broker")
        page.goto(f"{address}/history")
        is_without_barrier(page, "/history")
        assert [each.action for each in stored(shown).history] == ["pause", "mode", "stop-all", "drain"]
        assert {each.by for each in stored(shown).history} == {"otto"}
        assert trouble == []


@pytest.mark.parametrize(("theme", "width"), LOOKS)
def test_a_second_person_approves_the_hash(browser: Browser, shown: Site, theme: str, width: int) -> None:
    key = proposed(shown)
    with served(shown) as address, watched_page(browser, theme, width) as (page, trouble):
        page.set_default_timeout(90_000)
        log_in(page, address, "anna")
        page.goto(f"{address}/plans")
        is_without_barrier(page, "/plans")
        page.click("main .list a")
        page.wait_for_url(f"**/proposals/{key}")
        ends = time.monotonic() + 90
        while not page.locator("text=Brokers, before and after").count():
            assert time.monotonic() < ends, page.inner_text("main")
            page.reload()
        is_without_barrier(page, "a proposal")
        assert page.evaluate("document.querySelectorAll('*').length") < 1_500
        does(page, "Approve…", "Approve this hash")
        assert "approved 1 of 1" in page.inner_text(".steps")
        assert [(each.by, each.action) for each in stored(shown).history] == [("anna", "approve")]
        page.goto(f"{address}/proposals/new?kind=drain&brokers={quote(broker_name(3))}")
        is_without_barrier(page, "a new plan")
        assert trouble == []
    shown.jobs.close()


#: The element that has the focus: whether it is in a dialog, is seen, and is marked.
_FOCUS: Final = """() => {
  const each = document.activeElement;
  each.dataset.reached = "";
  const box = each.getBoundingClientRect(), style = getComputedStyle(each);
  return {
    name: (each.textContent || each.name || each.tagName).trim().slice(0, 40),
    isDialog: Boolean(each.closest("dialog")) || each === document.body,
    isSeen: box.width > 1 && box.height > 1 && box.left >= 0 && box.right <= innerWidth,
    isMarked: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
  };
}"""

#: What can have the focus and has not had it.  The parts of a date are several stops of one input.
_NOT_REACHED: Final = """() =>
  [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")]
    .filter(each => !each.disabled && each.type !== "hidden" && each.checkVisibility() && !("reached" in each.dataset))
    .map(each => each.outerHTML.slice(0, 200))
"""


@pytest.mark.parametrize("path", ["/", "/decisions", "/plans", "/controls", "/what-if"])
def test_the_keyboard_reaches_everything_and_the_focus_is_seen(browser: Browser, shown: Site, path: str) -> None:
    with served(shown) as address, watched_page(browser) as (page, trouble):
        log_in(page, address, "otto")
        page.goto(f"{address}{path}")
        reached = list[str]()
        while page.evaluate(_NOT_REACHED) and len(reached) < 2_000:
            page.keyboard.press("Tab")
            focus = page.evaluate(_FOCUS)
            assert focus["isSeen"], f"the focus on {focus['name']!r} is not seen"
            assert focus["isMarked"], f"the focus on {focus['name']!r} is not marked"
            reached.append(focus["name"])
        assert page.evaluate(_NOT_REACHED) == []
        assert reached[0] == "To the content"
        assert trouble == []


def test_a_dialog_holds_the_focus_and_escape_gives_it_back(browser: Browser, shown: Site) -> None:
    with served(shown) as address, watched_page(browser) as (page, trouble):
        log_in(page, address, "otto")
        page.goto(f"{address}/controls")
        page.focus("main a:has-text('Pause…')")
        page.keyboard.press("Enter")
        page.wait_for_selector("dialog[open]")
        for _ in range(12):
            assert page.evaluate(_FOCUS)["isDialog"], "the focus left the dialog"
            page.keyboard.press("Tab")
        page.keyboard.press("Escape")
        page.wait_for_selector("dialog", state="detached")
        assert page.evaluate(_FOCUS)["name"] == "Pause…"
        assert trouble == []


@pytest.mark.parametrize(("theme", "width"), LOOKS)
def test_a_proposal_that_is_applied_is_live_and_says_done_when_the_log_does(
    browser: Browser, shown: Site, theme: str, width: int
) -> None:
    key, data = proposed(shown), shown.clusters[CLUSTER].data
    assert isinstance(data, InventedData)
    part = Orders(plan=key, step=1, wave=1, waves=1, checked_at=T, expires_at_ms=NOW + 60_000, holder="h", by="otto")
    why = Verdict(subject="broker-000:8080", reason=Reason.PLANNED, by="plan", detail=told_of(part))
    moves = [f"acme/ns{each % 3}/0x{each:08x}_0x{each + 1:08x}" for each in range(6)]
    data.of_plans = tuple(
        replace(commands(T)[0], id=name, bundle=name, destination="broker-001:8080", why=why, status="")
        for name in moves[:4]
    )
    nodes = [replace(node, name=f"broker-00{at}:8080") for at, node in enumerate(brokers_now(4).brokers)]
    data.nodes = replace(brokers_now(4), brokers=tuple(nodes))
    change_record(
        election_system(shown.clusters[CLUSTER].settings).proposals(),
        key,
        lambda now: replace(now.record, progress=replace(now.record.progress, state=ProposalState.APPLYING, step=1)),
    )
    with served(shown) as address, watched_page(browser, theme, width) as (page, trouble):
        page.set_default_timeout(90_000)
        log_in(page, address, "anna")
        page.goto(f"{address}/proposals/{key}")
        ends = time.monotonic() + 90
        while not page.locator("text=now against the plan").count():
            assert time.monotonic() < ends, page.inner_text("main")
            page.reload()
        flying = page.inner_text("section[aria-labelledby=flying-title]")
        assert [name.rpartition("/")[2] in flying for name in moves] == [True] * 4 + [False] * 2
        assert "0 done, 4 in flight, 2 not issued" in page.inner_text("main")
        page.focus("a:has-text('Pause…')")
        ended = replace(data.of_plans[0], status="done", started_at=T + 2_000, finished_at=T + 3_100)
        data.of_plans = (ended, *data.of_plans[1:])
        data.number += 1
        data.changed.set()
        page.wait_for_selector("text=1 done, 3 in flight, 2 not issued")
        assert "Pause…" in page.evaluate("document.activeElement.textContent"), "a link keeps the focus"
        assert "after 1.1 s" in page.inner_text("section[aria-labelledby=events-title]")
        is_without_barrier(page, "a proposal that is applied")
        assert page.evaluate("document.querySelectorAll('*').length") < 1_500
        if folder := os.environ.get("TRIMTAB_PICTURES"):
            page.screenshot(path=f"{folder}/applied-{theme}-{width}.png", full_page=True)
        assert trouble == []
    shown.jobs.close()


def test_without_a_script_forms_do_the_same(browser: Browser, shown: Site) -> None:
    with served(shown) as address, watched_page(browser, script=False) as (page, trouble):
        log_in(page, address, "otto")
        page.goto(f"{address}/controls")
        page.click("main a:has-text('Pause…')")
        page.wait_for_url("**/controls/pause")
        page.select_option("[name=minutes]", "60")
        page.fill("[name=reason]", "upgrade")
        page.click("main button:has-text('Pause')")
        page.wait_for_url("**/controls")
        assert "the pause of otto" in page.inner_text("main")
        assert stored(shown).pauses[0].until_ms == NOW + 3_600_000
        assert trouble == []


def test_who_was_slower_hears_who_was_faster(browser: Browser, shown: Site) -> None:
    with served(shown) as address, watched_page(browser) as (page, trouble):
        log_in(page, address, "otto")
        page.goto(f"{address}/controls")
        page.click("main a:has-text('observe…')")
        page.wait_for_selector("dialog[open]")
        with watched_page(browser) as (other, _):
            log_in(other, address, "anna")
            other.goto(f"{address}/controls/pause")
            other.fill("[name=reason]", "first")
            other.click("main button:has-text('Pause')")
            other.wait_for_url("**/controls")
        page.fill("dialog [name=reason]", "second")
        with page.expect_navigation():
            page.click("dialog button:has-text('Set observe')")
        text = page.inner_text("main")
        assert "Somebody was faster." in text
        assert "pause, by anna: first" in text
        assert page.input_value("[name=reason]") == "second"
        is_without_barrier(page, "a form that was too late")
        page.click("main button:has-text('Set observe')")
        page.wait_for_url("**/controls")
        assert [each.by for each in stored(shown).history] == ["anna", "otto"]
        assert [each for each in trouble if "412" not in each] == []


def test_whoever_may_not_has_no_dialog_and_reads_why(browser: Browser, shown: Site) -> None:
    with served(shown) as address, watched_page(browser) as (page, trouble):
        log_in(page, address, "vera")
        for path in ("/controls", "/plans", f"/brokers/{quote(broker_name(4))}"):
            page.goto(address + path)
            assert page.locator("a[data-dialog]").count() == 0, path
            assert "This needs the role operator" in page.inner_text("main"), path
            is_without_barrier(page, path)
        assert trouble == []
