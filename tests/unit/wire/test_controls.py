"""What operators set comes back from its bytes as it was."""

import pytest

from controller.model.controls import Choice, OperatorControls
from controller.model.errors import WireError
from controller.wire.controls import encode_controls, parse_controls

MODE = Choice(value="observe", reason="maintenance", by="ada@lab", at_ms=1_735_689_600_000)
PAUSE = Choice(value="paused", reason="", by="x", at_ms=7)


@pytest.mark.parametrize(
    "controls",
    [
        OperatorControls(),
        OperatorControls(mode=MODE),
        OperatorControls(pause=PAUSE),
        OperatorControls(mode=MODE, pause=PAUSE, resumed_ms=9),
    ],
)
def test_controls_come_back(controls: OperatorControls) -> None:
    assert parse_controls(encode_controls(controls)) == controls


def test_a_reason_that_is_too_long_is_refused() -> None:
    with pytest.raises(WireError):
        encode_controls(OperatorControls(mode=Choice(value="observe", reason="x" * 100_000, by="x", at_ms=0)))


def test_what_nobody_has_set_may_be_left_out() -> None:
    assert parse_controls(b'{"v":1,"type":"controls"}') == OperatorControls()
    assert parse_controls(b'{"v":1,"type":"controls"}').resumed_ms == 0
