"""A process asks for as many open files as it needs, and is content with fewer."""

import resource
from collections.abc import Iterator

import pytest

from controller.adapters.process.open_files import open_at_most

FILES = resource.RLIMIT_NOFILE


@pytest.fixture(autouse=True)
def hard() -> Iterator[int]:
    """What the system lets this process ask for; it has asked for 300."""
    before = resource.getrlimit(FILES)
    resource.setrlimit(FILES, (300, before[1]))
    yield before[1]
    resource.setrlimit(FILES, before)


def test_more_are_asked_for_where_there_are_fewer(hard: int) -> None:
    assert open_at_most(301) == 301
    assert resource.getrlimit(FILES) == (301, hard)


def test_what_is_allowed_already_stays(hard: int) -> None:
    assert open_at_most(300) == 300
    assert open_at_most(200) == 200
    assert resource.getrlimit(FILES) == (300, hard)


def test_nobody_gets_more_than_the_hard_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (300, 310))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: asked.append(limits))
    assert open_at_most(1000) == 310
    assert asked == [(310, 310)]


def test_a_system_that_allows_fewer_than_it_says_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ValueError("current limit exceeds maximum limit")

    monkeypatch.setattr(resource, "getrlimit", lambda _: (300, resource.RLIM_INFINITY))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    assert open_at_most(1000) == 300


def test_no_limit_at_all_is_no_reason_to_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    monkeypatch.setattr(resource, "setrlimit", lambda *_: pytest.fail("it asks"))
    assert open_at_most(1000) == 1000
