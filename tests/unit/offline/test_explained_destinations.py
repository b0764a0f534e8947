"""What the explanation of a decision says about each broker as the destination of a bundle."""

from dataclasses import replace

from controller.cycle import Policy, decide
from controller.model.controls import Controls
from controller.offline.explanations.destinations import destinations
from controller.offline.explanations.examined import observed_policy
from controller.strategies.placement.avg_shedder_placement import AvgShedder as AvgShedderPlacement
from controller.strategies.shedding.avg_shedder import AvgShedder
from controller.strategies.splitting.bundle_splitter_task import BundleSplitterTask
from controller.strategies.splitting.range_equally_divide import RangeEquallyDivide
from tests.cluster import INTERVAL, broker, view

SMALL = "acme/own/0x00000000_0x80000000"
LARGE = "acme/own/0x80000000_0xffffffff"


def said(*, plans_by_bundle: bool) -> dict[str, tuple[str, str]]:
    """Broker -> the answer about it as the destination of SMALL, and its text.

    The pairs are a with d, and b with c: SMALL leaves b for c, which is above the limit of 85 %.
    """
    cluster = view(
        broker("a", usage=0.99, x=90),
        broker("b", usage=0.98, **{SMALL: 20.0, LARGE: 90.0}),
        broker("c", usage=0.9),
        broker("d", usage=0.1),
    )
    policy = Policy(
        cluster="lab",
        period_ms=60_000,
        shedder=AvgShedder(plans_by_bundle=plans_by_bundle, low_threshold=1, hit_count_low=1, max_unload_share=0.5),
        placement=AvgShedderPlacement(plans_by_bundle=plans_by_bundle),
        split_policy=BundleSplitterTask(),
        split_algorithm=RangeEquallyDivide(),
    )
    listening, heard = observed_policy(policy)
    memory = replace(policy.initial_memory(7), last_interval=INTERVAL - 60_000, samples=10)
    made, _ = decide(cluster, [], memory, Controls(mode="active"), listening)
    placed = replace(heard.placed[SMALL], destination=made.commands[0].destination)
    found = destinations(placed.view, SMALL, policy, placed)
    return {each.broker: (each.answer, each.text) for each in found}


def test_a_plan_is_the_reason_why_other_brokers_are_not_chosen() -> None:
    other = ("yes", "no filter excludes it; the shedder chose another one")
    assert said(plans_by_bundle=False) == {"a": other, "b": ("source", "it is there"), "c": ("chosen", ""), "d": other}


def test_a_planned_broker_that_is_overloaded_is_named_as_such_where_another_one_is_taken() -> None:
    assert said(plans_by_bundle=True) == {
        "a": ("no", "another broker is better"),
        "b": ("source", "it is there"),
        "c": ("no", "the shedder chose it, and it is overloaded"),
        "d": ("chosen", ""),
    }
