"""Runs the tests of this folder on recorded answers of Pulsar's own classes.

A module names its ``COMPONENT``; a test with a ``case`` argument goes through all lines of that component's file, and
names those that fail.  Nothing is ever skipped.  For order-sensitive cases the module's docstring names the invariant
that is checked.

TRIMTAB_VECTORS=<folder> runs the same tests on other vectors of the same format; a component without a file there
is tested on the committed ones, and the summary says so.  TRIMTAB_CASE=<name> runs one case alone.
"""

import gzip
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from tests.conformance.summary import about

_COMMITTED: Final = Path(__file__).parent.parent / "vectors"
_FOLDER: Final = Path(os.environ.get("TRIMTAB_VECTORS") or _COMMITTED)
_ONLY: Final = os.environ.get("TRIMTAB_CASE")
#: Of many cases that fail the first so many are shown.
_SHOWN: Final = 5


@pytest.fixture
def case() -> None:
    """A case of the module's component; see pytest_pyfunc_call."""


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Call a test with each of its cases: as tests of their own they would take more time around them than inside."""
    if "case" not in pyfuncitem.fixturenames:
        return None
    component: str = pyfuncitem.module.COMPONENT
    path = _file(component)
    cases = [case for case in _read(path) if _ONLY in (None, case["case"])]
    if not cases:
        raise pytest.UsageError(f"{path}: no case of {component} to run")
    failures: list[Exception] = []
    for case in cases:
        try:
            pyfuncitem.obj(case=case)
        except Exception as error:
            error.add_note(f"in case {case['case']} (TRIMTAB_CASE={case['case']} runs it alone)")
            failures.append(error)
    _tell(pyfuncitem, cases, len(failures), path)
    if failures:
        raise ExceptionGroup(f"{len(failures)} of {len(cases)} cases of {component} fail", failures[:_SHOWN])
    return True


def _file(component: str) -> Path:
    """The vectors of *component*; where the folder has none, the committed ones."""
    candidates = [folder / f"{component}.jsonl{end}" for folder in (_FOLDER, _COMMITTED) for end in ("", ".gz")]
    path = next((path for path in candidates if path.exists()), None)
    if path is None or not any(_FOLDER.glob("*.jsonl*")):
        raise pytest.UsageError(f"{_FOLDER / component}.jsonl[.gz]: not found, so {component} cannot be tested")
    return path


def _read(path: Path) -> list[dict[str, Any]]:
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text(encoding="utf-8")
    # Not splitlines(): a topic name may hold a character that it takes for the end of a line.
    return [json.loads(line) for line in text.split("\n") if line]


def _tell(test: pytest.Function, cases: Sequence[dict[str, Any]], failed: int, path: Path) -> None:
    """The test says what the summary at the end counts it for."""
    sensitive = sum(bool(case.get("order_sensitive")) for case in cases)
    told = about(
        test.module.COMPONENT,
        cases=len(cases),
        agree=len(cases) - failed,
        sensitive=sensitive,
        invariant=" ".join(test.module.__doc__.split()) if sensitive else "",
        elsewhere="" if path.parent == _FOLDER else str(_FOLDER),
    )
    test.user_properties.append(told)
