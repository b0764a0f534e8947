"""The page in a real Chromium: no error, no request elsewhere, no barrier, working keys, and text without a script."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Route

from controller.cycle.ordered import told_of
from controller.model.controls import Controls, Orders
from controller.model.decision import Reason, Verdict
from controller.model.errors import TrimtabError
from controller.planning.plans.plan_steps import PlanLimits, empty_step
from controller.planning.plans.waves import WaveLimits
from controller.settings.trimtab_toml import Settings
from controller.web.access.tokens import token_hash
from controller.web.pages.page import PageRequest
from controller.wire.plan import encode_plan
from tests.balance_problems import problem
from tests.chromium import AXE_TAGS, chromium, watched_page
from tests.invented_pages import (
    DAY,
    MINUTE,
    NOW,
    InventedData,
    T,
    broker_name,
    bundle_name,
    commands,
    hostile,
    latest,
    states,
)
from tests.plans import plan_of
from tests.web_sites import ANYBODY, served, site

pytestmark = [pytest.mark.integration, pytest.mark.extended]

PATHS: Final = (
    "/",
    "/map",
    f"/map?rows=keyspace&span=1440&row={quote(bundle_name(2))}&at={T - 9 * MINUTE}",
    "/decisions",
    f"/decisions/{T - 9 * MINUTE}",
    f"/bundles/{bundle_name(2)}",
    f"/brokers/{quote(broker_name(4))}",
    "/namespaces/telemetry/raw",
    "/find?text=broker",
    "/plans",
    "/controls",
    "/history",
    "/what-if",
    "/more",
)
#: Theme and width: the wide screen in both themes, and a phone.
LOOKS: Final = (("light", 1280), ("dark", 1280), ("dark", 400))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@contextmanager
def _served(
    folder: Path, data: InventedData, web: tuple[str, ...] = ANYBODY, now_ms: Callable[[], int] = lambda: NOW
) -> Iterator[str]:
    """The address of a site that shows *data*."""

    def unreadable(_settings: Settings) -> Any:
        def read() -> Any:
            raise TrimtabError("the election does not answer")

        return read

    shown = site(folder, "harbour-eu", now_ms=now_ms, read_status=unreadable, data=data, web=web)
    with served(shown) as address:
        yield address


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Sites by state."""
    patch = pytest.MonkeyPatch()
    patch.setattr(PageRequest, "findings", lambda _page: None)
    data_of = {
        **{name: states()[name] for name in ("normal", "breaker", "late", "empty", "many")},
        "hostile": hostile(),
    }
    managers = [_served(tmp_path_factory.mktemp(name), data) for name, data in data_of.items()]
    addresses_of = {name: manager.__enter__() for name, manager in zip(data_of, managers, strict=True)}
    yield addresses_of
    for manager in managers:
        manager.__exit__(None, None, None)
    patch.undo()


def _is_drawn(page: Page) -> None:
    """Wait until the map has drawn its cells."""
    page.wait_for_selector("[data-map][data-ready]")


@contextmanager
def _drawn_again(page: Page) -> Iterator[None]:
    """After the block the map has drawn the cells of another span."""
    before = page.get_attribute("[data-map]", "data-ready")
    yield
    page.wait_for_selector(f"[data-map]:not([data-ready='{before}'])")


@pytest.mark.parametrize(("theme", "width"), LOOKS)
def test_every_page_is_whole_without_error_or_barrier(
    browser: Browser, addresses: dict[str, str], theme: str, width: int
) -> None:
    with watched_page(browser, theme, width) as (page, trouble):
        for path in PATHS:
            page.goto(addresses["normal"] + path)
            report: Any = Axe().run(page, options=AXE_TAGS)
            assert report.violations_count == 0, f"{path}: {report.generate_report()}"
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{path} scrolls sideways"
            assert page.evaluate("document.querySelectorAll('*').length") < 1_500, path
        assert trouble == []


@pytest.mark.parametrize("state", ["breaker", "late", "empty", "many"])
def test_every_state_is_without_barrier(browser: Browser, addresses: dict[str, str], state: str) -> None:
    for theme, width in LOOKS:
        with watched_page(browser, theme, width) as (page, trouble):
            for path in ("/", "/controls", "/map"):
                page.goto(addresses[state] + path)
                report: Any = Axe().run(page, options=AXE_TAGS)
                assert report.violations_count == 0, f"{path}: {report.generate_report()}"
                assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{path} scrolls sideways"
            assert trouble == []


def test_names_that_are_attacks_stay_text(browser: Browser, addresses: dict[str, str]) -> None:
    with watched_page(browser) as (page, trouble):
        for path in (*PATHS, f"/decisions/{T}"):
            page.goto(addresses["hostile"] + path)
            assert page.locator("img").count() == 0
            if path.startswith("/map"):
                _is_drawn(page)
        page.goto(addresses["hostile"] + "/map?rows=keyspace")
        _is_drawn(page)
        page.click(".field", position={"x": 400, "y": 200})
        page.wait_for_selector("[data-details] dl")
        assert page.locator("img").count() == 0
        assert trouble == []


def test_without_a_script_every_page_reads(browser: Browser, addresses: dict[str, str]) -> None:
    with watched_page(browser, script=False) as (page, trouble):
        for path in PATHS:
            page.goto(addresses["normal"] + path)
            assert (page.text_content("h1") or "").strip()
        page.goto(addresses["normal"] + "/map")
        assert page.is_visible("text=The same as a table")
        assert page.locator(".map-table tbody tr").count() == 12
        page.select_option("[name=metric]", "cpu")
        page.click("text=Show")
        assert "metric=cpu" in page.url
        assert trouble == []


def test_an_uploaded_plan_is_whole_without_error_or_barrier(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The form sends the file, the command reads it in a process of its own, and the page shows it."""
    monkeypatch.setattr(PageRequest, "findings", lambda _page: None)
    one = problem([[100.0]] * 12, [(0, [2.0])] * 30, connections=list(map(float, range(30))))
    step = empty_step(one, [0], PlanLimits(waves=WaveLimits(max_moves=4)))
    plan = replace(plan_of(one, [step]), cluster="harbour-eu")
    (tmp_path / "plan.json").write_bytes(encode_plan(plan))
    with _served(tmp_path, states()["normal"], web=("[web]", 'anonymous = "operator"')) as address:
        for theme, width in LOOKS:
            with watched_page(browser, theme, width) as (page, trouble):
                page.goto(f"{address}/plans")
                page.set_input_files("[name=file]", tmp_path / "plan.json")
                page.click("text=Show it")
                page.wait_for_url("**/plans?job=*", timeout=60_000)
                assert "Empty brokers: 30 moves" in (page.text_content("h1") or "")
                assert page.locator(".waves .wave").count() == len(step.waves)
                report: Any = Axe().run(page, options=AXE_TAGS)
                assert report.violations_count == 0, report.generate_report()
                assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "it scrolls sideways"
                assert page.evaluate("document.querySelectorAll('*').length") < 1_500
                assert trouble == []
                if folder := os.environ.get("TRIMTAB_PICTURES"):
                    page.screenshot(path=f"{folder}/plan-{theme}-{width}.png", full_page=True)


def test_a_plan_in_force_is_live_and_a_file_that_is_chosen_stays(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PageRequest, "findings", lambda _page: None)
    orders = Orders(plan="ab" * 32, step=1, wave=1, waves=2, checked_at=T, expires_at_ms=T + DAY, holder="h", by="ann")
    data = InventedData(state=latest(controls=Controls(mode="active", orders=orders)))
    (tmp_path / "plan.json").write_bytes(b"{}")
    why = Verdict(subject="b:80", reason=Reason.PLANNED, by="plan", detail=told_of(orders))
    with (
        _served(tmp_path, data, web=("[web]", 'anonymous = "operator"')) as address,
        watched_page(browser) as (page, trouble),
    ):
        page.goto(f"{address}/plans")
        page.set_input_files("[name=file]", tmp_path / "plan.json")
        data.of_plans = (replace(commands(T)[0], why=why, status="done"),)
        data.number += 1
        data.changed.set()
        page.wait_for_selector("text=1 done")
        assert page.evaluate("document.querySelector('[name=file]').files.length") == 1
        report: Any = Axe().run(page, options=AXE_TAGS)
        assert report.violations_count == 0, report.generate_report()
        assert trouble == []


def test_keys_lead_everywhere_and_switch_times(browser: Browser, addresses: dict[str, str]) -> None:
    with watched_page(browser) as (page, trouble):
        page.goto(addresses["normal"])
        for key, path in (("m", "/map"), ("d", "/decisions"), ("p", "/plans"), ("c", "/controls"), ("n", "/")):
            page.keyboard.press("g")
            page.keyboard.press(key)
            page.wait_for_url(addresses["normal"] + path)
        page.keyboard.press("?")
        assert page.is_visible("dialog h2")
        page.keyboard.press("Escape")
        page.wait_for_selector("dialog", state="hidden")
        assert (page.text_content(".log time") or "") == "14:31"
        page.keyboard.press("t")
        assert (page.text_content(".log time") or "") == "20:01"
        page.goto(f"{addresses['normal']}/bundles/{bundle_name(2)}")
        assert (page.text_content(".chart text.time") or "") == "20 Nov 05:30", "a day of UTC begins in the morning"
        page.keyboard.press("t")
        assert (page.text_content(".chart text.time") or "") == "Fri 20 Nov"
        page.keyboard.press("/")
        page.wait_for_url("**/find")
        page.goto(f"{addresses['normal']}/decisions/{T - 9 * MINUTE}")
        page.keyboard.press("k")
        page.wait_for_url(f"**/decisions/{T - 10 * MINUTE}")
        assert trouble == []


def test_fields_of_times_are_local_where_the_page_is_and_send_utc(browser: Browser, addresses: dict[str, str]) -> None:
    with watched_page(browser) as (page, trouble):  # in India, 5:30 ahead
        page.goto(addresses["normal"] + "/decisions?since=2026-11-26T14:00&until=2026-11-26T14:20")
        assert page.input_value("[name=since]") == "2026-11-26T14:00"
        page.keyboard.press("t")
        assert page.input_value("[name=since]") == "2026-11-26T19:30"
        assert "From, local" in (page.text_content("form") or "")
        page.fill("[name=until]", "2026-11-26T19:45")
        page.click("form button:has-text('Filter')")
        page.wait_for_url("**until=2026-11-26T14%3A15**")
        assert "since=2026-11-26T14%3A00" in page.url
        assert page.input_value("[name=until]") == "2026-11-26T19:45"
        assert trouble == []


def test_an_hour_that_clocks_show_twice_stays_the_one_that_was_meant(
    browser: Browser, addresses: dict[str, str]
) -> None:
    with watched_page(browser, zone="Europe/London") as (page, trouble):
        # The second 01:30 of that night in London; after it the clocks are back on UTC.
        page.goto(addresses["normal"] + "/decisions?since=2026-10-25T01:30&until=2026-10-25T03:30")
        page.keyboard.press("t")
        assert page.input_value("[name=since]") == "2026-10-25T01:30"
        page.click("form button:has-text('Filter')")
        page.wait_for_url("**since=2026-10-25T01%3A30**")
        # The hour before is another span, which a person may enter; nothing says that it is shown twice.
        page.fill("[name=until]", "2026-10-25T02:30")
        page.click("form button:has-text('Filter')")
        page.wait_for_url("**since=2026-10-25T01%3A30&until=2026-10-25T02%3A30**")
        page.keyboard.press("t")
        assert page.input_value("[name=since]") == "2026-10-25T01:30"
        assert trouble == []


def test_keys_can_be_turned_off_and_buttons_do_the_same(browser: Browser, addresses: dict[str, str]) -> None:
    with watched_page(browser) as (page, trouble):
        page.goto(addresses["normal"])
        page.click(".rail >> text=Keys")
        page.uncheck("dialog [type=checkbox]")
        page.click("dialog button")
        page.keyboard.press("t")
        assert (page.text_content(".log time") or "") == "14:31"
        page.click(".rail >> text=Local")
        assert (page.text_content(".log time") or "") == "20:01"
        assert page.get_attribute(".rail >> text=Local", "aria-pressed") == "true"
        assert "Times are local" in (page.text_content(".foot") or "")
        page.goto(addresses["normal"] + "/decisions")
        page.keyboard.press("g")
        page.keyboard.press("m")
        page.click(".rail >> text=Keys")
        assert page.url.endswith("/decisions")
        page.check("dialog [type=checkbox]")
        page.keyboard.press("Escape")
        page.keyboard.press("t")
        page.wait_for_selector(".foot:has-text('Times are UTC')")
        assert trouble == []


def test_nothing_is_drawn_before_the_chosen_theme_is_known(browser: Browser, addresses: dict[str, str]) -> None:
    def slowly(route: Route) -> None:
        time.sleep(0.5)
        route.continue_()

    with watched_page(browser) as (page, trouble):
        page.goto(addresses["normal"])
        page.click("[data-theme-switch]")
        page.route("**/*.js*", slowly)
        page.goto(addresses["normal"] + "/decisions")
        page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length")
        drawn = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        known = page.evaluate(
            """performance.getEntriesByType("resource").find(each => /trimtab[^/]*js/.test(each.name)).responseEnd"""
        )
        assert drawn >= known
        assert page.get_attribute("html", "data-theme") == "dark"
        assert trouble == []


@pytest.mark.parametrize("path", ["/", "/decisions", f"/decisions/{T - 9 * MINUTE}"])
def test_on_a_phone_the_bars_hide_nothing_that_has_the_focus(
    browser: Browser, addresses: dict[str, str], path: str
) -> None:
    hidden = """() => {
      const at = document.activeElement, box = at.getBoundingClientRect();
      if (at === document.body || at.closest(".tabs, .bridge, .skip")) return null;
      const top = document.querySelector(".bridge").getBoundingClientRect().bottom;
      const bottom = document.querySelector(".tabs").getBoundingClientRect().top;
      return box.top >= bottom - 4 || box.bottom <= top + 4 ? at.outerHTML : null;
    }"""
    with watched_page(browser, width=400) as (page, _):
        page.goto(addresses["normal"] + path)
        for key in ("Tab", "Shift+Tab"):
            for _ in range(50):
                page.keyboard.press(key)
                assert page.evaluate(hidden) is None


def test_on_paper_a_dark_page_is_light_and_says_whose_it_is_and_of_when(
    browser: Browser, addresses: dict[str, str]
) -> None:
    with watched_page(browser) as (page, trouble):
        page.goto(addresses["normal"])
        page.click("[data-theme-switch]")
        assert page.is_hidden(".printed")
        page.emulate_media(media="print")
        assert page.text_content(".printed") == "harbour-eu, 2026-11-26"
        assert page.is_visible(".printed")
        assert page.evaluate("getComputedStyle(document.querySelector('h1')).color") == "rgb(20, 24, 29)"
        assert page.is_hidden(".rail")
        assert trouble == []


def test_a_key_waits_for_its_second_one_without_a_limit(browser: Browser, addresses: dict[str, str]) -> None:
    with watched_page(browser) as (page, trouble):
        page.clock.install()
        page.goto(addresses["normal"])
        page.keyboard.press("g")
        page.clock.fast_forward(10_000)
        page.keyboard.press("d")
        page.wait_for_url("**/decisions")
        page.keyboard.press("g")
        page.keyboard.press("Escape")
        page.keyboard.press("m")
        assert page.url.endswith("/decisions")
        assert trouble == []


def test_the_map_is_used_by_keys_alone_and_its_link_shows_the_same(browser: Browser, addresses: dict[str, str]) -> None:
    with watched_page(browser) as (page, trouble):
        page.goto(addresses["normal"] + "/map?span=60")
        _is_drawn(page)
        page.focus(".field")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowLeft")
        assert "broker-" in (page.text_content(".tip") or "")
        page.keyboard.press("Enter")
        page.wait_for_selector("[data-details] dl")
        assert "row=" in page.url
        title = page.text_content("[data-details] h2")
        page.keyboard.press("-")
        page.wait_for_url("**since=**")
        page.keyboard.press("b")
        page.keyboard.press("Shift+ArrowLeft")
        page.keyboard.press("b")
        assert "chosen" in (page.text_content("aside [data-span]") or "")
        page.keyboard.press("Enter")
        link = page.url
        page.goto(link)
        _is_drawn(page)
        assert page.text_content("[data-details] h2") == title
        page.focus(".field")
        page.keyboard.press("Escape")
        assert page.is_hidden("[data-details]")
        page.keyboard.press("v")
        page.wait_for_url("**rows=keyspace**")
        assert trouble == []


def test_a_span_is_dragged_and_zoomed_into(browser: Browser, addresses: dict[str, str]) -> None:
    with watched_page(browser) as (page, trouble):
        page.goto(addresses["normal"] + "/map?span=1440")
        _is_drawn(page)
        box = page.locator(".field").bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + 300, box["y"] + 100)
        page.mouse.down()
        page.mouse.move(box["x"] + 500, box["y"] + 120, steps=4)
        page.mouse.up()
        assert "chosen" in (page.text_content("aside [data-span]") or "")
        with _drawn_again(page):
            page.mouse.dblclick(box["x"] + 400, box["y"] + 110)
        with _drawn_again(page):
            page.keyboard.down("Control")
            page.mouse.wheel(0, -100)
            page.keyboard.up("Control")
        assert page.is_hidden("[data-failed]"), page.text_content("[data-failed]")
        query = page.evaluate("Object.fromEntries(new URLSearchParams(location.search))")
        assert int(query["until"]) - int(query["since"]) < 12 * 60 * MINUTE
        assert trouble == []


def test_a_new_interval_comes_by_itself(browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PageRequest, "findings", lambda _page: None)
    data = states()["paused"]
    with _served(tmp_path, data) as address, watched_page(browser) as (page, trouble):
        page.goto(address)
        assert page.text_content("h1") == "Balancing is paused"
        data.state, data.number = states()["normal"].state, 2
        data.changed.set()
        page.wait_for_selector("h1:has-text('too full')")
        assert "Nothing is in the way" in (page.text_content("#bridge") or "")
        assert trouble == []


def test_an_open_page_says_when_decisions_stop(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PageRequest, "findings", lambda _page: None)
    now = [NOW]
    with (
        _served(tmp_path, states()["normal"], now_ms=lambda: now[0]) as address,
        watched_page(browser) as (page, trouble),
    ):
        page.clock.install()
        page.goto(address)
        assert "Nothing is in the way." in (page.text_content("#bridge") or "")
        now[0] += 10 * MINUTE  # and no message comes, since nothing happens
        page.clock.fast_forward(100_000)
        page.wait_for_selector("#bridge:has-text('No decision for 10 intervals.')")
        now[0] += MINUTE
        page.clock.fast_forward(100_000)
        page.wait_for_selector("#bridge:has-text('No decision for 11 intervals.')")
        assert trouble == []


def test_an_open_page_says_when_nobody_answers_though_its_stream_is_open(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PageRequest, "findings", lambda _page: None)
    with _served(tmp_path, states()["normal"]) as address, watched_page(browser) as (page, _):
        page.clock.install()
        page.goto(address)
        page.wait_for_load_state()
        page.route(f"{address}/", lambda route: route.abort("timedout"))
        page.clock.fast_forward(100_000)
        page.wait_for_timeout(200)
        page.clock.fast_forward(2_000)
        page.wait_for_selector("#bridge:has-text('This page is not live.')")
        page.unroute(f"{address}/")
        page.clock.fast_forward(100_000)
        page.wait_for_selector("#bridge:has-text('Nothing is in the way.')")


def test_a_page_says_that_its_session_is_over(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PageRequest, "findings", lambda _page: None)
    tokens = tmp_path / "tokens.toml"
    tokens.write_text(f'[tokens.ann]\nrole = "viewer"\nsha256 = "{token_hash("secret")}"\n', encoding="utf-8")
    data = states()["paused"]
    with (
        _served(tmp_path, data, web=("[web]", f'tokens_file = "{tokens}"')) as address,
        watched_page(browser) as (page, _),
    ):
        page.goto(f"{address}/decisions")
        page.fill("[name=token]", "secret")
        page.keyboard.press("Enter")
        page.wait_for_url("**/decisions")
        tokens.write_text("", encoding="utf-8")
        data.number += 1
        data.changed.set()
        page.wait_for_selector("#bridge:has-text('You are logged out.')", timeout=60_000)
        page.click("#bridge >> text=Log in")
        page.wait_for_url("**/login?next=%2Fdecisions")


def test_a_page_is_live_again_after_an_answer_that_is_no_stream(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PageRequest, "findings", lambda _page: None)
    data = states()["paused"]
    with _served(tmp_path, data) as address, watched_page(browser) as (page, _):
        page.clock.install()
        page.route("**/api/v1/events", lambda route: route.fulfill(status=502, body="no server"))
        page.goto(address)
        page.wait_for_selector("#bridge:has-text('This page is not live.')")
        page.unroute("**/api/v1/events")
        data.state, data.number = states()["normal"].state, 2
        page.clock.fast_forward(20_000)
        page.wait_for_selector("h1:has-text('too full')")
        assert "not live" not in (page.text_content("#bridge") or "")
