"""[notifications]: which receivers are allowed."""

from pathlib import Path
from typing import Any

import pytest

from controller.model.errors import SettingsError
from controller.settings.notifications import WebhookSettings
from controller.settings.trimtab_toml import read_settings
from tests.folder_settings import write_settings


def webhook(**changed: Any) -> WebhookSettings:
    return WebhookSettings(**{"name": "oncall", "url": "https://hooks.example.org/x", **changed})


def refused(tmp_path: Path, *lines: str) -> str:
    with pytest.raises(SettingsError) as error:
        read_settings(write_settings(tmp_path, "[[notifications.webhooks]]", *lines))
    return str(error.value)


@pytest.mark.parametrize(
    "url",
    [
        "https://hooks.example.org/services/T0/B0/x?y=1",
        "https://hooks.example.org:8443",
        "http://127.0.0.1:9000/hook",
        "http://localhost/hook",
        "http://[::1]:9000/hook",
        "https://10.1.2.3/hook",
    ],
)
def test_a_receiver_is_allowed_by_https_or_on_this_machine(url: str) -> None:
    assert webhook(url=url).url == url


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://hooks.example.org/x", "plain_http"),
        ("http://127.0.0.1.example.org/x", "plain_http"),
        ("http://10.1.2.3/x", "plain_http"),
        ("ftp://hooks.example.org/x", "expected https"),
        ("file:///etc/passwd", "expected https"),
        ("hooks.example.org/x", "expected https"),
        ("https:///x", "expected https"),
        ("https://hooks.example.org:0/x", "expected https"),
        ("https://hooks.example.org:99999/x", "expected https"),
        ("https://hooks.example.org/x#y", "fragment"),
        ("https://hooks.example.org/x y", "white space"),
        ("https://hooks.example.org/x\r\nHost: inner", "white space"),
        ("https://user:word@hooks.example.org/x", "a user or a password"),
        ("https://169.254.169.254/latest/meta-data", "link-local"),
        ("https://[fe80::1]/x", "link-local"),
        ("https://[::ffff:169.254.169.254]/x", "link-local"),
        ("https://0.0.0.0/x", "link-local or unspecified"),
    ],
)
def test_other_addresses_are_refused_and_not_repeated_in_full(tmp_path: Path, url: str, why: str) -> None:
    text = url.replace("\r\n", r"\r\n")
    assert why in refused(tmp_path, 'name = "oncall"', f'url = "{text}"')


def test_http_to_another_machine_needs_a_setting_of_its_own() -> None:
    assert webhook(url="http://hooks.example.org/x", plain_http=True).plain_http


@pytest.mark.parametrize("form", ["slack", "teams"])
def test_an_address_that_is_a_credential_belongs_into_a_file(tmp_path: Path, form: str) -> None:
    lines = ('name = "chat"', f'format = "{form}"')
    assert "url_file" in refused(tmp_path, *lines, 'url = "https://hooks.example.org/secret"')
    text = write_settings(tmp_path, "[[notifications.webhooks]]", *lines, 'url_file = "chat.url"')
    assert read_settings(text).notifications.webhooks[0].url_file == str(tmp_path / "chat.url")


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (('name = "a"',), "one of url and url_file"),
        (('name = "a"', 'url = "https://a.org"', 'url_file = "b"'), "one of url and url_file"),
        (('name = "A B"', 'url = "https://a.org"'), "name"),
        (('name = "a"', 'url = "https://a.org"', 'events = ["breaker"]'), "'breaker' is no event"),
        (('name = "a"', 'url = "https://a.org"', 'events = ["test"]'), "'test' is no event"),
        (('name = "a"', 'url = "https://a.org"', "events = []"), "events"),
        (('name = "a"', 'url = "https://a.org"', 'format = "xml"'), "format"),
        (('name = "a"', 'url = "https://a.org"', 'secret = "x"'), "unknown key"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, lines: tuple[str, ...], why: str) -> None:
    assert why in refused(tmp_path, *lines)


def test_two_webhooks_have_different_names(tmp_path: Path) -> None:
    one = ('name = "a"', 'url = "https://a.org"')
    assert "two webhooks are called 'a'" in refused(tmp_path, *one, "[[notifications.webhooks]]", *one)


@pytest.mark.parametrize(
    "address",
    [
        "10.1.2.3",
        "127.0.0.1",
        "192.168.0.1",
        "100.64.0.1",
        "::1",
        "fd00::1",
        "::ffff:10.1.2.3",
        "198.18.0.1",
        "64:ff9b::10.1.2.3",
        "64:ff9b:1::a00:1",
        "2002:7f00:1::",
        "::127.0.0.1",
        "fec0::1",
    ],
)
def test_a_name_that_leads_to_a_private_address_is_refused_unless_that_is_meant(address: str) -> None:
    assert address in webhook().why_refused("hooks.example.org", address)
    assert webhook(private_network=True).why_refused("hooks.example.org", address) == ""


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "fe80::1%eth0",
        "::ffff:169.254.169.254",
        "0.0.0.0",
        "::",
        "64:ff9b::169.254.169.254",
        "2002:a9fe:a9fe::1",
    ],
)
def test_a_link_local_address_is_refused_whatever_the_settings_say(address: str) -> None:
    assert "link-local" in webhook(private_network=True, plain_http=True).why_refused("hooks.example.org", address)


@pytest.mark.parametrize("address", ["2606:4700::1111", "64:ff9b::141.95.172.205", "2002:808:808::1"])
def test_a_public_address_of_ipv6_is_allowed_also_by_nat64(address: str) -> None:
    assert webhook().why_refused("hooks.example.org", address) == ""


def test_a_literal_address_that_reaches_a_link_local_one_or_a_gateways_loopback_is_refused() -> None:
    with pytest.raises(ValueError, match="link-local"):
        webhook(url="https://[64:ff9b::a9fe:a9fe]/")
    with pytest.raises(ValueError, match="begins with http"):
        webhook(url="http://[64:ff9b::7f00:1]/")


@pytest.mark.parametrize(("host", "address"), [("hooks.example.org", "203.0.113.9"), ("10.1.2.3", "10.1.2.3")])
def test_a_private_address_that_the_settings_themselves_name_is_meant(host: str, address: str) -> None:
    public = "93.184.216.34" if address.startswith("203") else address
    assert webhook().why_refused(host, public) == ""
