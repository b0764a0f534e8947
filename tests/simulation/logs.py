"""The log in memory as processes see it over the network: each call may be lost, or come half done."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from controller.log.followed import FollowedScope
from controller.log.inbox import Inbox
from controller.log.memory import MemoryClaims, MemoryLog, MemoryReader, MemoryServer
from controller.log.port import OLDEST, Claims, Fenced, LogRecord, LogTopic, Out, Scope, Start
from controller.model.errors import TrimtabError
from controller.wire.base import read_object
from controller.wire.commands import EpochEvent, parse_event
from controller.wire.journal_records import Decided, EntryReader
from tests.simulation.loop import Process
from tests.simulation.world import World, point_of

#: Poison that tests put there is none of the trace's business.
_UNREADABLE = (TrimtabError, ValueError, KeyError)
#: Effects that store which commands an executor has begun: of a log that appends atomically, and of others.
_BEGINS = frozenset({"store claim", "append cells"})


def _unreachable(sent: bool) -> TrimtabError:
    return TrimtabError(f"the log gave no answer; sent: {sent}")


class SimulatedServer(MemoryServer):
    """All that lies in the log; writes the trace in the order in which it comes to lie there."""

    def __init__(self, world: World, *, partitions: int, atomic: bool, seed: int) -> None:
        super().__init__(partitions=partitions, atomic=atomic, seed=seed, now_ms=world.sim.true_ms)
        self.world = world
        self.at_effect = self._at_effect
        self._entries, self._proposed = EntryReader(None), set[str]()
        #: Called with each record of the election's topic.
        self.on_election: Callable[[bytes], None] = lambda _: None
        #: Those of the claims -> whose they are.
        self.whose = dict[object, Process]()
        #: Task of an executor -> partition and command that it stores to begin.
        self.beginning = dict[object, tuple[int, str]]()
        world.on_silence.append(self._expel)

    def _at_effect(self, when: str, what: str) -> None:
        if self.world.sim.task is not None:
            move = self.world.request if when == "before" else self.world.reply
            move("log", what, _unreachable)

    def append(self, what: str, change: Callable[[], None]) -> None:
        """See MemoryServer."""
        world, task = self.world, self.world.sim.task
        if task is None:
            super().append(what, change)
            return
        self.at_effect("before", what)
        begun = self.beginning.pop(task, None) if point_of(what) in _BEGINS else None

        def happen() -> None:
            with self.changed:
                change()
                self.changed.notify_all()
            if begun is not None:
                world.note("begun", partition=begun[0], command=begun[1])

        world.come_late(point_of(what), happen, _unreachable)
        happen()
        self.at_effect("after", what)

    def _expel(self, process: Process, service: str) -> None:
        if service == "log":
            for members in self.members.values():
                members[:] = [each for each in members if self.whose.get(each) is not process]

    def acquire(self, what: str) -> int:
        """See MemoryServer."""
        topic, _, partition = what.partition("/")
        if topic == "commands":
            self.world.note("taken-over", partition=int(partition))
        return super().acquire(what)

    def store(self, topic: str, partition: int, out: Out) -> None:
        """See MemoryServer."""
        super().store(topic, partition, out)
        if "mark" not in out.headers:
            with suppress(*_UNREADABLE):
                self._note(topic, partition, out)

    def _note_proposed(self, value: bytes) -> None:
        """The decision that waits once the entry *value* is decided, the first time that one has it."""
        entry = self._entries.read(value)
        waits = entry.fields["memory"].get("proposed") if isinstance(entry, Decided) and entry.missing is None else None
        if waits is not None and waits["hash"] not in self._proposed:
            self._proposed.add(waits["hash"])
            commands = "|".join(map(content_of, waits["commands"]))
            self.world.note("proposed", interval=waits["interval"], content=waits["hash"], outcome=commands)

    def _note(self, topic: str, partition: int, out: Out) -> None:
        note = self.world.note
        if topic == "election":
            self.on_election(out.value)
        elif topic == "journal":
            fields = read_object(out.value)
            if fields["type"] == "epoch":
                note("epoch", epoch=fields["epoch"])
                return
            epoch, interval = int(out.headers["epoch"]), fields["interval"]
            controls = fields["controls"]
            paused = "paused" if controls["paused"] else ""
            note("entry", epoch=epoch, interval=interval, outcome=paused, content=str(controls["decidedAtMs"]))
            pauses = " ".join(str(each["atMs"]) for each in controls.get("pauses") or ())
            drained = " ".join(controls.get("drained") or ())
            excluded = " ".join(controls.get("excluded") or ())
            in_force = f"{pauses}|{drained}|{excluded}"
            note("in-force", epoch=epoch, interval=interval, outcome=controls["mode"], content=in_force)
            if controls["mode"] == "approve":
                note("asks", epoch=epoch, interval=interval, content=fields["summary"])
            if controls.get("orders"):
                note("ordered", epoch=epoch, interval=interval, content=controls["orders"]["plan"])
            self._note_proposed(out.value)
            for command in fields["commands"]:
                data = command["data"]
                note(
                    "decided",
                    epoch=epoch,
                    interval=interval,
                    command=command["id"],
                    outcome=f"{data['mode']} {command['type'].removeprefix('trimtab.')} {data['reason']}",
                    expires_at=data["expiresAt"],
                    content=content_of(command),
                )
        elif topic == "commands":
            event = parse_event(out.value)
            if isinstance(event, EpochEvent):
                note("marked", epoch=event.epoch, partition=partition)
            else:
                expires, interval = event.data.expires_at, event.data.interval
                note(
                    "issued",
                    epoch=event.epoch,
                    partition=partition,
                    command=event.id,
                    expires_at=expires,
                    interval=interval,
                    content=content_of(read_object(out.value)),
                )
        elif topic == "results":
            fields = read_object(out.value)
            if fields["type"] == "result":
                detail = fields.get("detail", "")
                note("answered", command=fields["id"], outcome=fields["status"], partition=partition, content=detail)
            else:
                note("tick", interval=fields["interval"], partition=partition, outcome="results")
        elif topic == "metrics" and b'"type":"tick"' in out.value[:40]:
            fields = read_object(out.value)
            brokers = " ".join(sorted(each["broker"] for each in fields["roster"] or ()))
            note("tick", interval=fields["interval"], partition=partition, outcome="metrics", content=brokers)


def content_of(command: Mapping[str, Any]) -> str:
    """What *command*, as it lies in a topic, asks for: act, bundle, destination or cuts; then its source and mode."""
    data, kind = command["data"], command["type"].removeprefix("trimtab.")
    what = cuts_of(data.get("boundaries") or ()) if kind == "split" else data.get("destinationBroker") or "-"
    return f"{kind} {command['subject']} {what} {data['preconditions']['sourceBroker']} {data['mode']}"


def cuts_of(boundaries: Iterable[int | str]) -> str:
    """Where a split cuts, as text."""
    numbers = sorted(each if isinstance(each, int) else int(each, 16) for each in boundaries)
    return ",".join(f"0x{each:08x}" for each in numbers) or "-"


class SimulatedLog(MemoryLog):
    """Log, as the process that opens it sees it."""

    server: SimulatedServer

    def __init__(self, server: SimulatedServer, now_ms: Callable[[], int]) -> None:
        super().__init__(server)
        self._now_ms = now_ms

    def _ask(self, what: str) -> None:
        if self.server.world.sim.task is not None:
            self.server.world.request("log", what, _unreachable)

    def partitions(self, *topics: LogTopic, writable: bool = False) -> Mapping[LogTopic, int]:
        """See Log."""
        self._ask("ask partitions")
        return super().partitions(*topics, writable=writable)

    def append(self, outs: Iterable[Out], *, within_seconds: float, name: str = "") -> None:
        """See Log.  Records are stored one by one: after an error some of them may be there."""
        outs = list(outs)
        if outs and self.server.world.take_fault("tear", "append"):
            kept = self.server.world.sim.random.randrange(len(outs))
            super().append(outs[:kept], within_seconds=within_seconds)
            raise _unreachable(True)
        super().append(outs, within_seconds=within_seconds, name=name)

    def read(self, topic: LogTopic, start: Start = OLDEST, *, partition: int | None = None) -> "SimulatedReader":
        """See Log."""
        self._ask(f"read {topic}")
        return SimulatedReader(self, topic, start, partition)

    def read_backwards(self, topic: LogTopic, partition: int, before: int | None, about: int) -> Any:
        """See Log."""
        self._ask("read back")
        return super().read_backwards(topic, partition, before, about)

    def ends(self, topic: LogTopic, since_ms: int | None = None) -> Any:
        """See Log."""
        self._ask("ask ends")
        return super().ends(topic, since_ms)

    def fence(self, scope: Scope) -> Fenced:
        """See Log."""
        if self.server.atomic:
            return super().fence(scope)
        self.partitions(scope.decides[0], *scope.owns, *scope.shares)
        return FollowedScope(self, scope, self._now_ms)

    def claims(self, group: str) -> Claims:
        """See Log."""
        self._ask("join group")
        claims = SimulatedClaims(self, group)
        self.server.whose[claims] = self.server.world.sim.process
        return claims


class SimulatedReader(MemoryReader):
    """Reader."""

    def __init__(self, log: SimulatedLog, topic: LogTopic, start: Start, partition: int | None) -> None:
        super().__init__(log.server, topic, start, partition)
        self._log = log

    def next(self, timeout_seconds: float) -> LogRecord | None:
        """See Reader."""
        if self._log.server.world.is_cut("log", "there"):
            return None
        return super().next(timeout_seconds)

    def read_to_end(self) -> Iterator[LogRecord]:
        """See Reader."""
        self._log._ask(f"read on {self._topic}")
        if self._topic == "commands" and self._partition is not None:
            self._log.server.world.note("caught-up", partition=self._partition)
        return super().read_to_end()


class SimulatedClaims(MemoryClaims):
    """Claims, of which the records are asked for over the network."""

    _log: SimulatedLog

    def poll(self, limit: int, timeout_seconds: float) -> Any:
        """See Claims."""
        self._log._ask("take commands")
        return super().poll(limit, timeout_seconds)


class TracedInbox(Inbox):
    """Inbox whose begun commands are in the trace, at the moment at which that is stored."""

    def __init__(self, log: SimulatedLog, *, group: str, cluster: str) -> None:
        super().__init__(log, group=group, cluster=cluster)
        self._server = log.server

    def begin(self, partition: int, command: str) -> None:
        """See Inbox."""
        server, task = self._server, self._server.world.sim.task
        server.beginning[task] = partition, command
        try:
            super().begin(partition, command)
        finally:
            server.beginning.pop(task, None)
