"""decisions.only: bundles of all other namespaces are neither moved nor split."""

from dataclasses import replace
from typing import Any

import pytest

from controller.cycle import decide
from controller.model.decision import Decision, Reason
from controller.model.load import ClusterView
from controller.strategies.splitting.bundle_splitter_task import BundleSplitterTask
from tests.cluster import broker, bundle, view
from tests.unit.cycle.test_guardrails_grace import ACTIVE, POLICY, WARM, Rash

A, B = "acme/orders/0x00000000_0x80000000", "acme/prod-eu/0x00000000_0x80000000"
SYSTEM = "pulsar/system/0x00000000_0x80000000"
VIEW = view(broker("cold", usage=0.1), broker("hot", usage=0.9, **{A: 60, B: 40, SYSTEM: 10}))


def decided(
    *only: str, excluded: frozenset[str] = frozenset(), cluster: ClusterView = VIEW, splits: bool = False
) -> Decision:
    policy = replace(POLICY, shedder=Rash(bundles=(A, B, SYSTEM)), only=frozenset(only), excluded=excluded)
    if splits:
        policy = replace(policy, split_policy=BundleSplitterTask(max_topics=1), shed=False)
    return decide(cluster, (), WARM, ACTIVE, policy)[0]


@pytest.mark.parametrize(
    ("only", "moved"),
    [
        ((), [A, B]),
        (("acme/orders",), [A]),
        (("acme/prod-*",), [B]),
        (("acme/*",), [A, B]),
        (("other/*",), []),
        (("pulsar/*",), []),
    ],
)
def test_only_bundles_of_the_named_namespaces_move(only: tuple[str, ...], moved: list[str]) -> None:
    assert [each.bundle for each in decided(*only).commands] == moved


def test_those_that_stay_say_why() -> None:
    (verdict,) = [each for each in decided("acme/prod-*").verdicts if each.subject == A]
    assert (verdict.reason, verdict.by) == (Reason.EXCLUDED, "decisions.only")


def test_what_is_excluded_stays_although_the_allow_list_names_it() -> None:
    found = decided("acme/*", excluded=frozenset({"acme/prod-*"}))
    assert [each.bundle for each in found.commands] == [A]


def test_only_bundles_of_the_named_namespaces_are_split() -> None:
    many: dict[str, Any] = {name: bundle(10, topics=9) for name in (A, B)}
    cluster = view(broker("cold", usage=0.1), broker("hot", usage=0.9, **many))
    assert {each.bundle for each in decided("acme/prod-*", cluster=cluster, splits=True).commands} == {B}
