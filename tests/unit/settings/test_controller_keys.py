"""The keys of controllers in [approvals]."""

import re
from pathlib import Path

import pytest

from controller.model.errors import SettingsError
from controller.settings.approvals import ApprovalSettings
from controller.settings.signing_key import controller_signing_key
from controller.wire.ed25519 import SigningKey
from tests.unit.settings.test_settings_trimtab_toml import SMALLEST, refusal, written

KEY = SigningKey.new()


def key_file(folder: Path) -> str:
    (folder / "controller.pem").write_bytes(KEY.pem)
    return 'approvals.controller_key_file = "controller.pem"\n'


def with_key(tmp_path: Path, text: str) -> ApprovalSettings:
    return written(tmp_path, f"{SMALLEST}{text}").approvals


def test_without_the_section_nobody_signs_and_nothing_has_to_be_signed(tmp_path: Path) -> None:
    approvals = with_key(tmp_path, "")
    assert controller_signing_key(approvals) is None
    assert approvals.controller_keys == ()


def test_a_controller_signs_before_executors_ask_for_it(tmp_path: Path) -> None:
    key = controller_signing_key(with_key(tmp_path, key_file(tmp_path)))
    assert key is not None
    assert key.public == KEY.public


def test_executors_need_only_the_public_keys(tmp_path: Path) -> None:
    approvals = with_key(tmp_path, f'approvals.controllers.east = "{KEY.public_text}"')
    assert approvals.controller_keys == (KEY.public,)


def test_a_controller_that_executors_would_refuse_does_not_start(tmp_path: Path) -> None:
    another = SigningKey.new().public_text
    with pytest.raises(SettingsError, match="controller_key_file is not set"):
        controller_signing_key(with_key(tmp_path, f'approvals.controllers.east = "{another}"'))
    with pytest.raises(SettingsError, match=rf"{re.escape(KEY.public_text)} is not in approvals\.controllers"):
        controller_signing_key(with_key(tmp_path, f'{key_file(tmp_path)}approvals.controllers.east = "{another}"'))
    both = f'{key_file(tmp_path)}approvals.controllers.west = "{another}"\n'
    assert controller_signing_key(with_key(tmp_path, f'{both}approvals.controllers.east = "{KEY.public_text}"'))


@pytest.mark.parametrize("key", ["", "east", "A" * 43 + "="])
def test_what_is_no_public_key_is_refused_by_name(tmp_path: Path, key: str) -> None:
    message = refusal(tmp_path, f'{SMALLEST}approvals.controllers.east = "{key}"')
    assert "approvals.controllers.east" in message
    assert "public key" in message


def test_a_key_file_is_refused_without_showing_its_content(tmp_path: Path) -> None:
    (tmp_path / "controller.pem").write_text("the secret")
    with pytest.raises(SettingsError, match="PEM in PKCS#8") as caught:
        controller_signing_key(ApprovalSettings(controller_key_file=str(tmp_path / "controller.pem")))
    assert "the secret" not in str(caught.value)
    with pytest.raises(SettingsError, match="No such file"):
        controller_signing_key(ApprovalSettings(controller_key_file=str(tmp_path / "missing.pem")))
