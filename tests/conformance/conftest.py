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
from pathlib import Path
from typing import Any, Final

import pytest

from tests.conformance.summary import about

_COMMITTED: Final = Path(__file__).parent.parent / "vectors"
_FOLDER: Final = Path(os.environ.get("TRIMTAB_VECTORS") or _COMMITTED)
#: Components that the folder does not have.
_ELSEWHERE: Final[set[str]] = set()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" not in metafunc.fixturenames:
        return
    component: str = metafunc.module.COMPONENT
    cases = _cases(component)
    if not cases:
        raise pytest.UsageError(f"{_FOLDER}: no case of {component} to run")
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


def pytest_itemcollected(item: pytest.Item) -> None:
    """Each test says what the summary at the end counts it for."""
    callspec = getattr(item, "callspec", None)
    if callspec is None or "case" not in callspec.params:
        return
    module = item.module  # type: ignore[attr-defined]
    sensitive = callspec.params["case"].get("order_sensitive")
    invariant = " ".join(module.__doc__.split()) if sensitive else ""
    elsewhere = str(_FOLDER) if module.COMPONENT in _ELSEWHERE else ""
    item.user_properties.append(about(module.COMPONENT, invariant=invariant, elsewhere=elsewhere))
