"""Runs the tests in several workers: forks of the process that has collected them.

Nothing is imported or collected a second time.  A worker that has nothing to do gets the next group of tests
(tests/scheduling.py), so no group waits behind a long one.  After a group all of its fixtures end, as after a run.

pytest-xdist does the same at a higher price: each of its workers imports and collects for itself, and each report
passes through more hands.  1,600 unit tests took 11.4 s of processor time here with two workers, 16.8 s with
pytest-xdist 3.8 (--dist loadgroup, the same groups), and 11.1 s in one process.
"""

import os
import traceback
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from pathlib import Path
from selectors import EVENT_READ, PollSelector
from typing import Any, Final

import pytest

from tests.scheduling import groups_of

_FORK: Final = get_context("fork")
_END_SECONDS: Final = 10.0
#: What a worker sends; each with its content.
_TESTED, _WARNED, _BROKEN, _READY = "tested", "warned", "broken", "ready"

#: In a worker: the temporary folder of the whole run.
RUN_FOLDER: Final = pytest.StashKey[Path]()


class Workers:
    """A plugin that runs the tests in *number* workers."""

    def __init__(self, number: int) -> None:
        self._number = number

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Run all tests; pytest itself says what keeps it from running any."""
        if session.testsfailed or session.config.option.collectonly:
            return None
        queue = deque(_Group(tests) for tests in groups_of([item.nodeid for item in session.items]))
        _folder_of(session.config)  # made once, for all
        with _Run(session, queue, min(self._number, len(queue))) as run:
            run.to_its_end()
        return True


class _Group:
    """Positions of tests that one worker runs, in their order; those that have run are taken away."""

    def __init__(self, tests: Sequence[int]) -> None:
        self.tests = deque(tests)


class _Worker:
    """A worker as the main process sees it."""

    def __init__(self, session: pytest.Session, number: int, others: Sequence["_Worker"]) -> None:
        self.wire, its_end = _FORK.Pipe()
        self.group: _Group | None = None
        not_its_own = [self.wire, *(other.wire for other in others)]
        self.process: ForkProcess = _FORK.Process(target=_work, args=(session, number, its_end, not_its_own))
        with warnings.catch_warnings():
            # Python 3.12 and newer warn of threads: those of NumPy and Arrow, which wait and hold no lock.
            warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
            self.process.start()
        its_end.close()


class _Run:
    """The main process's part: it hands out groups, and passes on what workers tell."""

    def __init__(self, session: pytest.Session, queue: deque[_Group], number: int) -> None:
        self._session, self._queue, self._number = session, queue, number
        self._workers: list[_Worker] = []
        self._wires = PollSelector()
        self._started = 0

    def __enter__(self) -> "_Run":
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.wire.close()
            if worker.process.is_alive():
                worker.process.terminate()  # as Ctrl-C: fixtures end
        for worker in self._workers:
            worker.process.join(_END_SECONDS)
            worker.process.kill()
            worker.process.join()
        self._wires.close()

    def to_its_end(self) -> None:
        """Return when all tests have run; raise what ends a run of pytest."""
        while self._queue or self._workers:
            while self._queue and len(self._workers) < self._number:
                self._workers.append(_Worker(self._session, self._started, self._workers))
                self._wires.register(self._workers[-1].wire, EVENT_READ, self._workers[-1])
                self._started += 1
            for ready, _ in self._wires.select():
                self._hear(ready.data)
                if self._session.shouldfail:
                    raise self._session.Failed(self._session.shouldfail)
                if self._session.shouldstop:
                    raise self._session.Interrupted(self._session.shouldstop)

    def _hear(self, worker: _Worker) -> None:
        try:
            kind, content = worker.wire.recv()
            if kind == _READY:
                worker.group = self._queue.popleft() if self._queue else None
                worker.wire.send(worker.group.tests if worker.group else None)
        except (EOFError, ConnectionError):
            self._bury(worker)
            return
        if kind == _TESTED:
            assert worker.group is not None
            worker.group.tests.popleft()
            self._told(content)
        elif kind == _WARNED:
            self._warned(*content)
        elif kind == _BROKEN:
            raise self._session.Interrupted(f"a worker has ended with an error of its own:\n{content}")

    def _bury(self, worker: _Worker) -> None:
        """*worker* has ended; a test in which it ended has failed, and another worker goes on behind it."""
        worker.process.join()
        self._wires.unregister(worker.wire)
        self._workers.remove(worker)
        if worker.group is None or not worker.group.tests:
            return
        item = self._session.items[worker.group.tests.popleft()]
        why = f"the process that ran this test ended, with exit code {worker.process.exitcode}"
        report = pytest.TestReport(item.nodeid, item.location, {}, "failed", why, "call")
        self._told([_packed(self._session.config, report)])
        if worker.group.tests:
            self._queue.appendleft(worker.group)

    def _told(self, reports: Sequence[Any]) -> None:
        config = self._session.config
        for sent in reports:
            report = _unpacked(config, sent)
            config.hook.pytest_runtest_logreport(report=report)
        config.hook.pytest_runtest_logfinish(nodeid=report.nodeid, location=report.location)

    def _warned(self, message: tuple[Any, ...], when: str, nodeid: str, location: object) -> None:
        recorded = warnings.WarningMessage(*message)
        self._session.config.hook.pytest_warning_recorded.call_historic(
            kwargs={"warning_message": recorded, "when": when, "nodeid": nodeid, "location": location}
        )


def _packed(config: pytest.Config, report: pytest.TestReport) -> Any:
    """What *report* is sent as: one with nothing to show as it is, which costs a fraction."""
    if type(report) is pytest.TestReport and report.longrepr is None:
        return report
    return config.hook.pytest_report_to_serializable(config=config, report=report)


def _unpacked(config: pytest.Config, sent: Any) -> pytest.TestReport:
    if isinstance(sent, pytest.TestReport):
        return sent
    report: pytest.TestReport = config.hook.pytest_report_from_serializable(config=config, data=sent)
    return report


# ---- in a worker ----


class _Teller:
    """A plugin that tells the main process what it sees."""

    def __init__(self, config: pytest.Config, wire: "Connection[Any, Any]") -> None:
        self._config, self._wire = config, wire
        self._reports: list[Any] = []
        #: Whoever is registered hears first of all warnings so far, which the main process knows.
        self.hears_new_warnings = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._reports.append(_packed(self._config, report))

    def pytest_runtest_logfinish(self) -> None:
        self._wire.send((_TESTED, self._reports))
        self._reports = []

    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, when: str, nodeid: str, location: object
    ) -> None:
        if not self.hears_new_warnings:
            return
        told = warning_message
        message = (str(told.message), told.category, told.filename, told.lineno)
        self._wire.send((_WARNED, (message, when, nodeid, location)))


class _Silent:
    """In place of pytest's reporter, which others ask for its terminal: only the main process reports."""

    def __init__(self, terminal: object) -> None:
        self._tw = terminal


def _work(session: pytest.Session, number: int, wire: "Connection[Any, Any]", not_ours: Sequence[Any]) -> None:
    """All that a worker does, from its fork to its end."""
    for each in not_ours:  # so that each end is seen by the other one
        each.close()
    with _told_if_broken(wire):
        _become_a_worker(session.config, number, wire)
        try:
            for tests in _groups(wire):
                _run(session, tests)
        finally:
            session._setupstate.teardown_exact(None)
    os._exit(0)


@contextmanager
def _told_if_broken(wire: "Connection[Any, Any]") -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        os._exit(1)
    except BaseException:
        with suppress(OSError):
            wire.send((_BROKEN, traceback.format_exc()))
        os._exit(1)


def _become_a_worker(config: pytest.Config, number: int, wire: "Connection[Any, Any]") -> None:
    plugins = config.pluginmanager
    capturing: Any = plugins.getplugin("capturemanager")
    # The files of the main process's capturing are shared by all forks.
    capturing.stop_global_capturing()
    capturing.start_global_capturing()
    capturing.suspend_global_capture()
    plugins.unregister(reporter := plugins.getplugin("terminalreporter"))
    plugins.register(_Silent(reporter._tw), "terminalreporter")
    plugins.register(teller := _Teller(config, wire))
    teller.hears_new_warnings = True
    run_folder = _folder_of(config)
    config.stash[RUN_FOLDER] = run_folder
    own = run_folder / f"worker-{number}"
    own.mkdir(mode=0o700)
    config._tmp_path_factory._basetemp = own  # type: ignore[attr-defined]


def _groups(wire: "Connection[Any, Any]") -> Iterator[Sequence[int]]:
    """The groups that the main process hands out to this worker."""
    while True:
        wire.send((_READY, None))
        tests: Sequence[int] | None = wire.recv()
        if tests is None:
            return
        yield tests


def _run(session: pytest.Session, tests: Sequence[int]) -> None:
    items = [session.items[test] for test in tests]
    for item, after in zip(items, [*items[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)


def _folder_of(config: pytest.Config) -> Path:
    folder: Path = config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
    return folder


def run_folder(config: pytest.Config) -> Path:
    """The temporary folder of the run; each worker's own lies in it."""
    return config.stash.get(RUN_FOLDER, None) or _folder_of(config)
