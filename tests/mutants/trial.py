"""Runs the tests on mutants, from within a pytest session that has collected all of plain pytest.

A mutant inside a function is tried in a fork of this process: the function gets the mutant's code, and the tests that
run the function run again, those of its folder first.  So is one of a module's constant.  A mutant that they let pass,
or that cannot be tried so, is written into a copy of the tree, where pytest runs from the start.
"""

import ast
import gc
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis.strategies import integers

from tests.mutants.alone import SURVIVED, Limits, alone
from tests.mutants.forks import in_forks
from tests.mutants.operators import Mutant, constants
from tests.mutants.recording import Recorder, caches, function_of

#: The worker that had it ended.
NOT_TRIED = "not tried"
OPTIONS = ("-q", "-x", "-n", "0", "--disable-warnings", "-p", "no:cacheprovider", "--hypothesis-profile=repeatable")
#: Of the files whose tests run a mutant's file, so many run in a copy before all others.
_FIRST_FILES = 6
#: Tests that keep a processor busy for longer do not run in a fork.
_QUICK_SECONDS = 2.0
#: What a test names to replace it, or to look at it.
_NAMED = re.compile(r"\w+(?:\.\w+)+(?::\w+)?")
#: A try may be busy for so many seconds, and for so many times as long as without the mutant; see _limits.
_BUSY_SECONDS, _BUSY_TIMES = 20.0, 5.0
#: On a machine that is busy with other things it may take so many seconds, and so many times its limit of being busy.
_PATIENT_SECONDS, _PATIENT_TIMES = 300.0, 4.0


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
        self._functions, self._caches = _live_functions(), caches(Path.cwd())
        recorded = json.loads(self._record.read_text())["tests"] if self._record.exists() else {}
        new = [item for item in self._items if item.nodeid not in recorded]
        if new:
            print(f"{len(new)} tests run once without a mutant ...", flush=True)  # noqa: T201
            alone(lambda: self._write_record(session, new), log="record.log")
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

    def _write_record(self, session: pytest.Session, items: Sequence[pytest.Item]) -> None:
        """Run *items*, and add to the record what each of them runs."""
        known = json.loads(self._record.read_text()) if self._record.exists() else {"tests": {}, "failed": []}
        recorder = Recorder()
        session.config.pluginmanager.register(recorder)
        tests = known["tests"] | recorder.record(items, self._run)
        self._record.write_text(json.dumps({"tests": tests, "failed": [*known["failed"], *self._failed]}))

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
        wanted = function_of(str(mutant.path), mutant.function)
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
        mutated = compile(mutant.compiled(), str(mutant.path.absolute()), "exec", dont_inherit=True)
        mutant.undone()
        in_place = bool(tests and (mutant.function or mutant.is_constant()) and self._can_be_swapped(mutated))
        if in_place:
            quick = [i for i in tests if self._busy[i] < _QUICK_SECONDS]
            verdict = alone(lambda: self._run_with(mutant, mutated, quick))
        # A constant is not replaced in what was made of it when its module was imported, as defaults.
        if verdict == SURVIVED and not (self._quick and in_place and mutant.function):
            verdict = self._in_copies(mutant, tests)
        return verdict, len(tests)

    def _in_copies(self, mutant: Mutant, tests: Sequence[int]) -> str:
        files = [*dict.fromkeys(self._file(self._items[i]) for i in tests)][:_FIRST_FILES]
        # Who reads an option, for example, runs no function of its file; some files have none.
        own = Path("tests/unit", *mutant.path.parts[1:2])
        importing = self._importing.get(".".join(mutant.path.with_suffix("").parts), ())
        near = [*dict.fromkeys([*importing, *files, *([str(own)] if own.is_dir() else [])])]
        verdict = self._in_a_copy(mutant, near) if near else SURVIVED
        whole = verdict == SURVIVED and not (self._quick and near)
        return self._in_a_copy(mutant, ["tests"]) if whole else verdict

    def _file(self, item: pytest.Item) -> str:
        return str(item.path.relative_to(Path.cwd()))

    @cached_property
    def _importing(self) -> dict[str, list[str]]:
        """Module -> the test files that import it."""
        found: dict[str, list[str]] = {}
        for file in dict.fromkeys(self._file(item) for item in self._items):
            for name in {*imported(ast.parse(Path(file).read_text()))}:
                found.setdefault(name, []).append(file)
        return found

    def _swaps(self, mutated: CodeType) -> list[tuple[FunctionType, CodeType]]:
        """Each function of the module that is there, and its code in *mutated*."""
        known = self._functions
        return [
            (function, code)
            for code in _codes(mutated)
            for function in known.get((code.co_filename, code.co_qualname, code.co_firstlineno), ())
        ]

    def _can_be_swapped(self, mutated: CodeType) -> bool:
        """Not where a function would know other names of those around it."""
        return all(function.__code__.co_freevars == code.co_freevars for function, code in self._swaps(mutated))

    def _run_with(self, mutant: Mutant, mutated: CodeType, tests: Sequence[int]) -> None:
        for function, code in self._swaps(mutated):
            function.__code__ = code
        if not mutant.function:
            change_constants(mutant)
        for each in self._caches:
            each.cache_clear()  # what was answered without the mutant
        for i, after in zip(tests, [*tests[1:], None], strict=True):
            self._limits([i]).apply()  # ends a fork in which a test does not come to its end
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
            limits = self._limits([i for i, item in enumerate(self._items) if _is_in(self._file(item), files)])
            return alone(lambda: os.execve(sys.executable, command, _environment(copy)), limits, folder=copy)

    def _limits(self, tests: Sequence[int]) -> Limits:
        """What *tests* may take before it is said that they do not end."""
        busy = _BUSY_SECONDS + _BUSY_TIMES * sum(self._busy[i] for i in tests)
        slept = _BUSY_TIMES * sum(self._seconds[i] for i in tests)
        return Limits(busy=busy, waits=_PATIENT_SECONDS + _PATIENT_TIMES * busy + slept)


def change_constants(mutant: Mutant) -> None:
    """Give the module's constants that the mutant changes, and those made of them, their new value everywhere."""
    module = sys.modules[".".join(mutant.path.with_suffix("").parts)]
    before: dict[str, Any] = {}
    for statement in mutant.compiled().body:
        names, read = constants(statement), {each.id for each in ast.walk(statement) if isinstance(each, ast.Name)}
        if statement is mutant.statement or (names and read & before.keys()):
            before |= {name: vars(module).get(name) for name in names}
            exec(compile(ast.Module([statement], []), str(mutant.path), "exec", dont_inherit=True), vars(module))
    for name, old in before.items():
        # Others do not import private names; they may have one of the same value.
        for other in () if name.startswith("_") else list(sys.modules.values()):
            if vars(other).get(name) is old:
                setattr(other, name, vars(module)[name])


def _environment(copy: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(copy)}


def _is_in(file: str, places: Sequence[str]) -> bool:
    return any(file == place or file.startswith(f"{place}/") for place in places)


def _live_functions() -> dict[tuple[str, str, int], list[FunctionType]]:
    """File, qualified name and first line -> the functions made there."""
    found: dict[tuple[str, str, int], list[FunctionType]] = {}
    gc.unfreeze()  # what is frozen is not among the objects
    for function in gc.get_objects():
        if isinstance(function, FunctionType):
            code = function.__code__
            found.setdefault((code.co_filename, code.co_qualname, code.co_firstlineno), []).append(function)
    return found


def imported(tree: ast.Module) -> Iterator[str]:
    """The modules that it imports, from which it imports a name, or that a text in it names: also what could be one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{each.name}" for each in node.names)
        elif isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _NAMED.fullmatch(node.value):
            words = node.value.partition(":")[0].split(".")
            yield from (".".join(words[:end]) for end in range(2, len(words) + 1))


def _codes(code: CodeType) -> Iterable[CodeType]:
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield inner
            yield from _codes(inner)
