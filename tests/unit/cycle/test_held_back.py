"""What strategies remember of unloads that were held back: as if they had not been chosen."""

from controller.model.decision import Reason, Unload, Verdict
from controller.strategies.shedding.avg_shedder.pairs import BrokerHitCounts
from controller.strategies.shedding.transfer_shedder.memory import TransferHistory


def unload(source: str, destination: str = "") -> Unload:
    why = Verdict(subject=source, reason=Reason.OVERLOADED, by="test")
    return Unload(bundle=f"acme/{source}/0x00000000_0xffffffff", source=source, destination=destination, why=why)


def test_a_broker_that_gave_nothing_cools_down_no_longer_than_before() -> None:
    before = TransferHistory(hit_count=3, recently_unloaded_brokers={"a": 1})
    after = TransferHistory(hit_count=0, recently_unloaded_brokers={"a": 5, "b": 5, "c": 5})
    held = [unload("a"), unload("b"), unload("c")]
    kept = after.revert_unissued(before, held, [unload("c")])
    assert kept == TransferHistory(hit_count=0, recently_unloaded_brokers={"a": 1, "c": 5})
    assert after.revert_unissued(before, held, []) == TransferHistory(hit_count=3, recently_unloaded_brokers={"a": 1})
    assert after.revert_unissued(before, [unload("c")], [unload("c")]) is after


def test_hits_of_both_brokers_of_a_pair_that_was_held_back_are_counted_on() -> None:
    before, after = BrokerHitCounts(high={"a": 4}, low={"b": 2, "d": 1}), BrokerHitCounts(high={"c": 1}, low={})
    kept = after.revert_unissued(before, [unload("a", "b")], [])
    assert kept == BrokerHitCounts(high={"a": 4, "c": 1}, low={"b": 2})
