"""Tokens by OAuth 2.0 client credentials."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from controller.adapters.pulsar.credentials import credential_files
from controller.adapters.pulsar.oauth2 import TokenProvider
from controller.model.errors import SettingsError, TrimtabError
from controller.settings.access import OAuth2Settings, PulsarLogin
from tests.oauth2_provider import CLIENT, Provider, oauth2_provider
from tests.pulsar_tokens import token


@pytest.fixture
def provider() -> Iterator[Provider]:
    with oauth2_provider() as running:
        yield running


class Now:
    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def settings(provider: Provider, tmp_path: Path, **more: str) -> OAuth2Settings:
    file = tmp_path / "credentials.json"
    if not file.exists():
        file.write_text(json.dumps(CLIENT))
    return OAuth2Settings(issuer_url=provider.url, credentials_file=str(file), **more)


def tokens(provider: Provider, tmp_path: Path, now: Now | None = None, **more: str) -> TokenProvider:
    return TokenProvider(settings(provider, tmp_path, **more), "pulsar", clock=now or Now())


def numbered(life: object = 60) -> Any:
    issued: list[int] = []

    def answer(form: dict[str, str]) -> tuple[int, dict[str, object]]:
        issued.append(len(issued) + 1)
        return 200, {"access_token": f"t-{issued[-1]}", "token_type": "bearer", "expires_in": life}

    return answer


def test_the_client_asks_the_endpoint_that_the_issuer_names(provider: Provider, tmp_path: Path) -> None:
    assert tokens(provider, tmp_path, audience="urn:pulsar:lab", scope="a b")() == "t-1"
    assert provider.forms == [
        {"grant_type": "client_credentials", **CLIENT, "audience": "urn:pulsar:lab", "scope": "a b"}
    ]


def test_a_token_is_asked_for_once_and_renewed_beside_before_its_end(provider: Provider, tmp_path: Path) -> None:
    provider.token, now = numbered(), Now()
    ask = tokens(provider, tmp_path, now)
    assert [ask(), ask()] == ["t-1", "t-1"]
    now.seconds += 46
    assert ask() == "t-1"  # nobody waits for the renewal
    until = time.monotonic() + 10
    while (found := ask()) != "t-2" and time.monotonic() < until:
        time.sleep(0.01)
    assert found == "t-2"
    assert len(provider.forms) == 2


def test_a_token_that_has_ended_is_never_given(provider: Provider, tmp_path: Path) -> None:
    provider.token, now = numbered(), Now()
    ask = tokens(provider, tmp_path, now)
    ask()
    now.seconds += 61
    assert ask() == "t-2"


def test_a_valid_token_outlives_a_provider_that_is_away(provider: Provider, tmp_path: Path) -> None:
    provider.token, now = numbered(), Now()
    ask = tokens(provider, tmp_path, now)
    ask()
    provider.token = lambda _: (503, b"down")
    now.seconds += 50
    assert ask() == "t-1"
    until = time.monotonic() + 10
    while len(provider.forms) < 2 and time.monotonic() < until:
        time.sleep(0.01)
    now.seconds += 11
    with pytest.raises(TrimtabError, match="status 503"):
        ask()
    provider.token = numbered()
    with pytest.raises(TrimtabError, match="status 503"):
        ask()  # not asked again at once
    now.seconds += 11
    assert ask() == "t-1"


def test_a_replaced_credentials_file_is_used_without_a_restart(provider: Provider, tmp_path: Path) -> None:
    provider.token = numbered()
    ask = tokens(provider, tmp_path)
    ask()
    (tmp_path / "credentials.json").write_text(json.dumps(CLIENT | {"client_secret": "another-secret"}))
    assert ask() == "t-2"
    assert provider.forms[-1]["client_secret"] == "another-secret"


@pytest.mark.parametrize(("is_jwt", "life"), [(True, 1000), (False, 300)])
def test_without_expires_in_the_token_itself_says_when_it_ends(
    provider: Provider, tmp_path: Path, is_jwt: bool, life: int
) -> None:
    text = token("r", expires_at=time.time() + life) if is_jwt else "opaque"
    provider.token, now = (lambda _: (200, {"access_token": text})), Now()
    ask = tokens(provider, tmp_path, now)
    ask()
    now.seconds += 0.7 * life
    ask()
    assert len(provider.forms) == 1
    now.seconds += 0.4 * life
    ask()
    assert len(provider.forms) == 2


@pytest.mark.parametrize("status", [400, 401, 403])
def test_a_refused_client_is_an_error_of_the_settings_without_the_secret(
    provider: Provider, tmp_path: Path, status: int
) -> None:
    quoted = {"error": "invalid_client", "error_description": f"no {CLIENT['client_secret']}"}
    provider.token = lambda _: (status, quoted)
    with pytest.raises(SettingsError, match=r"\[pulsar.oauth2\] POST .*: the client is refused: invalid_client") as got:
        tokens(provider, tmp_path)()
    assert CLIENT["client_secret"] not in str(got.value)


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"access_token": ""},
        {"access_token": "a\r\nX: b"},
        {"access_token": 7},
        {"access_token": "t", "token_type": "mac"},
        [],
        b"<html>",
        b"[" * 100_000,
        b"x" * 300_000,
    ],
)
def test_an_answer_without_a_usable_token_is_no_token(provider: Provider, tmp_path: Path, answer: Any) -> None:
    provider.token = lambda _: (200, answer)
    with pytest.raises(TrimtabError):
        tokens(provider, tmp_path)()


@pytest.mark.parametrize("life", [0, -1, True, "soon", None, 1e300, float("nan")])
def test_an_odd_life_makes_no_endless_token(provider: Provider, tmp_path: Path, life: object) -> None:
    provider.token, now = numbered(life), Now()
    ask = tokens(provider, tmp_path, now)
    ask()
    now.seconds += 366 * 86_400
    assert ask() == "t-2"


@pytest.mark.parametrize("endpoint", [None, 7, "ftp://a/token", "http://192.0.2.1/token", "/token"])
def test_the_secret_goes_to_no_address_without_tls_but_the_issuers(
    provider: Provider, tmp_path: Path, endpoint: object
) -> None:
    provider.discovery = {"token_endpoint": endpoint}
    with pytest.raises(TrimtabError, match="expected an https address"):
        tokens(provider, tmp_path)()
    assert provider.forms == []


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"client_id": "a"}', '{"client_id": 1, "client_secret": "b"}'])
def test_a_credentials_file_without_a_client_is_refused(provider: Provider, tmp_path: Path, content: str) -> None:
    (tmp_path / "credentials.json").write_text(content)
    with pytest.raises(SettingsError, match=r"pulsar\.oauth2\.credentials_file"):
        tokens(provider, tmp_path)()


@pytest.mark.parametrize("url", ["http://issuer.example", "issuer", "https://a/?q=1", "https://u:p@a", "file:///a"])
def test_an_issuer_needs_https(url: str) -> None:
    with pytest.raises(ValueError, match="issuer_url"):
        OAuth2Settings(issuer_url=url, credentials_file="/a")


def test_brokers_are_shown_the_token(provider: Provider, tmp_path: Path) -> None:
    login = PulsarLogin(oauth2=settings(provider, tmp_path))
    assert credential_files(login, "pulsar")().headers() == {"Authorization": "Bearer t-1"}


def test_two_logins_are_refused() -> None:
    with pytest.raises(ValueError, match="token_file and oauth2 are both given"):
        PulsarLogin(token_file="/a", oauth2=OAuth2Settings(issuer_url="https://a", credentials_file="/b"))
