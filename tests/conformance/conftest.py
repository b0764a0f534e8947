"""Runs the tests of this folder on recorded answers of Pulsar's own classes.

A module names its ``COMPONENT``; a test with a ``case`` argument runs once for each line of that component's file.
Nothing is ever skipped.  For order-sensitive cases the module's docstring names the invariant that is checked.

TRIMTAB_VECTORS=<folder> runs the same tests on other vectors of the same format; a component without a file there
is tested on the committed ones, and the summary says so.
"""

import functools
import gzip
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest

_COMMITTED: Final = Path(__file__).parent.parent / "vectors"
_FOLDER: Final = Path(os.environ.get("TRIMTAB_VECTORS") or _COMMITTED)
_PASSED: Final[Counter[str]] = Counter()
_RAN: Final[Counter[str]] = Counter()
_ELSEWHERE: Final[set[str]] = set()
#: Component -> how many of its cases are order-sensitive, and what is checked for those.
_INVARIANTS: Final[dict[str, tuple[int, str]]] = {}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" not in metafunc.fixturenames:
        return
    component: str = metafunc.module.COMPONENT
    cases = _cases(component)
    if not cases:
        raise pytest.UsageError(f"{_FOLDER}: no case of {component} to run")
    sensitive = sum(bool(case.get("order_sensitive")) for case in cases)
    if sensitive:
        _INVARIANTS[component] = sensitive, " ".join(metafunc.module.__doc__.split())
    metafunc.parametrize("case", cases, ids=[case["case"] for case in cases])


@functools.cache
def _cases(component: str) -> list[dict[str, Any]]:
    path = next((path for folder in (_FOLDER, _COMMITTED) if (path := _file(folder, component)) is not None), None)
    if path is None or not any(_FOLDER.glob("*.jsonl*")):
        raise pytest.UsageError(f"{_FOLDER / component}.jsonl[.gz]: not found, so {component} cannot be tested")
    if path.parent != _FOLDER:
        _ELSEWHERE.add(component)
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text(encoding="utf-8")
    # Not splitlines(): a topic name may hold a character that it takes for the end of a line.
    return [json.loads(line) for line in text.split("\n") if line]


def _file(folder: Path, component: str) -> Path | None:
    candidates = (folder / f"{component}.jsonl", folder / f"{component}.jsonl.gz")
    return next((path for path in candidates if path.exists()), None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    report = yield
    callspec = getattr(item, "callspec", None)
    if report.when == "call" and callspec is not None and "case" in callspec.params:
        component = item.module.COMPONENT  # type: ignore[attr-defined]
        _RAN[component] += 1
        _PASSED[component] += report.passed
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not _RAN:
        return
    terminalreporter.section("conformance with Pulsar")
    for component in sorted(_RAN):
        note = f"  (not in {_FOLDER}: the committed ones)" if component in _ELSEWHERE else ""
        terminalreporter.write_line(f"{component}: {_PASSED[component]} of {_RAN[component]} cases agree{note}")
        if component in _INVARIANTS:
            count, invariant = _INVARIANTS[component]
            terminalreporter.write_line(f"    {count} of them order-sensitive: {invariant}")
