"""The command line of the servers, as far as no server starts."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from controller.lab.serve import app


@pytest.mark.parametrize("name", ["kafka", "zookeeper", "pulsar"])
def test_stopping_what_does_not_run_says_so_and_is_no_failure(name: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, [name, "stop", "--dir", str(tmp_path)])
    assert result.exit_code == 0
    assert result.stdout == f"{name} does not run in {tmp_path}\n"


def test_an_action_that_there_is_not_is_an_error_of_usage(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["kafka", "restart", "--dir", str(tmp_path)])
    assert result.exit_code == 2
    assert "restart" in result.stderr
