"""Which rows of docs/faults.md are of older code: what their processes consist of has changed since their commit."""

import subprocess
from collections.abc import Callable, Sequence, Set
from functools import cache
from pathlib import Path
from typing import Final

import grimp

from tests.faults.report import Row

_ROOT: Final = Path(__file__).parents[2]
_RUN, _EXECUTE, _COLLECT = "controller.cli.run", "controller.cli.execute", "controller.log.ticks"
#: What a fault's name begins with, and the modules where the processes that it disturbs begin; the first that fits.
_BEGIN: Final = (
    ("collector-", (_COLLECT, "controller.log.factory")),
    ("executor-", (_EXECUTE,)),
    ("", (_RUN, _EXECUTE)),
)
#: Beside the modules of a controller.
_JAVA: Final = "streaming/jvm"


def product_commit() -> str:
    """The last commit that changed the product."""
    return _git("log", "-1", "--format=%h", "--abbrev=10", "--", "controller", "streaming").strip()


@cache
def changed_since(commit: str) -> Set[str]:
    """The files of the product that have changed; CalledProcessError where there is no such commit."""
    return set(_git("diff", "--name-only", commit, "--", "controller", "streaming").splitlines())


def stale(rows: Sequence[Row], changed: Callable[[str], Set[str]] = changed_since) -> list[str]:
    """A line for each of *rows* that must be measured again; *changed*: the files since a commit."""
    lines = []
    for row in rows:
        try:
            files = sorted(changed(row.commit) & _files(row.fault))
        except subprocess.CalledProcessError:
            lines.append(f"{row.fault}: commit {row.commit} is not in this repository")
            continue
        if files:
            more = f" and {len(files) - 1} more" if len(files) > 1 else ""
            lines.append(f"{row.fault}: since {row.commit} changed {files[0]}{more}")
    return lines


def _files(fault: str) -> Set[str]:
    """The files that the processes disturbed by *fault* run on."""
    begin = next(modules for prefix, modules in _BEGIN if fault.startswith(prefix))
    graph = _graph()
    modules = {each for first in begin for each in (first, *graph.find_upstream_modules(first))}
    paths = {name.replace(".", "/") for name in modules}
    java = {str(path.relative_to(_ROOT)) for path in (_ROOT / _JAVA).glob("*.java")} if _RUN in begin else set[str]()
    return {f"{path}.py" for path in paths} | {f"{path}/__init__.py" for path in paths} | java


@cache
def _graph() -> grimp.ImportGraph:
    return grimp.build_graph("controller", "streaming")


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=_ROOT, check=True, capture_output=True, text=True).stdout
