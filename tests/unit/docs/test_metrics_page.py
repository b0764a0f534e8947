"""docs/metrics.md, the alert rules and the dashboard speak of the metrics that there are."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from controller.adapters.metrics.collector import CollectorMetrics
from controller.adapters.metrics.controller import ControllerMetrics
from controller.adapters.metrics.executor import ExecutorMetrics
from controller.adapters.metrics.page import PAGE, declared, with_tables
from controller.adapters.metrics.web import WebMetrics

_ROOT: Final = Path(__file__).parents[3]
_RULES: Final = (_ROOT / "conf/prometheus/trimtab.rules.yml").read_text(encoding="utf-8")
_DASHBOARD: Final[dict[str, Any]] = json.loads((_ROOT / "conf/grafana/trimtab.json").read_text(encoding="utf-8"))
_METRIC: Final = re.compile(r"\b(?:trimtab|pulsar|process)_\w+")
#: Labels that Prometheus adds, and words of its language.
_OTHER_LABELS: Final = {"job", "instance", "le"}
_OF_HISTOGRAMS: Final = ("_bucket", "_sum", "_count")
_ALL: Final = {each.name: each for metrics in declared().values() for each in metrics}


def rules() -> dict[str, str]:
    """Alert -> its expression."""
    found = {}
    for text in _RULES.split("- alert: ")[1:]:
        name, _, rest = text.partition("\n")
        match = re.search(r"expr: (?:>-\n)?(.*?)\n        (?:for|labels):", rest, re.DOTALL)
        assert match is not None, name
        found[name] = match[1]
    return found


def panels() -> dict[str, list[str]]:
    """Title -> the expressions of its targets."""
    return {panel["title"]: [each["expr"] for each in panel["targets"]] for panel in _DASHBOARD["panels"]}


def expressions() -> Iterator[tuple[str, str]]:
    """Of rules and panels: where, and the expression."""
    yield from rules().items()
    yield from ((title, expression) for title, each in panels().items() for expression in each)


def shown() -> set[str]:
    """The names of all samples that processes can show, also of metrics that have no value yet."""
    names = set()
    for metrics in (ControllerMetrics(), CollectorMetrics(), ExecutorMetrics(), WebMetrics()):
        for family in metrics.registry.collect():
            if family.name.startswith("process_"):
                names |= {sample.name for sample in family.samples}
            elif family.type == "histogram":
                names |= {family.name + ending for ending in _OF_HISTOGRAMS}
            else:
                names.add(family.name + ("_total" if family.type == "counter" else ""))
    return names


def test_the_page_is_current() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text == with_tables(text), "run python -m controller.adapters.metrics.page"


def test_the_page_has_every_metric_of_the_registries_and_no_other() -> None:
    rows = set(re.findall(r"^\| `(\w+)` \| (?:counter|gauge|histogram) ", PAGE.read_text(encoding="utf-8"), re.M))
    endings = "|".join(_OF_HISTOGRAMS)
    own = {re.sub(f"({endings})$", "", name) for name in shown() if not name.startswith("process_")}
    assert rows == own


def test_there_are_rules_and_panels_to_check() -> None:
    assert len(rules()) == _RULES.count("expr:") > 10
    assert len([*expressions()]) > 30


def test_every_metric_of_a_rule_or_a_panel_is_one_that_a_process_shows() -> None:
    there_are = shown()
    for where, expression in expressions():
        names = set(_METRIC.findall(expression))
        assert names <= there_are, (where, expression)
        assert names or expression.startswith("up{"), (where, expression, "asks for nothing")


def test_every_label_of_a_rule_or_a_panel_is_one_of_its_metrics() -> None:
    endings = "|".join(_OF_HISTOGRAMS)
    for where, expression in expressions():
        metrics = [_ALL.get(re.sub(f"({endings})$", "", name)) for name in _METRIC.findall(expression)]
        known = _OTHER_LABELS | {label for metric in metrics if metric is not None for label in metric.labels}
        grouped = re.findall(r"\b(?:by|on|without|ignoring) \(([^)]*)\)", expression)
        asked = {label.strip() for group in grouped for label in group.split(",")}
        asked |= set(re.findall(r"[{,]\s*(\w+)\s*(?:=|!)", expression))
        assert asked <= known, (where, expression)


def test_counters_are_asked_for_their_growth_and_parentheses_are_closed() -> None:
    for where, expression in expressions():
        for name in _METRIC.findall(expression):
            if name.endswith(("_total", *_OF_HISTOGRAMS)):
                assert re.search(rf"(?:rate|increase)\({name}\b", expression), (where, expression)
        for opening, closing in ("()", "{}", "[]"):
            assert expression.count(opening) == expression.count(closing), (where, expression)


def test_the_dashboard_shows_everything_that_is_known_of_moves_and_promises() -> None:
    about_moves = {name for name in _ALL if re.search("_(audited|owner_changes|verified|prediction)_", f"{name}_")}
    assert len(about_moves) > 8
    asked = {name for each in panels().values() for text in each for name in _METRIC.findall(text)}
    endings = "|".join(_OF_HISTOGRAMS)
    assert about_moves <= {re.sub(f"({endings})$", "", name) for name in asked}


def test_panels_have_numbers_and_places_of_their_own() -> None:
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in _DASHBOARD["panels"]]
    assert len(set(places)) == len({panel["id"] for panel in _DASHBOARD["panels"]}) == len(_DASHBOARD["panels"])
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in _DASHBOARD["panels"])
