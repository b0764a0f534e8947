"""PeakShedder: what it moves, where to, what it says, and that filters, weights and limits hold."""

from dataclasses import replace

import numpy as np
import pytest

from controller.model.decision import Reason, UnloadDecision
from controller.model.load import ClusterView, TopicDetail
from controller.planning.from_view import MappedProblem
from controller.planning.shares import Fit
from controller.strategies.catalogue import FILTERS
from controller.strategies.filters.fewest_bundles import FewestBundles
from controller.strategies.filters.max_topics import MaxTopics
from controller.strategies.shedding.peak_shedder import PeakShedder
from controller.strategies.shedding.peak_shedder.advice import too_large
from controller.strategies.shedding.peak_shedder.memory import PeakHistory
from controller.strategies.view_builder import Broker, Bundle, cluster_view
from tests.balance_problems import problem

MB = 1024 * 1024


def name(number: int) -> str:
    return f"acme/orders/0x{number << 24:08x}_0x{(number + 1) << 24:08x}"


def cluster(*brokers: tuple[float, ...], recent: tuple[int, ...] = (), share: float = 0.01) -> ClusterView:
    """Brokers with bundles of so many MB/s; each MB/s takes *share* of the CPU.  Bundles are numbered from 0 on."""
    made, number = [], 0
    for i, loads in enumerate(brokers):
        bundles = {name(number + j): Bundle(mbytes_in=mbytes, producers=3) for j, mbytes in enumerate(loads)}
        number += len(loads)
        made.append(Broker(f"b{i}:8080", cpu=sum(loads) * share, bundles=bundles))
    return cluster_view(*made, recently_unloaded=[name(number) for number in recent])


def decided(view: ClusterView, shedder: PeakShedder | None = None) -> UnloadDecision:
    """What is decided at first sight, without waiting for a second round."""
    return replace(shedder or PeakShedder(), hold=1).decide(view, PeakHistory())[0]


def moves(decision: UnloadDecision) -> list[tuple[int, str]]:
    names = [name(number) for number in range(99)]
    return [(names.index(unload.bundle), unload.destination) for unload in decision.unloads]


HOT = cluster((30.0, 25.0, 15.0, 10.0), (20.0,), (10.0,))


def test_the_hot_broker_gives_what_brings_it_near_the_mean() -> None:
    decision = decided(HOT)
    assert decision.reason is Reason.OVERLOADED
    assert {unload.source for unload in decision.unloads} == {"b0:8080"}
    assert moves(decision) == [(0, "b2:8080"), (2, "b1:8080")]
    assert all(unload.final for unload in decision.unloads)


def test_the_verdict_on_the_cluster_is_the_certificate() -> None:
    verdict = decided(HOT).verdicts[0]
    assert (verdict.subject, verdict.by, verdict.unit) == ("cluster", "PeakShedder", "usage")
    assert verdict.observed == pytest.approx(0.4)
    assert verdict.detail.startswith("0.8 before, 0.4 after; no plan of at most 50 moves ends below 0.367 (mean: ")


def test_it_says_how_well_load_explains_usage() -> None:
    exact, other = HOT, HOT.brokers.usage.copy()
    other[:, 0] += [5.0, -5.0, 8.0]
    noisy = replace(exact, brokers=replace(exact.brokers, usage=other))
    assert decided(exact).verdicts[0].detail.endswith("explained by load with an error of: cpu 0.0%")
    assert not decided(noisy).verdicts[0].detail.endswith("cpu 0.0%")


def test_every_unload_says_how_full_its_broker_is_and_will_be() -> None:
    why = decided(HOT).unloads[0].why
    assert str(why) == "b0:8080: Overloaded (0.8 vs 0.385 usage): by cpu; the plan brings it to 35 %"


def test_brokers_near_the_mean_are_left_alone() -> None:
    decision = decided(cluster((20.0, 20.0), (20.0, 18.0), (20.0, 21.0)))
    assert (decision.unloads, decision.reason) == ((), Reason.BALANCED)
    assert {verdict.reason for verdict in decision.verdicts} == {Reason.BALANCED}


def test_an_idle_cluster_is_left_alone_however_uneven() -> None:
    assert decided(cluster((3.0, 2.0), (0.5,), (0.5,))).unloads == ()


def test_bundles_that_were_unloaded_recently_stay_and_are_told() -> None:
    decision = decided(cluster((30.0, 25.0, 15.0, 10.0), (20.0,), (10.0,), recent=(1, 2)))
    assert not {1, 2} & {number for number, _ in moves(decision)}
    told = {verdict.subject: verdict.reason for verdict in decision.verdicts}
    assert told[name(1)] is told[name(2)] is Reason.RECENTLY_UNLOADED


def test_where_all_bundles_of_the_hot_broker_stay_their_reason_is_told() -> None:
    decision = decided(cluster((30.0, 25.0), (5.0,), (5.0,), recent=(0, 1)))
    assert (decision.unloads, decision.reason) == ((), Reason.RECENTLY_UNLOADED)


def test_a_bundle_that_alone_is_too_much_is_not_moved_to_and_fro() -> None:
    decision = decided(cluster((80.0,), (5.0,), (5.0,)))
    assert (decision.unloads, decision.reason) == ((), Reason.BELOW_MINIMUM)


def test_a_bundle_above_the_fair_share_is_to_be_split_where_its_load_is_halved() -> None:
    view = cluster((80.0,), (5.0,), (5.0,))
    load = np.zeros((4, 4))
    load[:, 2] = np.array([20.0, 15.0, 25.0, 20.0]) * MB
    detail = TopicDetail(starts=np.array([0, 4, 4, 4]), position=np.array([300, 100, 400, 200]), load=load)
    told = decided(replace(view, bundles=replace(view.bundles, detail=detail))).verdicts[-1]
    assert (told.subject, told.reason) == (name(0), Reason.TOO_LARGE)
    assert told.detail.endswith("split it at 0x0000012c, which halves its load")


def test_a_topic_above_the_fair_share_is_to_get_partitions() -> None:
    view = cluster((80.0,), (5.0,), (5.0,))
    load = np.zeros((2, 4))
    load[:, 2] = np.array([60.0, 20.0]) * MB
    detail = TopicDetail(starts=np.array([0, 2, 2, 2]), position=np.array([100, 200]), load=load)
    told = decided(replace(view, bundles=replace(view.bundles, detail=detail))).verdicts[-1]
    assert (told.subject, told.reason) == (name(0), Reason.LARGE_PARTITION)
    assert "its topic at 0x00000064 alone is at" in told.detail


def test_what_a_topic_takes_follows_the_fit_of_the_resource() -> None:
    view = cluster((80.0,), (5.0,))
    #: A topic of messages in and out, one of bytes in, and one of bytes out.
    load = np.array([[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
    for first, said in ((2.0, "0x0000012c alone is at 0.5"), (15.0, "0x00000064 alone is at 0.652")):
        detail = TopicDetail(starts=np.array([0, 3, 3]), position=np.array([100, 200, 300]), load=load)
        stated = MappedProblem(
            problem=problem([[1.0], [1.0]], [(0, [1.0]), (1, [0.1])]),
            rows=np.array([0, 1]),
            fits={"cpu": Fit(factors=(first, 3.0, 5.0), constant=0.0, error=0.0)},
        )
        shown = replace(view, bundles=replace(view.bundles, detail=detail))
        [told] = too_large(shown, stated, 0.4, "PeakShedder")
        assert (told.subject, told.reason, told.observed) == (name(0), Reason.LARGE_PARTITION, 1.0)
        assert told.detail == f"alone above the fair share of a broker, by cpu: its topic at {said}: give it partitions"


@pytest.mark.parametrize("most", [1, 2])
def test_no_more_bundles_move_than_the_option_says(most: int) -> None:
    assert len(decided(HOT, PeakShedder(max_moves=most)).unloads) == most


def test_many_small_bundles_move_although_those_of_one_round_change_little() -> None:
    view = cluster((1.0,) * 60, (20.0,), (10.0,))
    assert len(decided(view, PeakShedder(max_moves=3)).unloads) == 3
    assert len(decided(view).unloads) == 10
    assert len(decided(view, PeakShedder(max_moves_per_broker=100)).unloads) == 29


def test_no_more_bundles_leave_or_reach_a_broker_than_the_option_says() -> None:
    view = cluster((1.0,) * 30, (1.0,) * 30, (), share=0.02)
    found = decided(view, PeakShedder(max_moves_per_broker=3)).unloads
    assert [unload.destination for unload in found].count("b2:8080") == 3
    assert all([unload.source for unload in found].count(name) <= 3 for name in view.brokers.names)


def test_no_more_connections_reconnect_than_the_option_says() -> None:
    assert len(decided(HOT, PeakShedder(max_connections=5)).unloads) == 1
    assert decided(HOT, PeakShedder(max_connections=2)).unloads == ()


def test_a_weight_of_0_excludes_a_resource() -> None:
    assert decided(HOT, PeakShedder(cpu_weight=0.0)).reason is Reason.NO_LOAD_DATA


def test_messages_count_where_a_broker_has_a_limit_of_them() -> None:
    bundles = {name(i): Bundle(msg_rate_in=1000.0 * (i + 1)) for i in range(4)}
    view = cluster_view(Broker("b0:8080", bundles=bundles), Broker("b1:8080"))
    assert decided(view).reason is Reason.NO_LOAD_DATA
    found = decided(view, PeakShedder(broker_msg_rate=20_000.0))
    assert found.verdicts[0].observed == pytest.approx(0.25)


@pytest.mark.parametrize("option", ["broker_topics", "broker_sessions"])
def test_topics_and_sessions_count_where_a_broker_has_a_limit_of_them(option: str) -> None:
    bundles = {name(i): Bundle(topics=100, producers=60, consumers=40) for i in range(4)}
    view = cluster_view(Broker("b0:8080", bundles=bundles), Broker("b1:8080"))
    assert len(decided(view, PeakShedder(**{option: 500})).unloads) == 2  # type: ignore[arg-type]


def test_a_broker_with_more_capacity_gets_more() -> None:
    wide = cluster((30.0, 30.0, 30.0), (), ())
    limit = wide.brokers.limit.copy()
    limit[2] *= 4
    decision = decided(replace(wide, brokers=replace(wide.brokers, limit=limit)))
    assert [to for _, to in moves(decision)].count("b2:8080") == 3


def test_bundles_on_their_way_count_where_they_were_sent_and_stay() -> None:
    sent = HOT.with_preallocated(HOT.bundles.code_of[name(0)], 1).with_preallocated(HOT.bundles.code_of[name(1)], 2)
    decision = decided(sent)
    assert decision.verdicts[0].detail.startswith("0.5 before")
    assert not {0, 1} & {number for number, _ in moves(decision)}


def test_filters_are_asked_also_about_bundles_of_the_same_plan() -> None:
    topics = Broker("b0:8080", cpu=0.8, bundles={name(i): Bundle(mbytes_in=20.0, topics=60) for i in range(4)})
    view = cluster_view(topics, Broker("b1:8080"), Broker("b2:8080"))
    free = decided(view, PeakShedder())
    assert len(free.unloads) == 2
    limited = decided(view, PeakShedder(filters=(MaxTopics(max_topics=59),)))
    assert sorted(to for _, to in moves(limited)) == ["b1:8080", "b2:8080"]


def test_a_namespace_isolated_to_its_broker_stays() -> None:
    class Nowhere:
        reason = Reason.ISOLATION_POLICY
        binding = True

        def keep(self, view: ClusterView, bundle: int, candidates: np.ndarray) -> np.ndarray:
            own: np.ndarray = candidates[candidates == view.bundles.broker[bundle]]
            return own

    decision = decided(HOT, PeakShedder(filters=(Nowhere(),)))  # type: ignore[arg-type]
    assert (decision.unloads, decision.reason) == ((), Reason.BELOW_MINIMUM)


def test_a_filter_that_does_not_bind_and_leaves_nobody_is_ignored() -> None:
    class Nobody:
        reason = Reason.BROKER_VERSION
        binding = False

        def keep(self, view: ClusterView, bundle: int, candidates: np.ndarray) -> np.ndarray:
            return candidates[:0]

    assert moves(decided(HOT, PeakShedder(filters=(Nobody(),)))) == moves(decided(HOT))  # type: ignore[arg-type]


def test_the_filters_of_the_catalogue_leave_a_cluster_without_policies_as_it_is() -> None:
    every = PeakShedder(filters=tuple(cls() for cls in FILTERS.values()))
    assert moves(decided(HOT, every)) == moves(decided(HOT))


def test_usages_that_are_no_numbers_attract_nothing() -> None:
    usage = HOT.brokers.usage.copy()
    usage[2] = np.nan
    view = replace(HOT, brokers=replace(HOT.brokers, usage=usage))
    assert "b2:8080" not in {to for _, to in moves(decided(view))}


def test_loads_that_are_no_numbers_are_survived() -> None:
    load = HOT.bundles.load.copy()
    load[0], load[1] = np.nan, np.inf
    view = replace(HOT, bundles=replace(HOT.bundles, load=load, short_term=load))
    decided(view)


def test_without_brokers_there_is_nothing_to_do() -> None:
    assert decided(cluster_view()).reason is Reason.NO_BROKERS
    with np.errstate(all="raise"):
        assert not PeakShedder().hurries(cluster_view())


def test_it_hurries_where_a_broker_is_above_the_urgent_usage() -> None:
    assert [PeakShedder().hurries(cluster((load,), (5.0,), (5.0,))) for load in (79.0, 80.0, 81.0)] == [
        False, False, True,
    ]  # fmt: skip
    assert not PeakShedder(urgent_percent=0.0).hurries(cluster((81.0,), (5.0,), (5.0,)))
    one_resource = cluster_view(
        Broker("a:8080", cpu=0.81, bandwidth_in=0.2, bundles={name(0): Bundle(mbytes_in=80.0)}),
        Broker("b:8080", cpu=0.05, bandwidth_in=0.1, bundles={name(1): Bundle(mbytes_in=5.0)}),
    )
    assert PeakShedder().hurries(one_resource), "one is enough"


def test_one_broker_gives_nothing() -> None:
    assert decided(cluster((50.0, 40.0))).unloads == ()


def test_usage_that_load_does_not_explain_moves_nothing() -> None:
    chance = np.random.default_rng(7)
    even = cluster(*[(10.0, 10.0, 10.0, 10.0)] * 6)
    for _ in range(10):
        usage, limit = even.brokers.usage.copy(), even.brokers.limit.copy()
        usage[:, 2], limit[:, 2] = chance.uniform(0.0, 95.0, 6), 100.0
        view = replace(even, brokers=replace(even.brokers, usage=usage, limit=limit))
        assert decided(view).unloads == ()


def test_a_hot_broker_gives_although_another_resource_is_noise() -> None:
    usage, limit = HOT.brokers.usage.copy(), HOT.brokers.limit.copy()
    usage[:, 2], limit[:, 2] = [3.0, 25.0, 8.0], 100.0
    assert decided(replace(HOT, brokers=replace(HOT.brokers, usage=usage, limit=limit))).unloads != ()


def test_the_filters_hold_for_each_move_after_those_before_it() -> None:
    small = [tuple(8.0 for _ in range(10)), tuple(8.0 for _ in range(10))]
    view = cluster(*small, (2.0,) * 11, (2.0,) * 11)
    evenly = FewestBundles(enabled=True)
    decision = decided(view, PeakShedder(filters=(evenly,)))
    assert decision.unloads
    for unload in decision.unloads:
        row, to = view.bundles.code_of[unload.bundle], view.brokers.code_of[unload.destination]
        assert to in evenly.keep(view, row, np.arange(4))
        view = view.with_preallocated(row, to)


def test_many_moves_that_gain_little_are_not_made() -> None:
    view = cluster((1.0,) * 54, (1.0,) * 46, (1.0,) * 46)
    assert decided(view, PeakShedder(max_moves=2, max_moves_per_broker=1)).unloads == ()


def test_a_round_tells_what_is_left_for_later_rounds() -> None:
    told = decided(cluster((1.0,) * 60, (20.0,), (10.0,))).verdicts[0].detail
    assert "; 19 more moves later bring it to 0.31; brokers' usage" in told
