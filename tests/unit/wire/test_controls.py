"""What operators set comes back from its bytes as it was."""

from dataclasses import replace

import pytest

from controller.model.controls import Choice, Drained, OperatorControls, OrderedMove, Orders, Pause
from controller.model.errors import WireError
from controller.wire.controls import encode_controls, parse_controls

MODE = Choice(value="observe", reason="maintenance", by="ada@lab", at_ms=1_735_689_600_000)
PAUSE = Pause(reason="", by="x", at_ms=7)


@pytest.mark.parametrize(
    "controls",
    [
        OperatorControls(),
        OperatorControls(mode=MODE),
        OperatorControls(pauses=(PAUSE,)),
        OperatorControls(mode=MODE, pauses=(PAUSE,), resumed_ms=9),
        OperatorControls(pauses=(PAUSE,), stopped_ms=9),
    ],
)
def test_controls_come_back(controls: OperatorControls) -> None:
    assert parse_controls(encode_controls(controls)) == controls


def test_a_reason_that_is_too_long_is_refused() -> None:
    with pytest.raises(WireError):
        encode_controls(OperatorControls(mode=Choice(value="observe", reason="x" * 100_000, by="x", at_ms=0)))


def test_controls_have_512_kib_at_most() -> None:
    with pytest.raises(WireError, match="524289 bytes, allowed: 524288"):
        parse_controls(b" " * (512 * 1024 + 1))
    assert parse_controls(b'{"v":1,"type":"controls"}'.ljust(512 * 1024)) == OperatorControls()


def test_what_nobody_has_set_may_be_left_out() -> None:
    assert parse_controls(b'{"v":1,"type":"controls"}') == OperatorControls()
    assert parse_controls(b'{"v":1,"type":"controls"}').resumed_ms == 0


def _ordered(**changes: object) -> OperatorControls:
    orders = Orders(
        plan="0f" * 32,
        step=1,
        wave=1,
        waves=1,
        moves=(OrderedMove(bundle="acme/own/0x00000000_0x80000000", source="a:80", destination="b:80"),),
        checked_at=1,
        expires_at_ms=2,
        holder="one",
        by="ada",
    )
    return OperatorControls(orders=replace(orders, **changes))  # type: ignore[arg-type]


def test_orders_and_drained_brokers_come_back_and_are_left_out_where_there_are_none() -> None:
    controls = replace(_ordered(), drained=(Drained(broker="a:80", by="ada", at_ms=3),))
    assert parse_controls(encode_controls(controls)) == controls
    assert b"orders" not in encode_controls(OperatorControls())
    assert b"drained" not in encode_controls(OperatorControls())


@pytest.mark.parametrize(
    "changes",
    [
        {"plan": "trust me"},
        {"step": 0},
        {"wave": -1},
        {"checked_at": -1},
        {"holder": ""},
        {"by": "x" * 101},
        {"moves": (OrderedMove(bundle="acme/own", source="a:80", destination="b:80"),)},
        {"moves": (OrderedMove(bundle="acme/own/0x00000000_0x80000000", source="a\n", destination="b:80"),)},
        {"moves": (OrderedMove(bundle="acme/own/0x00000000_0x80000000", source="a:80", destination="b:80"),) * 101},
    ],
)
def test_orders_that_make_no_sense_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises(WireError):
        encode_controls(_ordered(**changes))


def test_orders_that_nothing_held_back_have_the_bytes_that_they_had() -> None:
    assert b"held_back" not in encode_controls(_ordered())
    held = _ordered(held_back=True)
    assert parse_controls(encode_controls(held)) == held
