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
    view = cluster_view(Broker("b0", cpu=0.94, bundles=HOT), Broker("b1", cpu=0.2, bundles=COLD))
    memory = shedder.initial_memory()
    for at in range(3):
        found, memory = shedder.decide(replace(view, as_of_ms=INTERVAL + at * 60_000), memory)
    assert found.unloads == ()
    assert found.reason is Reason.BELOW_MINIMUM
    [of_broker] = [each for each in found.verdicts if each.subject == "b0"]
    assert of_broker.reason is Reason.BELOW_MINIMUM
    assert "what load explains of its usage is too uncertain" in of_broker.detail
    assert all(each.reason is not Reason.BALANCED for each in found.verdicts if each.subject == CLUSTER)


def test_a_broker_that_is_full_gives_however_uncertain_it_is_what_a_bundle_takes() -> None:
    for brokers in (2, 3, 4):
        cold = [Broker(f"b{number}", cpu=0.2, bundles=_named(COLD, number)) for number in range(1, brokers)]
        view = cluster_view(Broker("b0", cpu=0.99, bundles=HOT), *cold)
        found, _ = PeakShedder().decide(view, PeakShedder().initial_memory())
        assert {unload.source for unload in found.unloads} == {"b0"}


def _named(bundles: dict[str, Bundle], number: int) -> dict[str, Bundle]:
    return {name.replace("acme/o", f"acme/o{number}"): bundle for name, bundle in bundles.items()}
