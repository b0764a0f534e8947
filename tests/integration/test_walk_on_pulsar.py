"""The questions of docs/page.md, answered in a browser on a real Pulsar of three brokers that trimtab balances."""

import os
import re
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, Page

from controller.adapters.network.waiting import wait_for
from controller.adapters.process.process_tree import descendants
from controller.lab.pulsar_demo_traffic import NAMESPACE
from tests.chromium import chromium, watched_page

pytestmark = [pytest.mark.integration, pytest.mark.extended]

#: Enough that something is moved, and measured.
_INTERVALS: Final = 8
#: The whole demo takes two minutes; a busy machine several times that.
_PATIENCE_SECONDS: Final = 900.0
_PATIENCE_MS: Final = 300_000


@dataclass(frozen=True, slots=True)
class _Demo:
    """`trimtab demo --pulsar --page`, whose intervals were shown."""

    process: "subprocess.Popen[bytes]"
    address: str


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Demo]:
    folder = tmp_path_factory.mktemp("walk")
    words = ["demo", "--pulsar", "--page", "--intervals", str(_INTERVALS), "--folder", str(folder / "demo")]
    output = folder / "output"
    with output.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "controller.cli", *words], stdout=out, stderr=out, start_new_session=True
        )

    def address() -> str | None:
        assert process.poll() is None, output.read_text()
        stays = re.search(r"The page stays at (\S+)/ until", output.read_text())
        return stays[1] if stays else None

    try:
        wait_for(lambda: address() is not None, _PATIENCE_SECONDS, every=0.5)
        yield _Demo(process, address() or "")
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture
def page(browser: Browser, demo: _Demo) -> Iterator[Page]:
    """A page of the demo, which ends without an error on its console."""
    with watched_page(browser) as (opened, trouble):
        opened.set_default_timeout(_PATIENCE_MS)
        opened.goto(demo.address)
        yield opened
        assert trouble == []


def _job(page: Page, button: str) -> None:
    page.click(f"text={button}")
    page.wait_for_url("**job=**")
    assert "could not" not in (page.text_content("h1") or ""), page.text_content(".head")


def test_what_was_moved(page: Page) -> None:
    page.click(".rail >> text=Decisions")
    page.click("text=With commands")
    page.locator(".spans a").first.click()
    assert re.match(r"\d+ matching decisions? with commands", page.text_content("h1") or "")
    page.locator("main a.what").last.click()
    assert "move" in (page.text_content("h1") or "")
    moves = page.locator(".move")
    assert moves.count() > 0
    assert page.locator(".move .chip:has-text('done')").count() > 0
    assert NAMESPACE in (moves.first.text_content() or "")


def test_why_a_bundle_was_not_moved(page: Page) -> None:
    page.click(".rail >> text=Find")
    page.fill("main input[type=search]", NAMESPACE)
    page.keyboard.press("Enter")
    page.locator("main a[href*='/bundles/']").last.click()
    page.click("text=Why is it not moved?")
    answer = page.locator("#why-not .note").first
    answer.wait_for()
    assert page.locator("h2:has-text('What was asked')").count() == 1
    assert page.locator("h2:has-text('Brokers as its destination')").count() == 1
    # Nothing of the answers is cut off.
    for panel in page.locator("section.panel").all():
        assert panel.evaluate("each => each.scrollWidth <= each.clientWidth + 1"), panel.text_content()


def test_which_topic_makes_a_bundle_hot(page: Page, demo: _Demo) -> None:
    page.goto(f"{demo.address}/find?text={NAMESPACE}/0x")
    page.locator("main a[href*='/bundles/']").first.click()
    topics = page.locator("section:has(h2:has-text('Hot topics')) code")
    topics.first.wait_for()
    name = topics.first.text_content() or ""
    assert name.startswith(f"persistent://{NAMESPACE}/")
    page.goto(f"{demo.address}/map?rows=keyspace&namespace={NAMESPACE}&span=10")
    page.wait_for_selector("[data-map][data-ready]")
    page.focus(".field")
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector(f".tip:has-text('hottest topic: persistent://{NAMESPACE}/')")


def test_what_another_strategy_would_have_done(page: Page) -> None:
    page.click(".rail >> text=What if")
    page.locator(".spans a").first.click()
    page.select_option("[name=strategy]", "ThresholdShedder")
    _job(page, "Work it out")
    heads = page.locator("section:has-text('Side by side') th").all_text_contents()
    assert [each.strip() for each in heads] == ["Figure", "what happened", "ThresholdShedder"]


def test_the_incident_is_a_file(page: Page, tmp_path: Path) -> None:
    page.click(".rail >> text=What if")
    _job(page, "Make an incident file")
    with page.expect_download() as download:
        page.click("text=Download")
    download.value.save_as(tmp_path / "incident.tar")
    with tarfile.open(tmp_path / "incident.tar") as file:
        assert "incident.json" in file.getnames()


def test_ctrl_c_leaves_no_process(demo: _Demo) -> None:
    left = [demo.process.pid, *descendants(demo.process.pid)]
    assert len(left) > 5
    os.kill(demo.process.pid, signal.SIGINT)
    assert demo.process.wait(60) == 0
    deadline = time.monotonic() + 30
    while left := [pid for pid in left if _runs(pid)]:
        assert time.monotonic() < deadline, left
        time.sleep(0.1)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
