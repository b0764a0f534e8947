"""[election]: how several controllers elect their leader.  ``kind`` says where."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal, Self, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, PositiveInt, model_validator

from controller.settings.access import TlsSettings, ZooKeeperAuthSettings
from controller.settings.addresses import ZooKeeperServers
from controller.settings.section import PathText, Section, Text, Url

#: Sections that the file election does not have, and those that an election on the log does not have.
_OF_A_SERVER: Final = ("auth", "tls", "lease")
_OF_ZOOKEEPER: Final = ("auth", "tls")


#: Where the kubelet puts what a pod needs for the API.
_ACCOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
#: As the API takes it: a DNS name.
_LEASE_NAME: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
_NAMESPACE: Final = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$"


def _api_server(url: str) -> str:
    parts = urlsplit(url)
    if url and (parts.scheme not in ("https", "http") or not parts.hostname or parts.query or parts.path.strip("/")):
        raise ValueError(f"{url!r}: expected https://host:port")
    if parts.scheme == "http" and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
        raise ValueError(f"{url!r}: the account's token is sent over https only, except to this machine itself")
    return url


class LeaseSettings(Section):
    """Controllers elect their leader by a Lease of Kubernetes; all else stays where kind says."""

    name: Annotated[str, Field(max_length=253, pattern=_LEASE_NAME)] = "trimtab"
    """The Lease.  Two clusters in one namespace need two names."""
    namespace: Annotated[str, Field(max_length=63, pattern=_NAMESPACE)] = ""
    """Its namespace.  Default: that of the pod."""
    seconds: Annotated[int, Field(ge=5, le=600)] = 15
    """A leader that does not renew the Lease for this long is replaced."""
    server: Annotated[Url, AfterValidator(_api_server)] = ""
    """The API server, https://host:port.  Default: the one that a pod finds in its environment."""
    token_file: str = f"{_ACCOUNT}/token"
    """The account's token, read anew for each request; "" for none."""
    trust_certs: str = f"{_ACCOUNT}/ca.crt"
    """The authority of the API server, PEM."""


class ElectionInZooKeeper(Section):
    """Controllers elect their leader in ZooKeeper."""

    kind: Literal["zookeeper"]
    """Where controllers elect their leader: "zookeeper"; "log", a topic of the log in Kafka or Pulsar; or "file", a
    lock file on this machine alone."""
    hosts: ZooKeeperServers = ""
    """ZooKeeper: host:port[,host:port ...]."""
    path: Text
    """ZooKeeper: the node under which the election lies.  File: the folder of the lock."""
    session_timeout_seconds: PositiveInt = 10
    """ZooKeeper: session timeout; a leader that is silent for this long is replaced.  A shorter one fails over sooner,
    but also when the machine only paused."""
    auth: ZooKeeperAuthSettings | None = None
    """ZooKeeper: credentials.  Without them trimtab does not authenticate, and anyone can change its nodes."""
    tls: TlsSettings | None = None
    """ZooKeeper: with this section, connections use TLS."""
    lease: LeaseSettings | None = None
    """With this section the leader is elected by a Lease of Kubernetes."""

    @model_validator(mode="after")
    def _knows_where(self) -> Self:
        if not self.hosts:
            raise ValueError("kind is 'zookeeper', so hosts is needed: host:port[,host:port ...]")
        if not self.path.startswith("/"):
            raise ValueError(f"path is {self.path!r}: a ZooKeeper path begins with /")
        return self


class ElectionOnLog(Section):
    """Controllers elect their leader in a topic of the log, which is in Kafka or Pulsar: no server but the log's."""

    kind: Literal["log"]
    """See ElectionInZooKeeper."""
    hosts: str = ""
    """Not used."""
    path: str = ""
    """Not used: ``election_topic`` in [log.kafka] or [log.pulsar] names the topic."""
    session_timeout_seconds: PositiveInt = 10
    """A process that writes nothing for this long is replaced."""
    lease: LeaseSettings | None = None
    """See ElectionInZooKeeper."""

    @model_validator(mode="before")
    @classmethod
    def _needs_no_credentials(cls, value: Any) -> Any:
        return _without(_OF_ZOOKEEPER, value, "log")


class ElectionByFile(Section):
    """Controllers on one machine elect their leader by the lock of a file."""

    kind: Literal["file"]
    """See ElectionInZooKeeper."""
    hosts: str = ""
    """Not used."""
    path: PathText
    """The folder of the lock."""
    session_timeout_seconds: PositiveInt = 10
    """Not used."""
    lease: None = None
    """Not used: a lock elects the leader."""

    @model_validator(mode="before")
    @classmethod
    def _needs_no_credentials(cls, value: Any) -> Any:
        return _without(_OF_A_SERVER, value, "file")


def _without(sections: Sequence[str], value: Any, kind: str) -> Any:
    if isinstance(value, Mapping) and any(value.get(name) is not None for name in sections):
        *names, last = [f"no [election.{name}]" for name in sections]
        raise ValueError(f"kind is {kind!r}, which has {', '.join(names)} and {last}")
    return value


ElectionSettings: TypeAlias = Annotated[
    ElectionInZooKeeper | ElectionOnLog | ElectionByFile, Field(discriminator="kind")
]
