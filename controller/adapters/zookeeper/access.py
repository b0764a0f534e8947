"""A ZooKeeper's address, trimtab's credentials in it, and messages for what ZooKeeper refuses."""

import ssl
from dataclasses import dataclass
from typing import Any

from kazoo.exceptions import (
    AuthFailedError,
    InvalidACLError,
    KazooException,
    NoAuthError,
    SessionClosedRequireSaslError,
)
from kazoo.security import ACL, make_acl, make_digest_acl

from controller.adapters.network.tls import Tls, tls_of
from controller.model.errors import AccessDeniedError, TrimtabError
from controller.settings.access import ZooKeeperAuthSettings
from controller.settings.election import ElectionInZooKeeper
from controller.settings.redaction import read_secret, redacted
from controller.settings.trimtab_toml import CollectorSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperAccess:
    """A ZooKeeper, and our credentials for it."""

    #: host:port, comma separated; a chroot may follow.
    hosts: str
    auth: ZooKeeperAuthSettings | None = None
    #: None: no TLS.
    tls: Tls | None = None
    #: The sections of the settings that say so; errors name them.
    auth_section: str = "election.auth"
    tls_section: str = "election.tls"

    @property
    def identity(self) -> str:
        """The user as ACLs name it, scheme:user, without the digest's hash; "" where nobody authenticates."""
        return f"{self.auth.scheme}:{self.auth.user}" if self.auth else ""

    def context(self) -> ssl.SSLContext | None:
        """For connections with TLS.  TrimtabError where a file cannot be used."""
        return None if self.tls is None else self.tls.context(f"ZooKeeper, [{self.tls_section}]")

    def acl(self) -> list[ACL] | None:
        """What trimtab's nodes get: everything for us and nothing for anybody else.  None without credentials."""
        if self.auth is None:
            return None
        if self.auth.scheme == "digest":
            return [make_digest_acl(self.auth.user, self._password(self.auth), all=True)]
        return [make_acl("sasl", self.auth.user, all=True)]

    def refusal(self, error: KazooException, node: str = "") -> TrimtabError:
        """The exception for *error*, ZooKeeper's answer about *node*; it names the credential or the permission."""
        denied = isinstance(error, AuthFailedError | SessionClosedRequireSaslError | NoAuthError | InvalidACLError)
        kind = AccessDeniedError if denied else TrimtabError
        return kind(f"ZooKeeper at {self.hosts} {self._why(error, node)}")

    def _why(self, error: KazooException, node: str) -> str:
        auth, section = self.auth, self.auth_section
        if isinstance(error, AuthFailedError) and auth is not None:
            return (
                f"refuses user {auth.user!r} of [{section}]: the password in {auth.password_file} is wrong, or the"
                f" server does not know this user, or it does not offer {auth.scheme}"
            )
        if isinstance(error, SessionClosedRequireSaslError):
            if auth is None:
                return f"serves only clients that authenticate: add [{section}] with scheme, user and password_file"
            return f"does not accept scheme = {auth.scheme!r} of [{section}]: it requires another scheme"
        if isinstance(error, NoAuthError):
            if auth is None:
                return (
                    f"refuses node {node}: its ACL does not allow anonymous access; add [{section}] "
                    f"with the node's user"
                )
            also = " (the password is part of the user's identity)" if auth.scheme == "digest" else ""
            return (
                f"refuses node {node} to user {auth.user!r} of [{section}]: its ACL needs {self.identity}:cdrwa{also};"
                f" getAcl {node} shows it"
            )
        if isinstance(error, InvalidACLError) and auth is not None:
            return (
                f"does not accept an ACL for {self.identity} on node {node}: its zoo.cfg needs an authProvider for"
                f" {auth.scheme}"
            )
        return f"refused{f' node {node}' if node else ''}: {redacted(repr(error))}"

    def credentials(self) -> dict[str, Any]:
        """KazooClient's arguments with our credentials."""
        if self.auth is None:
            return {}
        password = self._password(self.auth)
        if self.auth.scheme == "digest":
            return {"auth_data": [("digest", f"{self.auth.user}:{password}")]}
        # kazoo sends either of them again with every connection.
        return {"sasl_options": {"mechanism": "DIGEST-MD5", "username": self.auth.user, "password": password}}

    def _password(self, auth: ZooKeeperAuthSettings) -> str:
        return read_secret(auth.password_file, f"{self.auth_section}.password_file")


def election_access(election: ElectionInZooKeeper) -> ZooKeeperAccess:
    """The election's ZooKeeper."""
    tls = None if election.tls is None else tls_of(election.tls)
    return ZooKeeperAccess(hosts=election.hosts, auth=election.auth, tls=tls)


def metadata_access(collector: CollectorSettings) -> ZooKeeperAccess:
    """Pulsar's own metadata store."""
    return ZooKeeperAccess(
        hosts=collector.zookeeper,
        auth=collector.zookeeper_auth,
        tls=None if collector.zookeeper_tls is None else tls_of(collector.zookeeper_tls),
        auth_section="collector.zookeeper_auth",
        tls_section="collector.zookeeper_tls",
    )
