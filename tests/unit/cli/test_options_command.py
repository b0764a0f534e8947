"""`trimtab options` prints every option, whatever signs are in its text."""

from typer.testing import CliRunner

from controller.cli.app import app
from controller.settings.policy import options_table


def test_every_option_is_printed_with_its_brackets() -> None:
    result = CliRunner().invoke(app, ["options"], env={"COLUMNS": "400"})
    assert result.exit_code == 0, result.output
    missing = [row.key for row in options_table() if row.key not in result.output]
    assert missing == []
    assert "guardrails.interval.unloads" in result.output
    assert "[/chroot]" in result.output
