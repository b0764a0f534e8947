"""A modelled ZooKeeper: sessions, contenders for the leadership, the epoch, the controls, and the collectors' group.

The tests of the adapters hold the real one against the same contracts (tests/contracts).
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

from controller.adapters.election.collectors import CollectorGroup, GroupView
from controller.adapters.election.controls import ABSENT, ControlStore
from controller.adapters.election.memory import MemoryProposals
from controller.adapters.election.proposals import Proposals, ProposalStore
from controller.model.controls import OperatorControls
from controller.model.errors import ControlsUnreachableError, LeadershipLostError, TrimtabError
from controller.model.leadership import Agreement, Leadership, newer_epoch, no_preparation
from controller.model.proposals import Proposal, ProposalRecord, StoredProposal
from controller.wire.controls import encode_controls, stored_controls
from tests.simulation.loop import Process
from tests.simulation.world import World

_POLL: Final = 5.0


@dataclass(eq=False)
class Session:
    """Of a process at the server."""

    process: Process
    alive: bool = True


@dataclass
class Election:
    """The server."""

    world: World
    contenders: list[Session] = field(default_factory=list)
    epoch: int = 0
    epoch_version: int = 0
    controls: bytes | None = None
    controls_version: int = ABSENT
    members: list[tuple[Session, str]] = field(default_factory=list)
    shares: Mapping[str, Sequence[str]] = field(default_factory=dict)
    shares_version: int = 0
    proposals: MemoryProposals = field(default_factory=MemoryProposals)

    def __post_init__(self) -> None:
        self.world.on_silence.append(self._expire)

    def _expire(self, process: Process, service: str) -> None:
        if service == "election":
            self.expire(process)

    def leadership(self) -> Leadership:
        """See ElectionSystem."""
        return SimulatedLeadership(self)

    def controls_store(self) -> ControlStore:
        """The controls."""
        return SimulatedControls(self)

    def proposal_store(self) -> ProposalStore:
        """The proposals."""
        return SimulatedProposals(self)

    def collectors(self) -> CollectorGroup:
        """See ElectionSystem."""
        return SimulatedGroup(self)

    def leader(self) -> str:
        """The process that leads, or any controller."""
        return next((session.process.name for session in self.contenders), "controller-1")

    def expire(self, process: Process) -> None:
        """End the sessions of *process*."""
        for session in [*self.contenders, *(session for session, _ in self.members)]:
            if session.process is process:
                session.alive = False
        self.contenders = [each for each in self.contenders if each.alive]
        self.members = [each for each in self.members if each[0].alive]


def note_controls(world: World, controls: OperatorControls) -> None:
    """Write into the trace that these are the controls now."""
    world.documents.append(controls)
    paused = "paused" if controls.pauses else "resumed"
    world.note("controls", outcome=f"{paused} {'' if controls.mode is None else controls.mode.value}")
    world.note("excluded", content=" ".join(each.name for each in controls.excluded))
    for approval in controls.approvals:
        world.note("decision-approved", content=approval.decision)
    orders = controls.orders
    if orders is None:
        world.note("orders", outcome="", content="", expires_at=0)
        return
    moves = " ".join(f"{each.bundle}>{each.destination}" for each in orders.moves)
    by = f"{orders.plan[:12]} {orders.holder}"
    world.note("orders", outcome=by, content=moves, expires_at=orders.expires_at_ms)


def _lost(_: bool) -> LeadershipLostError:
    return LeadershipLostError("the election's server did not answer")


class SimulatedLeadership:
    """Leadership."""

    def __init__(self, server: Election) -> None:
        self._server, self._world = server, server.world
        self._session = Session(server.world.sim.process)
        self._leads = self._expired = False
        self._epoch_version: int | None = None

    def acquire(self, stop: Callable[[], bool], stand_by: Callable[[], None] = no_preparation) -> bool:
        """See Leadership."""
        self._leads, self._epoch_version = False, None
        while not stop():
            try:
                if self._call("acquire", self._enter):
                    self._leads = True
                    return True
            except LeadershipLostError:
                if self._expired:
                    raise
            stand_by()
            stand_by = no_preparation
            self._world.sim.sleep(_POLL)
        return False

    def claim(self, journal_epoch: int) -> int:
        """See Leadership."""

        def claimed() -> int:
            self._require()
            server = self._server
            server.epoch = newer_epoch(server.epoch, journal_epoch) + 1
            server.epoch_version += 1
            return server.epoch

        epoch = int(self._call("claim", claimed, journal_epoch))
        # What was answered may be old by now, which the next check finds.
        self._epoch_version = self._claimed_version
        return epoch

    def check(self) -> None:
        """See Leadership."""

        def leads() -> bool:
            self._require()
            return True

        self._call("check", leads)

    def lost(self) -> bool:
        """See Leadership."""
        return not self._leads

    def session_lost(self) -> bool:
        """See Leadership."""
        return self._expired

    def release(self) -> None:
        """See Leadership."""
        self._leads = False
        if self._session in self._server.contenders:
            self._server.contenders.remove(self._session)

    def agreement(self, name: str) -> Agreement | None:
        """See Leadership.  All share one checkpoint here."""
        return None

    def _enter(self) -> bool:
        if not self._session.alive:
            self._expired = True
            raise LeadershipLostError("the session has ended")
        contenders = self._server.contenders
        if self._session not in contenders:
            contenders.append(self._session)
        return contenders[0] is self._session

    def _require(self) -> None:
        """Fail unless this process leads, by what the server knows."""
        server = self._server
        if not self._leads or server.contenders[:1] != [self._session]:
            self._expired = self._expired or not self._session.alive
            raise LeadershipLostError("this process does not lead")
        if self._epoch_version not in (None, server.epoch_version):
            raise LeadershipLostError("a newer epoch has begun")

    def _call(self, name: str, effect: Callable[[], Any], argument: object = None) -> Any:
        def at_server() -> Any:
            value = effect()
            self._claimed_version = self._server.epoch_version
            return value

        try:
            return self._world.history(
                name, argument, lambda: self._world.call("election", f"election {name}", at_server, _lost)
            )
        except LeadershipLostError:
            self._leads = False
            raise


class SimulatedControls:
    """ControlStore."""

    def __init__(self, server: Election) -> None:
        self._server, self._world = server, server.world

    def read(self) -> tuple[OperatorControls, int]:
        """See ControlStore."""
        server = self._server
        try:
            value, version = self._call("read", None, lambda: (server.controls, server.controls_version))
        except ControlsUnreachableError:
            self._world.note("read-lost")
            raise
        self._world.note("controls-read")
        return (OperatorControls(), ABSENT) if value is None else (stored_controls(value, "the model"), version)

    def write(self, controls: OperatorControls, version: int) -> bool:
        """See ControlStore."""
        value, server = encode_controls(controls), self._server

        def put() -> bool:
            if server.controls_version != version:
                return False
            server.controls, server.controls_version = value, server.controls_version + 1
            note_controls(self._world, controls)
            return True

        return bool(self._call("cas", (version, value), put))

    def version(self) -> int:
        """See ControlStore."""
        return int(self._call("version", None, lambda: self._server.controls_version))

    def epoch(self) -> int:
        """See ControlStore."""
        return int(self._call("epoch", None, lambda: self._server.epoch))

    def raise_epoch(self, epoch: int) -> None:
        """See ControlStore."""
        server = self._server

        def put() -> None:
            if server.epoch < epoch:
                server.epoch, server.epoch_version = epoch, server.epoch_version + 1

        self._call("raise", epoch, put)

    def close(self) -> None:
        """See ControlStore."""

    def _call(self, name: str, argument: object, effect: Callable[[], Any]) -> Any:
        def unreachable(_: bool) -> ControlsUnreachableError:
            return ControlsUnreachableError("the controls' server did not answer")

        return self._world.history(
            name, argument, lambda: self._world.call("election", f"controls {name}", effect, unreachable)
        )


class SimulatedProposals:
    """ProposalStore."""

    def __init__(self, server: Election) -> None:
        self._store, self._world = server.proposals, server.world

    def add(self, proposal: Proposal, content: bytes, *, now_ms: int) -> None:
        """See ProposalStore."""
        self._call("add", lambda: self._store.add(proposal, content, now_ms=now_ms))

    def read_all(self) -> Proposals:
        """See ProposalStore."""
        every: Proposals = self._call("read all", self._store.read_all)
        return every

    def read(self, key: str) -> StoredProposal | None:
        """See ProposalStore."""
        stored: StoredProposal | None = self._call("read", lambda: self._store.read(key))
        return stored

    def content(self, key: str) -> bytes:
        """See ProposalStore."""
        return bytes(self._call("content", lambda: self._store.content(key)))

    def write(self, key: str, record: ProposalRecord, version: int) -> bool:
        """See ProposalStore."""
        return bool(self._call("write", lambda: self._store.write(key, record, version)))

    def remove(self, key: str) -> None:
        """See ProposalStore."""
        self._call("remove", lambda: self._store.remove(key))

    def close(self) -> None:
        """See ProposalStore."""

    def _call(self, name: str, effect: Callable[[], Any]) -> Any:
        def unreachable(_: bool) -> ControlsUnreachableError:
            return ControlsUnreachableError("the proposals' server did not answer")

        return self._world.call("election", f"proposals {name}", effect, unreachable)


class SimulatedGroup:
    """CollectorGroup."""

    def __init__(self, server: Election) -> None:
        self._server, self._world = server, server.world
        process = server.world.sim.process
        self._session = Session(process)
        self._view = GroupView(me=f"{process.name}.{process.life}")
        self._version = 0

    def look(self) -> GroupView:
        """See CollectorGroup."""
        server = self._server

        def seen() -> GroupView:
            if not self._session.alive:
                self._session = Session(self._session.process)
            if all(session is not self._session for session, _ in server.members):
                server.members.append((self._session, self._view.me))
            self._version = server.shares_version
            return replace(self._view, members=tuple(name for _, name in server.members), shares=server.shares)

        with suppress(TrimtabError):
            self._view = self._world.call("election", "group look", seen, _no_group)
        return self._view

    def share(self, shares: Mapping[str, Sequence[str]]) -> None:
        """See CollectorGroup."""
        server = self._server

        def put() -> None:
            if server.shares_version == self._version:
                server.shares, server.shares_version = shares, server.shares_version + 1

        self._quietly("group share", put)

    def step_back(self) -> None:
        """See CollectorGroup."""
        self._view = replace(self._view, members=())
        self._quietly("group step back", self._remove)

    def leave(self) -> None:
        """See CollectorGroup."""
        self._quietly("group leave", self._remove)

    def _remove(self) -> None:
        self._server.members = [each for each in self._server.members if each[0] is not self._session]

    def _quietly(self, what: str, effect: Callable[[], None]) -> None:
        with suppress(TrimtabError):
            self._world.call("election", what, effect, _no_group)


def _no_group(_: bool) -> TrimtabError:
    return TrimtabError("the group's server did not answer")
