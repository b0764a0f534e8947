"""Who trimtab is in ZooKeeper, by its settings; and that a refusal names the credential or the permission."""

from pathlib import Path
from typing import Any

import pytest
from kazoo.exceptions import (
    AuthFailedError,
    ConnectionLoss,
    InvalidACLError,
    NoAuthError,
    SessionClosedRequireSaslError,
)
from kazoo.security import Permissions, make_digest_acl_credential
from pydantic import ValidationError

from controller.adapters.zookeeper.access import ZooKeeperAccess, election_access, metadata_access
from controller.adapters.zookeeper.client import ZooKeeperConnection
from controller.model.errors import SettingsError, TrimtabError
from controller.settings.access import ZooKeeperAuthSettings
from controller.settings.election import ElectionByFile, ElectionInZooKeeper
from controller.settings.trimtab_toml import CollectorSettings

PASSWORD = "hunter2"


@pytest.fixture
def password_file(tmp_path: Path) -> str:
    file = tmp_path / "password"
    file.write_text(f"{PASSWORD}\n")
    return str(file)


def access(password_file: str, scheme: Any = "digest") -> ZooKeeperAccess:
    auth = ZooKeeperAuthSettings(scheme=scheme, user="trimtab", password_file=password_file)
    return ZooKeeperAccess(hosts="zk:2181", auth=auth)


def test_nodes_belong_to_their_creator_alone(password_file: str) -> None:
    hashed = make_digest_acl_credential("trimtab", PASSWORD)
    for scheme, identity in (("digest", hashed), ("sasl", "trimtab")):
        entries = access(password_file, scheme).acl()
        assert entries is not None
        [entry] = entries
        assert (entry.perms, entry.id.scheme, entry.id.id) == (Permissions.ALL, scheme, identity)
    assert ZooKeeperAccess(hosts="zk:2181").acl() is None


def test_kazoo_gets_the_credentials_and_keeps_them_for_later_connections(password_file: str) -> None:
    digest = ZooKeeperConnection(access(password_file), session_seconds=10).client
    assert digest.auth_data == {("digest", f"trimtab:{PASSWORD}")}
    assert digest.default_acl == access(password_file).acl()
    sasl = ZooKeeperConnection(access(password_file, "sasl"), session_seconds=10).client
    assert sasl._connection.sasl_options == {
        "mechanism": "DIGEST-MD5",
        "username": "trimtab",
        "password": PASSWORD,
    }
    # At DEBUG kazoo writes them into its log.
    assert not digest.logger.isEnabledFor(10)


@pytest.mark.parametrize(
    ("scheme", "error", "words"),
    [
        ("sasl", AuthFailedError(), "refuses user 'trimtab' of [election.auth]: the password in {file} is wrong"),
        (
            "digest",
            NoAuthError(),
            "refuses node /trimtab/a to user 'trimtab' of [election.auth]: its ACL needs digest:",
        ),
        ("sasl", NoAuthError(), "its ACL needs sasl:trimtab:cdrwa; getAcl /trimtab/a shows it"),
        ("digest", SessionClosedRequireSaslError(), "does not accept scheme = 'digest' of [election.auth]"),
        (None, SessionClosedRequireSaslError(), "serves only clients that authenticate: add [election.auth]"),
        (None, NoAuthError(), "refuses node /trimtab/a: its ACL does not allow anonymous access; add [election.auth]"),
        ("sasl", InvalidACLError(), "does not accept an ACL for sasl:trimtab on node /trimtab/a: its zoo.cfg needs"),
        (None, ConnectionLoss(), "refused node /trimtab/a: ConnectionLoss()"),
    ],
)
def test_a_refusal_names_the_credential_or_the_permission(
    password_file: str, scheme: str | None, error: Exception, words: str
) -> None:
    ours = access(password_file, scheme) if scheme else ZooKeeperAccess(hosts="zk:2181")
    told = str(ours.refusal(error, "/trimtab/a"))
    assert told.startswith("ZooKeeper at zk:2181 ")
    assert words.format(file=password_file) in told
    assert PASSWORD not in told


def test_a_password_file_that_cannot_be_used_is_named_by_its_key(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    for name, why in (("none", "No such file"), ("empty", "empty"), ("binary", "not text")):
        with pytest.raises(SettingsError, match=rf"election\.auth\.password_file: .* {why}"):
            access(str(tmp_path / name)).credentials()


def test_the_election_and_pulsars_store_have_credentials_of_their_own(password_file: str) -> None:
    auth = {"scheme": "sasl", "user": "reader", "password_file": password_file}
    collector = CollectorSettings.model_validate(
        {"zookeeper": "pulsar:2181/chroot", "zookeeper_auth": auth, "zookeeper_tls": {"trust_certs": "/ca.pem"}}
    )
    theirs = metadata_access(collector)
    assert (theirs.hosts, theirs.identity, theirs.auth_section) == (
        "pulsar:2181/chroot",
        "sasl:reader",
        "collector.zookeeper_auth",
    )
    assert theirs.tls is not None
    assert theirs.tls.trust_certs == "/ca.pem"
    ours = election_access(ElectionInZooKeeper(kind="zookeeper", hosts="zk:2181", path="/trimtab"))
    assert (ours.identity, ours.tls) == ("", None)
    # As before there was any of this.
    assert metadata_access(CollectorSettings(zookeeper="host:2181")) == ZooKeeperAccess(
        hosts="host:2181", auth_section="collector.zookeeper_auth", tls_section="collector.zookeeper_tls"
    )


def test_a_file_election_has_no_credentials(password_file: str) -> None:
    auth = {"scheme": "sasl", "user": "trimtab", "password_file": password_file}
    with pytest.raises(ValidationError, match=r"no \[election\.auth\]"):
        ElectionByFile.model_validate({"kind": "file", "path": "lock", "auth": auth})


def test_tls_files_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    election = ElectionInZooKeeper.model_validate(
        {"kind": "zookeeper", "hosts": "zk:2281", "path": "/t", "tls": {"trust_certs": str(tmp_path / "none.pem")}}
    )
    with pytest.raises(TrimtabError, match=r"ZooKeeper, \[election\.tls\]: trust_certs = '.*none\.pem'"):
        election_access(election).context()
