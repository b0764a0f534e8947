"""Settings in error messages and logs: without passwords, tokens and keys, wherever somebody has written them."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

HIDDEN: Final = "<hidden>"
#: Names of what is secret, and of files that hold a secret: somebody may have written the secret itself there.
_SECRET: Final = re.compile(
    r"passw|passphrase|secret|token|credential|jaas|authorization|private|(?:^|[._-])(?:key|auth|pin)$", re.IGNORECASE
)
#: What stands in front of @ and a host, behind the scheme of a URL.
_USERINFO: Final = re.compile(r"(\w[\w+.-]*://)?[^\s@'\"]+@(?=[\w\[.-])")


def is_secret(name: str) -> bool:
    """Whether what is called *name* is not to be shown."""
    return bool(_SECRET.search(name))


def shown(path: Iterable[object], value: object) -> str:
    """*value*, which stands at *path* in the settings, as a message may show it."""
    return repr(_without_secrets([str(name) for name in path], value))


def without_userinfo(text: str) -> str:
    """*text*, with every user and password in front of a host hidden."""
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
