"""An identity provider for tests (OpenID Connect): discovery, keys, and tokens by the code flow with PKCE."""

import base64
import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

CLIENT_ID = "trimtab"


@dataclass
class OidcProvider:
    """A running provider.  ``login`` is what a user does in the browser there."""

    url: str = ""
    key: rsa.RSAPrivateKey = field(default_factory=lambda: rsa.generate_private_key(65537, 2048))
    kid: str = "k-1"
    #: Code -> the query of the browser's request, and the claims that its token will have.
    codes: dict[str, tuple[dict[str, str], dict[str, Any]]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def token(self, *, algorithm: str = "RS256", kid: str | None = None, key: Any = None, **claims: Any) -> str:
        """A signed token; *claims* replace the usual ones, None removes one."""
        usual = {"iss": self.url, "aud": CLIENT_ID, "sub": "ann", "exp": time.time() + 300, "groups": ["ops"]}
        found = {name: value for name, value in (usual | claims).items() if value is not None}
        return jwt.encode(found, self.key if key is None else key, algorithm, headers={"kid": kid or self.kid})

    def keys(self) -> dict[str, Any]:
        """The JWKS."""
        own = jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key(), as_dict=True)
        return {"keys": [{**own, "kid": self.kid, "use": "sig", "alg": "RS256"}]}

    def login(self, query: dict[str, str], **claims: Any) -> str:
        """The code with which the provider sends the browser back after *query*."""
        code = f"code-{len(self.codes)}"
        self.codes[code] = (query, {"nonce": query["nonce"]} | claims)
        return code

    def tokens_for(self, form: dict[str, str]) -> tuple[int, Any]:
        """The answer of the token endpoint: a code works once, and only with its verifier."""
        query, claims = self.codes.pop(form.get("code", ""), ({}, {}))
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if not query or challenge != query["code_challenge"] or form["redirect_uri"] != query["redirect_uri"]:
            return 400, {"error": "invalid_grant"}
        return 200, {"id_token": self.token(**claims), "access_token": "unused", "token_type": "Bearer"}


@contextmanager
def oidc_provider() -> Iterator[OidcProvider]:
    """A provider that answers until the end of the block."""
    provider = OidcProvider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            provider.asked.append(self.path)
            found = {
                "/.well-known/openid-configuration": {
                    "issuer": provider.url,
                    "authorization_endpoint": f"{provider.url}/authorize",
                    "token_endpoint": f"{provider.url}/token",
                    "jwks_uri": f"{provider.url}/keys",
                },
                "/keys": provider.keys(),
            }.get(self.path)
            self._answer(404 if found is None else 200, found or {})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self._answer(*provider.tokens_for({key: values[0] for key, values in parse_qs(body).items()}))

        def _answer(self, status: int, body: Any) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
