"""docs/simulate.md has every key of a scenario, every figure and every scenario that comes with trimtab."""

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from controller.offline.scenarios.shipped import LIBRARY, shipped
from controller.settings.expectation import FIGURES
from controller.settings.scenario import Scenario
from controller.settings.section import sections_in
from controller.wire.attribute_docstrings import attribute_docstrings
from tests.pages import DOCS, ROOT

PAGE = (DOCS / "simulate.md").read_text(encoding="utf-8")
#: Sections of trimtab.toml, which `trimtab options` explains.
_ELSEWHERE = {"decisions", "guardrails"}


def key_rows(section: type[BaseModel] = Scenario) -> Iterator[str]:
    """A row of the page for each key of *section* and of the sections in it."""
    meanings = attribute_docstrings(section)
    for key, field in section.model_fields.items():
        inner = [] if key in _ELSEWHERE else sections_in(field.annotation)
        for each in inner:
            yield from key_rows(each)
        if not inner:
            yield f"| `{key}` | {_default(field)} | {' '.join(meanings.get(key, '').split())} |"


def _default(field: Any) -> str:
    if field.is_required():
        return "needed"
    default = field.default
    if isinstance(default, bool):
        return str(default).lower()
    return f"{default:g}" if isinstance(default, int | float) else ""


def test_every_key_stands_on_the_page_with_its_default() -> None:
    rows = [*key_rows()]
    assert len(rows) > 50
    assert [row for row in rows if row not in PAGE] == []


def test_every_figure_stands_on_the_page() -> None:
    assert [figure for figure, meaning in FIGURES.items() if f"| `{figure}` | {meaning}" not in PAGE] == []


def test_every_scenario_stands_on_the_page() -> None:
    names = [name for name, _ in shipped(ROOT / LIBRARY)]
    assert len(names) > 20
    assert [name for name in names if f"| `{name}` | " not in PAGE] == []
