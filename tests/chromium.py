"""A real Chromium for tests, driven by Playwright: the one on the PATH."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

_NAMES: Final = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
#: It runs as root in containers, and is to ask no host for anything of its own.
_WORDS: Final = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")

#: What axe checks.
AXE_TAGS: Final = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]}


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser.  The test is skipped where there is none, or where Playwright's driver does not start."""
    program = next(filter(None, map(shutil.which, _NAMES)), None)
    if program is None:
        pytest.skip("no Chromium on the PATH: apt-get install chromium-headless-shell (Debian)")
    # Playwright itself would only say that the connection to its driver was closed.
    version = [sys.executable, "-m", "playwright", "--version"]
    driver = subprocess.run(version, capture_output=True, text=True, check=False)
    if driver.returncode:
        why = driver.stderr.strip()
        pytest.skip(f"Playwright's driver does not start (apt-get install libatomic1 on Debian): {why}")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(_WORDS))
        yield browser
        browser.close()


@contextmanager
def watched_page(
    browser: Browser, theme: str = "light", width: int = 1280, *, script: bool = True, zone: str = "Asia/Kolkata"
) -> Iterator[tuple[Page, list[str]]]:
    """A page, and whatever it said on the console or threw, and where its requests went."""
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if theme == "dark" else "light",
        java_script_enabled=script,
        timezone_id=zone,
    )
    page, trouble = context.new_page(), list[str]()
    page.on("console", lambda message: trouble.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: trouble.append(f"error: {error}"))
    page.on("dialog", lambda dialog: trouble.append(f"dialog: {dialog.message}"))
    page.on(
        "request",
        lambda request: (
            None if request.url.startswith("http://127.0.0.1:") else trouble.append(f"elsewhere: {request.url}")
        ),
    )
    yield page, trouble
    context.close()
