"""Writes docs/metrics.md from the declarations: ``python -m controller.adapters.metrics.page``."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from controller.adapters.metrics.collector import CollectorMetrics
from controller.adapters.metrics.controller import ControllerMetrics
from controller.adapters.metrics.declared import DeclaredMetric
from controller.adapters.metrics.executor import ExecutorMetrics
from controller.adapters.metrics.process import ProcessMetrics
from controller.adapters.metrics.web import WebMetrics

PAGE: Final = Path(__file__).parents[3] / "docs" / "metrics.md"
#: Where the text that people write ends, and the tables begin.
_MARK: Final = "<!-- Below this line `python -m controller.adapters.metrics.page` writes; a test compares. -->\n"
_ROLES: Final[tuple[type[ProcessMetrics], ...]] = (ControllerMetrics, CollectorMetrics, ExecutorMetrics, WebMetrics)


def with_tables(text: str) -> str:
    """*text*, that of docs/metrics.md, with the tables as they have to be."""
    return text.partition(_MARK)[0] + _MARK + "\n" + "\n".join(_sections())


def write(page: Path = PAGE) -> None:
    """Write the tables of docs/metrics.md."""
    page.write_text(with_tables(page.read_text(encoding="utf-8")), encoding="utf-8")


def declared() -> dict[str, list[DeclaredMetric]]:
    """The metrics of each role, and under "all" those that every process has."""
    by_role: dict[str, list[DeclaredMetric]] = {kind.role: kind().declared for kind in _ROLES}
    common = [each for each in by_role["controller"] if all(each in metrics for metrics in by_role.values())]
    own = {role: [each for each in metrics if each not in common] for role, metrics in by_role.items()}
    return {"all": common, **own}


def _sections() -> Iterator[str]:
    headings = {
        "all": "Every process",
        "controller": "Controller: `trimtab run`",
        "collector": "Collector: `trimtab collect`",
        "executor": "Executor: `trimtab execute`",
        "web": "Page and REST: `trimtab serve`",
    }
    for role, metrics in declared().items():
        yield f"## {headings[role]}\n"
        yield "".join(_table(metrics))


def _table(metrics: Iterable[DeclaredMetric]) -> Iterator[str]:
    yield "| metric | kind | labels | meaning |\n| --- | --- | --- | --- |\n"
    for name, kind, meaning, labels in metrics:
        yield f"| `{name}` | {kind} | {', '.join(f'`{label}`' for label in labels)} | {meaning} |\n"


if __name__ == "__main__":
    write()
