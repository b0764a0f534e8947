"""What trimtab is made of: the bill of materials is whole, and every licence is one that may be passed on."""

import json
import tomllib
from collections.abc import Sequence
from typing import Any

import pytest

from tests.supply_chain.__main__ import PAGE, page
from tests.supply_chain.bill import bill
from tests.supply_chain.materials import ROOT, Package, dependencies, is_allowed, licence, own_licence, packages

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def locked() -> Sequence[Package]:
    return packages()


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    return bill()


def test_every_package_that_is_installed_with_trimtab_has_a_licence_that_is_allowed(locked: Sequence[Package]) -> None:
    found = [one for one in locked if one.scope != "excluded"]
    assert len(found) > 20
    assert [(one.name, one.licence) for one in found if not is_allowed(one.licence)] == []


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("MIT", True),
        ("Apache-2.0 AND BSD-2-Clause", True),
        ("GPL-3.0-only OR MIT", True),
        ("MIT AND GPL-3.0-only", False),
        ("AGPL-3.0-or-later", False),
        ("", False),
        ("Proprietary", False),
    ],
)
def test_a_licence_is_allowed_only_where_all_of_it_is(expression: str, expected: bool) -> None:
    assert is_allowed(expression) is expected


def test_the_page_of_licences_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run scripts/sbom --licences"


def test_the_bill_names_every_package_of_the_lock_and_every_jar_once_with_its_checksum(made: dict[str, Any]) -> None:
    components = made["components"]
    purls = [one["purl"] for one in components]
    assert len(purls) == len(set(purls))
    jars = tomllib.loads((ROOT / "conf" / "jars.lock").read_text(encoding="utf-8"))
    names = {name for of_set in jars.values() for name in of_set}
    assert sum(purl.startswith("pkg:maven/") for purl in purls) == len(names)
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert sum(purl.startswith("pkg:pypi/") for purl in purls) == sum("==" in line for line in lock.splitlines())
    checksums = [one.get("hashes") or one["externalReferences"][0]["hashes"] for one in components]
    assert all(checksums)
    known = set(purls) | {made["metadata"]["component"]["bom-ref"]}
    assert all({each["ref"], *each["dependsOn"]} <= known for each in made["dependencies"])


def test_the_bill_and_the_page_name_the_licence_of_trimtab_itself(made: dict[str, Any]) -> None:
    assert made["metadata"]["component"]["licenses"] == [{"license": {"id": "Apache-2.0"}}]
    assert "trimtab itself is under Apache-2.0" in page()
    assert is_allowed(own_licence())


def test_the_bill_is_the_same_each_time(made: dict[str, Any]) -> None:
    assert json.dumps(bill()) == json.dumps(made)


def test_each_dependency_of_the_project_is_locked_and_needed(locked: Sequence[Package]) -> None:
    assert set(dependencies()) <= {one.name for one in locked if one.scope == "required"}


def test_a_package_that_is_not_installed_has_no_licence() -> None:
    assert licence("no-such-package") == ""
