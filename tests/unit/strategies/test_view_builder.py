import math
from typing import Any

import pytest

from controller.model.decision import Reason
from controller.model.errors import ViewError
from controller.model.load import UNOWNED
from controller.strategies.shedding.threshold_shedder import ThresholdShedder
from controller.strategies.view_builder import Broker, Bundle, cluster_view

MB = 1024 * 1024
LEFT, RIGHT = "acme/orders/0x00000000_0x80000000", "acme/orders/0x80000000_0xffffffff"
USERS = "acme/users/0x00000000_0xffffffff"
HOT = Broker("hot:80", cpu=0.9, memory=0.3, bundles={RIGHT: Bundle(mbytes_in=40), LEFT: Bundle(mbytes_in=60)})
COLD = Broker("cold:80", cpu=0.1, bundles={USERS: Bundle(mbytes_out=5, msg_rate_in=7, msg_rate_out=8, topics=3)})


def test_a_shedder_decides_on_a_cluster_of_a_few_lines() -> None:
    shedder = ThresholdShedder(threshold_percent=10, min_unload_mbytes=1)
    decision, _ = shedder.decide(cluster_view(HOT, COLD), shedder.initial_memory())
    assert [(one.bundle, one.source) for one in decision.unloads] == [(LEFT, "hot:80")]
    assert decision.reason is Reason.OVERLOADED


def test_brokers_and_bundles_are_in_name_order_however_they_were_given() -> None:
    for view in (cluster_view(HOT, COLD), cluster_view(COLD, HOT)):
        assert view.brokers.names == ("cold:80", "hot:80")
        assert view.bundles.names == (LEFT, RIGHT, USERS)
        assert view.bundles.broker.tolist() == [1, 1, 0]
        assert [view.bundles.namespaces[code] for code in view.bundles.namespace] == ["acme/orders"] * 2 + [
            "acme/users"
        ]


def test_usages_are_shares_and_a_broker_has_the_sums_of_its_bundles() -> None:
    view = cluster_view(HOT, COLD)
    assert (view.brokers.usage / view.brokers.limit).tolist() == [[0.1, 0, 0, 0, 0], [0.9, 0.3, 0, 0, 0]]
    assert view.brokers.load.tolist() == [[7, 8, 0, 5 * MB], [0, 0, 100 * MB, 0]]
    assert view.brokers.long_term.tolist() == view.brokers.load.tolist()
    assert view.brokers.bundle_count.tolist() == [1, 2]
    assert view.brokers.topic_count.tolist() == [3, 20]


def test_averages_are_full_and_those_of_now() -> None:
    bundles = cluster_view(HOT, COLD).bundles
    assert bundles.short_term.tolist() == bundles.long_term.tolist() == bundles.load.tolist()
    assert (bundles.short_samples.tolist(), bundles.long_samples.tolist()) == ([10] * 3, [1000] * 3)


def test_a_namespace_has_the_bundles_given_unless_told_otherwise() -> None:
    assert cluster_view(HOT, COLD).namespace_bundle_count.tolist() == [2, 1]
    assert cluster_view(HOT, COLD, bundle_count={"acme/users": -1}).namespace_bundle_count.tolist() == [2, -1]


def test_bundles_may_be_held_split_unowned_or_on_their_way() -> None:
    view = cluster_view(
        HOT,
        COLD,
        unowned={"acme/users/0x00000000_0x00000001": Bundle(mbytes_in=9)},
        missing=["gone:80"],
        recently_unloaded=[LEFT],
        splitting=[RIGHT],
        on_their_way={USERS: "hot:80"},
    )
    assert view.bundles.broker.tolist() == [1, 1, UNOWNED, 0]
    assert view.brokers.bundle_count.tolist() == [1, 2]
    assert view.recently_unloaded.tolist() == [True, False, False, False]
    assert (view.missing, view.splitting) == (("gone:80",), frozenset({RIGHT}))
    assert (view.preallocated.bundle.tolist(), view.preallocated.broker.tolist()) == ([3], [1])
    assert view.brokers.preallocated_rate.tolist() == [0, 15]


def test_a_bundle_without_a_namespace_is_in_the_one_named_for_such() -> None:
    broker = Broker("b:80", bundles={"a": Bundle()})
    assert cluster_view(broker).bundles.namespaces == ("public/default",)
    assert cluster_view(broker, namespace="acme/test").bundles.namespaces == ("acme/test",)


def test_a_cluster_may_be_empty() -> None:
    assert (len(cluster_view().brokers), len(cluster_view().bundles)) == (0, 0)


@pytest.mark.parametrize(
    ("brokers", "more", "error"),
    [
        ([Broker("b:80"), Broker("b:80")], {}, "broker b:80 is given twice"),
        (
            [HOT, Broker("b:80", bundles={LEFT: Bundle()})],
            {},
            f"bundle {LEFT} is given twice: by b:80 and by hot:80",
        ),
        ([HOT], {"unowned": {LEFT: Bundle()}}, f"bundle {LEFT} is given twice: by hot:80 and by unowned"),
        (
            [HOT, COLD],
            {"on_their_way": {LEFT: "b9:80"}},
            f"on_their_way: bundle {LEFT}: b9:80 is not among the brokers: cold:80, hot:80",
        ),
        ([COLD], {"on_their_way": {LEFT: "cold:80"}}, f"on_their_way: {LEFT} is not among the bundles: {USERS}"),
        ([COLD], {"recently_unloaded": [LEFT]}, f"recently_unloaded: {LEFT} is not among the bundles: {USERS}"),
        ([COLD], {"splitting": [LEFT]}, f"splitting: {LEFT} is not among the bundles: {USERS}"),
        ([Broker("b:80")], {"splitting": [LEFT]}, f"splitting: {LEFT} is not among the bundles: there are none"),
        ([COLD], {"bundle_count": {"acme/x": 1}}, "bundle_count: acme/x is not among the namespaces: acme/users"),
        ([COLD], {"missing": ["cold:80"]}, "missing: broker cold:80 is also given with data"),
        (
            [Broker("b:80", cpu=math.nan)],
            {},
            "broker b:80: cpu is nan: a number from 0 to 10 is expected: a share of the limit, 0.9 for 90 %",
        ),
        (
            [Broker("b:80", memory=90)],
            {},
            "broker b:80: memory is 90: a number from 0 to 10 is expected: a share of the limit, 0.9 for 90 %",
        ),
        ([Broker("b:80", on_its_way=-1)], {}, "broker b:80: on_its_way is -1: a number from 0 up is expected"),
        (
            [Broker("b:80", bundles={"a": Bundle(mbytes_in=math.inf)})],
            {},
            "bundle a: mbytes_in is inf: a number from 0 up is expected",
        ),
        (
            [Broker("b:80", bundles={"a": Bundle(topics=-1)})],
            {},
            "bundle a: topics is -1: a number from 0 up is expected",
        ),
        ([Broker("")], {}, "'' is not the name of a broker: a printable text is expected"),
        (
            [Broker("b:80", bundles={"a\nb": Bundle()})],
            {},
            "'a\\nb' is not the name of a bundle: a printable text is expected",
        ),
    ],
)
def test_an_inconsistent_cluster_is_refused_with_the_reason(
    brokers: list[Broker], more: dict[str, Any], error: str
) -> None:
    with pytest.raises(ViewError) as refused:
        cluster_view(*brokers, **more)
    assert str(refused.value) == error


def test_of_a_view_that_is_built_no_topics_are_known_one_by_one() -> None:
    detail = cluster_view(HOT, COLD).bundles.detail
    assert detail.starts.tolist() == [0, 0, 0, 0], "one more than there are bundles"
    assert (detail.position.shape, detail.load.shape) == ((0,), (0, 4))


def test_a_usage_is_at_most_ten_times_the_limit() -> None:
    assert cluster_view(Broker("b:80", cpu=10.0)).brokers.names == ("b:80",)
    with pytest.raises(ViewError, match="a number from 0 to 10 is expected"):
        cluster_view(Broker("b:80", cpu=10.01))
