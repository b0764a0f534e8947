"""Ed25519: which keys and signatures count."""

import base64

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from controller.wire.ed25519 import SigningKey, public_key, signed_by_any

#: RFC 8032, section 7.1: secret key, public key, message, signature.
TEST_1 = (
    "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
    "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
    "",
    "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe246"
    "55141438e7a100b",
)
TEST_3 = (
    "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
    "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
    "af82",
    "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc"
    "027beceea1ec40a",
)
P = 2**255 - 19
#: Points of small order, as RFC 7748's authors and others list them.
SMALL = [
    "00" * 32,
    "01" + "00" * 31,
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "01" + "00" * 30 + "80",
    "00" * 31 + "80",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
]


def text(hexadecimal: str) -> str:
    return base64.b64encode(bytes.fromhex(hexadecimal)).decode()


@pytest.mark.parametrize(("secret", "public", "message", "signature"), [TEST_1, TEST_3])
def test_signatures_are_those_of_the_rfc(secret: str, public: str, message: str, signature: str) -> None:
    key = SigningKey(Ed25519PrivateKey.from_private_bytes(bytes.fromhex(secret)))
    assert key.public_text == text(public)
    assert key.sign(bytes.fromhex(message)) == text(signature)
    assert signed_by_any([public_key(text(public))], bytes.fromhex(message), text(signature))


def test_one_of_several_keys_is_enough_and_none_is_too_few() -> None:
    one, other = SigningKey.new(), SigningKey.new()
    assert signed_by_any([other.public, one.public], b"content", one.sign(b"content"))
    assert not signed_by_any([other.public], b"content", one.sign(b"content"))
    assert not signed_by_any([], b"content", one.sign(b"content"))


def test_a_signature_whose_number_is_too_large_is_none() -> None:
    """RFC 8032, 5.1.7: otherwise anybody could make a second signature of the same bytes."""
    key, order = SigningKey.new(), 2**252 + 27742317777372353535851937790883648493
    raw = base64.b64decode(key.sign(b"content"))
    larger = (int.from_bytes(raw[32:], "little") + order).to_bytes(32, "little")
    assert not signed_by_any([key.public], b"content", base64.b64encode(raw[:32] + larger).decode())


@pytest.mark.parametrize("signature", ["", "=", "é" * 88, "A" * 88, "A" * 86 + "==", " " + "A" * 86 + "==", "\n" * 88])
def test_what_is_no_signature_verifies_nothing(signature: str) -> None:
    assert not signed_by_any([SigningKey.new().public], b"content", signature)


@pytest.mark.parametrize("hexadecimal", SMALL)
def test_a_key_for_which_anybody_can_sign_is_refused(hexadecimal: str) -> None:
    with pytest.raises(ValueError, match="anybody could sign for it"):
        public_key(text(hexadecimal))


@pytest.mark.parametrize("bad", ["", "key", "A" * 43, "A" * 44, text("11" * 31), text("11" * 33), text(TEST_1[1])[:-1]])
def test_what_is_no_public_key_is_refused(bad: str) -> None:
    with pytest.raises(ValueError, match="base64 of its 32 bytes"):
        public_key(bad)


def test_a_private_key_comes_back_from_its_file() -> None:
    key = SigningKey.new()
    assert SigningKey.of_pem(key.pem).public == key.public


def test_private_keys_of_other_kinds_and_with_a_passphrase_are_refused_by_name() -> None:
    pem, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    of_a_curve = ec.generate_private_key(ec.SECP256R1()).private_bytes(pem, form, serialization.NoEncryption())
    locked = Ed25519PrivateKey.generate().private_bytes(pem, form, serialization.BestAvailableEncryption(b"word"))
    for content, why in ((of_a_curve, "another kind"), (locked, "passphrase"), (b"key", "PEM in PKCS#8")):
        with pytest.raises(ValueError, match=why):
            SigningKey.of_pem(content)
