"""``trimtab bench moves``: where its topics lie, and how its figures are made."""

import pytest

from controller.bench.moves import stall
from controller.bench.tables import moves_table
from controller.cli.shared.console import captured
from controller.wire.answers.bench import MovesAnswer, StallAnswer


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        ([0.1], (100.0, 100.0, 100.0)),
        ([-0.02, -0.01, 0.3], (0.0, 300.0, 300.0)),
        ([i / 1000 for i in range(1, 201)], (100.0, 198.0, 200.0)),
    ],
)
def test_a_stall_is_a_value_that_was_measured_and_none_is_below_0(
    seconds: list[float], expected: tuple[float, float, float]
) -> None:
    found = stall(seconds)
    assert (found.p50, found.p99, found.max) == expected


def test_a_row_for_each_kind_of_unload() -> None:
    one = MovesAnswer(
        load_manager="modular", destination=True, unloads=60, arrived=59, topics=10, producers=50, rate=20.0,
        command=stall([0.2]), publishing=StallAnswer(p50=120.4, p99=300.0, max=1234.0), receiving=stall([0.1]),
        publishing_elsewhere=stall([0.0]), receiving_elsewhere=stall([0.0]),
    )  # fmt: skip
    table = moves_table([one, one.model_copy(update={"destination": False})])
    lines = [line for line in captured(200, table.print).splitlines() if line.startswith("modular")]
    assert [line.split()[1:5] for line in lines] == [[kind, "59", "of", "60"] for kind in ("destination", "none")]
    assert "120 / 300 / 1,234" in lines[0]
    assert "50 producers of 20 msg/s" in table.title
