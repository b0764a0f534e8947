"""``trimtab strategies check``."""

import builtins
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from controller.cli.strategies import app
from controller.model.errors import SettingsError

OWN = """
from dataclasses import dataclass
from controller.model.decision import Reason, UnloadDecision, Verdict
from controller.model.strategy_memory import NoMemory
from controller.model.option import option

@dataclass(frozen=True)
class NeverMoves:
    percent: int = option("acmePercentage", default=5, unit="%", meaning="how lazy it is")

    def initial_memory(self):
        return NoMemory()

    def decide(self, view, memory):
        said = tuple(Verdict(subject=name, reason=Reason.BALANCED) for name in view.brokers.names)
        return UnloadDecision(verdicts=said, reason=Reason.BALANCED), memory
"""


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["check", *map(str, arguments)])


def test_a_strategy_of_trimtabs_keeps_its_laws() -> None:
    result = run("specified_positions_divide", "--examples", 3)
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "specified_positions_divide: a split algorithm (defaultNamespaceBundleSplitAlgorithm)",
        "kept   It cuts a bundle at ascending positions inside of it, always the same, or says why it does not.",
        "1 of 1 law kept, each on up to 3 examples",
    ]


def test_json_says_of_each_law_whether_it_was_kept() -> None:
    said = json.loads(run("ThresholdShedder", "--examples", 1, "--json").stdout)
    assert (said["strategy"], said["setting"]) == ("ThresholdShedder", "loadBalancerLoadSheddingStrategy")
    assert said["kept"] is all(law["kept"] for law in said["laws"])
    assert {"key": "lowerBoundarySheddingEnabled", "value": "false"}.items() <= said["options"][-1].items()


@pytest.mark.slow
def test_a_broken_law_is_told_with_an_example_and_exit_code_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "acme_lazy.py").write_text(OWN)
    (tmp_path / "broker.conf").write_text("acmePercentage=7\n")
    monkeypatch.syspath_prepend(tmp_path)
    result = run("acme_lazy.NeverMoves", "--examples", 3, "--broker-conf", tmp_path / "broker.conf")
    del sys.modules["acme_lazy"]
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[:2] == [
        "acme_lazy.NeverMoves: a shedder (loadBalancerLoadSheddingStrategy)",
        "  acmePercentage=7 %: how lazy it is",
    ]
    broken = lines.index("  But it unloads nothing in 10 intervals; its last reason is Balanced.")
    assert lines[broken - 1].startswith("BROKEN It unloads something within 10 intervals")
    assert lines[broken + 1 : broken + 3] == ["  The simplest example found:", "    broker cold: CPU 5.0%"]
    assert lines[-1] == "8 of 9 laws kept, each on up to 3 examples"


def test_what_cannot_be_loaded_is_told_with_the_reason() -> None:
    result = run("acme_nowhere.Lazy")
    assert isinstance(result.exception, SettingsError)
    assert str(result.exception).startswith("acme_nowhere.Lazy: there is no Python module acme_nowhere")


def test_without_hypothesis_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    really, gone = builtins.__import__, [name for name in sys.modules if name.startswith("controller.laws")]
    for name in gone:
        monkeypatch.delitem(sys.modules, name)

    def without(name: str, *rest: Any) -> Any:
        if name.partition(".")[0] == "hypothesis":
            raise ModuleNotFoundError("No module named 'hypothesis'", name="hypothesis")
        return really(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    result = run("ThresholdShedder")
    assert isinstance(result.exception, SettingsError)
    assert str(result.exception).endswith("it is not installed: pip install 'trimtab[laws]'")
