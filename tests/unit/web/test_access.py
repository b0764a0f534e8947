"""Who may look: tokens, sessions, proxies, certificates; and what others try."""

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from controller.settings.web import ViewerRole
from controller.web.access.tokens import new_token, token_hash
from controller.web.app import create_app
from tests.web_sites import site

STATUS = "/api/v1/brokers"
WHATIF = "/api/v1/whatif"
#: The address that the test's client has.
PEER = "10.1.2.3"


@pytest.fixture
def tokens(tmp_path: Path) -> Callable[[str, str], str]:
    """Adds a token to the file of the tests, and returns it."""
    file = tmp_path / "tokens.toml"
    file.write_text("")

    def add(name: str, role: str) -> str:
        made = new_token()
        with file.open("a") as lines:
            lines.write(f'[tokens.{name}]\nrole = "{role}"\nsha256 = "{token_hash(made)}"\n')
        return made

    return add


def _client(folder: Path, *web: str, peer: str = "127.0.0.1", now_ms: Callable[[], int] | None = None) -> TestClient:
    shown = site(folder, "east", web=("[web]", *web), now_ms=now_ms)
    return TestClient(create_app(shown), base_url="http://localhost", client=(peer, 5000), follow_redirects=False)


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_who_does_not_say_who_he_is_sees_nothing_unless_the_settings_allow_it(tmp_path: Path) -> None:
    (tmp_path / "tokens.toml").write_text("")
    client = _client(tmp_path, 'tokens_file = "../tokens.toml"')
    refused = client.get(STATUS)
    assert refused.status_code == 401
    assert refused.headers["content-type"] == "application/problem+json"
    assert refused.headers["www-authenticate"].startswith("Bearer")
    assert client.get("/").headers["location"] == "/login?next=%2F"
    for path in ("/api/v1/openapi.json", "/api/v1/events", "/api/v1/jobs", "/nothing-here", "/api/v1/nothing"):
        assert client.get(path).status_code in (303, 401), path
    assert _client(tmp_path, 'anonymous = "viewer"').get(STATUS).status_code == 200


def test_a_token_lets_in_with_its_role_and_no_more(tmp_path: Path, tokens: Callable[[str, str], str]) -> None:
    viewer, operator = tokens("vera", "viewer"), tokens("otto", "operator")
    client = _client(tmp_path, 'tokens_file = "../tokens.toml"')
    assert client.get("/api/v1/clusters", headers=_bearer(viewer)).json()["viewer"] == "vera"
    body = {"since": 0, "until": 0, "strategies": ["NoSuch"]}
    refused = client.post(WHATIF, headers=_bearer(viewer), json=body)
    assert refused.status_code == 403
    assert "needs the role operator" in refused.json()["detail"]
    assert client.post(WHATIF, headers=_bearer(operator), json=body).status_code == 400


@pytest.mark.parametrize("token", ["trimtab_wrong", "", "x" * 5000, "a.b.c", "trimtab_\x01"])
def test_a_wrong_token_is_refused_and_not_repeated(
    tmp_path: Path, tokens: Callable[[str, str], str], token: str
) -> None:
    tokens("vera", "viewer")
    client = _client(tmp_path, 'tokens_file = "../tokens.toml"', 'anonymous = "viewer"')
    refused = client.get(STATUS, headers=_bearer(token))
    assert refused.status_code == 401  # also where anonymous may look: a wrong token is a mistake that is named
    assert len(token) < 5 or token not in refused.text


def test_a_token_that_is_taken_back_ends_its_sessions_too(tmp_path: Path, tokens: Callable[[str, str], str]) -> None:
    made, clock = tokens("vera", "viewer"), [time.time()]
    client = _client(tmp_path, 'tokens_file = "../tokens.toml"', now_ms=lambda: int(clock[0] * 1000))
    answer = client.post("/login", data={"token": made, "next": "/"}, headers={"Origin": "http://localhost"})
    assert answer.status_code == 303
    assert client.get(STATUS).status_code == 200
    (tmp_path / "tokens.toml").write_text("")
    assert client.get(STATUS).status_code == 401


def test_a_file_of_tokens_that_is_broken_lets_nobody_in(tmp_path: Path, tokens: Callable[[str, str], str]) -> None:
    made = tokens("vera", "viewer")
    client = _client(tmp_path, 'tokens_file = "../tokens.toml"')
    assert client.get(STATUS, headers=_bearer(made)).status_code == 200
    (tmp_path / "tokens.toml").write_text("[tokens.vera\n")
    assert client.get(STATUS, headers=_bearer(made)).status_code == 401


def test_a_token_ends_when_the_file_says_so(tmp_path: Path) -> None:
    made, clock = new_token(), [0]
    lines = f'[tokens.vera]\nrole = "viewer"\nsha256 = "{token_hash(made)}"\nexpires = 2025-01-01T00:00:00Z\n'
    (tmp_path / "tokens.toml").write_text(lines)
    client = _client(tmp_path, 'tokens_file = "../tokens.toml"', now_ms=lambda: clock[0])
    assert client.get(STATUS, headers=_bearer(made)).status_code == 200
    clock[0] = 1_735_689_600_000
    assert client.get(STATUS, headers=_bearer(made)).status_code == 401


def test_a_login_makes_a_session_that_scripts_and_other_sites_cannot_use(
    tmp_path: Path, tokens: Callable[[str, str], str]
) -> None:
    made = tokens("otto", "operator")
    client = _client(tmp_path, 'tokens_file = "../tokens.toml"')
    answer = client.post("/login", data={"token": made, "next": "/decisions?x=1"})
    cookie = answer.headers["set-cookie"]
    assert answer.headers["location"] == "/decisions?x=1"
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert made not in cookie
    body = {"since": 0, "until": 0, "strategies": ["NoSuch"]}
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Origin": "http://evil"}, {}):
        refused = client.post(WHATIF, json=body, headers=headers)
        assert (refused.status_code, refused.json()["detail"]) == (403, "another site may not send this request")
    assert client.post(WHATIF, json=body, headers={"Sec-Fetch-Site": "same-origin"}).status_code == 400
    assert 'action="/login/out"' in client.get("/decisions").text
    client.post("/login/out", headers={"Origin": "http://localhost"})
    assert client.get(STATUS).status_code == 401


@pytest.mark.parametrize(
    "target", ["//evil.org", "https://evil.org", "/\\evil.org", "javascript:alert(1)", "/\r\nX: y"]
)
def test_a_login_leads_back_to_this_site_alone(tmp_path: Path, tokens: Callable[[str, str], str], target: str) -> None:
    made = tokens("vera", "viewer")
    client = _client(tmp_path, 'tokens_file = "../tokens.toml"')
    answer = client.post("/login", data={"token": made, "next": target})
    assert answer.headers["location"] == "/"


def test_a_cookie_that_was_made_up_or_changed_is_no_session(tmp_path: Path, tokens: Callable[[str, str], str]) -> None:
    made = tokens("vera", "viewer")
    client = _client(tmp_path, 'tokens_file = "../tokens.toml"')
    client.post("/login", data={"token": made})
    cookie = client.cookies["trimtab-session"]
    body, _, signature = cookie.partition(".")
    for other in ("", ".", "e30.", f"{body}.{'0' * 64}", f"{body[:-4]}AAAA.{signature}", "é.ü", "x" * 9000):
        client.cookies.set("trimtab-session", "")
        answer = client.get(STATUS, headers={b"Cookie": f"trimtab-session={other}".encode("latin-1")})
        assert answer.status_code in (401, 431), other


PROXY = ("[web.proxy]", f'addresses = ["{PEER}/32"]', 'roles = {ops = "operator"}', 'users = {ann = "viewer"}')


def test_a_trusted_proxy_names_the_user_and_his_groups(tmp_path: Path) -> None:
    client = _client(tmp_path, *PROXY, peer=PEER)
    for headers, who, role in (
        ({"X-Forwarded-User": "ann"}, "ann", "viewer"),
        ({"X-Forwarded-User": "bob", "X-Forwarded-Groups": "dev, ops"}, "bob", "operator"),
    ):
        answer = client.get("/api/v1/clusters", headers=headers).json()
        assert (answer["viewer"], answer["role"]) == (who, role)
    assert client.get(STATUS, headers={"X-Forwarded-User": "eve"}).status_code == 403
    assert client.get(STATUS).status_code == 401


@pytest.mark.parametrize("name", ["b\\u043eb", "bob\\u200b", "\\u202ebob", "\\u0430\\u0441\\u0435"])
def test_a_name_that_looks_like_another_one_does_not_come_in(
    tmp_path: Path, tokens: Callable[[str, str], str], name: str
) -> None:
    other, bob = tokens(f'"{name}"', "operator"), tokens("bob", "operator")
    client = _client(tmp_path, 'tokens_file = "../tokens.toml"')
    refused = client.get(STATUS, headers=_bearer(other))
    assert (refused.status_code, "looks like another one" in refused.text) == (403, True)
    assert client.get(STATUS, headers=_bearer(bob)).status_code == 200


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_a_proxy_names_users_and_groups_in_utf_8_or_as_http_has_it(tmp_path: Path, encoding: str) -> None:
    """arkime 3951, open-webui 14530: without that a policy that names the person does not know her."""
    proxy = (*PROXY[:2], 'roles = {"op\u00e9rateurs" = "operator"}')
    client = _client(tmp_path, *proxy, peer=PEER)
    headers = {"X-Forwarded-User": "\u00e9mile", "X-Forwarded-Groups": "op\u00e9rateurs"}
    answer = client.get(
        "/api/v1/clusters", headers={key.encode(): text.encode(encoding) for key, text in headers.items()}
    )
    assert (answer.json()["viewer"], answer.json()["role"]) == ("\u00e9mile", "operator")
    other = headers | {"X-Forwarded-User": "b\u043eb"}
    refused = client.get(STATUS, headers={key.encode(): text.encode() for key, text in other.items()})
    assert "looks like another one" in refused.text


@pytest.mark.parametrize(
    "name", ["X-Forwarded-User", "x-forwarded-user", "X_Forwarded_User", "X-Forwarded_User", "X-Forwarded-Groups"]
)
def test_the_header_of_the_proxy_from_anywhere_else_is_refused_and_named(tmp_path: Path, name: str) -> None:
    client = _client(tmp_path, 'anonymous = "viewer"', *PROXY, peer="10.1.2.4")
    refused = client.get(STATUS, headers={name: "ann"})
    assert refused.status_code == 403
    assert name.lower() in refused.json()["detail"]


@pytest.mark.parametrize("second", ["X-Forwarded-User", "X_Forwarded_User", "X-FORWARDED-USER"])
def test_a_user_that_is_named_twice_is_refused(tmp_path: Path, second: str) -> None:
    client = _client(tmp_path, *PROXY, peer=PEER)
    refused = client.get(STATUS, headers=[("X-Forwarded-User", "ann"), (second, "otto")])
    assert refused.status_code == 400


def test_without_tls_elsewhere_than_on_loopback_only_the_proxy_is_answered(tmp_path: Path) -> None:
    web = ('listen = "0.0.0.0:9680"', 'hosts = ["localhost"]', 'anonymous = "viewer"', *PROXY)
    assert _client(tmp_path, *web, peer=PEER).get(STATUS).status_code == 200
    assert _client(tmp_path, *web, peer="10.9.9.9").get(STATUS).status_code == 403


def test_a_site_whose_name_was_rebound_to_this_address_reads_nothing(tmp_path: Path) -> None:
    client = _client(tmp_path, 'anonymous = "viewer"', 'hosts = ["trimtab.example.org"]')
    for host, status in (
        ("evil.org", 421),
        ("evil.org:9680", 421),
        ("localhost.evil.org", 421),
        ("trimtab.example.org", 200),
        ("TRIMTAB.example.org:9680", 200),
        ("127.0.0.1:9680", 200),
        ("[::1]:9680", 200),
    ):
        assert client.get(STATUS, headers={"Host": host}).status_code == status, host


def test_roles_are_ordered() -> None:
    assert [role.may(ViewerRole.OPERATOR) for role in ViewerRole] == [False, True, True]


def test_no_answer_shows_a_secret(tmp_path: Path, tokens: Callable[[str, str], str]) -> None:
    made = tokens("vera", "viewer")
    client = _client(tmp_path, 'tokens_file = "../tokens.toml"')
    for path in ("/", "/api/v1/clusters", "/api/v1/openapi.json", "/login"):
        assert token_hash(made) not in client.get(path, headers=_bearer(made)).text
        assert made not in json.dumps(dict(client.get(path, headers=_bearer(made)).headers))
