"""The election on a log in memory, against the contracts that every election keeps."""

import pytest

from controller.log.election.system import LogElection
from controller.log.memory import MemoryLog, MemoryServer
from tests.contracts.election_on_log import (
    ControlsOnLog,
    GroupOnLog,
    LeadershipOnLog,
    NotificationsOnLog,
    OpenElection,
    ProposalsOnLog,
    RegistryOnLog,
    opened,
)

__all__ = ["opened"]

#: A process looks twenty times in it.
SESSION_SECONDS = 0.4


@pytest.fixture
def open_election() -> OpenElection:
    server = MemoryServer(seed=1)
    return lambda cluster: LogElection(
        lambda: MemoryLog(server), cluster=cluster, session_seconds=SESSION_SECONDS, where="memory/election"
    )


class TestLeadership(LeadershipOnLog):
    pass


class TestControls(ControlsOnLog):
    pass


class TestProposals(ProposalsOnLog):
    pass


class TestGroup(GroupOnLog):
    pass


class TestRegistry(RegistryOnLog):
    pass


class TestNotifications(NotificationsOnLog):
    pass
