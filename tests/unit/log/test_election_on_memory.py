"""The election on a log in memory, against the contracts that every election keeps."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest

from controller.adapters.election.collectors import CollectorGroup
from controller.adapters.election.controls import ControlStore
from controller.adapters.election.notifications import NotificationStore
from controller.adapters.election.proposals import ProposalStore
from controller.log.election.system import LogElection
from controller.log.memory import MemoryLog, MemoryServer
from controller.model.leadership import Leader, Leadership
from tests.contracts.collectors import CollectorGroupContract, Member
from tests.contracts.controls import ControlStoreContract
from tests.contracts.leadership import Contender, LeadershipContract
from tests.contracts.notifications import NotificationStoreContract
from tests.contracts.proposals import ProposalStoreContract
from tests.contracts.registry import OpenRegistry, RegistryContract

#: A process looks twenty times in it.
SESSION_SECONDS = 0.4


def election(server: MemoryServer, cluster: str = "east") -> LogElection:
    return LogElection(
        lambda: MemoryLog(server), cluster=cluster, session_seconds=SESSION_SECONDS, where="memory/election"
    )


@pytest.fixture
def server() -> MemoryServer:
    return MemoryServer(seed=1)


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


class TestLeadership(LeadershipContract):
    @pytest.fixture
    def contender(self, server: MemoryServer, opened: ExitStack) -> Contender:
        def enter() -> Leadership:
            leadership = election(server).leadership()
            opened.callback(leadership.release)
            return leadership

        return enter

    @pytest.fixture
    def leader(self, server: MemoryServer) -> Callable[[], Leader | None]:
        return election(server).leader


class TestControls(ControlStoreContract):
    @pytest.fixture
    def store(self, server: MemoryServer, opened: ExitStack) -> Callable[[], ControlStore]:
        return lambda: opened.enter_context(closing(election(server).controls()))

    @pytest.fixture
    def of_another(self, server: MemoryServer) -> Callable[[], ControlStore]:
        return lambda: election(server, "west").controls()


class TestProposals(ProposalStoreContract):
    @pytest.fixture
    def store(self, server: MemoryServer, opened: ExitStack) -> Callable[[], ProposalStore]:
        return lambda: opened.enter_context(closing(election(server).proposals()))

    @pytest.fixture
    def of_another(self, server: MemoryServer) -> Callable[[], ProposalStore]:
        return lambda: election(server, "west").proposals()


class TestGroup(CollectorGroupContract):
    @pytest.fixture
    def member(self, server: MemoryServer, opened: ExitStack) -> Member:
        def join() -> CollectorGroup:
            group = election(server).collectors()
            opened.callback(group.leave)
            return group

        return join


class TestRegistry(RegistryContract):
    @pytest.fixture
    def open_registry(self, server: MemoryServer, opened: ExitStack) -> OpenRegistry:
        election(server).controls().raise_epoch(1)  # the election that it belongs to
        return lambda: opened.enter_context(closing(election(server).registry()))


class TestNotifications(NotificationStoreContract):
    @pytest.fixture
    def open_store(self, server: MemoryServer, opened: ExitStack) -> Callable[[], NotificationStore]:
        election(server).controls().raise_epoch(1)
        return lambda: opened.enter_context(closing(election(server).notifications()))
