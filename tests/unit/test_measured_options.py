"""The command line of scripts/measure."""

import json

import pytest
from typer.testing import CliRunner

from tests.measure.__main__ import app


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("balance --seeds 0", "greater than or equal to 1"),
        ("frontier --brokers 100", "100 brokers need 200 bundles or more"),
        ("frontier --moves -1", "greater than or equal to 0"),
        ("frontier --seed -1", "greater than or equal to 0"),
        ("moves --topics 3", "3 topics cannot be halved"),
        ("moves --unloads 0", "greater than or equal to 1"),
        ("tails --option nosuch", "nosuch: expected NAME=VALUE"),
        ("sweep nothing", "nothing: not one of away, hot, drift, noise"),
        ("sweep away --draw /nowhere/drawn.svg", "its folder does not exist"),
        ("front --draw /", "/ is a folder"),
    ],
)
def test_a_value_that_cannot_be_measured_is_refused(line: str, why: str) -> None:
    refused = CliRunner().invoke(app, line.split())

    assert refused.exit_code == 2
    assert why in refused.output


def test_each_measured_value_is_a_line_of_json() -> None:
    measured = CliRunner().invoke(app, ["frontier", "--brokers", "2", "--bundles", "8", "--moves", "1"])

    assert [json.loads(line)["max_moves"] for line in measured.output.splitlines()] == [0, 1]
