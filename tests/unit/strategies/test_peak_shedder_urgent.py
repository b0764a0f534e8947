"""What is so now and what is foreseen: an urgent usage of now counts whatever is foreseen; to be idle takes both."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from controller.model.decision import Reason, UnloadDecision
from controller.model.load import ClusterView
from controller.strategies.shedding.peak_shedder import PeakShedder
from controller.strategies.shedding.peak_shedder.memory import MovePromise, PeakHistory, Proven, Rest
from controller.strategies.view_builder import Broker, Bundle, cluster_view

MINUTE, HOUR = 60_000, 3_600_000
SHEDDER = PeakShedder()
#: Usage of the brokers; each has bundles of 5 % of its CPU.
HOT = {"a": 0.88, "b": 0.5, "c": 0.47}


def cluster(usage: Mapping[str, float], at_ms: int = 0) -> ClusterView:
    made = [
        Broker(
            f"{name}:8080",
            cpu=share,
            bundles={f"acme/orders/{name}{number}": Bundle(mbytes_in=share * 5, producers=3) for number in range(20)},
        )
        for name, share in usage.items()
    ]
    return cluster_view(*made, as_of_ms=at_ms)


def after_a_day(later: Mapping[str, float], now: Mapping[str, float]) -> PeakHistory:
    """What is remembered at 00:00 of the second day: brokers have the usage *later* at 10:00 to 16:00, else *now*."""
    memory = PeakHistory()
    for hour in range(25):
        _, memory = SHEDDER.decide(cluster(later if 10 <= hour % 24 <= 16 else now, hour * HOUR), memory)
    # Only what was seen of the load is of interest here.
    return replace(memory, over={}, promises={}, rest=Rest(), proven=Proven(), day_skill=1.0, shifting=0.0)


def decided(usage: Mapping[str, float], memory: PeakHistory, *, at_ms: int = 0) -> tuple[UnloadDecision, PeakHistory]:
    return SHEDDER.decide(cluster(usage, at_ms), memory)


def givers(decision: UnloadDecision) -> set[str]:
    return {unload.source for unload in decision.unloads}


def test_a_load_that_is_foreseen_of_others_does_not_hide_it() -> None:
    memory, at = after_a_day({"a": 0.88, "b": 0.95, "c": 0.95}, HOT), 24 * HOUR + MINUTE
    hidden, _ = PeakShedder(urgent_percent=0.0).decide(cluster(HOT, at), memory)
    assert (hidden.unloads, "cpu at 1" in hidden.verdicts[1].detail) == ((), True)
    assert givers(decided(HOT, memory, at_ms=at)[0]) == {"a:8080"}


def test_brokers_that_will_be_full_later_take_bundles_off_it_now() -> None:
    now, later = {"a": 0.9, "b": 0.5, "c": 0.5}, {"a": 0.4, "b": 0.95, "c": 0.95}
    memory, at = after_a_day(later, now), 24 * HOUR + MINUTE
    # One move alone leaves one of them fuller later.
    found, _ = PeakShedder(max_moves=1).decide(cluster(now, at), memory)
    assert givers(found) == {"a:8080"}
    assert "not for urgent moves" in found.verdicts[1].detail


def test_a_broker_that_is_busy_at_another_hour_is_not_idle_now() -> None:
    now = {"a": 0.45, "b": 0.4, "c": 0.4, "d": 0.2}
    later = {**now, "d": 0.38}
    memory = replace(after_a_day(later, now), over={"": 7})
    view = cluster(now, 24 * HOUR + MINUTE)
    assert SHEDDER.decide(view, memory)[0].unloads == ()
    blind, _ = PeakShedder(hold=1).decide(view, replace(memory, day_skill=0.0))
    assert "d:8080" in {unload.destination for unload in blind.unloads}


def test_a_rest_after_plans_of_no_use_does_not_hide_it() -> None:
    found, _ = decided(HOT, PeakHistory(rest=Rest(left=9, rounds=9, excess=0.1, over=1, movable=60)))
    assert givers(found) == {"a:8080"}


def test_it_gives_no_more_than_it_has_to_where_nothing_else_makes_it_give() -> None:
    found, _ = decided(HOT, PeakHistory(brokers=("a:8080", "b:8080")))
    assert 0.73 < 0.88 * (1 - len(found.unloads) / 20) < 0.78


def test_a_broker_that_came_gives_nothing_in_its_first_round() -> None:
    memory = PeakHistory(brokers=("b:8080", "c:8080"))
    first, memory = decided(HOT, memory)
    assert (givers(first), first.reason) == (set(), Reason.HIT_COUNT)
    second, _ = decided(HOT, memory, at_ms=MINUTE)
    assert givers(second) == {"a:8080"}


def test_while_brokers_come_and_go_the_others_give_at_once() -> None:
    found, _ = decided(HOT, PeakHistory(brokers=("a:8080", "b:8080")))
    assert givers(found) == {"a:8080"}


def test_a_usage_that_has_fallen_is_urgent_no_more_although_what_is_followed_lags_behind() -> None:
    _, memory = PeakShedder(urgent_percent=0.0).decide(cluster(HOT), PeakHistory(brokers=("a:8080", "b:8080")))
    assert givers(decided(HOT, memory, at_ms=MINUTE)[0]) == {"a:8080"}
    assert givers(decided({**HOT, "a": 0.45}, memory, at_ms=MINUTE)[0]) == set()


def placed(where: Mapping[str, str], of_each: Mapping[str, float], at_ms: int) -> ClusterView:
    """Bundles on the brokers *where* they are, each with a share *of_each* by the first letter of its name."""
    bundles: dict[str, dict[str, Bundle]] = {broker: {} for broker in sorted(set(where.values()))}
    for name, broker in where.items():
        bundles[broker][f"acme/orders/{name}"] = Bundle(mbytes_in=100 * of_each[name[0]], producers=3)
    usage = {broker: sum(of_each[name[0]] for name in where if where[name] == broker) for broker in bundles}
    return cluster_view(*(Broker(each, cpu=usage[each], bundles=bundles[each]) for each in bundles), as_of_ms=at_ms)


def test_in_a_cluster_that_is_full_as_a_whole_brokers_near_the_mean_give_nothing() -> None:
    memory = PeakHistory()
    for at in range(5):
        found, memory = decided({"a": 0.92, "b": 0.9, "c": 0.88}, memory, at_ms=at * MINUTE)
        assert found.unloads == ()


@pytest.mark.parametrize("percent", [0.0, 100.0])
def test_the_option_says_how_high_that_is(percent: float) -> None:
    calm = PeakShedder(urgent_percent=percent)
    assert calm.decide(cluster(HOT), PeakHistory(proven=Proven(error=0.2)))[0].unloads == ()


def test_a_load_that_is_foreseen_makes_no_promise_kept() -> None:
    memory = after_a_day({"a": 0.4, "b": 1.0, "c": 1.0}, {"a": 0.4, "b": 0.4, "c": 0.4})
    promise = MovePromise(source="b:8080", destination="a:8080", rounds=1, promised=0.4, mean=0.4)
    now = {"a": 0.6, "b": 0.4, "c": 0.3}
    for at in (1, 2):  # the second minute in a row is believed
        memory = replace(memory, promises={"acme/orders/a0": promise}, broken=())
        _, memory = decided(now, memory, at_ms=24 * HOUR + at * MINUTE)
    assert memory.broken == ("acme/orders/a0",)
