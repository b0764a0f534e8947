"""The contract of controller.adapters.election.controls.ControlStore."""

from collections.abc import Callable
from contextlib import suppress
from typing import TypeAlias

from controller.adapters.election.controls import ABSENT, ControlStore
from controller.model.controls import Choice, Drained, OperatorControls, OrderedMove, Orders, Pause
from controller.model.errors import AnotherClusterError

#: One more process that reads and writes the controls of the same cluster; the fixture closes it at the end.
OpenStore: TypeAlias = Callable[[], ControlStore]

PAUSED = OperatorControls(pauses=(Pause(reason="upgrade", by="ada", at_ms=5),))
OBSERVE = OperatorControls(mode=Choice(value="observe", reason="", by="bob", at_ms=1))
ORDERS = OperatorControls(
    drained=(Drained(broker="a:8080", by="ada", at_ms=5),),
    orders=Orders(
        plan="0f" * 32,
        step=1,
        wave=2,
        waves=3,
        moves=(OrderedMove(bundle="acme/own/0x00000000_0x80000000", source="a:8080", destination="b:8080"),),
        checked_at=60_000,
        expires_at_ms=360_000,
        holder="one",
        by="ada",
    ),
)


class ControlStoreContract:
    """Inherited by the tests of each implementation, which give the fixtures ``store`` and ``of_another``.

    The second one opens the controls of another cluster whose settings name the same place.
    """

    def test_at_first_nobody_has_set_anything(self, store: OpenStore) -> None:
        one = store()
        assert one.read() == (OperatorControls(), ABSENT)
        assert one.version() == ABSENT
        assert one.epoch() == 0

    def test_what_one_process_sets_every_other_reads(self, store: OpenStore) -> None:
        one, other = store(), store()
        assert one.write(PAUSED, ABSENT)
        controls, version = other.read()
        assert controls == PAUSED
        assert version == other.version() == one.version() != ABSENT

    def test_orders_and_drained_brokers_come_back(self, store: OpenStore) -> None:
        one, other = store(), store()
        assert one.write(ORDERS, ABSENT)
        assert other.read()[0] == ORDERS

    def test_controls_are_replaced_by_who_knows_their_version(self, store: OpenStore) -> None:
        one = store()
        assert one.write(PAUSED, ABSENT)
        assert one.write(OBSERVE, one.version())
        assert one.read()[0] == OBSERVE

    def test_a_change_by_somebody_else_in_between_is_not_written_over(self, store: OpenStore) -> None:
        one, other = store(), store()
        assert one.write(PAUSED, ABSENT)
        assert not other.write(OBSERVE, ABSENT)
        before = other.version()
        assert one.write(OBSERVE, before)
        assert not other.write(OperatorControls(), before)
        assert other.read()[0] == OBSERVE

    def test_what_is_set_for_one_cluster_holds_for_no_other(self, store: OpenStore, of_another: OpenStore) -> None:
        one = store()
        assert one.write(PAUSED, ABSENT)
        one.raise_epoch(7)
        with suppress(AnotherClusterError):  # the place is one cluster's
            other = of_another()
            assert other.read() == (OperatorControls(), ABSENT)
            assert other.epoch() == 0
            assert other.write(OBSERVE, ABSENT)
            other.raise_epoch(9)
        assert one.read()[0] == PAUSED
        assert one.epoch() == 7

    def test_the_epoch_is_raised_and_never_lowered(self, store: OpenStore) -> None:
        one, other = store(), store()
        one.raise_epoch(7)
        assert other.epoch() == 7
        other.raise_epoch(3)
        assert one.epoch() == 7
        other.raise_epoch(8)
        assert one.epoch() == 8
