"""What docs/write_your_own_strategy.md shows works as it stands there."""

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from controller.laws import broken_laws
from controller.settings.broker_conf import read_broker_conf
from controller.settings.guardrails import GuardrailSettings
from controller.settings.policy import policy_of
from controller.settings.strategy_kinds import SHEDDER_KIND
from controller.settings.trimtab_toml import DecisionSettings
from tests.effort import tries
from tests.pages import DOCS, write_files_of_page

PAGE = DOCS / "write_your_own_strategy.md"


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The files of the page, on Python's path."""
    write_files_of_page(PAGE, tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.syspath_prepend(tmp_path / "tests")
    yield tmp_path
    for name in ("acme_balance", "acme_balance.one_bundle", "acme_balance.patient", "test_one_bundle"):
        sys.modules.pop(name, None)


@pytest.mark.usefixtures("written")
def test_the_tests_of_the_page_pass() -> None:
    tests = {name: test for name, test in vars(import_module("test_one_bundle")).items() if name.startswith("test_")}
    assert len(tests) == 4
    for test in tests.values():
        test()


def test_the_strategy_of_the_page_is_loaded_by_its_name_with_its_option(written: Path) -> None:
    conf = read_broker_conf(written / "broker.conf")
    shedder = policy_of(conf, DecisionSettings(), GuardrailSettings(), 2, "lab", 60_000).shedder
    assert type(shedder).__name__ == "OneBundleShedder"
    assert shedder.above_percent == 15  # type: ignore[attr-defined]


@pytest.mark.usefixtures("written")
def test_the_strategy_with_a_memory_of_its_own_is_loaded_and_keeps_the_laws() -> None:
    shedder = SHEDDER_KIND.choose("acme_balance.patient.PatientShedder", {"acmePatience": "1"})
    assert type(shedder.initial_memory()).kind == "acme_balance.patient.RoundsAbove"
    assert broken_laws(shedder, examples=tries(plain=2, thorough=20)) == []


def test_a_strategy_imports_one_module_of_trimtab(written: Path) -> None:
    lines = [line for path in written.glob("acme_balance/*.py") for line in path.read_text().splitlines()]
    assert {line.split()[1] for line in lines if line.startswith("from controller")} == {"controller.strategies.api"}
