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


def test_every_change_of_the_policy_changes_its_version_and_a_path_does_not() -> None:
    before = policy()
    changes: list[dict[str, Any]] = [{"required": 2}, {"free_moves": 1}, {"expires_minutes": 5}]
    versions = {policy(**change).version for change in changes} | {policy(["ada", "bob"]).version, before.version}
    assert len(versions) == 2 + len(changes)
    assert policy(controller_key_file="/etc/trimtab/key.pem").version == before.version
