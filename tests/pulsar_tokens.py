"""Tokens, and brokers that demand them."""

import base64
import hashlib
import hmac
import json
from collections.abc import Sequence

KEY = base64.b64decode("dHJpbXRhYidzIG93biB0ZXN0cywgYW5kIG5vYm9keSBlbHNlJ3Mh")


def token(role: str) -> str:
    """A JSON Web Token for *role*, signed with KEY."""
    parts = [json.dumps(part).encode() for part in ({"alg": "HS256"}, {"sub": role})]
    text = b".".join(base64.urlsafe_b64encode(part).rstrip(b"=") for part in parts)
    signature = hmac.new(KEY, text, hashlib.sha256).digest()
    return (text + b"." + base64.urlsafe_b64encode(signature).rstrip(b"=")).decode()


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
