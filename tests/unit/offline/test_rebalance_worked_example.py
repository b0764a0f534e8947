"""90 connectors with 900 tasks, started and stopped one by one: the figure that the two protocols are compared by."""

from functools import cache

import pytest

from controller.offline.connect_group import (
    WORKERS,
    Change,
    ExampleRow,
    example_rows,
    play,
    summary_rows,
    tasks_stopped,
)
from controller.strategies.common.worker_group import NOTHING
from tests.effort import tries

pytestmark = pytest.mark.slow

RELEASES = ("cooperative-2.6.3", "cooperative", "cooperative-3.9", "cooperative-trimtab")


@cache
def rows(release: str = "cooperative-2.6.3") -> tuple[ExampleRow, ...]:
    return tuple(example_rows(release))


def test_eager_stops_every_task_that_runs_at_every_change() -> None:
    running = [0, *(row.tasks for row in rows())][:-1]
    assert [row.eager for row in rows()] == running
    assert max(running) == 900


@pytest.mark.parametrize("release", RELEASES[: tries(plain=2, thorough=4)])
def test_cooperative_stops_nothing_to_start_a_connector_and_its_own_tasks_alone_to_stop_one(release: str) -> None:
    assert [row.cooperative for row in rows(release)] == [0] * 90 + [10] * 90


def test_the_cost_of_a_cooperative_change_does_not_depend_on_how_much_runs() -> None:
    stopping = [row for row in rows() if row.what.startswith("stop")]
    assert {row.cooperative for row in stopping} == {10}
    assert len({row.eager for row in stopping}) == len(stopping)


def test_the_sums_are_those_of_the_table() -> None:
    sums = {row.what: (row.eager, row.cooperative) for row in summary_rows(rows())[-3:]}
    assert sums == {"start all": (40_050, 0), "stop all": (40_950, 900), "altogether": (81_000, 900)}


def test_a_worker_that_joins_or_restarts_at_900_tasks_moves_its_share_or_nothing() -> None:
    workers = {f"w{i}": NOTHING for i in range(WORKERS)}
    changes = [
        Change(create={f"ct{i:02}": 10 for i in range(90)}),
        Change(join=("new",)),
        Change(leave=("new",)),
        Change(join=("new",), after_ms=60_000),
        Change(),
    ]
    found = {
        protocol: tasks_stopped(play(workers, {}, changes, protocol=protocol), len(changes))[1:4]
        for protocol in ("eager", "cooperative-2.6.3")
    }
    assert found == {"eager": [900, 675, 900], "cooperative-2.6.3": [225, 0, 0]}
