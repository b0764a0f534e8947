"""`trimtab collect --dry-run` against brokers that demand to know who asks."""

import base64
import json
import os
import resource
import ssl
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from controller.cli import collect as collect_cli
from controller.model.errors import SettingsError, TrimtabError
from tests.fake_pulsar import FakePulsar, fake_pulsar

TLS = Path(__file__).parents[2] / "data" / "tls"
TOKEN = "a.secret.token"


def conf(folder: Path, pulsar: FakePulsar, *, own: str = "", tls: str = "") -> Path:
    urls = json.dumps(pulsar.urls)
    path = folder / "trimtab.toml"
    path.write_text(
        f"""
        cluster.name = "lab"
        log = {{kind = "folder", folder = {{path = "log"}}}}
        election = {{kind = "file", path = "election"}}
        checkpoint.path = "checkpoint"
        [pulsar]
        admin_url = {urls}
        {own}
        [pulsar.tls]
        {tls}
        """,
        encoding="utf-8",
    )
    return path


def dry_run(path: Path) -> Any:
    app = typer.Typer()
    app.command()(collect_cli.collect)
    outcome = CliRunner().invoke(app, ["--conf", str(path), "--dry-run"])
    if outcome.exception is not None:
        raise outcome.exception
    return json.loads(outcome.stdout)


def server(name: str, *, wants_certificate: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(TLS / f"{name}.pem", TLS / f"{name}.key")
    if wants_certificate:
        context.load_verify_locations(TLS / "ca.pem")
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def test_without_authentication_a_dry_run_says_what_would_be_published_and_writes_nothing(tmp_path: Path) -> None:
    with fake_pulsar(2) as pulsar:
        said = dry_run(conf(tmp_path, pulsar))
        assert sorted(said["brokers"]) == pulsar.names
        first = said["brokers"][pulsar.brokers[0].name]
        assert (first["numTopics"], first["brokerVersionString"], first["failureDomain"]) == (6, "4.0.8", "rack-1")
        assert said["pulsarLeader"] == pulsar.brokers[0].name
        assert said["namespaces"]["lab/ns-1"] == {"bundles": 4, "antiAffinityGroup": "apart", "isolationPolicies": 0}
        assert (said["missing"], said["storedBundleData"]) == ({}, 0)
        assert not (tmp_path / "log").exists()


def test_a_broker_without_a_sweep_is_named_with_the_reason(tmp_path: Path) -> None:
    with fake_pulsar(2) as pulsar:
        path = conf(tmp_path, pulsar)
        broken = pulsar.brokers[1]
        broken.broken = "/broker-stats/topics"
        said = dry_run(path)
        assert list(said["brokers"]) == [pulsar.brokers[0].name]
        assert "503" in said["missing"][pulsar.brokers[1].name]
        assert "out of order" in said["missing"][pulsar.brokers[1].name]


def test_a_collector_asks_for_as_many_open_files_as_it_has_brokers(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    with fake_pulsar(12) as pulsar:
        free = os.dup(0)  # the lowest number that no file has
        os.close(free)
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (free + 20, before[1]))
            said = dry_run(conf(tmp_path, pulsar))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert (len(said["brokers"]), said["missing"]) == (12, {})


@pytest.mark.parametrize(
    ("own", "header"),
    [
        ('token_file = "secret"', f"Bearer {TOKEN}"),
        ('user = "me"\npassword_file = "secret"', "Basic " + base64.b64encode(f"me:{TOKEN}".encode()).decode()),
    ],
)
def test_brokers_that_require_a_token_or_a_password_get_it(tmp_path: Path, own: str, header: str) -> None:
    (tmp_path / "secret").write_text(f"{TOKEN}\n", encoding="utf-8")
    with fake_pulsar(2) as pulsar:
        pulsar.demands = header
        assert sorted(dry_run(conf(tmp_path, pulsar, own=own))["brokers"]) == pulsar.names
        with pytest.raises(TrimtabError, match="401"):
            dry_run(conf(tmp_path, pulsar))


@pytest.mark.slow
def test_brokers_are_swept_over_tls_with_a_certificate_where_they_want_one(tmp_path: Path) -> None:
    trust = f'trust_certs = "{TLS / "ca.pem"}"'
    mine = f'{trust}\ncertificate = "{TLS / "client.pem"}"\nkey = "{TLS / "client.key"}"'
    with fake_pulsar(2, server("broker", wants_certificate=True)) as pulsar:
        assert sorted(dry_run(conf(tmp_path, pulsar, tls=mine))["brokers"]) == pulsar.names
        with pytest.raises(TrimtabError, match=r"no answer|no connection|refuses our certificate"):
            dry_run(conf(tmp_path, pulsar, tls=trust))


@pytest.mark.slow
def test_a_server_that_is_not_trusted_or_goes_by_another_name_is_refused_unless_told_otherwise(tmp_path: Path) -> None:
    trust = f'trust_certs = "{TLS / "ca.pem"}"'
    with fake_pulsar(1, server("elsewhere")) as pulsar:
        for tls in ("", trust):
            with pytest.raises(TrimtabError, match=r"the server's certificate is refused: .* trust_certs sets the"):
                dry_run(conf(tmp_path, pulsar, tls=tls))
        lenient = f"{trust}\nverify_host = false"
        assert list(dry_run(conf(tmp_path, pulsar, tls=lenient))["brokers"]) == pulsar.names


def test_over_tls_brokers_are_found_where_they_speak_it_though_their_names_hold_another_port(tmp_path: Path) -> None:
    with fake_pulsar(2, server("broker")) as pulsar:
        for number, broker in enumerate(pulsar.brokers, start=1):
            broker.name = f"127.0.0.1:{number}"
        said = dry_run(conf(tmp_path, pulsar, tls=f'trust_certs = "{TLS / "ca.pem"}"'))
        assert (list(said["brokers"]), said["missing"]) == (["127.0.0.1:1", "127.0.0.1:2"], {})


def test_without_a_section_pulsar_the_command_says_what_is_missing(tmp_path: Path) -> None:
    with fake_pulsar(1) as pulsar:
        path = conf(tmp_path, pulsar)
    text = path.read_text(encoding="utf-8")
    path.write_text(text[: text.index("[pulsar]")], encoding="utf-8")
    with pytest.raises(SettingsError, match=r"section \[pulsar\]"):
        dry_run(path)


def test_a_dry_run_ends_at_once_where_no_broker_can_be_reached(tmp_path: Path) -> None:
    with fake_pulsar(1) as pulsar:
        path = conf(tmp_path, pulsar)
    with pytest.raises(TrimtabError, match="refused"):
        dry_run(path)
