"""The balance problem of a cluster in numbers: what brokers carry, what bundles take of it, and what stays."""

from dataclasses import replace
from typing import Final

import numpy as np
import pytest

from controller.model.load import ClusterView
from controller.planning.from_view import (
    Counted,
    Foreseen,
    Later,
    MappedProblem,
    drivers,
    finite,
    fitted_below_the_limit,
    map_problem,
    weight,
)
from controller.strategies.view_builder import Broker, Bundle, cluster_view

MB: Final = 1024 * 1024
#: Of each broker the MB/s of its bundles; each MB/s takes 1 % of the CPU, and half a percent of the bandwidth.
LOADS: Final = {"a": {"a0": 30.0, "a1": 20.0}, "b": {"b0": 20.0}, "c": {"c0": 10.0}}


def cluster(**more: Bundle) -> ClusterView:
    """*more* bundles are on the third broker, and carry no bytes."""
    made = []
    for name, of in LOADS.items():
        bundles = {bundle: Bundle(mbytes_in=mbytes, producers=2, consumers=1) for bundle, mbytes in of.items()}
        whole = sum(of.values())
        made.append(
            Broker(name, cpu=whole / 100, bandwidth_in=whole / 200, bundles=bundles | (more if name == "c" else {}))
        )
    return cluster_view(*made)


def problem_of(view: ClusterView, foreseen: Foreseen | None = None, **counted: float) -> MappedProblem:
    weights = {"cpu": 1.0, "bandwidth in": 0.0, "bandwidth out": 1.0, "direct memory": 1.0}
    stays = np.isin(view.bundles.names, ["a1"])
    given = {name.replace("_", " "): value for name, value in counted.items()}
    limits = {name: given.pop(name.replace("_", " "), 0.0) for name in ("msg_rate", "topics", "sessions")}
    return map_problem(view, stays, Counted(weights=weights | given, **limits), foreseen)


def test_a_resource_counts_with_a_weight_and_where_it_is_used_at_all() -> None:
    found = problem_of(cluster())
    assert (found.problem.resources, found.rows.tolist(), found.problem.owner.tolist()) == (
        ("cpu",),
        [0, 2, 3],
        [0, 1, 2],
    )
    assert found.problem.capacity.tolist() == [[100], [100], [100]]
    assert found.problem.size[:, 0].tolist() == pytest.approx([30, 20, 10])
    assert found.problem.fixed[:, 0].tolist() == pytest.approx([20, 0, 0], abs=1e-6)
    assert found.problem.connections.tolist() == [3, 3, 3]
    assert found.problem.disturbance.tolist() == [13, 13, 13]
    assert (found.now, found.minutes, found.later) == (1, (0.0,), ())


def test_a_weight_makes_a_broker_as_much_smaller() -> None:
    found = problem_of(cluster(), bandwidth_in=2.0, cpu=0.5)
    assert found.problem.resources == ("cpu", "bandwidth in")
    assert found.problem.capacity.tolist() == [[200, 50]] * 3
    assert found.problem.size[0].tolist() == pytest.approx([30, 15])


def test_a_broker_without_a_limit_is_as_small_as_the_smallest_and_usage_that_is_no_number_is_all_of_it() -> None:
    view = cluster()
    limit, usage = view.brokers.limit.copy(), view.brokers.usage.copy()
    limit[:, 0], usage[2, 0] = (np.nan, 400.0, 80.0), np.nan
    found = problem_of(replace(view, brokers=replace(view.brokers, limit=limit, usage=usage))).problem
    assert found.capacity[:, 0].tolist() == [80, 400, 80]
    assert (found.fixed[2, 0] + found.size[2, 0]).tolist() == pytest.approx(80)
    limit[:, 0] = (0.0, 0.5, 1.0)
    small = problem_of(replace(view, brokers=replace(view.brokers, limit=limit, usage=usage / 100))).problem
    assert small.capacity[:, 0].tolist() == [0.5, 0.5, 1.0]
    limit[:, 0] = np.inf
    assert problem_of(replace(view, brokers=replace(view.brokers, limit=limit))).problem.resources == ()


def test_bundles_on_their_way_count_where_they_were_sent_and_stay() -> None:
    view = cluster()
    view = view.with_preallocated(view.bundles.code_of["a0"], 1)
    found = problem_of(view)
    assert found.rows.tolist() == [2, 3]
    assert found.problem.fixed[:, 0].tolist() == pytest.approx([20, 30, 0], abs=1e-6)


def test_messages_topics_and_sessions_count_against_a_limit_in_proportion_to_the_cpu() -> None:
    view = cluster(c1=Bundle(msg_rate_in=10.0, msg_rate_out=20.0, topics=7, producers=4, consumers=5))
    limit = view.brokers.limit.copy()
    limit[:, 0] = (50.0, 100.0, 150.0)
    uneven = replace(view, brokers=replace(view.brokers, limit=limit))
    found = problem_of(uneven, msg_rate=1000.0, topics=60.0, sessions=30.0).problem
    assert found.resources == ("cpu", "message rate", "topics", "sessions")
    assert found.capacity[:, 1:].tolist() == [[500, 30, 15], [1000, 60, 30], [1500, 90, 45]]
    assert found.size[3, 1:].tolist() == [30, 7, 9]
    # The bundle that stays has ten topics and three sessions.
    assert found.fixed[:, 1:].tolist() == [[0, 10, 3], [0, 0, 0], [0, 0, 0]]
    assert found.disturbance.tolist() == pytest.approx([13, 13, 13, 19.03])
    for unknown in (np.nan, np.inf, 0.0):
        limit[0, 0] = unknown
        same = replace(view, brokers=replace(view.brokers, limit=limit))
        assert problem_of(same, topics=60.0).problem.capacity[:, 1].tolist() == [60, 60, 60]
    limit[:, 0] = (0.5, 1.0, 1.5)
    tiny = replace(view, brokers=replace(view.brokers, limit=limit, usage=view.brokers.usage / 100))
    assert problem_of(tiny, topics=60.0).problem.capacity[:, 1].tolist() == [30, 60, 90]


def test_without_brokers_nothing_has_a_capacity() -> None:
    found = problem_of(cluster_view(), topics=60.0).problem
    assert (found.resources, found.capacity.shape) == (("topics",), (0, 1))


def test_the_load_foreseen_counts_in_place_of_that_of_now() -> None:
    view = cluster()
    found = problem_of(view, Foreseen(load=view.bundles.load * 2)).problem
    assert found.size[:, 0].tolist() == pytest.approx([60, 40, 20])
    assert found.fixed[:, 0].tolist() == pytest.approx([40, 0, 0], abs=1e-6)


def test_of_each_group_of_times_the_one_counts_at_which_a_broker_is_fullest() -> None:
    view = cluster()

    def later(told: str, *ratio: float) -> Later:
        return Later(told, np.array(ratio), 30.0)

    first = [later("soon", 1, 1, 3, 1), later("later", 1.5, 1.5, 1, 1), later("last", 1, 1, 1, 1)]
    found = problem_of(view, Foreseen(load=view.bundles.load, later=[first, [later("then", 0, 0, 0, 1)]]))
    assert found.problem.resources == ("cpu", "cpu later", "cpu then")
    assert (found.later, found.minutes, found.now) == ((30.0, 30.0), (0.0, 30.0, 30.0), 1)
    assert found.problem.size[:, 1].tolist() == pytest.approx([45, 20, 10])
    assert found.problem.fixed[:, 1:].tolist() == [
        pytest.approx([30, 0], abs=1e-6),
        *[pytest.approx([0, 0], abs=1e-6)] * 2,
    ]
    assert found.problem.capacity.tolist() == [[100] * 3] * 3
    present = found.without_later()
    assert (present.problem.resources, present.later, present.problem.size.shape) == (("cpu",), (), (3, 1))
    assert (present.problem.capacity.shape, present.problem.fixed.shape) == ((3, 1), (3, 1))


def test_times_to_come_are_those_of_the_scarcest_resource() -> None:
    view = cluster()
    later = [[Later("soon", np.ones(4), 30.0)]]
    half = problem_of(view, Foreseen(load=view.bundles.load, later=later), bandwidth_in=1.0)
    assert half.problem.resources == ("cpu", "bandwidth in", "cpu soon")
    more = problem_of(view, Foreseen(load=view.bundles.load, later=later), bandwidth_in=3.0)
    assert more.problem.resources == ("cpu", "bandwidth in", "bandwidth in soon")


def test_numbers_that_are_none_count_as_0_and_nothing_is_more_than_a_broker_can_carry() -> None:
    odd = np.array([np.nan, -1.0, -np.inf, 0.5, 3e15, np.inf])
    assert finite(odd).tolist() == [0, 0, 0, 0.5, 1e15, 1e15]
    load = np.array([[1.0, 2.0, 2048.0, 1024.0]])
    assert weight(load).tolist() == [6]
    assert drivers(load).tolist() == [[3, 2048, 1024]]


def test_a_broker_at_its_limit_is_asked_for_what_the_others_show_if_they_are_half_and_say_why() -> None:
    driven = np.array([[0.0, 300.0, 0.0], [0.0, 20.0, 0.0], [0.0, 40.0, 0.0]])
    limit = np.full(3, 100.0)
    fit, usage, accounts = fitted_below_the_limit(np.array([100.0, 20.0, 40.0]), limit, driven)
    assert (usage.tolist(), accounts) == (pytest.approx([300, 20, 40], rel=1e-3), True)
    assert fit.factors == pytest.approx((0, 1, 0), rel=1e-3)
    # 99.5 % of a limit is all of it.
    assert fitted_below_the_limit(np.array([99.5, 20.0, 40.0]), limit, driven)[1][0] == pytest.approx(300, rel=1e-3)
    below = fitted_below_the_limit(np.array([99.4, 20.0, 40.0]), limit, driven)
    assert (below[1].tolist(), below[2]) == ([99.4, 20, 40], True)
    # By what the others use for their load it would be at 85 of 100: that does not say why it is full.
    driven[0, 1] = 85.0
    _, usage, accounts = fitted_below_the_limit(np.array([100.0, 20.0, 40.0]), limit, driven)
    assert (usage.tolist(), accounts) == ([100, 20, 40], False)
    driven[0, 1] = 91.0
    assert fitted_below_the_limit(np.array([100.0, 20.0, 40.0]), limit, driven)[2]
    for full in (2, 3):
        reported = np.where(np.arange(3) < full, 100.0, 20.0)
        _, usage, accounts = fitted_below_the_limit(reported, limit, driven)
        assert (usage.tolist(), accounts) == (reported.tolist(), False)


def test_usage_is_taken_as_with_the_load_foreseen_and_what_brokers_use_by_themselves_stays() -> None:
    view = cluster()
    usage = view.brokers.usage.copy()
    usage[:, 0] += 10.0
    own = replace(view, brokers=replace(view.brokers, usage=usage))
    found = problem_of(own, Foreseen(load=view.bundles.load / 2)).problem
    assert found.size[:, 0].tolist() == pytest.approx([15, 10, 5])
    assert found.fixed[:, 0].tolist() == pytest.approx([20, 10, 10])
    assert problem_of(own).problem.fixed[:, 0].tolist() == pytest.approx([30, 10, 10])


def test_a_resource_counts_although_one_broker_uses_none_of_it_and_not_without_a_weight() -> None:
    view = cluster_view(Broker("a", cpu=0.5, bandwidth_in=0.2, bundles={"x": Bundle(mbytes_in=5.0)}), Broker("b"))
    found = map_problem(view, np.zeros(1, np.bool_), Counted(weights={"cpu": 1.0}))
    assert (found.problem.resources, list(found.fits)) == (("cpu",), ["cpu"])
    assert (Counted(weights={}).msg_rate, Counted(weights={}).topics, Counted(weights={}).sessions) == (0, 0, 0)
    none = map_problem(view, np.zeros(1, np.bool_), Counted(weights={})).problem
    assert (none.resources, none.capacity.shape, none.fixed.shape, none.size.shape) == ((), (2, 0), (2, 0), (1, 0))


def test_times_to_come_need_a_resource_that_follows_the_load_and_any_length_counts() -> None:
    view = cluster()
    later = [[Later("soon", np.ones(4), 0.5)]]
    found = problem_of(view, Foreseen(load=view.bundles.load, later=later))
    assert (found.later, found.now) == ((0.5,), 1)
    only_topics = problem_of(view, Foreseen(load=view.bundles.load, later=later), cpu=0.0, topics=60.0)
    assert (only_topics.problem.resources, only_topics.later) == (("topics",), ())


def test_the_drivers_of_one_bundle_are_three_numbers() -> None:
    assert drivers(np.array([1.0, 2.0, 3.0, 4.0])).tolist() == [3, 3, 4]


def test_where_fewer_than_half_are_below_their_limits_or_one_full_broker_is_not_explained_that_is_told() -> None:
    driven = np.array([[0.0, 300.0, 0.0], [0.0, 200.0, 0.0], [0.0, 150.0, 0.0], [0.0, 20.0, 0.0], [0.0, 40.0, 0.0]])
    limit, reported = np.full(5, 100.0), np.array([100.0, 100.0, 100.0, 20.0, 40.0])
    _, usage, accounts = fitted_below_the_limit(reported, limit, driven)
    assert (usage.tolist(), accounts) == (reported.tolist(), False)
    reported[2], driven[2, 1], driven[1, 1] = 50.0, 50.0, 10.0
    _, usage, accounts = fitted_below_the_limit(reported, limit, driven)
    assert (usage.tolist(), accounts) == (pytest.approx([300, 100, 50, 20, 40], rel=1e-3), False)


def test_a_bundle_that_is_split_stays_and_counts_on_all_brokers_as_nobody_knows_where_its_parts_go() -> None:
    found = problem_of(replace(cluster(), splitting=frozenset({"a0"})))
    assert found.rows.tolist() == [2, 3]
    assert found.problem.fixed[:, 0].tolist() == pytest.approx([30, 10, 10], abs=1e-6)
