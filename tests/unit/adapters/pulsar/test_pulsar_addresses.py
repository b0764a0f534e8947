"""Where brokers answer: their names hold the port for http, and with https only they know each other's."""

import json

import pytest
import urllib3

from controller.adapters.pulsar.admin import NotListedError, PulsarAdmin, PulsarError

A, B = "a:8080", "b:8080"


class Brokers:
    """Answers of the brokers at https://a:8443 and https://b:8443, in place of the network."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, method: str, url: str, body: bytes | None) -> urllib3.HTTPResponse:
        self.asked.append(url)
        host, _, path = url.removeprefix("https://").partition("/")
        if host == "gone:8443":
            raise PulsarError(f"{method} {url}: no connection", sent=False)
        if path == "admin/v2/brokers/lab":
            return urllib3.HTTPResponse(json.dumps([A, B, "plain:8080"]).encode(), status=200)
        if path.endswith("load-report"):
            return urllib3.HTTPResponse(b'{"host": "%s"}' % host.encode(), status=200)
        name = path.split("/")[4]
        if name not in (A, B, "plain:8080"):
            return urllib3.HTTPResponse(b"{}", status=404)
        if host == f"{name[0]}:8443":
            return urllib3.HTTPResponse(b"{}", status=200)
        there = f"http://{name}" if name.startswith("plain") else f"https://{name[0]}:8443"
        return urllib3.HTTPResponse(b"", headers={"Location": f"{there}/{path}"}, status=307)


def admin(monkeypatch: pytest.MonkeyPatch, *urls: str) -> tuple[PulsarAdmin, Brokers]:
    client, brokers = PulsarAdmin(urls, cluster="lab"), Brokers()
    monkeypatch.setattr(client, "_send", brokers)
    return client, brokers


def test_with_https_a_broker_is_asked_where_the_others_say_it_is_and_they_are_asked_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client, brokers = admin(monkeypatch, "https://gone:8443", "https://a:8443")
    assert client.load_report(A) == {"host": "a:8443"}
    assert client.load_report(B) == {"host": "b:8443"}
    asked = len(brokers.asked)
    assert client.load_report(B) == {"host": "b:8443"}
    assert len(brokers.asked) == asked + 1


def test_an_address_that_is_no_active_brokers_name_is_not_asked_even_on_a_brokers_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client, brokers = admin(monkeypatch, "https://a:8443")
    for name in ("b:8443", "b:9999", "thief:8080"):
        with pytest.raises(NotListedError, match=name):
            client.load_report(name)
    assert set(brokers.asked) == {"https://a:8443/admin/v2/brokers/lab"}


def test_a_broker_without_https_is_not_asked_with_our_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    client, brokers = admin(monkeypatch, "https://a:8443")
    with pytest.raises(PulsarError, match="does not speak https"):
        client.load_report("plain:8080")
    assert all(url.startswith("https://a:8443/") for url in brokers.asked)
