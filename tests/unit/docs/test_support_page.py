"""docs/support.md has the versions that trimtab is tested with; the files of the project name what there is."""

import re
import tomllib
from typing import Any, Final

import pytest
import yaml

from controller.lab.pulsar_release import RELEASES, USUAL
from tests.pages import DOCS, ROOT

_PAGE: Final = (DOCS / "support.md").read_text(encoding="utf-8")
_CELLS: Final = [
    [cell.strip() for cell in line.strip("|").split("|")] for line in _PAGE.splitlines() if line[:1] == "|"
]
#: What, of the table of versions -> tried, meant, not.
_ROWS: Final = {what: rest for what, *rest in _CELLS if len(rest) == 3}
_JARS: Final[dict[str, dict[str, str]]] = tomllib.loads((ROOT / "conf" / "jars.lock").read_text(encoding="utf-8"))
_PROJECT: Final[dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def tried(what: str) -> str:
    """What the page says was tried of *what*."""
    [row] = [row for name, row in _ROWS.items() if name.partition(",")[0] == what]
    return row[0]


def jar(section: str, name: str) -> str:
    """The version of the jar *name* in a section of the list of jars."""
    [version] = [key.split(":")[2] for key in _JARS[section] if key.split(":")[1] == name]
    return version


def test_the_oldest_python_is_that_of_the_package_and_every_version_tried_is_one_of_its_classifiers() -> None:
    oldest = str(_PROJECT["requires-python"]).removeprefix(">=")
    assert _ROWS["Python"][2] == f"below {oldest}"
    listed = set(re.findall(r"3\.\d+", " ".join(_PROJECT["classifiers"])))
    assert set(re.findall(r"3\.\d+", tried("Python"))) == listed


def test_servers_were_tried_in_the_versions_that_the_tests_start() -> None:
    [spark] = [each.partition("==")[2] for each in _PROJECT["dependencies"] if each.startswith("pyspark==")]
    assert tried("Spark").startswith(f"{spark},")
    assert tried("Kafka") == jar("kafka", "kafka_2.13")
    assert tried("ZooKeeper").startswith(f"{jar('zookeeper', 'zookeeper')};")
    assert tried("Pulsar").startswith(f"{USUAL.version}; ")
    assert all(each.version in tried("Pulsar") for each in RELEASES)


def test_the_security_policy_and_this_page_say_the_same_while_there_is_no_release() -> None:
    sentence = "There is no release yet"
    assert sentence in _PAGE
    assert sentence in (ROOT / "SECURITY.md").read_text(encoding="utf-8")


def test_every_path_with_an_owner_exists_and_has_one() -> None:
    lines = (ROOT / ".github" / "CODEOWNERS").read_text(encoding="utf-8").splitlines()
    rules = [line.split() for line in lines if line and not line.startswith("#")]
    assert [rule for rule in rules if len(rule) < 2 or not all(owner.startswith("@") for owner in rule[1:])] == []
    assert [path for path, *_ in rules if path != "*" and not (ROOT / path.strip("/")).exists()] == []


@pytest.mark.parametrize("name", ["bug", "decision", "idea"])
def test_a_form_for_issues_asks_for_something_and_each_field_has_a_name_of_its_own(name: str) -> None:
    form = yaml.safe_load((ROOT / ".github" / "ISSUE_TEMPLATE" / f"{name}.yml").read_text(encoding="utf-8"))
    assert {"name", "description", "body"} <= set(form)
    fields = [each for each in form["body"] if each["type"] != "markdown"]
    ids = [each["id"] for each in fields]
    assert len(ids) == len(set(ids)) > 1
    assert all(each["attributes"]["label"] for each in fields)
    assert any(each.get("validations", {}).get("required") for each in fields)
