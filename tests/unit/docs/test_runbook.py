"""docs/runbook.md has a section for each alert, and each alert leads to it."""

import re
from typing import Any, Final

import pytest
import yaml

from tests.pages import DOCS, ROOT

_RULES: Final = ROOT / "conf" / "prometheus" / "trimtab.rules.yml"
_PAGE: Final = (DOCS / "runbook.md").read_text(encoding="utf-8")
#: Alert -> its section, without the heading.
_SECTIONS: Final[dict[str, str]] = {
    part.partition("\n")[0]: part.partition("\n")[2] for part in re.split(r"^### ", _PAGE, flags=re.M)[1:]
}


@pytest.fixture(scope="module")
def alerts() -> dict[str, Any]:
    """Alert -> its rule."""
    groups = yaml.safe_load(_RULES.read_text(encoding="utf-8"))["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def test_every_alert_has_its_section_and_no_section_is_about_another(alerts: dict[str, Any]) -> None:
    assert list(_SECTIONS) == sorted(alerts)


def test_every_alert_leads_to_its_section(alerts: dict[str, Any]) -> None:
    assert {name: rule["annotations"].get("runbook_url") for name, rule in alerts.items()} == {
        name: f"https://trimtab.example.org/docs/runbook.html#{name.lower()}" for name in alerts
    }


def test_every_section_says_how_bad_it_is_what_happens_meanwhile_and_what_to_do(alerts: dict[str, Any]) -> None:
    for name, section in _SECTIONS.items():
        assert f"Severity: {alerts[name]['labels']['severity']}.\n" in section, name
        assert re.search(r"^\*\*In the meantime:\*\* \S", section, re.M), name
        assert re.search(r"^\*\*What to do:\*\*(?: \S|\n\n1\. \S)", section, re.M), name


def test_the_command_that_puts_the_place_of_the_docs_in_matches_every_url() -> None:
    place = re.findall(r"sed -i 's\|([^|]+)\|", _PAGE)
    assert len(place) == 1
    rules = _RULES.read_text(encoding="utf-8")
    assert rules.count(f"runbook_url: {place[0]}/runbook.html#") == rules.count("- alert: ")
