"""Logs as the contracts of what stands on them see them."""

import os
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final

import pytest

from controller.adapters.folder import line_files
from controller.log import journal as journal_module
from controller.log.commands import CommandLog
from controller.log.dead_letters import DeadLetterLog
from controller.log.files.log import FolderLog
from controller.log.inbox import Inbox
from controller.log.journal import LogJournal
from controller.log.journal_reading import JournalReader
from controller.log.memory import MemoryLog, MemoryServer
from controller.log.port import Log, LogTopic, Out
from controller.log.pulsar.log import PulsarLog
from controller.log.ticks import CollectorLog, MetricsLog
from controller.model.journal import JournalEntry
from controller.wire.commands import epoch_event
from controller.wire.ed25519 import SigningKey
from tests.commands import T
from tests.contracts.bytes_log import rest, values
from tests.pulsar_in_memory import log_settings, new_broker
from tests.records import CLUSTER
from tests.sqlite_log import SqliteLog

if TYPE_CHECKING:
    from _typeshed import StrPath

MODES = [(atomic, seed) for atomic in (True, False) for seed in range(3)]
#: The same as parameters: plain pytest runs the first seed of each.
MODE_PARAMS = [pytest.param(each, marks=[pytest.mark.slow] if each[1] else []) for each in MODES]
GROUP = "trimtab-executor"


class Place:
    """All contracts' places in one."""

    module: ModuleType = journal_module
    partitions = 1

    def __init__(self, connect: Callable[[], Log]) -> None:
        """*connect*: the log as one more process opens it."""
        self.connect = connect
        self._inboxes = list[Inbox]()
        #: Called before and after each effect.  Raises to kill the process that is at work, or to lose the answer;
        #: what it does itself comes while that process hangs.
        self.at_effect: Callable[[str, str], None] = no_fault
        #: Epoch -> the public keys of those who took it for theirs, for tests that note them.
        self.keys = defaultdict[int, list[bytes]](list)
        #: What executors have done, for tests that note it.
        self.acts = list[str]()

    def journal(self, cluster: str = CLUSTER, *, signing_key: SigningKey | None = None) -> LogJournal:
        return LogJournal(self.connect(), cluster=cluster, signing_key=signing_key)

    def entries(self) -> list[JournalEntry]:
        return list(JournalReader(self.connect(), CLUSTER).entries())

    def events(self) -> list[bytes]:
        return values(rest(self.connect(), "commands"))

    def metrics(self) -> MetricsLog:
        return MetricsLog(self.connect(), cluster=CLUSTER)

    def log(self) -> CollectorLog:
        return CollectorLog(self.connect(), cluster=CLUSTER)

    def commands(self) -> CommandLog:
        return CommandLog(self.connect())

    def dead_letters(self) -> DeadLetterLog:
        return DeadLetterLog(self.connect())

    def inbox(self) -> Inbox:
        self._inboxes.append(Inbox(self.connect(), group=GROUP, cluster=CLUSTER))
        return self._inboxes[-1]

    def records(self, topic: LogTopic, partition: int) -> list[bytes]:
        return values(rest(self.connect(), topic, partition=partition))

    def letters(self) -> list[bytes]:
        return values(rest(self.connect(), "dead_letters"))

    def issue(self, *events: bytes) -> None:
        self.connect().append((Out("commands", event, partition=0) for event in events), within_seconds=30.0)

    def begin_epoch(self, epoch: int) -> None:
        self.issue(epoch_event(CLUSTER, epoch, T))

    def results(self) -> list[bytes]:
        return values(rest(self.connect(), "results"))

    def expel(self, *, hang: bool = False) -> None:
        """Take the commands from all executors, which were killed, or *hang*."""
        raise NotImplementedError

    def close(self) -> None:
        """The test is over."""


def no_fault(when: str, effect: str) -> None:
    """Nothing happens."""


class MemoryPlace(Place):
    """On a server in memory of its own."""

    def __init__(self, *, atomic: bool, seed: int, partitions: int = 0) -> None:
        self.partitions = partitions or 1 + seed % 3
        self.server = MemoryServer(partitions=self.partitions, atomic=atomic, seed=seed)
        super().__init__(lambda: MemoryLog(self.server))
        self.server.at_effect = lambda when, effect: self.at_effect(when, effect)

    def expel(self, *, hang: bool = False) -> None:
        """The group has removed its members."""
        self.server.expel(GROUP)


class SqlitePlace(Place):
    """On the log of tests.sqlite_log."""

    partitions = 2

    def __init__(self, path: Path) -> None:
        super().__init__(
            lambda: SqliteLog(path, partitions=self.partitions, at_commit=lambda when: self.at_effect(when, "commit"))
        )

    def expel(self, *, hang: bool = False) -> None:
        """The group has removed its members."""
        log = self.connect()
        assert isinstance(log, SqliteLog)
        log.expel(GROUP)


class FolderPlace(Place):
    """In a folder.  Effects are the calls of the operating system that others see."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(lambda: FolderLog(folder, cluster=CLUSTER))
        self._folder = folder
        for name in ("link", "replace", "unlink"):
            monkeypatch.setattr(os, name, self._with_effects(getattr(os, name)))
        monkeypatch.setattr(os, "fsync", lambda _: None)
        monkeypatch.setattr(line_files, "_TURN_SECONDS", 0.01)

    def expel(self, *, hang: bool = False) -> None:
        """The operating system takes the lock from a process that has ended.  One that hangs keeps it."""
        if not hang:
            self.close()

    def close(self) -> None:
        """The test is over."""
        for inbox in self._inboxes:
            inbox.close()

    def _with_effects(self, call: Callable[..., None]) -> Callable[..., None]:
        def with_effects(path: "StrPath", *args: "StrPath", **kwargs: object) -> None:
            ours = Path(path).is_relative_to(self._folder) and not (args == () and Path(path).name.startswith("."))
            if ours:
                self.at_effect("before", f"{call.__name__} {path}")
            call(path, *args, **kwargs)
            if ours:
                self.at_effect("after", f"{call.__name__} {path}")

        return with_effects


class PulsarPlace(Place):
    """On a Pulsar in memory.  Effects are messages that are stored."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.settings, self.broker = log_settings(), new_broker(monkeypatch)
        self.partitions = self.settings.partitions
        super().__init__(lambda: PulsarLog(self.settings, cluster=CLUSTER, claim_seconds=0.0))
        self.broker.before_store = lambda nth: self.at_effect("before", f"message {nth}")
        self.broker.after_store = lambda nth: self.at_effect("after", f"message {nth}")

    def expel(self, *, hang: bool = False) -> None:
        """The brokers have ended the connections."""
        self.broker.drop_connections()


@pytest.fixture(params=MODE_PARAMS, ids=str)
def place(request: pytest.FixtureRequest) -> MemoryPlace:
    """In both modes, with gaps between positions."""
    atomic, seed = request.param
    return MemoryPlace(atomic=atomic, seed=seed)


#: Plain pytest tries one log of each mode, scripts/test all of them.
_SLOW: Final = [*((atomic, seed) for atomic, seed in MODES if seed), "sqlite", "folder", "pulsar"]


@pytest.fixture(
    params=[(True, 0), (False, 0), *(pytest.param(each, marks=pytest.mark.slow) for each in _SLOW)], ids=str
)
def fresh(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[], Place]]:
    """Makes an empty one, again and again: in memory, on SQLite, in a folder, and on a Pulsar in memory."""
    numbers, made = count(), list[Place]()

    def make() -> Place:
        path = tmp_path / str(next(numbers))
        if request.param == "sqlite":
            made.append(SqlitePlace(path))
        elif request.param == "folder":
            monkeypatch.undo()
            made.append(FolderPlace(path, monkeypatch))
        elif request.param == "pulsar":
            made.append(PulsarPlace(monkeypatch))
        else:
            atomic, seed = request.param
            made.append(MemoryPlace(atomic=atomic, seed=seed))
        return made[-1]

    yield make
    for each in made:
        each.at_effect = no_fault
        each.close()
