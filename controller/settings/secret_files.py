"""Passwords and tokens: each is in its own file, which the settings name."""

from pathlib import Path

from controller.model.errors import SettingsError
from controller.settings.redaction import SECRETS
from controller.settings.small_file import read_small_file


def read_secret(path: str, key: str) -> str:
    """The content of the file *path*, which the setting *key* names, without white space around it.

    SettingsError where it cannot be read, is not text, or is empty.  Errors show neither content nor path: somebody may
    have written the secret in place of the path.  What servers say is shown without it from then on (redaction.py).
    """
    try:
        secret = read_small_file(Path(path)).decode().strip()
    except OSError as error:
        raise SettingsError(f"{key}: the file that it names cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{key}: the file that it names is not text in UTF-8") from None
    if not secret:
        raise SettingsError(f"{key}: the file that it names is empty")
    SECRETS.register(key, secret)
    return secret
