"""A plan that ends above the level that was asked for says what keeps it from there."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest

from controller.model.decision import Reason
from controller.model.load import ClusterView, Ints
from controller.offline.plans.planner import PlanRequest, planned_cluster
from controller.offline.plans.source import PlanSource
from controller.simulator.cluster import ClusterShape
from tests.plan_sources import EVENLY, modelled_load, source

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five brokers with bundles of every namespace, the last one with none."""
    return modelled_load(tmp_path_factory.mktemp("load"), ClusterShape(brokers=5, bundles=60, topics=240))


def notes(found: PlanSource, **asked: object) -> list[str]:
    return [note for note in planned_cluster(found, PlanRequest(**asked)).notes if "broker.conf" not in note]  # type: ignore[arg-type]


def test_a_plan_that_gets_there_says_nothing(load: Path) -> None:
    assert notes(source(load, **{EVENLY: "false"}), to=1.1) == []


def test_a_plan_without_moves_says_that_none_is_needed(load: Path) -> None:
    assert notes(source(load, **{EVENLY: "false"}), to=100) == [
        "no move is needed: the highest usage is at most 100 times the mean already"
    ]


def test_the_filter_in_the_way_is_named_with_its_option_and_what_a_plan_without_it_reaches(load: Path) -> None:
    short, way = notes(source(load), to=1.1)
    free = planned_cluster(source(load, **{EVENLY: "false"}), PlanRequest(to=1.1)).plan.steps[0]
    assert "1.1 times the mean, is not reached" in short
    assert way == (
        f"the filter FewestBundles ({EVENLY}) is in the way: without it {len(free.moves)} moves end at"
        f" {free.certificate.reached:.1%}"
    )


def test_a_budget_that_is_too_small_is_named_and_no_filter(load: Path) -> None:
    short, proved = notes(source(load, **{EVENLY: "false"}), to=1.0, max_moves=1)
    assert "is not reached" in short
    assert proved.startswith("no plan of at most 1 move gets there: none ends below ")
    assert proved.endswith("(removal)")


@dataclass(frozen=True)
class OnlyTheFirst:
    """A filter that leaves one broker, and holds also where that is overloaded."""

    reason: ClassVar[Reason]
    binding: ClassVar[bool] = True

    def keep(self, _view: ClusterView, _bundle: int, candidates: Ints) -> Ints:
        found: Ints = candidates[candidates == 0]
        return found


class Isolated(OnlyTheFirst):
    reason = Reason.ISOLATION_POLICY


class Versioned(OnlyTheFirst):
    reason = Reason.BROKER_VERSION


def test_filters_that_are_in_the_way_together_are_told_together(load: Path) -> None:
    found = source(load, **{EVENLY: "false"})
    found = replace(found, policy=replace(found.policy, filters=(Isolated(), Versioned())))
    _, way = notes(found, to=1.1)
    assert way.startswith("the filters together are in the way: without any of them ")


def test_a_filter_without_an_option_is_named_by_its_reason(load: Path) -> None:
    found = source(load, **{EVENLY: "false"})
    _, way = notes(replace(found, policy=replace(found.policy, filters=(Isolated(),))), to=1.1)
    assert way.startswith(f"the filter {Reason.ISOLATION_POLICY} is in the way: without it ")


def why_not(found: PlanSource, to: int) -> str:
    """Why a bundle of the first broker is not moved to broker *to*, which was named."""
    bundle = found.view.bundles.names[found.view.bundles.of_broker(0)[0]]
    return planned_cluster(found, PlanRequest(named=((bundle, found.view.brokers.names[to]),))).stays.get(bundle, "")


def test_a_named_move_that_filters_do_not_allow_names_them_with_their_options(load: Path) -> None:
    free = source(load, **{EVENLY: "false"})
    empty = len(free.view.brokers) - 1
    names = free.view.brokers.names
    fullest = max(range(1, empty), key=lambda row: len(free.view.bundles.of_broker(row)))

    def under(*filters: OnlyTheFirst) -> PlanSource:
        return replace(free, policy=replace(free.policy, filters=filters))

    begin = f"filters do not let it go to {names[empty]}: "
    assert why_not(free, empty) == ""
    assert why_not(under(Isolated()), empty) == f"{begin}without {Reason.ISOLATION_POLICY} they do"
    both = f"{Reason.ISOLATION_POLICY} and {Reason.BROKER_VERSION}"
    assert why_not(under(Isolated(), Versioned()), empty) == f"{begin}{both} each exclude it"
    assert why_not(source(load), fullest) == (
        f"filters do not let it go to {names[fullest]}: without FewestBundles ({EVENLY}) they do"
    )
