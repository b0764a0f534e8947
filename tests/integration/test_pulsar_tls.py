"""TLS to a real Pulsar, by both of its protocols, with tokens and certificates that are replaced while trimtab runs."""

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pytest

from controller.adapters.network import pool
from controller.adapters.network.waiting import wait_for
from controller.adapters.pulsar.access import pulsar_admin
from controller.adapters.pulsar.admin import PulsarAdmin, PulsarError
from controller.adapters.pulsar.credentials import credential_files
from controller.adapters.pulsar.log.connection import LogConnection
from controller.adapters.pulsar.log.ends import log_extents
from controller.adapters.pulsar.log.topics import create_topics
from controller.lab.pulsar_release import PulsarRelease
from controller.lab.pulsar_server import CLUSTER, PulsarCluster, pulsar_cluster
from controller.log.port import Out
from controller.log.pulsar.log import PulsarLog
from controller.model.errors import AccessDeniedError, SettingsError, TrimtabError
from controller.settings.access import OAuth2Settings, TlsSettings
from controller.settings.pulsar_log import PulsarLogSettings
from controller.settings.trimtab_toml import read_settings
from tests.integration.pulsar_log import PARTITIONS, own_topics
from tests.oauth2_provider import CLIENT, oauth2_provider
from tests.pulsar_tokens import TLS, open_to_tokens_and_tls, token

pytestmark = pytest.mark.integration

#: For calls that are refused: the library goes on trying for so long.
_SHORT_SECONDS = 3.0


@pytest.fixture(scope="module")
def pulsar(tmp_path_factory: pytest.TempPathFactory, pulsar_release: PulsarRelease) -> Iterator[PulsarCluster]:
    """Serves everybody, and checks the tokens and certificates of those who show one."""
    folder, settings = tmp_path_factory.mktemp("pulsar"), open_to_tokens_and_tls()
    with pulsar_cluster(folder, settings=settings, tls=True, release=pulsar_release) as cluster:
        yield cluster


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """ca.pem, own.pem and own.key, and a token: all as they should be."""
    use(tmp_path, "client")
    shutil.copy(TLS / "ca.pem", tmp_path / "ca.pem")
    (tmp_path / "token").write_text(token("trimtab"))
    return tmp_path


def use(files: Path, name: str) -> None:
    """Make the certificate *name* ours."""
    for ending in ("pem", "key"):
        shutil.copy(TLS / f"{name}.{ending}", files / f"own.{ending}")


def settings(pulsar: PulsarCluster, files: Path, *, certificate: bool = False) -> PulsarLogSettings:
    """Topics of the test's own in a log that is reached by TLS; we show a token, or else a *certificate*."""
    trust = TlsSettings(trust_certs=str(files / "ca.pem"))
    ours = {"certificate": str(files / "own.pem"), "key": str(files / "own.key")}
    return own_topics(pulsar).model_copy(
        update={
            "service_url": pulsar.service_url_tls,
            "admin_url": pulsar.admin_urls_tls,
            "token_file": None if certificate else str(files / "token"),
            "tls": trust.model_copy(update=ours) if certificate else trust,
        }
    )


def write(log: PulsarLog) -> None:
    log.append([Out("commands", uuid4().bytes, key=b"key")], within_seconds=30.0)


@pytest.fixture
def admin(pulsar: PulsarCluster, files: Path) -> Iterator[PulsarAdmin]:
    """As the collector and the executor have it."""
    conf = files / "trimtab.toml"
    conf.write_text(
        f"""
        cluster.name = "{CLUSTER}"
        log = {{kind = "folder", folder.path = "log"}}
        election = {{kind = "file", path = "election"}}
        checkpoint.path = "checkpoint"
        [pulsar]
        admin_url = ["{pulsar.admin_urls_tls[0]}"]
        token_file = "token"
        tls = {{trust_certs = "ca.pem", certificate = "own.pem", key = "own.key"}}
        """
    )
    with closing(pulsar_admin(read_settings(conf))) as made:
        yield made


@pytest.mark.parametrize("certificate", [False, True])
def test_a_log_is_written_and_asked_about_by_tls(pulsar: PulsarCluster, files: Path, certificate: bool) -> None:
    log = settings(pulsar, files, certificate=certificate)
    with (
        closing(PulsarLog(log, cluster="lab")) as writer,
        closing(log_extents(log)) as extents,
    ):
        write(writer)
        topic = f"persistent://{log.namespace}/{log.commands_topic}"
        assert sum(extents.extent(topic, each).entries for each in range(PARTITIONS)) == 1


def test_a_server_of_an_unknown_authority_is_refused_and_the_setting_named(
    pulsar: PulsarCluster, files: Path, admin: PulsarAdmin
) -> None:
    shutil.copy(TLS / "another-ca.pem", files / "ca.pem")
    log = settings(pulsar, files)
    told = r"the server's certificate is refused: .*; \[log\.pulsar\.tls\] trust_certs sets the trusted authorities"
    with closing(LogConnection(log, seconds=_SHORT_SECONDS)) as opened:
        with pytest.raises(TrimtabError, match=told):
            create_topics(opened)
        with pytest.raises(AccessDeniedError, match=told):
            opened.partitions(log.commands_topic)
    with (
        closing(pulsar_admin(read_settings(files / "trimtab.toml"))) as fresh,
        pytest.raises(PulsarError, match=r"\[pulsar\.tls\] trust_certs sets the trusted authorities"),
    ):
        fresh.brokers()


def test_a_certificate_is_read_anew_when_it_was_replaced(
    pulsar: PulsarCluster, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "_LOOK_AGAIN_SECONDS", 0.0)
    log = settings(pulsar, files, certificate=True)
    use(files, "expired")
    told = r"the server refuses our certificate \(\[log\.pulsar\.tls\] certificate\)"
    with closing(LogConnection(log, seconds=_SHORT_SECONDS)) as opened, closing(log_extents(log)) as extents:
        topic = f"persistent://{log.namespace}/{log.commands_topic}"
        with pytest.raises(PulsarError, match=told):
            extents.partitions(topic)
        with pytest.raises(AccessDeniedError, match=told):
            opened.partitions(log.commands_topic)
        use(files, "client")
        assert extents.partitions(topic) == 0
        assert opened.partitions(log.commands_topic) == 0


def test_a_token_that_is_replaced_before_its_end_goes_on_and_one_that_ended_is_named(
    pulsar: PulsarCluster, files: Path, admin: PulsarAdmin
) -> None:
    log = settings(pulsar, files)
    (files / "token").write_text(token("trimtab", expires_at=time.time() + 4))
    with closing(PulsarLog(log, cluster="lab")) as writer:
        write(writer)
        end = time.time() + 7
        (files / "token").write_text(token("trimtab", expires_at=end))
        time.sleep(5.5)  # the broker has asked anew
        write(writer)
        assert admin.brokers()
        wait_for(lambda: time.time() > end + 1, 10, every=0.1)
    with closing(LogConnection(log, seconds=_SHORT_SECONDS)) as opened:
        told = r"the token in \[log\.pulsar\] token_file expired at .*: write a new one"
        with pytest.raises(AccessDeniedError, match=told):
            opened.partitions(log.commands_topic)
        (files / "token").write_text(token("trimtab"))
        wait_for(lambda: opened.partitions(log.commands_topic) == PARTITIONS, 30, every=0.5)


def test_tokens_of_an_identity_provider_are_shown_by_both_protocols(pulsar: PulsarCluster, files: Path) -> None:
    (files / "credentials.json").write_text(json.dumps(CLIENT))
    with oauth2_provider() as provider:
        provider.token = lambda form: (
            200,
            {"access_token": token(form["client_id"], expires_at=time.time() + 4), "expires_in": 4},
        )
        oauth2 = OAuth2Settings(issuer_url=provider.url, credentials_file=str(files / "credentials.json"))
        log = settings(pulsar, files).model_copy(update={"token_file": None, "oauth2": oauth2})
        with closing(PulsarLog(log, cluster="lab")) as writer:
            write(writer)
            time.sleep(5.5)  # the first token has ended, and the broker has asked for another one
            write(writer)
            assert len(provider.forms) > 1
        provider.token = lambda _: (401, {"error": "invalid_client"})
        (files / "credentials.json").write_text(json.dumps(CLIENT | {"client_id": "another"}))
        with pytest.raises(SettingsError, match=r"\[log\.pulsar\.oauth2\] POST .*: the client is refused"):
            credential_files(log.model_copy(update={"user": "u"}), "log.pulsar")
