"""Sessions: a signed cookie that says who logged in.  The server remembers nothing, so any of several can check it.

A session by a token ends when that token is removed from the file or expires: the cookie has the token's hash, and the
file is asked each time.  The hash in a cookie is no secret that helps: only the token itself logs in.
"""

import base64
import hashlib
import hmac
import json
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from controller.model.errors import SettingsError
from controller.settings.small_file import read_small_file
from controller.settings.web import ViewerRole
from controller.web.access.viewer import LONGEST_NAME

_KEY_BYTES: Final = 32
#: Browsers keep no longer cookie.
_LONGEST: Final = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Who logged in, and until when that holds."""

    name: str
    role: ViewerRole
    #: Epoch seconds.
    ends: float
    #: Hash of the token that it was made of; "": it was made by an identity provider.
    token: str = ""


class SessionSigner:
    """Signs and checks small JSON objects.  *purpose*: what is signed for one purpose is no good for another."""

    def __init__(self, key: bytes, purpose: str) -> None:
        self._key = hmac.digest(key, purpose.encode(), hashlib.sha256)

    def signed(self, values: dict[str, Any]) -> str:
        """*values* as a text for a cookie."""
        body = base64.urlsafe_b64encode(json.dumps(values, separators=(",", ":")).encode())
        return f"{body.decode()}.{self._signature(body)}"

    def checked(self, text: str) -> dict[str, Any] | None:
        """The values of a *text* that this signer made; None where it did not."""
        body, dot, signature = text.partition(".")
        if not dot or len(text) > _LONGEST or not text.isascii():
            return None
        if not hmac.compare_digest(self._signature(body.encode()), signature):
            return None
        values: dict[str, Any] = json.loads(base64.urlsafe_b64decode(body))
        return values

    def _signature(self, body: bytes) -> str:
        return hmac.new(self._key, body, hashlib.sha256).hexdigest()


class Sessions:
    """Makes and checks sessions with the key of *key_file*; without it, with a key of this process."""

    def __init__(self, key_file: str | None = None) -> None:
        self.key = secrets.token_bytes(_KEY_BYTES) if key_file is None else _key(key_file)
        self._signer = SessionSigner(self.key, "session")

    def cookie(self, session: Session) -> str:
        """The value of the cookie."""
        values = {"n": session.name[:LONGEST_NAME], "r": session.role.value, "e": session.ends, "t": session.token}
        return self._signer.signed(values)

    def session(self, cookie: str, now: float) -> Session | None:
        """The session in *cookie*; None where it was not made here, or is over at *now*, epoch seconds."""
        values = self._signer.checked(cookie)
        if values is None or values["e"] <= now:
            return None
        return Session(name=values["n"], role=ViewerRole(values["r"]), ends=values["e"], token=values["t"])


def _key(path: str) -> bytes:
    try:
        key = read_small_file(Path(path))
    except OSError as error:
        raise SettingsError(f"web.session_key_file: the file that it names cannot be read: {error.strerror}") from None
    if len(key) < _KEY_BYTES:
        raise SettingsError(
            f"web.session_key_file: the file has {len(key)} bytes, wanted are {_KEY_BYTES} random ones:"
            " head -c 32 /dev/urandom >FILE"
        )
    return key
