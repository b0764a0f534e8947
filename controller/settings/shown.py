"""Settings as error messages and logs show them: without passwords, tokens and keys."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

HIDDEN: Final = "<hidden>"
#: Names of secrets and of files with secrets: somebody may have written the secret in place of the file name.
_SECRET: Final = re.compile(
    r"passw|passphrase|secret|token|credential|jaas|authorization|private|(?:^|[._-])(?:key|auth|pin)$", re.IGNORECASE
)
#: The user information of a URL: the text between the scheme and @.
_USERINFO: Final = re.compile(r"(\w[\w+.-]*://)?[^\s@'\"]+@(?=[\w\[.-])")


def is_secret(name: str) -> bool:
    """Whether the value of the setting *name* must not be shown."""
    return bool(_SECRET.search(name))


def shown(path: Iterable[object], value: object) -> str:
    """*value* at *path* in the settings, as a message may show it."""
    return repr(_without_secrets([str(name) for name in path], value))


def without_userinfo(text: str) -> str:
    """*text*, with user and password hidden in every URL."""
    return _USERINFO.sub(rf"\g<1>{HIDDEN}@", text)


def has_userinfo(url: str) -> bool:
    """Whether *url* holds a user or a password."""
    return "@" in url


def _without_secrets(path: list[str], value: object) -> object:
    if any(map(is_secret, path)):
        return HIDDEN
    if isinstance(value, Mapping):
        return {name: _without_secrets([*path, str(name)], each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_without_secrets(path, each) for each in value]
    return without_userinfo(value) if isinstance(value, str) else value
