"""The election on a log in memory, against the contracts that every election keeps."""

from functools import partial

import pytest

from controller.log.memory import MemoryLog, MemoryServer
from tests.contracts.election_on_log import Connect, ElectionContracts


@pytest.fixture
def connect() -> Connect:
    return partial(MemoryLog, MemoryServer(seed=1))


class TestContracts(ElectionContracts):
    #: A process looks twenty times in it.
    SESSION_SECONDS = 0.4
