"""Reads private keys that sign."""

from pathlib import Path

from controller.model.errors import SettingsError
from controller.settings.approvals import ApprovalSettings
from controller.settings.small_file import read_small_file
from controller.wire.ed25519 import SigningKey


def read_signing_key(path: str | Path, key: str) -> SigningKey:
    """The private key in the file *path*, which the setting or option *key* names.

    SettingsError where it cannot be read, or holds no such key; it shows neither content nor path, as ``read_secret``.
    """
    try:
        return SigningKey.of_pem(read_small_file(Path(path)))
    except OSError as error:
        raise SettingsError(f"{key}: the file that it names cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise SettingsError(f"{key}: the file that it names: {error}") from None


def controller_signing_key(approvals: ApprovalSettings) -> SigningKey | None:
    """The key with which a controller signs its commands; None: it does not sign them.

    SettingsError where executors of the same settings would refuse its commands.
    """
    if approvals.controller_key_file is None:
        if approvals.controllers:
            raise SettingsError(
                "approvals.controller_key_file is not set, and approvals.controllers is: executors would refuse every"
                " command of this controller; `trimtab proposals key` makes a key"
            )
        return None
    signing_key = read_signing_key(approvals.controller_key_file, "approvals.controller_key_file")
    if approvals.controllers and signing_key.public not in approvals.controller_keys:
        raise SettingsError(
            f"approvals.controller_key_file: its public key {signing_key.public_text} is not in approvals.controllers:"
            " executors would refuse every command of this controller"
        )
    return signing_key
