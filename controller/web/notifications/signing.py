"""Signatures of requests by Standard Webhooks 1.0: HMAC-SHA256 over id, time and body."""

import base64
import binascii
import hmac
from hashlib import sha256
from typing import Final

from controller.model.errors import SettingsError
from controller.settings.redaction import SECRETS, read_secret

_PREFIX: Final = "whsec_"
#: Bytes of a key, by the specification.
_SHORTEST_KEY: Final = 24
_LONGEST_KEY: Final = 64
#: While a key is replaced, the new one and the old one.
_MOST_KEYS: Final = 2


def signing_keys(path: str, key: str) -> tuple[bytes, ...]:
    """The keys in the file *path*, which the setting *key* names.  SettingsError, without what is in the file."""
    lines = read_secret(path, key).split()
    if len(lines) > _MOST_KEYS:
        raise SettingsError(f"{key}: the file that it names has {len(lines)} keys: allowed are {_MOST_KEYS}")
    for line in lines:
        SECRETS.register(key, line)
    return tuple(_key(line, key) for line in lines)


def _key(line: str, key: str) -> bytes:
    try:
        secret = base64.b64decode(line.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        secret = b""
    if not _SHORTEST_KEY <= len(secret) <= _LONGEST_KEY:
        raise SettingsError(
            f"{key}: the file that it names holds no key of Standard Webhooks: expected {_PREFIX} and base64 of"
            f" {_SHORTEST_KEY} to {_LONGEST_KEY} bytes, as of `head -c 32 /dev/urandom | base64`"
        )
    return secret


def signature_headers(identity: str, at_seconds: int, body: bytes, keys: tuple[bytes, ...]) -> dict[str, str]:
    """The headers of a request with *body*; *identity*: of the notification, the same whenever it is sent again.

    Without *keys* there is no signature, but still the id.
    """
    headers = {"webhook-id": identity, "webhook-timestamp": str(at_seconds)}
    if keys:
        signed = b".".join([identity.encode(), str(at_seconds).encode(), body])
        digests = (hmac.new(key, signed, sha256).digest() for key in keys)
        headers["webhook-signature"] = " ".join(f"v1,{base64.b64encode(digest).decode()}" for digest in digests)
    return headers
