"""The contracts of every election, for an election on the log of any system."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import ClassVar, TypeAlias

import pytest

from controller.adapters.election.collectors import CollectorGroup
from controller.adapters.election.controls import ControlStore
from controller.adapters.election.notifications import NotificationStore
from controller.adapters.election.proposals import ProposalStore
from controller.log.election.system import LogElection
from controller.log.port import Log
from controller.model.leadership import Leader, Leadership
from tests.contracts.collectors import CollectorGroupContract, Member
from tests.contracts.controls import ControlStoreContract
from tests.contracts.leadership import Contender, LeadershipContract
from tests.contracts.notifications import NotificationStoreContract
from tests.contracts.proposals import ProposalStoreContract
from tests.contracts.registry import OpenRegistry, RegistryContract

#: Opens the log, whose topic for the election is the test's own; the fixture of each system's tests gives it.
Connect: TypeAlias = Callable[[], Log]
#: The election of a cluster.
OpenElection: TypeAlias = Callable[[str], LogElection]


class OnLog:
    """What a test of an election on the log is given; the module has a fixture ``connect``."""

    SESSION_SECONDS: ClassVar = 4.0

    @pytest.fixture
    def open_election(self, connect: Connect) -> OpenElection:
        return lambda cluster: LogElection(
            connect, cluster=cluster, session_seconds=self.SESSION_SECONDS, where="the topic of the election"
        )

    @pytest.fixture
    def opened(self) -> Iterator[ExitStack]:
        """What is closed at the end of the test."""
        with ExitStack() as stack:
            yield stack


class ElectionContracts(OnLog):
    """All contracts; a system's tests derive one class."""

    class TestLeadership(LeadershipContract):
        @pytest.fixture
        def contender(self, open_election: OpenElection, opened: ExitStack) -> Contender:
            def enter() -> Leadership:
                leadership = open_election("east").leadership()
                opened.callback(leadership.release)
                return leadership

            return enter

        @pytest.fixture
        def leader(self, open_election: OpenElection) -> Callable[[], Leader | None]:
            return open_election("east").leader

    class TestControls(ControlStoreContract):
        @pytest.fixture
        def store(self, open_election: OpenElection, opened: ExitStack) -> Callable[[], ControlStore]:
            return lambda: opened.enter_context(closing(open_election("east").controls()))

        @pytest.fixture
        def of_another(self, open_election: OpenElection) -> Callable[[], ControlStore]:
            return lambda: open_election("west").controls()

    class TestProposals(ProposalStoreContract):
        @pytest.fixture
        def store(self, open_election: OpenElection, opened: ExitStack) -> Callable[[], ProposalStore]:
            return lambda: opened.enter_context(closing(open_election("east").proposals()))

        @pytest.fixture
        def of_another(self, open_election: OpenElection) -> Callable[[], ProposalStore]:
            return lambda: open_election("west").proposals()

    class TestGroup(CollectorGroupContract):
        @pytest.fixture
        def member(self, open_election: OpenElection, opened: ExitStack) -> Member:
            def join() -> CollectorGroup:
                group = open_election("east").collectors()
                opened.callback(group.leave)
                return group

            return join

    class TestRegistry(RegistryContract):
        @pytest.fixture
        def open_registry(self, open_election: OpenElection, opened: ExitStack) -> OpenRegistry:
            open_election("east").controls().raise_epoch(1)  # the election that it belongs to
            return lambda: opened.enter_context(closing(open_election("east").registry()))

    class TestNotifications(NotificationStoreContract):
        @pytest.fixture
        def open_store(self, open_election: OpenElection, opened: ExitStack) -> Callable[[], NotificationStore]:
            open_election("east").controls().raise_epoch(1)
            return lambda: opened.enter_context(closing(open_election("east").notifications()))
