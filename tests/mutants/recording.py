"""Records which functions of the core each test runs."""

import gc
import sys
import threading
import time
from collections.abc import Callable, Generator, Sequence
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final, TypedDict

import pytest

_CACHED: Final = type(lru_cache(lambda: None))


class Recorded(TypedDict):
    """Of a test: how long it takes, how long it is busy, and the functions of the core that it runs."""

    seconds: float
    busy: float
    runs: list[str]


class Recorder:
    """A pytest plugin, so that what a fixture runs counts for all tests that share it."""

    def __init__(self) -> None:
        self._seen: set[CodeType] = set()
        #: Where a fixture is shared, and its name -> what it ran.
        self._shared: dict[tuple[str, str], set[CodeType]] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
    ) -> Generator[None, object, object]:
        """Note what a fixture of a module, or of all, runs."""
        before = {*self._seen}
        self._seen.clear()
        try:
            return (yield)
        finally:
            if fixturedef.scope != "function":
                shared = self._shared.setdefault((request.node.nodeid, fixturedef.argname), set())
                shared |= self._seen
            self._seen |= before

    def record(self, items: Sequence[pytest.Item], run: Callable[[pytest.Item, pytest.Item | None], None]) -> Any:
        """Run *items*, and return what each did: its name -> Recorded."""
        found, ran = dict[str, Recorded](), dict[str, tuple[CodeType, ...]]()
        known = caches(Path.cwd())
        threading.settrace(self._called)
        for item, after in zip(items, [*items[1:], None], strict=True):
            print(item.nodeid, flush=True)  # noqa: T201
            for each in known:
                each.cache_clear()  # else it would not run what others have run before
            self._seen.clear()
            sys.settrace(self._called)
            began, busy = time.perf_counter(), time.process_time()
            run(item, after)
            seconds, busy = time.perf_counter() - began, time.process_time() - busy
            sys.settrace(None)
            # A copy at once: threads of the test may still run, and add to it.
            ran[item.nodeid] = tuple(self._seen)
            found[item.nodeid] = {"seconds": seconds, "busy": busy, "runs": []}
        for item in items:
            codes = {*ran[item.nodeid], *self._by_fixtures(item)}
            found[item.nodeid]["runs"] = _functions(codes)
        return found

    def _called(self, frame: FrameType, _event: str, _arg: object) -> None:
        self._seen.add(frame.f_code)

    def _by_fixtures(self, item: pytest.Item) -> set[CodeType]:
        around = {node.nodeid for node in item.listchain()}
        names: Sequence[str] = getattr(item, "fixturenames", ())
        found = (codes for (node, name), codes in self._shared.items() if node in around and name in names)
        return set[CodeType]().union(*found)


def caches(folder: Path) -> list[Any]:
    """The functions of files below *folder* that keep what they answered, as lru_cache does."""
    gc.unfreeze()  # what is frozen is not among the objects
    made = [each for each in gc.get_objects() if isinstance(each, _CACHED)]
    return [each for each in made if (code := _code(each)) is not None and code.co_filename.startswith(f"{folder}/")]


def function_of(file: str, name: str) -> str:
    """The function as a record names it; one inside a function is part of that."""
    return f"{file}:{name.partition('.<locals>')[0]}"


def _code(cached: Any) -> CodeType | None:
    return getattr(cached.__wrapped__, "__code__", None)


def _functions(codes: set[CodeType]) -> list[str]:
    here = f"{Path.cwd()}/"
    inside = [code for code in codes if code.co_filename.startswith(f"{here}controller/")]
    return sorted({function_of(code.co_filename.removeprefix(here), code.co_qualname) for code in inside})
