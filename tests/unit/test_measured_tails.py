"""The measurements of many clusters, and of inputs that change in small steps."""

from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from tests.measure.__main__ import app
from tests.measure.sweeps import picture
from tests.measure.tails import nimbleness, tails


def test_percentiles_go_up_and_no_cluster_gets_less_even_or_below_what_is_proved() -> None:
    found = tails(2, {}, largest=4)

    assert [each.percentile for each in found] == [50, 95, 99]
    assert found[0].after <= found[-1].after <= found[-1].before
    assert found[0].over_bound >= 1 - 1e-9


def test_bundles_of_one_broker_are_spread_in_few_more_moves_than_it_takes_and_at_once_without_budgets() -> None:
    by_budgets = {each.budgets: each for each in nimbleness()}

    assert {each.fewest for each in by_budgets.values()} == {124}
    assert max(each.after for each in by_budgets.values()) < 1.15
    assert by_budgets["none"].intervals < by_budgets["default"].intervals
    assert by_budgets["default"].moves <= 130


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
