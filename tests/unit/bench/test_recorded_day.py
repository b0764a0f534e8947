"""``trimtab bench recording``: a log of a modelled cluster, its recording, and the replay of that."""

import json

import pytest
from typer.testing import CliRunner

from controller.bench.command import app

pytestmark = pytest.mark.slow

_ASKED = ["recording", "--brokers", "3", "--bundles", "100", "--topics", "100", "--intervals", "6"]


def test_the_replay_comes_to_the_journal_that_was_recorded() -> None:
    told = json.loads(CliRunner().invoke(app, [*_ASKED, "--json"]).stdout)
    assert (told["intervals"], told["equal"]) == (6, 6)
    assert 0 < told["recording_megabytes"] < told["log_megabytes"]


def test_it_is_told_as_a_table() -> None:
    assert "replay CPU s" in CliRunner().invoke(app, _ASKED, env={"COLUMNS": "120"}).stdout
