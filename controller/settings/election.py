"""[election]: how several controllers elect their leader.  ``kind`` says where."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import Field, PositiveInt, model_validator

from controller.settings.access import TlsSettings, ZooKeeperAuthSettings
from controller.settings.addresses import ZooKeeperServers
from controller.settings.section import PathText, Section, Text

#: Sections that the file election does not have.
_OF_A_SERVER: Final = ("auth", "tls")


class ElectionInZooKeeper(Section):
    """Controllers elect their leader in ZooKeeper."""

    kind: Literal["zookeeper"]
    """Where controllers elect their leader: "zookeeper", or "file" for a lock file on this machine alone."""
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

    @model_validator(mode="after")
    def _knows_where(self) -> Self:
        if not self.hosts:
            raise ValueError("kind is 'zookeeper', so hosts is needed: host:port[,host:port ...]")
        if not self.path.startswith("/"):
            raise ValueError(f"path is {self.path!r}: a ZooKeeper path begins with /")
        return self


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

    @model_validator(mode="before")
    @classmethod
    def _needs_no_credentials(cls, value: Any) -> Any:
        if isinstance(value, Mapping) and any(value.get(name) is not None for name in _OF_A_SERVER):
            raise ValueError("kind is 'file', which has no [election.auth] and no [election.tls]")
        return value


ElectionSettings: TypeAlias = Annotated[ElectionInZooKeeper | ElectionByFile, Field(discriminator="kind")]
