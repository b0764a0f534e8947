"""[approvals]: what is refused, and what changes the policy's version."""

from typing import Any

import pytest
from pydantic import ValidationError

from controller.settings.approvals import ApprovalSettings
from tests.proposals import key_of, policy

ADA, BOB = ({"key": key_of(name).public_text} for name in ("ada", "bob"))


def refusal(**section: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        ApprovalSettings.model_validate(section)
    return str(caught.value)


def test_without_keys_nothing_is_demanded_and_there_is_no_policy() -> None:
    assert not ApprovalSettings().demanded
    assert ApprovalSettings(decision_minutes=5, controller_key_file="x").version == ""


def test_a_key_or_a_server_alone_demands_approvals() -> None:
    assert policy(["ada"]).demanded
    assert ApprovalSettings.model_validate({"servers": {"page": ADA}}).demanded


@pytest.mark.parametrize("key", ["", "AAAA", "A" * 43 + "=", "not base64!", key_of("ada").public_text[:-1]])
def test_what_is_no_key_is_refused(key: str) -> None:
    assert "Ed25519 public key" in refusal(keys={"ada": {"key": key}}) or "anybody could sign" in refusal(
        keys={"ada": {"key": key}}
    )


def test_one_person_under_two_names_is_refused() -> None:
    assert "keys.ada and keys.bob have the same key" in refusal(keys={"ada": ADA, "bob": ADA})
    assert "keys.ada and servers.page have the same key" in refusal(keys={"ada": ADA}, servers={"page": ADA})
    assert "are names of one person" in refusal(keys={"ada": ADA, "ADA": BOB})
    assert "are names of one person" in refusal(keys={"ada": ADA, "bob": BOB | {"also": ["Ada"]}})
    assert "are names of one person or server" in refusal(keys={"ada": ADA}, servers={"ada": BOB})


def test_nobody_has_the_name_of_the_controllers() -> None:
    assert "name of the controllers themselves" in refusal(keys={"trimtab": ADA})


@pytest.mark.parametrize(
    ("one", "other"),
    [("ada", "ADA"), ("ada", "ada@example.org"), ("Ada@Example.org", "ada"), ("\u212bda", "\u00e5DA")],
)
def test_a_person_is_the_same_under_all_her_names(one: str, other: str) -> None:
    people = ApprovalSettings.model_validate({"keys": {"ada": ADA | {"also": ["ada@example.org"]}, "bob": BOB}})
    assert people.is_same(one, other)
    assert not people.is_same(one, "bob")


@pytest.mark.parametrize(
    "name",
    [
        *("a\u200bda", "a\u200dda", "\ufeffada", "a\u00adda", "ad\u2060a", "ada\ufe0f", "ad\u034fa"),
        *("a\U000e0041da", "a\u3164da", "a\ufff0da", "a\u115fda", "\u202eada", "\u200b ada \u200b"),
    ],
)
def test_what_is_invisible_makes_no_other_person(name: str) -> None:
    people = ApprovalSettings.model_validate({"servers": {"page": ADA}})
    assert people.is_same(name, "ada")
    assert not people.is_same(name, "adab")
    assert "are names of one person" in refusal(keys={"ada": ADA, name: BOB})


@pytest.mark.parametrize("spaces", ["  ", "\u00a0", "\u3000 ", " \u200b "])
def test_white_space_makes_no_other_person(spaces: str) -> None:
    assert ApprovalSettings().is_same(f"Ada{spaces}Lovelace", "ada lovelace")


@pytest.mark.parametrize(
    "name", ["\u0430da", "\u0410DA", "\u03b1d\u0430", "\u0430\u0501\u0430", "\uff41da", "a\u0501a\u200b"]
)
def test_letters_of_another_script_that_look_alike_make_no_other_person(name: str) -> None:
    assert ApprovalSettings().is_same(name, "ada")
    assert not ApprovalSettings().is_same(name, "adam")
    assert "are names of one person" in refusal(keys={"ada": ADA, name: BOB})


@pytest.mark.parametrize(("one", "other"), [("\u00e9mile", "emile"), ("adalovelace", "ada lovelace"), ("李", "王")])
def test_names_that_look_different_are_those_of_two_persons(one: str, other: str) -> None:
    assert not ApprovalSettings().is_same(one, other)


def test_every_change_of_the_policy_changes_its_version_and_a_path_does_not() -> None:
    before = policy()
    changes: list[dict[str, Any]] = [{"required": 2}, {"free_moves": 1}, {"expires_minutes": 5}]
    versions = {policy(**change).version for change in changes} | {policy(["ada", "bob"]).version, before.version}
    assert len(versions) == 2 + len(changes)
    assert policy(controller_key_file="/etc/trimtab/key.pem").version == before.version
