"""The report of `trimtab compare --html` in a real Chromium: no error, no request, no barrier, and quick."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page
from typer.testing import CliRunner

from controller.cli.app import app
from tests.chromium import chromium

pytestmark = [pytest.mark.integration, pytest.mark.extended]

#: Milliseconds that a key may take until all charts show it; a slow machine gets ten times the 100 of a quick one.
_MOST_MS: Final = 1_000
RECORDINGS: Final = Path(__file__).parents[1] / "data" / "pulsar_recordings"
_HOSTILE: Final = "</script><img src=x onerror=alert(1)> /*DATA*/ \u2028"
_SCENARIO: Final = f"""
title = "{_HOSTILE}"
text = "Two brokers restart in turn."
intervals = 60
[[brokers]]
count = 4
[[namespaces]]
name = "acme/orders"
bundles = 32
topics = 320
[[restarts]]
at = 20
brokers = [2, 3]
down = 4
every = 12
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of two scenarios and a recording with three strategies."""
    folder = tmp_path_factory.mktemp("report")
    (folder / "restarts.toml").write_text(_SCENARIO, encoding="utf-8")
    (folder / "calm.toml").write_text(_SCENARIO.partition("[[restarts]]")[0], encoding="utf-8")
    file = folder / "report.html"
    words = [str(folder / "restarts.toml"), str(folder / "calm.toml"), str(RECORDINGS / "skewed"), "--html", str(file)]
    done = CliRunner().invoke(
        app, ["compare", *words, "--seeds", "2", "--strategies", "ThresholdShedder,UniformLoadShedder,AvgShedder", "-q"]
    )
    assert done.exit_code == 0, done.output
    return file


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture
def opened(browser: Browser, report: Path, request: pytest.FixtureRequest) -> Iterator[tuple[Page, list[str]]]:
    """The page, and whatever it said on the console, threw, or asked for."""
    width, is_dark = getattr(request, "param", (1280, False))
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme="dark" if is_dark else "light")
    heard: list[str] = []
    page.on("console", lambda message: heard.append(message.text))
    page.on("pageerror", lambda error: heard.append(str(error)))
    page.on("dialog", lambda dialog: heard.append(dialog.message))
    page.on("request", lambda asked: heard.append(asked.url))
    page.goto(report.as_uri())
    yield page, heard
    page.close()


def is_drawn(page: Page) -> bool:
    """Whether every canvas has pixels that are not empty."""
    return bool(
        page.evaluate(
            "[...document.querySelectorAll('canvas')].every((c) => c.getContext('2d')"
            ".getImageData(0, 0, c.width, c.height).data.some((value) => value !== 0))"
        )
    )


@pytest.mark.parametrize("opened", [(320, True), (1280, False), (3840, False)], indirect=True)
def test_a_page_of_every_width_is_whole_without_error_request_or_barrier(
    opened: tuple[Page, list[str]], report: Path
) -> None:
    page, heard = opened
    assert heard == [report.as_uri()]
    assert is_drawn(page)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), "it scrolls sideways"
    found: Any = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    assert _HOSTILE.split(" /")[0] in (page.text_content("#about") or ""), "a title is text, whatever is in it"


def test_keys_move_the_cursor_of_all_charts_and_a_move_says_why(opened: tuple[Page, list[str]]) -> None:
    page, heard = opened
    page.focus("#cards")
    page.keyboard.press("End")
    assert page.get_attribute("#cards", "aria-valuenow") == "59"
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert (page.text_content("#at-time") or "").startswith("interval 1, day 1, 06:01")
    page.select_option("#strategy", label="AvgShedder")
    page.click("button.move >> nth=0")
    why = page.text_content("#why") or ""
    assert "Because: " in why
    assert "Decided in interval" in why
    assert page.evaluate("document.activeElement.className") == "move"
    assert len(heard) == 1


def test_another_scenario_is_shown_on_demand(opened: tuple[Page, list[str]]) -> None:
    page, heard = opened
    page.select_option("#scenario", label="calm")
    assert is_drawn(page)
    assert page.locator(".card").count() == 3
    assert len(heard) == 1


def test_a_recording_is_shown_with_its_own_times_and_what_happened_first(opened: tuple[Page, list[str]]) -> None:
    page, heard = opened
    page.select_option("#scenario", label="skewed")
    assert is_drawn(page)
    assert page.locator(".card").count() == 4
    assert page.text_content("#runs-title") == "Replays"
    assert "One run each" in (page.text_content("#figures-note") or "")
    page.focus("#cards")
    page.keyboard.press("Home")
    assert re.match(r"interval 0, 20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", page.text_content("#at-time") or "")
    page.select_option("#strategy", label="what happened")
    page.click("button.move >> nth=0")
    assert "Because: " in (page.text_content("#why") or "")
    assert len(heard) == 1


def test_a_key_is_shown_within_a_moment(opened: tuple[Page, list[str]]) -> None:
    page, _ = opened
    took = page.evaluate("(() => { const since = performance.now(); moveTo(30); return performance.now() - since })()")
    assert took < _MOST_MS
