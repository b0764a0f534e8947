"""The chart's values: those of the file are allowed, mistakes are refused, and each is used."""

import json
import re
import tomllib
from typing import Any, Final

import pytest
import yaml
from jsonschema import Draft7Validator

from tests.helm import CHART
from tests.pages import ROOT

_VALUES: Final[dict[str, Any]] = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
_SCHEMA: Final[dict[str, Any]] = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
_TEMPLATES: Final = {path.name: path.read_text(encoding="utf-8") for path in sorted((CHART / "templates").iterdir())}
_SETS: Final = sorted((CHART / "ci").glob("*-values.yaml"))


def merged(below: Any, above: Any) -> Any:
    """*below* with the values of *above*, as helm merges them."""
    if isinstance(below, dict) and isinstance(above, dict):
        return below | {key: merged(below.get(key), value) for key, value in above.items()}
    return above


def problems(values: Any) -> list[str]:
    return [error.json_path for error in Draft7Validator(_SCHEMA).iter_errors(merged(_VALUES, values))]


def test_the_schema_is_one() -> None:
    Draft7Validator.check_schema(_SCHEMA)


@pytest.mark.parametrize("values", [None, *_SETS], ids=lambda path: "default" if path is None else path.stem)
def test_every_value_set_is_allowed(values: Any) -> None:
    assert problems({} if values is None else yaml.safe_load(values.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    ("values", "where"),
    [
        ({"colector": {"replicas": 1}}, "$"),
        ({"collector": {"replica": 1}}, "$.collector"),
        ({"collector": {"replicas": 0}}, "$.collector.replicas"),
        ({"collector": {"replicas": "2"}}, "$.collector.replicas"),
        ({"image": {"digest": "sha256:short"}}, "$.image.digest"),
        ({"image": {"repository": "registry/trimtab:0.1.0"}}, "$.image.repository"),
        ({"page": {"ingress": {"enabled": True}}}, "$.page.ingress.host"),
        ({"controller": {"resources": {"limits": {"memory": "4 GB"}}}}, "$.controller.resources.limits.memory"),
        ({"networkPolicy": {"ports": [99_999]}}, "$.networkPolicy.ports[0]"),
        ({"state": {"accessModes": []}}, "$.state.accessModes"),
        ({"prometheusRule": {"docsUrl": "docs"}}, "$.prometheusRule.docsUrl"),
        ({"settings": {"password": "x"}}, "$.settings"),
    ],
)
def test_a_mistake_is_refused_where_it_is(values: dict[str, Any], where: str) -> None:
    assert problems(values) == [where]


def _paths(schema: dict[str, Any], above: str = "") -> set[str]:
    paths = set[str]()
    for name, below in schema.get("properties", {}).items():
        paths |= _paths(below, f"{above}{name}.") if "properties" in below else {f"{above}{name}"}
    return paths - {"global"}


def _leaves(values: dict[str, Any], schema: dict[str, Any], above: str = "") -> set[str]:
    leaves = set[str]()
    for name, value in values.items():
        below = schema["properties"][name]
        leaves |= _leaves(value, below, f"{above}{name}.") if "properties" in below else {f"{above}{name}"}
    return leaves


def test_the_file_of_values_has_every_value_that_the_schema_allows() -> None:
    allowed = {path for path in _paths(_SCHEMA) if ".resources." not in path}
    assert {path for path in _leaves(_VALUES, _SCHEMA) if ".resources." not in path} == allowed


def test_every_value_is_used_by_a_template() -> None:
    text = "\n".join(_TEMPLATES.values())
    names = {path.rpartition(".")[2] for path in _leaves(_VALUES, _SCHEMA) if ".resources." not in path}
    assert [name for name in sorted(names) if not re.search(rf"\.{name}\b", text)] == []


def test_the_chart_has_the_version_of_this_release() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert chart["version"] == chart["appVersion"] == project["version"]


def test_the_files_of_the_chart_are_those_of_the_kustomize_base_and_of_conf() -> None:
    own = {path.name: path.read_bytes() for path in (CHART / "files").iterdir()}
    settings = ROOT / "deploy" / "kubernetes" / "settings"
    rules = ROOT / "conf" / "prometheus" / "trimtab.rules.yml"
    assert own == {path.name: path.read_bytes() for path in (*settings.iterdir(), rules)}
