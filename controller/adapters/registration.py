"""Each process maintains its entry in the registry, in a separate thread; commands read all entries.

The registry is for people. Whatever happens to it, a process continues its work and does not wait.
"""

import logging
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final
from uuid import uuid4

from controller.adapters.disk.commit import commit
from controller.adapters.election.registry import RENEWED_EVERY, Registry
from controller.adapters.metrics.process import ProcessMetrics
from controller.adapters.process import signals
from controller.model.errors import TrimtabError, WireError
from controller.settings.log import LogInFolder
from controller.settings.trimtab_toml import Settings
from controller.wire.base import encode
from controller.wire.process import (
    MAX_PROCESS_BYTES,
    ROLES,
    RunningProcess,
    decode_process,
    short_state,
)

log = logging.getLogger(__name__)

#: How soon a changed state of the process is written.
_LOOK_SECONDS: Final = 1.0
#: How long the end of a process waits for its entry to be removed.
_END_SECONDS: Final = 0.5
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9._-]")
_LONGEST_HOST: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenProcess:
    """A process that runs."""

    process: RunningProcess
    #: When its main loop last made progress, epoch ms by the registry's clock.
    seen_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredProcesses:
    """The processes of a cluster, as the registry has them."""

    #: Controllers, then collectors, then executors; of each role the one that leads first.
    running: tuple[SeenProcess, ...] = ()
    #: Name of an entry -> why it cannot be used.
    unusable: Mapping[str, str] = field(default_factory=dict)
    #: RegistryEntries beyond those that were read.
    left_out: int = 0
    #: Why the registry cannot be read; "": it was read.
    unknown: str = ""

    def of(self, role: str) -> tuple[RunningProcess, ...]:
        """Those that have this *role*."""
        return tuple(each.process for each in self.running if each.process.role == role)

    @property
    def complete(self) -> bool:
        """Whether a process that is not here does not run, or may not write to the registry."""
        return not (self.unknown or self.unusable or self.left_out)


def processes_of(connect: Callable[[], Registry]) -> RegisteredProcesses:
    """What the registry that *connect* opens has; never an exception."""
    try:
        with closing(connect()) as registry:
            return _read(registry)
    except TrimtabError as error:
        return RegisteredProcesses(unknown=str(error))


def _read(registry: Registry) -> RegisteredProcesses:
    entries, left_out = registry.read(MAX_PROCESS_BYTES)
    running, unusable = [], {}
    for entry in entries:
        if entry.value is None:
            unusable[entry.name] = f"it is longer than {MAX_PROCESS_BYTES:,} bytes, or may not be read"
            continue
        try:
            process = decode_process(entry.value)
        except WireError as error:
            unusable[entry.name] = str(error)
        else:
            seen_ms = max(0, entry.renewed_ms - process.standstill_ms)
            running.append(SeenProcess(process=process, seen_ms=seen_ms))
    running.sort(key=_order)
    return RegisteredProcesses(running=tuple(running), unusable=unusable, left_out=left_out)


def _order(registered: SeenProcess) -> tuple[int, bool, str, int]:
    process = registered.process
    return ROLES.index(process.role), not process.leads, process.host, process.process


@contextmanager
def registered(
    settings: Settings, connect: Callable[[], Registry], metrics: ProcessMetrics, version: str
) -> Iterator[None]:
    """Within the block the registry that *connect* opens shows this process, as *metrics* describe it; never blocks."""
    registration = Registration(connect, _description(settings, metrics, version))
    with signals.cleaned_up_at_end(registration.end):
        registration.start()
        try:
            yield
        finally:
            registration.end()


def _description(settings: Settings, metrics: ProcessMetrics, version: str) -> Callable[[], RunningProcess]:
    host, started_ms = socket.gethostname() or "unknown", time.time_ns() // 1_000_000
    description: dict[str, str] = {}

    def describe() -> RunningProcess:
        if not description:
            description["commit"] = commit()
        (ready, state), work = metrics.health.now, metrics.work
        assert metrics.role != "web", "the page's server is not in the registry"
        takes = metrics.role == "executor"
        shares = takes and not isinstance(settings.log, LogInFolder)  # there a lock lets one executor work
        return RunningProcess(
            host=host,
            process=os.getpid(),
            role=metrics.role,
            version=version,
            commit=description["commit"],
            started_at=started_ms,
            standstill_ms=int(metrics.health.since_beat_seconds * 1000),
            ready=ready,
            state=short_state(state),
            leads=work.leads,
            brokers=work.brokers,
            group=f"{settings.executor.group}-{settings.cluster.name}" if shares else "",
            commands=settings.log.commands if takes else "",
            partitions=work.partitions,
            policy=settings.approvals.version if metrics.role == "controller" else "",
        )

    return describe


class Registration:
    """Writes what *describe* returns to the registry that *connect* returns: at each change, and now and then."""

    def __init__(self, connect: Callable[[], Registry], describe: Callable[[], RunningProcess]) -> None:
        self._connect, self._describe = connect, describe
        self._registry: Registry | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="registration", daemon=True)
        #: Why the entry could not be written; "": it was.
        self._problem = ""
        #: Whether there is an election that the registry belongs to, as far as is known.
        self._has_place = True

    def start(self) -> None:
        """Begin, in a thread of its own."""
        self._thread.start()

    def end(self) -> None:
        """Remove the entry.  Does not wait for a registry that does not answer."""
        self._ended.set()
        self._thread.join(_END_SECONDS)

    def _run(self) -> None:
        name, written, written_at = "", b"", 0.0
        while not self._ended.is_set():
            try:
                process = self._describe()
                name = name or _entry_name(process)
                about = encode(process.model_copy(update={"standstill_ms": 0}))
                is_due = about != written or time.monotonic() - written_at >= RENEWED_EVERY
                if is_due:
                    has_place = self._write(name, encode(process))
                    written, written_at = (about, time.monotonic()) if has_place else (b"", 0.0)
                    self._tell_place(has_place)
                wait = _LOOK_SECONDS
            except Exception as error:  # the process's work does not depend on this
                self._tell(str(error) if isinstance(error, TrimtabError) else f"{type(error).__name__}: {error}")
                written, wait = b"", RENEWED_EVERY
            else:
                self._tell("")
            self._ended.wait(wait)
        if self._registry is not None:
            with suppress(Exception):  # the entry ends by itself
                self._registry.close()

    def _write(self, name: str, value: bytes) -> bool:
        if self._registry is None:
            self._registry = self._connect()
        return self._registry.write(name, value)

    def _tell_place(self, has_place: bool) -> None:
        if not has_place and self._has_place:
            log.info(
                "`trimtab status` does not show this process yet: its [election] has had no controller or collector"
            )
        self._has_place = has_place

    def _tell(self, problem: str) -> None:
        if problem and not self._problem:
            log.warning(
                "cannot register this process, so `trimtab status` does not show it; it works nevertheless: %s", problem
            )
        elif self._problem and not problem:
            log.info("`trimtab status` shows this process")
        self._problem = problem


def _entry_name(process: RunningProcess) -> str:
    host = _NOT_IN_NAMES.sub("_", process.host)[:_LONGEST_HOST]
    return f"{process.role}-{host}-{process.process}-{uuid4().hex[:8]}"
