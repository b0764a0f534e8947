"""Runs the tests on mutants, from within a pytest session that has collected all of plain pytest.

A mutant inside a function is tried in a fork of this process: the function gets the mutant's code, and the tests that
run the function run again, those of its folder first.  A mutant that they let pass, or that is not inside a function,
is written into a copy of the tree, where plain pytest runs from the start.
"""

import ast
import contextlib
import gc
import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from multiprocessing import get_context
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis.strategies import integers

from tests.mutants.forks import in_forks
from tests.mutants.operators import Mutant

CAUGHT, SURVIVED, HUNG = "caught", "survived", "caught, by the time limit"
#: The worker that had it ended.
NOT_TRIED = "not tried"
OPTIONS = ("-q", "-x", "-n", "0", "--disable-warnings", "-p", "no:cacheprovider", "--hypothesis-profile=repeatable")
#: Of the files whose tests run a mutant's file, so many run before all others.
_FIRST_FILES = 6
#: Tests that keep a processor busy for longer do not run in a fork.
_QUICK_SECONDS = 2.0
#: Types of constants that may be made of others.
_PLAIN = (int, float, str, slice)
_CONTEXT = get_context("fork")


class Trial:
    """A pytest plugin: instead of the tests, all *mutants* are run, *jobs* at a time."""

    def __init__(
        self,
        mutants: Sequence[Mutant],
        *,
        jobs: int,
        quick: bool,
        record: Path,
        told: Callable[[Mutant, str, int], None],
    ) -> None:
        self._mutants, self._jobs, self._quick, self._told = mutants, jobs, quick, told
        self._record = record
        self._failed: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Notice a failure."""
        if report.failed:
            self._failed.append(report.nodeid)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run all tests once, then the mutants."""
        self._items = session.items
        self._functions = _live_functions()
        recorded = json.loads(self._record.read_text())["tests"] if self._record.exists() else {}
        new = [item for item in self._items if item.nodeid not in recorded]
        if new:
            print(f"{len(new)} tests run once without a mutant ...", flush=True)  # noqa: T201
            _forked(lambda: self._write_record(new), None, log="record.log")
        self._read_record()
        # Each fork would do it anew: hypothesis looks for constants in all modules.  Frozen memory stays shared.
        settings(database=None, max_examples=1)(given(integers())(lambda _: None))()
        gc.freeze()
        in_forks(range(len(self._mutants)), self._jobs, self._tried, self._tell, self._tell_of_end)
        return True

    def _tell(self, index: int, result: tuple[str, int]) -> None:
        self._told(self._mutants[index], *result)

    def _tell_of_end(self, index: int, exit_code: int) -> None:
        print(f"a worker ended with exit code {exit_code}; another one goes on after its mutant", flush=True)  # noqa: T201
        self._told(self._mutants[index], NOT_TRIED, 0)

    # ---- which tests run which functions ----

    def _write_record(self, items: Sequence[pytest.Item]) -> None:
        """Of each test: how long it takes, how long it is busy, and which functions of the core it runs."""
        seen: set[CodeType] = set()

        def called(frame: FrameType, _event: str, _arg: object) -> None:
            seen.add(frame.f_code)

        known = json.loads(self._record.read_text()) if self._record.exists() else {"tests": {}, "failed": []}
        recorded = known["tests"]
        core = f"{Path.cwd()}/"
        threading.settrace(called)
        for item, after in zip(items, [*items[1:], None], strict=True):
            print(item.nodeid, flush=True)  # noqa: T201
            seen.clear()
            sys.settrace(called)
            began, busy = time.perf_counter(), time.process_time()
            self._run(item, after)
            seconds, busy = time.perf_counter() - began, time.process_time() - busy
            sys.settrace(None)
            # A copy at once: threads of the test may still run, and add to it.
            inside = [code for code in tuple(seen) if code.co_filename.startswith(f"{core}controller/")]
            runs = sorted({_function(code.co_filename.removeprefix(core), code.co_qualname) for code in inside})
            recorded[item.nodeid] = {"seconds": seconds, "busy": busy, "runs": runs}
        self._record.write_text(json.dumps({"tests": recorded, "failed": [*known["failed"], *self._failed]}))

    def _read_record(self) -> None:
        """Set the seconds that each test takes and is busy, and the tests that run each function."""
        if not self._record.exists():
            raise pytest.UsageError(f"the tests ended this process: {Path('record.log').read_text()[-2000:]}")
        recorded = json.loads(self._record.read_text())
        self._left_out = sorted(set(recorded["failed"]))
        for name in self._left_out:
            print(f"fails without a mutant, and is left out: {name}", flush=True)  # noqa: T201
        self._seconds: list[float] = []
        self._busy: list[float] = []
        self._runs: dict[str, list[int]] = {}
        for i, item in enumerate(self._items):
            if item.nodeid in self._left_out:
                self._seconds.append(0.0)
                self._busy.append(0.0)
                continue
            known = recorded["tests"][item.nodeid]
            self._seconds.append(known["seconds"])
            self._busy.append(known["busy"])  # however much else the machine does meanwhile
            for function in known["runs"]:
                self._runs.setdefault(function, []).append(i)

    def _tests_of(self, mutant: Mutant) -> list[int]:
        """The tests that run the mutant's function, or any of its file: those of its folder first, quick ones first."""
        wanted = _function(str(mutant.path), mutant.function)
        tests = {
            i
            for name, those in self._runs.items()
            if name == wanted or (not mutant.function and name.startswith(wanted))
            for i in those
        }
        near = [mutant.path.stem, *mutant.path.parent.parts[1:]]
        return sorted(tests, key=lambda i: (not any(n in self._items[i].nodeid for n in near), self._seconds[i]))

    # ---- one mutant ----

    def _tried(self, index: int) -> tuple[str, int]:
        """What came of it, and how many tests run its function, or any of its file."""
        mutant = self._mutants[index]
        tests = self._tests_of(mutant)
        verdict = SURVIVED
        in_place = bool(tests and (mutant.function or mutant.constants()))
        if in_place:
            quick = [i for i in tests if self._busy[i] < _QUICK_SECONDS]
            verdict = _forked(lambda: self._run_with(mutant, quick), None)
        if verdict == SURVIVED and not (self._quick and (in_place or mutant.function)):
            files = [*dict.fromkeys(str(self._items[i].path.relative_to(Path.cwd())) for i in tests)]
            # Who reads an option, for example, runs no function of its file; some files have none.
            own = Path("tests/unit", *mutant.path.parts[1:2])
            near = [*files, *([str(own)] if own.is_dir() else [])] or ["tests"]
            verdict = self._in_a_copy(mutant, files[:_FIRST_FILES] or near)
            if verdict == SURVIVED:
                verdict = self._in_a_copy(mutant, near if self._quick else ["tests"])
        return verdict, len(tests)

    def _run_with(self, mutant: Mutant, tests: Sequence[int]) -> None:
        mutated = compile(mutant.compiled(), str(mutant.path.absolute()), "exec", dont_inherit=True)
        for code in _codes(mutated):
            for function in self._functions.get((code.co_filename, code.co_qualname, code.co_firstlineno), ()):
                function.__code__ = code
        if not mutant.function:
            _replace(mutant, mutated)
        for i, after in zip(tests, [*tests[1:], None], strict=True):
            signal.alarm(int(30 + 10 * self._seconds[i]))  # ends a fork in which a test does not come to its end
            self._run(self._items[i], None if after is None else self._items[after])
            if self._failed:
                os._exit(1)

    def _run(self, item: pytest.Item, after: pytest.Item | None) -> None:
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)

    def _in_a_copy(self, mutant: Mutant, files: Sequence[str]) -> str:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            copy = Path(folder) / "copy"
            # A test may be writing there.
            shutil.copytree(Path.cwd(), copy, ignore=shutil.ignore_patterns(".jars"))
            (copy / mutant.path).write_text(ast.unparse(mutant.compiled()))
            mutant.undone()
            left_out = [option for name in self._left_out for option in ("--deselect", name)]
            command = [sys.executable, "-m", "pytest", *OPTIONS, *left_out, *files]
            limit = 120 + 4 * sum(self._seconds)
            return _forked(lambda: os.execve(sys.executable, command, _environment(copy)), limit, copy)


def _replace(mutant: Mutant, mutated: CodeType) -> None:
    """Give the module's constants that the mutant changes, and plain ones made of them, their new value everywhere."""
    name = ".".join(mutant.path.with_suffix("").parts)
    changed: dict[str, Any] = {"__name__": name}
    exec(mutated, changed)
    now = dict(vars(sys.modules[name]))
    for constant, new in changed.items():
        old = now.get(constant)
        if constant not in mutant.constants() and (type(old) not in _PLAIN or old == new):
            continue
        for module in list(sys.modules.values()):
            if vars(module).get(constant) is old:
                setattr(module, constant, new)


def _environment(copy: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(copy)}


def _forked(run: Callable[[], object], limit: float | None, folder: Path | None = None, log: str = os.devnull) -> str:
    """Run it in a fork with a temporary folder of its own, for *limit* seconds."""
    # What a killed process was writing may appear while the folder is removed.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:

        def alone() -> None:
            os.setsid()
            os.environ["PYTEST_DEBUG_TEMPROOT"] = os.environ["TMPDIR"] = tempfile.tempdir = temporary
            os.chdir(folder or Path.cwd())
            for stream in (1, 2):
                os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream)
            run()
            os._exit(0)

        process = _CONTEXT.Process(target=alone)
        process.start()
        process.join(limit)
        hung = process.exitcode in (None, -signal.SIGALRM)
        verdict = HUNG if hung else SURVIVED if process.exitcode == 0 else CAUGHT
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # type: ignore[arg-type]
        process.join()
        return verdict


def _live_functions() -> dict[tuple[str, str, int], list[FunctionType]]:
    """File, qualified name and first line -> the functions made there."""
    found: dict[tuple[str, str, int], list[FunctionType]] = {}
    gc.unfreeze()  # what is frozen is not among the objects
    for function in gc.get_objects():
        if isinstance(function, FunctionType):
            code = function.__code__
            found.setdefault((code.co_filename, code.co_qualname, code.co_firstlineno), []).append(function)
    return found


def _function(file: str, name: str) -> str:
    """The function as a record names it; one inside a function is part of that."""
    return f"{file}:{name.partition('.<locals>')[0]}"


def _codes(code: CodeType) -> Iterable[CodeType]:
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield inner
            yield from _codes(inner)
