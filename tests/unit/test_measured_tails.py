"""The measurements of many clusters, and of inputs that change in small steps."""

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from typer.testing import CliRunner

from controller.model.errors import TrimtabError
from tests.measure.__main__ import app
from tests.measure.sweeps import picture
from tests.measure.tails import keep, measured, measured_before, nimbleness, tails
from tests.measure.workloads import drawn


def test_percentiles_go_up_and_no_cluster_gets_less_even_or_below_what_is_proved() -> None:
    found = list(tails([measured(seed, {}, largest=4, exact_seconds=1.0) for seed in range(2)]))

    assert [each.percentile for each in found if each.kind == "all"] == [50, 95, 99]
    assert found[0].after <= found[2].after <= found[2].before
    assert found[0].over_bound >= 1 - 1e-9
    assert found[0].over_optimum is not None
    assert found[0].over_optimum >= 1


def test_a_measurement_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    kept, first = tmp_path / "clusters.jsonl", measured(0, {}, largest=4)
    keep(first, kept)
    with kept.open("a") as file:
        file.write('{"seed": 1, "ki')

    assert measured_before(kept) == {0: first}
    keep(replace(first, seed=1), kept)
    assert set(measured_before(kept)) == {0, 1}


@pytest.mark.parametrize("other", [b"# a page\n\nand a line", b"\xff\n", b'{"seed": 0}\n'])
def test_a_file_of_something_else_is_refused_and_stays_as_it_is(tmp_path: Path, other: bytes) -> None:
    kept = tmp_path / "kept"
    kept.write_bytes(other)
    with pytest.raises(TrimtabError, match="is no file of"):
        measured_before(kept)
    assert kept.read_bytes() == other


def test_a_cluster_is_that_of_its_seed_and_each_bundle_is_where_its_policy_wants_it() -> None:
    seed = next(seed for seed in range(100) if drawn(seed, largest=8).kind == "pools")
    one = drawn(seed, largest=8)
    bundles, policies = one.view.bundles, one.view.policies
    for row, broker in enumerate(bundles.broker.tolist()):
        policy = policies.isolation_of(bundles.namespaces[bundles.namespace[row]])
        assert policy is not None
        assert one.view.brokers.names[broker].partition(":")[0] in policy.primary
        assert policy.primary == tuple(
            name.partition(":")[0]
            for name, pool in zip(one.view.brokers.names, one.pools, strict=True)
            if pool == one.pools[broker]
        )
    assert np.array_equal(drawn(seed, largest=8).view.bundles.load, bundles.load)


def test_bundles_of_one_broker_are_spread_in_few_more_moves_than_it_takes_and_at_once_without_budgets() -> None:
    by_budgets = {each.budgets: each for each in nimbleness()}

    assert {each.fewest for each in by_budgets.values()} == {124}
    assert max(each.after for each in by_budgets.values()) < 1.15
    assert by_budgets["none"].intervals < by_budgets["default"].intervals
    assert by_budgets["default"].moves <= 130
    assert by_budgets["none"].minutes <= 2


def test_a_picture_has_a_point_for_each_value_and_no_markup_of_its_labels() -> None:
    drawn = ElementTree.fromstring(picture("a < b", [("connections", [(0.0, 3.0), (1.0, 5.0)])]))

    assert len(drawn.findall("{http://www.w3.org/2000/svg}circle")) == 2


def test_an_input_that_does_not_exist_is_refused() -> None:
    refused = CliRunner().invoke(app, ["sweep", "mood"])

    assert refused.exit_code == 2
    assert "not one of away, hot, drift, noise" in refused.output


@pytest.mark.parametrize("command", ["tails --clusters 0", "sweep hot --steps 1"])
def test_a_number_that_is_too_small_is_refused(command: str) -> None:
    assert CliRunner().invoke(app, command.split()).exit_code == 2
