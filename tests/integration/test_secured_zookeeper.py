"""Election, collectors' group and metadata reader on a real ZooKeeper that serves nobody unauthenticated."""

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from kazoo.security import OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

from controller.adapters.network.deadline import Deadline
from controller.adapters.network.waiting import wait_for
from controller.adapters.zookeeper.access import ZooKeeperAccess
from controller.adapters.zookeeper.client import ZooKeeperConnection
from controller.adapters.zookeeper.collectors import ZooKeeperGroup
from controller.adapters.zookeeper.leadership import ZooKeeperLeadership
from controller.adapters.zookeeper.nodes import open_nodes
from controller.adapters.zookeeper.pulsar_metadata import PulsarMetadata
from controller.adapters.zookeeper.session import granted_timeout_ms
from controller.model.errors import LeadershipLostError, TrimtabError
from tests.secured import ANOTHER_CA, EXPIRED, MUTUAL, access, ours
from tests.secured_servers import SecuredZooKeeper

pytestmark = pytest.mark.integration

SESSION_SECONDS = 4.0
USERS = {"trimtab": "right", "stranger": "strange"}


@pytest.fixture(scope="module")
def sasl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredZooKeeper]:
    """SASL, and TLS with certificates on both sides."""
    server = SecuredZooKeeper(tmp_path_factory.mktemp("sasl"), scheme="sasl", users=USERS, tls=MUTUAL)
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def digest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredZooKeeper]:
    """Digest, without TLS."""
    server = SecuredZooKeeper(tmp_path_factory.mktemp("digest"), scheme="digest", users={})
    server.start()
    yield server
    server.stop()


@pytest.fixture
def trimtab(sasl: SecuredZooKeeper, tmp_path: Path) -> ZooKeeperAccess:
    return access(sasl.hosts, tmp_path, "sasl", "trimtab", "right", ours())


@contextmanager
def contender(access: ZooKeeperAccess, cluster: str) -> Iterator[ZooKeeperLeadership]:
    leadership = ZooKeeperLeadership(
        access=access, path="/trimtab", cluster=cluster, session_timeout_seconds=SESSION_SECONDS
    )
    try:
        yield leadership
    finally:
        leadership.release()


def group_of(access: ZooKeeperAccess, cluster: str) -> ZooKeeperGroup:
    return ZooKeeperGroup(access=access, path="/trimtab", cluster=cluster, session_timeout_seconds=SESSION_SECONDS)


def acquired(leadership: ZooKeeperLeadership) -> bool:
    deadline = Deadline.after(30)
    return leadership.acquire(lambda: deadline.passed)


@pytest.mark.parametrize("scheme", ["sasl", "digest"])
def test_who_authenticates_leads_and_collects_and_all_its_nodes_are_closed_to_others(
    scheme: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server: SecuredZooKeeper = request.getfixturevalue(scheme)
    tls = ours() if scheme == "sasl" else None
    trimtab = access(server.hosts, tmp_path, scheme, "trimtab", "right", tls)
    stranger = access(server.hosts, tmp_path, scheme, "stranger", "strange", tls)
    cluster = uuid4().hex
    with contender(trimtab, cluster) as leader, closing_group(group_of(trimtab, cluster)) as group:
        assert acquired(leader)
        assert leader.claim(0) == 1
        leader.check()
        assert leader.agreement("checkpoint").propose("here") == "here"
        me = group.look().me
        assert group.look().leads
        group.share({me: ["broker:8080"]})
        assert group.look().share == ("broker:8080",)

        connection = ZooKeeperConnection(trimtab, session_seconds=SESSION_SECONDS)
        with closing(connection):
            connection.open(10)
            nodes = ["/trimtab", *below(connection, "/trimtab")]
            owners = {(entry.id.scheme, entry.id.id.partition(":")[0]) for n in nodes for entry in acls(connection, n)}
        assert any(n.endswith("/epoch") for n in nodes)
        assert any("/contenders/" in n for n in nodes)
        assert any("/members/" in n for n in nodes)
        assert owners == {(scheme, "trimtab")}

        with contender(stranger, cluster) as other, pytest.raises(TrimtabError) as refused:
            acquired(other)
        assert f"refuses node /trimtab/{cluster}/contenders to user 'stranger' of [election.auth]" in str(refused.value)
        with pytest.raises(TrimtabError, match=rf"refuses node /trimtab/{cluster}/collectors/members to user"):
            group_of(stranger, cluster)
        leader.check()


@pytest.mark.parametrize("scheme", ["sasl", "digest"])
def test_credentials_are_shown_again_after_an_outage_and_the_same_session_goes_on(scheme: str, tmp_path: Path) -> None:
    tls = MUTUAL if scheme == "sasl" else None
    server = SecuredZooKeeper(tmp_path / "server", scheme=scheme, users=USERS, tls=tls)  # type: ignore[arg-type]
    server.start()
    try:
        trimtab = access(server.hosts, tmp_path, scheme, "trimtab", "right", ours() if tls else None)
        with contender(trimtab, "outage") as leader:
            assert acquired(leader)
            assert leader.claim(0) == 1
            session = leader._client.client_id
            server.stop()
            server.start()
            assert acquired(leader)
            assert leader._client.client_id == session
            assert leader.claim(0) == 2
            leader.check()
    finally:
        server.stop()


def test_an_expired_session_ends_the_leadership_and_a_member_joins_again(
    trimtab: ZooKeeperAccess,
) -> None:
    cluster = uuid4().hex
    with contender(trimtab, cluster) as leader, closing_group(group_of(trimtab, cluster)) as group:
        assert acquired(leader)
        assert group.look().leads
        for client in (leader._client, group._client):
            thief = ZooKeeperConnection(trimtab, session_seconds=SESSION_SECONDS)
            thief.client._session_id, thief.client._session_passwd = client.client_id
            thief.open(10)
            thief.close()  # who closes a session ends it
        wait_for(leader.session_lost, 20, every=0.05)
        with pytest.raises(LeadershipLostError, match="has ended"):
            acquired(leader)
        wait_for(lambda: group._client.connected and group.look().leads, 20, every=0.1)


def test_pulsars_own_store_is_read_with_credentials_of_its_own(sasl: SecuredZooKeeper, tmp_path: Path) -> None:
    pulsar = access(sasl.hosts, tmp_path, "sasl", "stranger", "strange", ours())
    owner = ZooKeeperConnection(pulsar, session_seconds=SESSION_SECONDS)
    with closing(owner):
        owner.open(10)
        owner.client.ensure_path("/loadbalance/bundle-data/tenant/ns")
        owner.client.create("/loadbalance/bundle-data/tenant/ns/0x00000000_0xffffffff", b"{}")
    with closing(PulsarMetadata(pulsar)) as metadata:
        assert metadata.of_namespace("tenant/ns") == {"tenant/ns/0x00000000_0xffffffff": ("bundle_data", b"{}")}
    trimtab = replace(
        access(sasl.hosts, tmp_path, "sasl", "trimtab", "right", ours()), auth_section="collector.zookeeper_auth"
    )
    with closing(PulsarMetadata(trimtab)) as metadata, pytest.raises(TrimtabError) as refused:
        metadata.of_namespace("tenant/ns")
    assert "refuses node /loadbalance/bundle-data/tenant/ns to user 'trimtab' of [collector.zookeeper_auth]" in str(
        refused.value
    )


@pytest.mark.parametrize(
    ("user", "password", "words"),
    [
        ("trimtab", "wrong", "refuses user 'trimtab' of [election.auth]: the password in "),
        ("nobody", "right", "refuses user 'nobody' of [election.auth]"),
        ("", "", "serves only clients that authenticate: add [election.auth] with scheme, user and password_file"),
    ],
)
def test_a_wrong_password_and_none_at_all_are_told_at_once(
    sasl: SecuredZooKeeper, tmp_path: Path, user: str, password: str, words: str
) -> None:
    if user:
        wrong = access(sasl.hosts, tmp_path, "sasl", user, password, ours())
    else:
        wrong = ZooKeeperAccess(hosts=sasl.hosts, tls=ours())
    for attempt in (lambda: group_of(wrong, "any"), lambda: lead(wrong)):
        began = time.monotonic()
        with pytest.raises(TrimtabError) as refused:
            attempt()
        assert time.monotonic() - began < 25
        assert words in str(refused.value)


def test_a_server_that_wants_digest_says_so_to_whoever_shows_nothing(digest: SecuredZooKeeper, tmp_path: Path) -> None:
    with pytest.raises(TrimtabError, match=r"serves only clients that authenticate: add \[election\.auth\]"):
        lead(ZooKeeperAccess(hosts=digest.hosts))
    # Digest does not check passwords: with another one it is another user, whom the nodes do not know.
    cluster = uuid4().hex
    lead(access(digest.hosts, tmp_path, "digest", "trimtab", "right"), cluster)
    with pytest.raises(TrimtabError, match=r"its ACL needs digest:trimtab:cdrwa \(the password is part of"):
        lead(access(digest.hosts, tmp_path, "digest", "trimtab", "wrong"), cluster)


@pytest.mark.parametrize(
    ("certificate", "authority", "words"),
    [
        ("client", ANOTHER_CA, "the server's certificate is refused: unable to get local issuer certificate"),
        ("expired", None, "the server refuses our certificate ([election.tls] certificate): "),
        ("", None, "the server refuses our certificate ([election.tls] certificate): "),
        (None, None, "does it require TLS, [election.tls]?"),
    ],
)
def test_tls_that_fails_is_told_with_the_certificate_that_it_is_about(
    sasl: SecuredZooKeeper, tmp_path: Path, certificate: str | None, authority: Path | None, words: str
) -> None:
    tls = None if certificate is None else ours(certificate, authority) if authority else ours(certificate)
    began = time.monotonic()
    with pytest.raises(TrimtabError) as refused:
        lead(access(sasl.hosts, tmp_path, "sasl", "trimtab", "right", tls))
    assert time.monotonic() - began < 25
    assert words in str(refused.value)


def test_a_server_whose_certificate_has_expired_is_told(tmp_path: Path) -> None:
    server = SecuredZooKeeper(tmp_path / "server", scheme="digest", users={}, tls=EXPIRED)
    server.start()
    try:
        trimtab = access(server.hosts, tmp_path, "digest", "trimtab", "right", ours("", ANOTHER_CA))
        with pytest.raises(TrimtabError, match="the server's certificate is refused: certificate has expired"):
            lead(trimtab)
        with pytest.raises(TrimtabError, match="certificate has expired"):
            granted_timeout_ms(trimtab, 10, answer_seconds=3)
    finally:
        server.stop()


def test_nodes_that_everybody_may_change_are_found_and_no_others(trimtab: ZooKeeperAccess) -> None:
    cluster = uuid4().hex
    with contender(trimtab, cluster) as leader:
        assert acquired(leader)
        assert open_nodes(trimtab, "/trimtab", cluster, answer_seconds=5) == ()
        connection = ZooKeeperConnection(trimtab, session_seconds=SESSION_SECONDS)
        with closing(connection):
            connection.open(10)
            # As it was before there were credentials.
            connection.client.set_acls(f"/trimtab/{cluster}/epoch", OPEN_ACL_UNSAFE)
            connection.client.create(f"/trimtab/{cluster}/readable", acl=READ_ACL_UNSAFE)
        assert open_nodes(trimtab, "/trimtab", cluster, answer_seconds=5) == (f"/trimtab/{cluster}/epoch",)


def test_the_probe_of_sessions_speaks_tls(trimtab: ZooKeeperAccess) -> None:
    assert granted_timeout_ms(trimtab, 10, answer_seconds=5) == 10_000


def lead(access: ZooKeeperAccess, cluster: str = "any") -> None:
    with contender(access, cluster) as leader:
        assert acquired(leader)


@contextmanager
def closing_group(group: ZooKeeperGroup) -> Iterator[ZooKeeperGroup]:
    try:
        yield group
    finally:
        group.leave()


def below(connection: ZooKeeperConnection, node: str) -> list[str]:
    children = [f"{node}/{name}" for name in connection.client.get_children(node)]
    return [*children, *(each for child in children for each in below(connection, child))]


def acls(connection: ZooKeeperConnection, node: str) -> list[Any]:
    entries: list[Any] = connection.client.get_acls(node)[0]
    return entries
