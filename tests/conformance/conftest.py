"""Runs the tests of this folder on recorded answers of Pulsar's own classes.

A module names its ``COMPONENT``; a test with a ``case`` argument runs once for each line of that component's file.
A module may define ``in_scope(case)``: cases for which it is false belong to parts that are not built, and the
summary counts them.  Nothing is ever skipped.

TRIMTAB_VECTORS=<folder> runs the same tests on other vectors of the same format.
"""

import functools
import gzip
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest

_FOLDER: Final = Path(os.environ.get("TRIMTAB_VECTORS") or Path(__file__).parent.parent / "vectors")
_PASSED: Final[Counter[str]] = Counter()
_RAN: Final[Counter[str]] = Counter()
_OUT_OF_SCOPE: Final[dict[str, int]] = {}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" not in metafunc.fixturenames:
        return
    component: str = metafunc.module.COMPONENT
    cases = _cases(component)
    in_scope = getattr(metafunc.module, "in_scope", None)
    if in_scope is not None:
        kept = [case for case in cases if in_scope(case)]
        _OUT_OF_SCOPE[component] = len(cases) - len(kept)
        cases = kept
    if not cases:
        raise pytest.UsageError(f"{_FOLDER}: no case of {component} to run")
    metafunc.parametrize("case", cases, ids=[case["case"] for case in cases])


@functools.cache
def _cases(component: str) -> list[dict[str, Any]]:
    plain = _FOLDER / f"{component}.jsonl"
    zipped = _FOLDER / f"{component}.jsonl.gz"
    if plain.exists():
        text = plain.read_text(encoding="utf-8")
    elif zipped.exists():
        text = gzip.decompress(zipped.read_bytes()).decode()
    else:
        raise pytest.UsageError(f"{plain}[.gz]: not found, so {component} cannot be tested")
    # Not splitlines(): a topic name may hold a character that it takes for the end of a line.
    return [json.loads(line) for line in text.split("\n") if line]


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
        others = _OUT_OF_SCOPE.get(component)
        note = f"  ({others} cases of parts that are not built are not counted)" if others else ""
        terminalreporter.write_line(f"{component}: {_PASSED[component]} of {_RAN[component]} cases agree{note}")
