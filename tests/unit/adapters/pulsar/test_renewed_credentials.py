"""Tokens and certificates that an administrator replaces while trimtab runs."""

import logging
import os
import shutil
import ssl
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import urllib3

from controller.adapters.network import pool
from controller.adapters.network.deadline import Deadline
from controller.adapters.network.pool import RenewedConnections, connection_pool
from controller.adapters.network.tls import Tls
from controller.adapters.pulsar.credentials import CredentialFiles, credential_files, read_credentials
from controller.adapters.pulsar.http import PulsarHttp
from controller.adapters.pulsar.tokens import end_of
from controller.model.errors import SettingsError, TrimtabError
from controller.settings.pulsar_log import PulsarLogSettings
from tests.pulsar_tokens import TLS, token
from tests.recording_servers import recording_brokers, started


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def log_settings(file: Path) -> PulsarLogSettings:
    return PulsarLogSettings(service_url="pulsar://a:6650", admin_url=("http://a:8080",), token_file=str(file))


def shown(file: Path, clock: Clock) -> CredentialFiles:
    """What the settings show, by *clock*."""
    read = partial(read_credentials, "log.pulsar", str(file), "", "")
    return CredentialFiles(read, "log.pulsar", clock=clock)


def test_a_token_that_is_replaced_is_shown_with_the_next_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controller.adapters.pulsar.credentials._LOOK_AGAIN_SECONDS", 0.0)
    file = tmp_path / "token"
    file.write_text("one\n")
    with recording_brokers() as made:
        broker = started(made)
        broker.answers["/admin/v2/brokers"] = (200, [])
        http = PulsarHttp([broker.url], cluster="", credentials=credential_files(log_settings(file), "log.pulsar"))
        asked = http.within(10.0)
        for content in ("one", "two"):
            file.write_text(content)
            http.active_brokers()
            asked.active_brokers()
        assert [each[2] for each in broker.seen] == ["Bearer one"] * 2 + ["Bearer two"] * 2
        http.close()


def test_where_the_file_cannot_be_read_any_more_the_last_token_is_shown_and_it_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock, file = Clock(), tmp_path / "token"
    with pytest.raises(SettingsError, match=r"log\.pulsar\.token_file: the file that it names cannot be read"):
        shown(file, clock)
    file.write_text("one")
    found = shown(file, clock)
    for content in (None, None, "", "two"):
        file.unlink(missing_ok=True)
        if content is not None:
            file.write_text(content)
        clock.now += 1.5
        assert found().token == (content or "one")
    assert [each.levelname for each in caplog.records] == ["WARNING", "WARNING"]
    assert "cannot be read" in caplog.text
    assert "is empty; continuing with the credentials" in caplog.text


@pytest.mark.parametrize("content", ["two\nlines", "two words", "€", "a\0b"])
def test_a_token_that_no_request_could_carry_is_not_shown(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: str
) -> None:
    clock, file = Clock(), tmp_path / "token"
    file.write_text("one")
    found = shown(file, clock)
    file.write_text(content)
    for _ in range(2):
        clock.now += 1.5
        assert found().token == "one"
    assert "log.pulsar.token_file: the file does not contain a token" in caplog.text
    assert [each.levelname for each in caplog.records] == ["WARNING"]


@pytest.mark.parametrize("becomes", ["pipe", "folder", "huge"])
def test_what_never_ends_is_not_waited_for(tmp_path: Path, caplog: pytest.LogCaptureFixture, becomes: str) -> None:
    clock, file, ca = Clock(), tmp_path / "token", tmp_path / "ca.pem"
    file.write_text("one")
    shutil.copy(TLS / "ca.pem", ca)
    found = shown(file, clock)
    for each in (file, ca):
        each.unlink()
        if becomes == "pipe":
            os.mkfifo(each)
        elif becomes == "folder":
            each.mkdir()
        else:
            with each.open("wb") as content:
                content.truncate(1 << 40)  # takes no room on the disk
    for _ in range(2):
        clock.now += 1.5
        assert found().token == "one"
    assert len(caplog.records) == 1
    with pytest.raises(TrimtabError, match=r"TLS to Pulsar: trust_certs = .*: it is (a pipe|longer)"):
        Tls(trust_certs=str(ca)).context()


def test_a_token_that_has_ended_is_named_with_its_file_and_what_to_do(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock, file = Clock(), tmp_path / "token"
    file.write_text(token("me", expires_at=1_700_000_000))
    found = shown(file, clock)
    clock.now += 30
    found()
    assert len(caplog.records) == 1
    clock.now += 60
    found()
    assert len(caplog.records) == 2
    assert "the token in [log.pulsar] token_file expired at 2023-11-14 22:13:20" in caplog.text.replace("T", " ")
    assert "write a new one to that file" in caplog.text
    caplog.clear()
    file.write_text(token("me", expires_at=time.time() + 60))
    clock.now += 60
    found()
    assert not [each for each in caplog.records if each.levelno > logging.INFO]


@pytest.mark.parametrize(
    "content", ["", "a.b", "a.b.c", "a.e30.c", "a.eyJleHAiOiAieCJ9.c", "a.eyJleHAiOiAxZTQwMH0.c", "a.W10.c", "a.é.c"]
)
def test_what_is_no_token_with_an_end_has_none(content: str) -> None:
    assert end_of(content) is None


def test_certificates_that_are_replaced_are_used_by_new_connections_and_half_of_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(pool, "_LOOK_AGAIN_SECONDS", 0.0)
    made = list[ssl.SSLContext]()

    def make(**options: Any) -> urllib3.PoolManager:
        made.append(options["ssl_context"])
        return connection_pool(hosts=1, connections=1, verify_host=True, **options)

    ca = tmp_path / "ca.pem"
    shutil.copy(TLS / "ca.pem", ca)
    connections = RenewedConnections(Tls(trust_certs=str(ca)), make)
    first = connections.pool
    assert connections.pool is first
    ca.write_text("-----BEGIN CERT")
    assert connections.pool is first
    assert f"TLS to Pulsar: trust_certs = '{ca}'" in caplog.text
    shutil.copy(TLS / "another-ca.pem", ca)
    assert connections.pool is not first
    assert [each.get_ca_certs() == made[0].get_ca_certs() for each in made] == [True, False]


def test_a_request_beside_one_that_reads_the_files_anew_waits_for_what_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "_LOOK_AGAIN_SECONDS", 0.0)
    beside = list[threading.Thread]()
    found = list[urllib3.PoolManager]()

    def make(**options: Any) -> urllib3.PoolManager:
        monkeypatch.setattr(pool, "_LOOK_AGAIN_SECONDS", 60.0)  # one look is enough
        if connections:
            beside.append(threading.Thread(target=lambda: found.append(connections[0].pool)))
            beside[0].start()
            beside[0].join(0.05)
        return connection_pool(hosts=1, connections=1, verify_host=True, **options)

    ca, connections = tmp_path / "ca.pem", list[RenewedConnections]()
    shutil.copy(TLS / "ca.pem", ca)
    connections.append(RenewedConnections(Tls(trust_certs=str(ca)), make))
    monkeypatch.setattr(connections[0], "_next_look", Deadline(0.0))
    shutil.copy(TLS / "another-ca.pem", ca)
    renewed = connections[0].pool
    beside[0].join(10)
    assert found == [renewed]
