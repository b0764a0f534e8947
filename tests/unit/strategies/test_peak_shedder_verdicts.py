"""What PeakShedder says of a broker that is nearly full and whose usage load does not explain."""

from dataclasses import replace

from controller.model.decision import CLUSTER, Reason
from controller.strategies.shedding.peak_shedder import PeakShedder
from controller.strategies.view_builder import INTERVAL, Broker, Bundle, cluster_view

#: b0 uses five times the CPU of b1 for twice the messages.
HOT = {f"acme/o/0x{at:08x}_0x{at + 1:08x}": Bundle(mbytes_in=1.0, msg_rate_in=4000.0) for at in range(8)}
COLD = {f"acme/o/0x{at:08x}_0x{at + 1:08x}": Bundle(mbytes_in=1.0, msg_rate_in=4000.0) for at in range(8, 12)}


def test_a_hot_broker_that_gives_nothing_is_not_called_balanced() -> None:
    shedder = PeakShedder()
    view = cluster_view(Broker("b0", cpu=0.99, bundles=HOT), Broker("b1", cpu=0.2, bundles=COLD))
    memory = shedder.initial_memory()
    for at in range(3):
        found, memory = shedder.decide(replace(view, as_of_ms=INTERVAL + at * 60_000), memory)
    assert found.unloads == ()
    assert found.reason is Reason.BELOW_MINIMUM
    [of_broker] = [each for each in found.verdicts if each.subject == "b0"]
    assert of_broker.reason is Reason.BELOW_MINIMUM
    assert "what load explains of its usage is too uncertain" in of_broker.detail
    assert all(each.reason is not Reason.BALANCED for each in found.verdicts if each.subject == CLUSTER)
