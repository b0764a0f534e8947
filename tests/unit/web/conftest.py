"""What tests of the page share."""

import pytest

from controller.web.pages.page import PageRequest


@pytest.fixture(autouse=True)
def _no_doctor(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page would start the doctor, a process that outlives the test."""
    monkeypatch.setattr(PageRequest, "findings", lambda _page: None)
