"""The product's election on the log, with its calls in the history and its changes in the trace."""

import json
from base64 import b64decode
from collections.abc import Callable
from typing import Any, Final

from controller.adapters.election.collectors import CollectorGroup
from controller.adapters.election.controls import ControlStore
from controller.adapters.election.proposals import ProposalStore
from controller.log.election.leadership import LogLeadership
from controller.log.election.shared import LogControls
from controller.log.election.system import LogElection
from controller.log.port import Out
from controller.model.controls import OperatorControls
from controller.model.errors import ControlsUnreachableError
from controller.model.leadership import Agreement, Leadership
from controller.wire.controls import encode_controls, stored_controls
from tests.simulation.election import note_controls
from tests.simulation.logs import SimulatedLog, SimulatedServer
from tests.simulation.loop import Process
from tests.simulation.world import SESSION, World

_ABSENT: Final = -1
_EXISTS: Final = -2


class ElectionOnLog:
    """The election of all processes; applies the operations of its topic once more, to know what they changed."""

    def __init__(
        self, world: World, server: SimulatedServer, connect: Callable[[], SimulatedLog], *, cluster: str
    ) -> None:
        self._world, self._server = world, server
        self._system = LogElection(connect, cluster=cluster, session_seconds=SESSION, where="the topic of the election")
        server.on_election = self._stored
        #: Key -> the number of the operation that wrote it last, that of the first one, and the key of its owner.
        self._cells = dict[str, tuple[int, int, str]]()
        self._operations = 0
        self._store = ""
        #: Session -> the process that began it.
        self._whose = dict[str, Process]()

    def leadership(self) -> Leadership:
        """See ElectionSystem."""
        return _TracedLeadership(self._system.leadership(), self._world)

    def controls_store(self) -> ControlStore:
        """The controls."""
        return _TracedControls(self._system.controls(), self._world)

    def proposal_store(self) -> ProposalStore:
        """The proposals."""
        return self._system.proposals()

    def collectors(self) -> CollectorGroup:
        """See ElectionSystem."""
        return self._system.collectors()

    def leader(self) -> str:
        """The process that leads, or any controller."""
        contenders = [(cell[1], cell[2]) for key, cell in self._cells.items() if key.startswith("contenders/")]
        return self._whose[min(contenders)[1]].name if contenders else "controller-1"

    def expire(self, process: Process) -> None:
        """End the sessions of *process*."""
        for session in [key for key, whose in self._whose.items() if whose is process and key in self._cells]:
            record = {
                "v": 1,
                "type": "operation",
                "store": self._store,
                "since": 0,
                "id": f"{self._world.sim.random.getrandbits(128):032x}",
                "conditions": [],
                "changes": [{"key": session, "value": None, "owner": ""}],
            }
            self._server.store("election", 0, Out("election", json.dumps(record).encode()))

    def _stored(self, value: bytes) -> None:
        fields = json.loads(value)
        if fields["type"] == "begin":
            self._store = self._store or fields["store"]
        elif fields["type"] == "operation" and fields["store"] == self._store:
            self._operations += 1
            if all(self._holds(each["key"], each["version"]) for each in fields["conditions"]):
                owners = [each["owner"] for each in fields["changes"]]
                if all(not owner or owner in self._cells for owner in owners):
                    for change in fields["changes"]:
                        self._change(change)

    def _holds(self, key: str, version: int) -> bool:
        cell = self._cells.get(key)
        return cell is not None if version == _EXISTS else version == (_ABSENT if cell is None else cell[0])

    def _change(self, change: dict[str, Any]) -> None:
        key, value = change["key"], change["value"]
        if value is None:
            self._end(key)
            return
        created = self._cells[key][1] if key in self._cells else self._operations
        self._cells[key] = self._operations, created, change["owner"]
        if key.startswith("sessions/"):
            self._whose.setdefault(key, self._world.sim.process)
        elif key == "controls":
            note_controls(self._world, stored_controls(b64decode(value), "the topic"))

    def _end(self, key: str) -> None:
        if self._cells.pop(key, None) is not None:
            for owned in [name for name, cell in self._cells.items() if cell[2] == key]:
                self._end(owned)


class _TracedLeadership:
    """Leadership."""

    def __init__(self, leadership: LogLeadership, world: World) -> None:
        self._leadership, self._world = leadership, world
        self.acquire, self.lost = leadership.acquire, leadership.lost
        self.session_lost, self.release = leadership.session_lost, leadership.release

    def claim(self, journal_epoch: int) -> int:
        """See Leadership."""
        return int(self._world.history("claim", journal_epoch, lambda: self._leadership.claim(journal_epoch)))

    def check(self) -> None:
        """See Leadership."""

        def leads() -> bool:
            self._leadership.check()
            return True

        self._world.history("check", None, leads)

    def agreement(self, name: str) -> Agreement | None:
        """See Leadership.  All share one checkpoint here."""
        return None


class _TracedControls:
    """ControlStore."""

    def __init__(self, store: LogControls, world: World) -> None:
        self._store, self._world = store, world
        self.version, self.close = store.version, store.close

    def read(self) -> tuple[OperatorControls, int]:
        """See ControlStore."""
        read: list[tuple[OperatorControls, int]] = []

        def value() -> tuple[bytes | None, int]:
            read.append(self._store.read())
            controls, version = read[0]
            return (None if version == _ABSENT else encode_controls(controls)), version

        try:
            self._world.history("read", None, value)
        except ControlsUnreachableError:
            self._world.note("read-lost")
            raise
        self._world.note("controls-read")
        return read[0]

    def write(self, controls: OperatorControls, version: int) -> bool:
        """See ControlStore."""
        value = encode_controls(controls)
        return bool(self._world.history("cas", (version, value), lambda: self._store.write(controls, version)))

    def epoch(self) -> int:
        """See ControlStore."""
        return int(self._world.history("epoch", None, self._store.epoch))

    def raise_epoch(self, epoch: int) -> None:
        """See ControlStore."""
        self._world.history("raise", epoch, lambda: self._store.raise_epoch(epoch))
