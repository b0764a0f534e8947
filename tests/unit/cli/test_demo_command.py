"""`trimtab demo`, as far as nothing starts."""

from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from controller.cli.demo import demo
from controller.lab.pulsar_release import USUAL, find_release


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The release of each demo on Pulsar that would have begun."""
    found: list[Any] = []
    monkeypatch.setattr("controller.lab.pulsar_demo.run_pulsar_demo", lambda *_, release, **__: found.append(release))
    return found


def run(folder: Path, *words: str) -> Any:
    app = typer.Typer()
    app.command()(demo)
    return CliRunner().invoke(app, [*words, "--folder", str(folder)])


def test_pulsar_is_of_the_usual_release_unless_another_one_is_named(tmp_path: Path, played: list[Any]) -> None:
    for words in (["--pulsar"], ["--pulsar", "5"], ["--pulsar", "5.0", "--intervals", "2"]):
        assert run(tmp_path, *words).exit_code == 0
    assert played == [USUAL, find_release("5"), find_release("5.0")]


def test_a_release_without_pulsar_is_an_error_of_usage(tmp_path: Path, played: list[Any]) -> None:
    result = run(tmp_path, "5")
    assert result.exit_code == 2
    assert "give --pulsar 5" in result.stderr
    assert played == []
