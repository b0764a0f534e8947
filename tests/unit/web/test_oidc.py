"""Users of an identity provider: their tokens, and the login by the code flow with PKCE."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from starlette.testclient import TestClient

from controller.settings.web import OidcSettings
from controller.web.access.provider import Provider, ProviderError
from controller.web.app import create_app
from tests.oidc_provider import CLIENT_ID, OidcProvider, oidc_provider
from tests.web_sites import site

WHO = "/api/v1/clusters"


@pytest.fixture(scope="module")
def provider() -> Iterator[OidcProvider]:
    with oidc_provider() as running:
        yield running


def _client(folder: Path, provider: OidcProvider, *more: str) -> TestClient:
    web = (
        "[web.oidc]",
        f'issuer = "{provider.url}"',
        f'audience = "{CLIENT_ID}"',
        f'client_id = "{CLIENT_ID}"',
        'roles = {ops = "operator"}',
        *more,
    )
    return TestClient(create_app(site(folder, "east", web=web)), base_url="http://localhost", follow_redirects=False)


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_a_token_of_the_provider_gives_the_role_of_its_group(tmp_path: Path, provider: OidcProvider) -> None:
    client = _client(tmp_path, provider, 'everybody = "viewer"')
    for groups, role in (
        (["dev", "ops"], "operator"),
        ("ops", "operator"),
        ([], "viewer"),
        (None, "viewer"),
        (7, "viewer"),
    ):
        answer = client.get(WHO, headers=_bearer(provider.token(groups=groups))).json()
        assert (answer["viewer"], answer["role"]) == ("ann", role)
    assert provider.asked.count("/keys") <= 2  # remembered


def test_a_user_without_a_role_is_refused_by_name(tmp_path: Path, provider: OidcProvider) -> None:
    refused = _client(tmp_path, provider).get(WHO, headers=_bearer(provider.token(groups=["dev"])))
    assert refused.status_code == 403
    assert "ann has no role" in refused.json()["detail"]


def test_tokens_that_are_not_for_us_are_refused(tmp_path: Path, provider: OidcProvider) -> None:
    client = _client(tmp_path, provider)
    other = rsa.generate_private_key(65537, 2048)
    public = provider.keys()["keys"][0]["n"]
    for token in (
        provider.token(exp=time.time() - 60),
        provider.token(exp=None),
        provider.token(aud="another"),
        provider.token(aud=None),
        provider.token(iss="https://evil.org"),
        provider.token(nbf=time.time() + 600),
        provider.token(key=other),
        provider.token(kid="unknown"),
        provider.token(algorithm="none", key=""),
        provider.token(algorithm="HS256", key=public),  # the public key as a shared secret
        provider.token(sub=None),
        provider.token(sub="  "),
        provider.token()[:-6] + "AAAAAA",
        "e30.e30.e30",
        "..",
        "x" * 20_000 + "..",
    ):
        assert client.get(WHO, headers=_bearer(token[:15_000])).status_code == 401, token[:80]


def test_keys_in_a_file_need_no_provider(tmp_path: Path, provider: OidcProvider) -> None:
    (tmp_path / "keys.json").write_text(json.dumps(provider.keys()))
    asked = len(provider.asked)
    client = _client(tmp_path, provider, 'jwks_file = "../keys.json"')
    assert client.get(WHO, headers=_bearer(provider.token())).status_code == 200
    assert len(provider.asked) == asked


def test_while_the_provider_is_away_its_users_hear_so(tmp_path: Path) -> None:
    with oidc_provider() as gone:
        token = gone.token()
    refused = _client(tmp_path, gone).get(WHO, headers=_bearer(token))
    assert refused.status_code == 503
    assert "no answer" in refused.json()["detail"]


def _begun(client: TestClient) -> dict[str, str]:
    answer = client.get("/login/provider?next=/decisions")
    assert answer.status_code == 303
    return {key: values[0] for key, values in parse_qs(urlsplit(answer.headers["location"]).query).items()}


def test_while_one_waits_for_a_silent_provider_the_others_do_not_wait_as_long() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(10)
        settings = OidcSettings(issuer=f"http://127.0.0.1:{silent.getsockname()[1]}", audience=CLIENT_ID)
        provider = Provider(settings, wait_seconds=0.02)

        def ask() -> None:
            with suppress(ProviderError):
                provider.keys()

        asking = threading.Thread(target=ask, daemon=True)
        asking.start()
        connection, _ = silent.accept()
        with connection:
            for _ in range(3):
                with pytest.raises(ProviderError, match="has not answered yet"):
                    provider.keys()
            assert asking.is_alive()
    asking.join(10)


def test_a_login_at_the_provider_makes_a_session(tmp_path: Path, provider: OidcProvider) -> None:
    client = _client(tmp_path, provider)
    assert provider.url in client.get("/login").text
    query = _begun(client)
    assert query["code_challenge_method"] == "S256"
    code = provider.login(query)
    answer = client.get(f"/login/callback?code={code}&state={query['state']}")
    assert (answer.status_code, answer.headers["location"]) == (303, "/decisions")
    assert client.get(WHO).json()["role"] == "operator"


def test_an_answer_that_belongs_to_another_login_makes_none(tmp_path: Path, provider: OidcProvider) -> None:
    client = _client(tmp_path, provider)
    query = _begun(client)
    code = provider.login(query)
    assert client.get(f"/login/callback?code={code}&state=other").status_code == 400
    assert client.get(f"/login/callback?error=access_denied&state={query['state']}").status_code in (303, 401)
    stolen = provider.login(query, nonce="of another login")
    assert client.get(f"/login/callback?code={stolen}&state={query['state']}").status_code in (303, 401)
    client.cookies.clear()
    assert client.get(f"/login/callback?code={code}&state={query['state']}").status_code == 400
    assert client.get(WHO).status_code == 401
