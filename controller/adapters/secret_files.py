"""Passwords and tokens: each lies in a file of its own, which the settings name."""

from pathlib import Path

from controller.model.errors import SettingsError


def read_secret(path: str, key: str) -> str:
    """The content of the file *path*, which the setting *key* names, without white space around it.

    SettingsError, without the content, where it cannot be read, is not text or is empty.
    """
    try:
        secret = Path(path).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise SettingsError(f"{key} = {path!r}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise SettingsError(f"{key} = {path!r}: the file is not text in UTF-8") from None
    if not secret:
        raise SettingsError(f"{key} = {path!r}: the file is empty")
    return secret
