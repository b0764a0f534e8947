"""A real Chromium for tests, driven by Playwright: the one on the PATH."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest
from playwright.sync_api import Browser, sync_playwright

_NAMES: Final = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
#: It runs as root in containers, and is to ask no host for anything of its own.
_WORDS: Final = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser.  The test is skipped where there is none."""
    program = next(filter(None, map(shutil.which, _NAMES)), None)
    if program is None:
        pytest.skip("no Chromium on the PATH: apt-get install chromium-headless-shell (Debian)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(_WORDS))
        yield browser
        browser.close()
