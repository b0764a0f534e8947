"""Whole rounds of TransferShedder with the real reports and filters of the extensible load manager, over minutes."""

from controller.strategies.shedding.transfer_shedder.memory import TransferHistory
from tests.conformance.recorded_cycles import check_commands, played
from tests.conformance.vectors import Case

COMPONENT = "cycles_extensible"

_EXTENSIBLE = {
    "loadManagerClassName": "ExtensibleLoadManagerImpl",
    "loadBalancerLoadSheddingStrategy": "TransferShedder",
}


def test_the_same_bundles_go_to_the_same_brokers_round_by_round(case: Case) -> None:
    for expected, made, memory in played(case, **_EXTENSIBLE):
        check_commands(expected, made)
        assert isinstance(memory.shedder, TransferHistory)
        assert memory.shedder.hit_count == expected["hit_count"]
