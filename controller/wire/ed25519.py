"""Signatures by Ed25519 (RFC 8032): keys and signatures as text.

A public key is base64 of its 32 bytes, a signature base64 of its 64.  Signing is deterministic: the same key and the
same bytes give the same signature.
"""

import base64
import binascii
from collections.abc import Iterable
from typing import Final, Self

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

PUBLIC_KEY_BYTES: Final = 32
SIGNATURE_BYTES: Final = 64
#: Characters of a signature as text.
SIGNATURE_CHARACTERS: Final = 88
#: Of edwards25519: coordinates are modulo _P, and -x^2 + y^2 = 1 + d x^2 y^2 with d = -121665 / 121666.
_P: Final = 2**255 - 19


def public_key(text: str) -> bytes:
    """The 32 bytes of the public key that *text* holds; ValueError where it holds none that can be trusted."""
    try:
        key = _decoded(text)
    except ValueError:
        key = b""
    if len(key) != PUBLIC_KEY_BYTES:
        raise ValueError("expected an Ed25519 public key: base64 of its 32 bytes, 44 characters")
    if _is_of_small_order(key):
        raise ValueError("this public key belongs to no private key, and anybody could sign for it")
    return key


def signed_by_any(keys: Iterable[bytes], message: bytes, signature: str) -> bool:
    """Whether *signature* is that of *message* by one of the public *keys*; False also where it is none at all."""
    try:
        raw = _decoded(signature)
    except ValueError:
        return False
    return len(raw) == SIGNATURE_BYTES and any(_verifies(key, message, raw) for key in keys)


class SigningKey:
    """A private key."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key

    @classmethod
    def new(cls) -> Self:
        """A new key, by chance."""
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def of_pem(cls, pem: bytes) -> Self:
        """The key in *pem*, PKCS#8 without a passphrase.  ValueError, which shows no content, where it holds none."""
        try:
            key = serialization.load_pem_private_key(pem, password=None)
        except TypeError:
            raise ValueError("the private key has a passphrase: store it without one") from None
        except (ValueError, UnsupportedAlgorithm):
            raise ValueError("expected a private key, PEM in PKCS#8") from None
        if not isinstance(key, Ed25519PrivateKey):
            raise ValueError("it is a private key of another kind: expected Ed25519")
        return cls(key)

    @property
    def pem(self) -> bytes:
        """The private key, PEM in PKCS#8 without a passphrase."""
        return self._key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )

    @property
    def public(self) -> bytes:
        """The 32 bytes of the public key."""
        return self._key.public_key().public_bytes_raw()

    @property
    def public_text(self) -> str:
        """The public key, as ``public_key`` reads it."""
        return base64.b64encode(self.public).decode()

    def sign(self, message: bytes) -> str:
        """The signature of *message*."""
        return base64.b64encode(self._key.sign(message)).decode()


def _is_of_small_order(key: bytes) -> bool:
    """Whether *key* is a point whose order divides 8: some signatures hold for many messages then.

    Among them is the key of 32 zero bytes.  y is 0 for order 4, and 1 or -1 for orders 1 and 2.  Twice a point of order
    8 has y = 0, so its x^2 is -y^2, and 1 = 2 y^2 + d y^4.
    """
    y2 = pow((int.from_bytes(key, "little") & ((1 << 255) - 1)), 2, _P)
    return y2 in (0, 1) or (121666 * (2 * y2 - 1) - 121665 * y2 * y2) % _P == 0


def _decoded(text: str) -> bytes:
    """What *text* holds in base64; ValueError unless it is written in the one canonical way."""
    try:
        raw = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from error
    if base64.b64encode(raw).decode() != text:
        raise ValueError("not canonical")
    return raw


def _verifies(key: bytes, message: bytes, signature: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True
