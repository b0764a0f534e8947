"""What would flip a decision: the change that is told flips it, and a clearly smaller one does not."""

from dataclasses import replace

import numpy as np
import pytest

from controller.cycle import Policy, view_of
from controller.model.controls import Controls
from controller.model.decision import Decision
from controller.model.load import TopicDetail
from controller.model.resource_usage import max_usage
from controller.model.segment_code import segment_code
from controller.offline.flips import Flip, FlipResult, Redecision, flips
from controller.offline.scenarios.simulate import variant_of
from controller.settings.scenario import Scenario
from controller.settings.scenario_parts import TurnNumber
from controller.strategies.shedding.threshold_shedder import ThresholdShedder
from tests.scenarios import scenario, world
from tests.segments import segment

pytestmark = pytest.mark.slow

OPTIONS = {
    "loadBalancerLoadSheddingStrategy": "ThresholdShedder",
    "loadBalancerBundleUnloadMinThroughputThreshold": "0",
    "loadBalancerHistoryResourcePercentage": "0",
}
_FLIP = Flip(
    kind="option", of="loadBalancerBundleUnloadMinThroughputThreshold", before=0, after=0, unit="MB/s", then=""
)


def made(threshold: int, **changed: str) -> Redecision:
    """The decision of ThresholdShedder on three brokers, the third of which has less."""
    of: Scenario = scenario(
        brokers=[{"count": 2}, {"count": 1, "load": 0.4}],
        load={"msg_rate": 1e5},
        hardware={"cpu_percent": 50, "network_percent": 30, "direct_memory_percent": 0},
        decisions={"split": False},
    )
    conf = OPTIONS | {"loadBalancerBrokerThresholdShedderPercentage": str(threshold)} | changed
    conf |= {"loadBalancerMemoryResourceWeight": "0"}
    policy: Policy = replace(variant_of(of, strategy=conf).policy, warm_up_samples=1)
    snapshot, _ = world(of).live(TurnNumber(0))
    memory = policy.initial_memory(1)
    view = view_of([snapshot], memory, policy)
    return Redecision(view=view, results=(), memory=memory, controls=Controls(mode="active"), policy=policy)


def acts(decision: Decision) -> bool:
    return bool(decision.commands)


def option(found: tuple[Flip, ...], name: str) -> Flip:
    return next(each for each in found if each.of == name)


def with_threshold(decided: Redecision, value: float) -> Decision:
    shedder = decided.policy.shedder
    assert isinstance(shedder, ThresholdShedder)
    shedder = replace(shedder, threshold_percent=int(value))
    return replace(decided, policy=replace(decided.policy, shedder=shedder)).decision()


@pytest.mark.parametrize(("threshold", "sign"), [(40, -1), (1, 1)])
def test_the_threshold_that_is_told_is_the_first_one_that_flips_it(threshold: int, sign: int) -> None:
    decided = made(threshold)
    found = option(flips(decided, "interval", "interval").flips, "loadBalancerBrokerThresholdShedderPercentage")
    assert (found.kind, found.before, found.unit) == ("option", threshold, "%")
    assert (found.after - found.before) * sign > 0
    assert acts(with_threshold(decided, found.after)) is not acts(decided.decision())
    assert acts(with_threshold(decided, found.after - sign)) is acts(decided.decision())
    assert bool(found.then) is not acts(decided.decision())


def test_a_broker_that_gives_nothing_would_with_more_usage() -> None:
    decided = made(40)
    busiest = int(max_usage(decided.view.brokers.usage, decided.view.brokers.limit).argmax())
    name = decided.view.brokers.names[busiest]
    found = next(each for each in flips(decided, name, "broker").flips if each.kind == "usage")
    assert found.after > found.before == 100
    assert found.then.startswith("unload ")
    assert f"from {name} " in found.then


def test_a_bundle_that_moves_would_stay_with_another_load_or_usage() -> None:
    decided = made(1)
    moved = decided.decision().commands[0].bundle
    found = flips(decided, moved, "bundle").flips
    assert {each.kind for each in found} >= {"usage", "option"}
    assert all(each.then == "" for each in found)
    assert [each.size for each in found] == sorted(each.size for each in found)


def test_an_option_that_is_off_is_no_smaller_a_change_than_a_switch() -> None:
    turned_on = replace(_FLIP, before=0.0, after=0.001)
    other = replace(_FLIP, before=10.0, after=12.0)
    assert sorted([turned_on, other], key=lambda each: each.size) == [other, turned_on]
    assert turned_on.size == replace(_FLIP, before=0.0, after=1.0).size


def test_where_a_guardrail_holds_everything_back_no_single_change_flips_it() -> None:
    decided = replace(made(1), controls=Controls(mode="active", paused=True))
    assert flips(decided, "interval", "interval") == FlipResult(flips=(), unfinished=())


@pytest.mark.parametrize(("subject", "kind"), [("t/n/0x00000000_0x00000001", "bundle"), ("nobody:8080", "broker")])
def test_a_subject_that_is_not_there_fails_nothing(subject: str, kind: str) -> None:
    assert all(each.kind == "option" for each in flips(made(40), subject, kind).flips)


def test_values_that_broker_conf_may_not_have_are_not_told() -> None:
    found = flips(made(40), "interval", "interval").flips
    assert all(np.isfinite(each.after) and each.after >= 0 for each in found)
    assert not any(each.of.startswith("loadBalancerSheddingInterval") for each in found)
    assert all(each.after <= 1 for each in found if each.of.endswith("HistoryResourcePercentage"))


def test_a_search_that_ends_early_has_tried_all_changes_a_little_and_says_of_what_it_did_not_come_to_the_end() -> None:
    decided, shares = made(1), list[float]()
    whole = flips(decided, "interval", "interval", tell=shares.append)
    assert whole.unfinished == ()
    assert shares == sorted(shares)
    assert max(shares) == 100
    shares.clear()
    early = flips(decided, "interval", "interval", is_over=lambda: len(shares) > 60, tell=shares.append)
    assert len(shares) == 61
    assert early.unfinished
    assert {each.of for each in early.flips} <= {each.of for each in whole.flips}
    finished = {each.of: each for each in whole.flips if each.of not in early.unfinished}
    assert {each.of: each for each in early.flips if each.of not in early.unfinished} == finished
    none = flips(decided, "interval", "interval", is_over=lambda: True)
    assert (none.flips, len(none.unfinished)) == ((), len({*none.unfinished}))
    assert {each.of for each in whole.flips} <= {*none.unfinished}


@pytest.mark.parametrize("broker", [0, 2], ids=["of a busy broker", "of the broker that gives nothing"])
def test_of_a_scalable_topic_only_commands_about_the_bundles_of_its_segments_count(broker: int) -> None:
    decided = made(10)
    table = decided.view.bundles
    topic = f"topic://{table.namespaces[0]}/orders"
    holds = (table.broker == broker) & table.owned
    code = segment_code(segment("orders", 0, 0xFFFF, namespace=table.namespaces[0]))
    n = int(holds.sum())
    detail = TopicDetail.of(holds.astype(np.int64), np.zeros(n, np.int64), np.ones((n, 4)), np.full(n, code))
    decided = replace(decided, view=replace(decided.view, bundles=replace(table, detail=detail)))
    assert any(flips(decided, "interval", "interval").flips)
    assert any(flips(decided, topic, "topic").flips) is (broker == 0)
