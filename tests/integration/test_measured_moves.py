"""``scripts/measure moves`` on real brokers, with few clients and unloads."""

from pathlib import Path

import pytest

from tests.measure.moves import MANAGERS, Load, moves

pytestmark = [pytest.mark.integration, pytest.mark.extended]


def test_clients_of_an_unloaded_bundle_stall_and_work_again(tmp_path: Path) -> None:
    found = list(moves(2, Load(topics=2, each=2, rate=20.0), tmp_path))
    kinds = [(manager, destination) for manager in MANAGERS for destination in (True, False)]
    assert [(one.load_manager, one.destination) for one in found] == kinds
    for one in found:
        assert one.unloads == 2
        assert 0 < one.command.p50 <= one.command.max
        assert 0 < one.publishing.max < 60_000
        assert 0 < one.receiving.max < 60_000
    assert all(one.arrived >= 1 for one in found if one.destination)
