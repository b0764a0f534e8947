"""`trimtab options` prints every option, whatever signs are in its text."""

import json

import pytest
from typer.testing import CliRunner

from controller.cli.app import app
from controller.settings.known_options import options_table


@pytest.mark.slow
def test_every_option_is_printed_with_its_brackets() -> None:
    result = CliRunner().invoke(app, ["options"], env={"COLUMNS": "400"})
    assert result.exit_code == 0, result.output
    missing = [row.key for row in options_table() if row.key not in result.output]
    assert missing == []
    assert "guardrails.interval.unloads" in result.output
    assert "[/chroot]" in result.output


@pytest.mark.slow
def test_no_option_is_cut_at_80_columns() -> None:
    lines = CliRunner().invoke(app, ["options"], env={"COLUMNS": "80"}).output.splitlines()
    for row in options_table():
        assert row.key in lines
        assert not row.default or any(line.split()[-1] == row.default.split()[-1] for line in lines)
    long = [line for line in lines if len(line) > 80]
    assert all(len(line.split()) <= 2 for line in long), "longer is only a value that has no space"


def test_json_has_an_object_for_each_option() -> None:
    result = CliRunner().invoke(app, ["options", "--json"])
    assert [json.loads(line)["key"] for line in result.output.splitlines()] == [row.key for row in options_table()]
