"""Tokens, and brokers that demand them."""

import base64
import hashlib
import hmac
import json
from collections.abc import Sequence
from pathlib import Path

TLS = Path(__file__).parent / "data" / "tls"
KEY = base64.b64decode("dHJpbXRhYidzIG93biB0ZXN0cywgYW5kIG5vYm9keSBlbHNlJ3Mh")


def token(role: str, *, expires_at: float | None = None) -> str:
    """A JSON Web Token for *role*, signed with KEY; it ends at *expires_at*, epoch seconds."""
    claims = {"sub": role} if expires_at is None else {"sub": role, "exp": int(expires_at)}
    parts = [json.dumps(part).encode() for part in ({"alg": "HS256"}, claims)]
    text = b".".join(base64.urlsafe_b64encode(part).rstrip(b"=") for part in parts)
    signature = hmac.new(KEY, text, hashlib.sha256).digest()
    return (text + b"." + base64.urlsafe_b64encode(signature).rstrip(b"=")).decode()


def open_to_tokens_and_tls() -> dict[str, str]:
    """broker.conf of brokers that serve everybody, and TLS; whoever shows a token or a certificate is checked.

    Brokers look every second for tokens that have ended.
    """
    return {
        "authenticationEnabled": "true",
        "authorizationEnabled": "false",
        "anonymousUserRole": "anonymous",
        "authenticationProviders": "org.apache.pulsar.broker.authentication.AuthenticationProviderToken,"
        "org.apache.pulsar.broker.authentication.AuthenticationProviderTls",
        "tokenSecretKey": "data:;base64," + base64.b64encode(KEY).decode(),
        "authenticationRefreshCheckSeconds": "1",
        "tlsCertificateFilePath": str(TLS / "broker.pem"),
        "tlsKeyFilePath": str(TLS / "broker.key"),
        "tlsTrustCertsFilePath": str(TLS / "ca.pem"),
    }


def demanding_tokens(superusers: Sequence[str] = ("admin",)) -> dict[str, str]:
    """broker.conf of brokers that serve tokens signed with KEY alone; the first superuser is their own role."""
    return {
        "authenticationEnabled": "true",
        "authorizationEnabled": "true",
        "authenticationProviders": "org.apache.pulsar.broker.authentication.AuthenticationProviderToken",
        "tokenSecretKey": "data:;base64," + base64.b64encode(KEY).decode(),
        "superUserRoles": ",".join(superusers),
        "brokerClientAuthenticationPlugin": "org.apache.pulsar.client.impl.auth.AuthenticationToken",
        "brokerClientAuthenticationParameters": f"token:{token(superusers[0])}",
    }
