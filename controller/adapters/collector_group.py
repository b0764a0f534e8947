"""Who collects: the members of the group, the one that leads it, and what it has shared out.

    <path>/<cluster>/collectors/members/<id>-<sequence>   ephemeral, one a collector; the lowest sequence leads
    <path>/<cluster>/collectors/shares                    member -> brokers, JSON

ZooKeeper only says who is to write the ticks; that nobody else can is for the log to see to.  So a group that loses
ZooKeeper goes on as it was, and a member whose session ended simply joins again.
"""

import json
import logging
import os
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Protocol
from uuid import uuid4

from kazoo.client import KazooClient
from kazoo.exceptions import BadVersionError, ConnectionLoss, KazooException, NodeExistsError, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

from controller.adapters.folder_leadership import FileLeadership
from controller.model.errors import TrimtabError
from controller.settings.trimtab_toml import ElectionSettings, Settings

log = logging.getLogger(__name__)

#: ZooKeeper appends so many digits to the name of a sequential node.
_SEQUENCE_DIGITS: Final = 10
#: kazoo's own waits grow to an hour.
_RECONNECT: Final = {"max_tries": -1, "delay": 0.1, "backoff": 2, "max_delay": 1.0}
#: Of one answer.  A collector has an interval to keep.
_ANSWER_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """The group as one member last saw it."""

    me: str
    #: The one that leads comes first.
    members: tuple[str, ...] = ()
    shares: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def leads(self) -> bool:
        """Whether this member leads."""
        return self.members[:1] == (self.me,)

    @property
    def share(self) -> tuple[str, ...]:
        """This member's brokers."""
        return tuple(self.shares.get(self.me, ()))


class CollectorGroup(Protocol):
    """See the module docstring.  Used from one thread."""

    def look(self) -> GroupView:
        """The group as it is now; as it was last seen where that cannot be known.  Joins it where need be."""
        ...

    def share(self, shares: Mapping[str, Sequence[str]]) -> None:
        """Tell what was shared out; of no effect where another one has told something else since ``look``."""
        ...

    def step_back(self) -> None:
        """Let another one lead, if there is one: leave, and join again as the last with the next look that succeeds."""
        ...

    def leave(self) -> None:
        """Leave for good."""
        ...


class ZooKeeperGroup:
    """CollectorGroup in ZooKeeper at *hosts*, under *path*."""

    def __init__(self, *, hosts: str, path: str, cluster: str, session_timeout_seconds: float) -> None:
        root = f"{path.rstrip('/')}/{cluster}/collectors"
        self._members, self._shares = f"{root}/members", f"{root}/shares"
        self._id = f"{socket.gethostname()}-{os.getpid()}-{uuid4().hex[:8]}"
        self._view = GroupView(me=self._id)
        self._version = 0
        self._answers = True
        self._client = KazooClient(hosts=hosts, timeout=session_timeout_seconds, connection_retry=_RECONNECT)
        try:
            self._client.start(timeout=max(session_timeout_seconds, 5.0))
        except KazooTimeoutError as error:
            self._client.stop()
            raise TrimtabError(
                f"ZooKeeper at {hosts} does not answer: is it running, and is hosts in [election] right?"
            ) from error

    def look(self) -> GroupView:
        """See CollectorGroup."""
        try:
            self._view = self._seen()
        except (KazooException, KazooTimeoutError) as error:
            if self._answers:
                log.warning("ZooKeeper does not answer, the group of collectors stays as it is: %r", error)
            self._answers = False
        else:
            if not self._answers:
                log.info("ZooKeeper answers again")
            self._answers = True
        return self._view

    def share(self, shares: Mapping[str, Sequence[str]]) -> None:
        """See CollectorGroup."""
        told = json.dumps({name: list(brokers) for name, brokers in shares.items()}, separators=(",", ":")).encode()
        with suppress(BadVersionError, KazooException, KazooTimeoutError):  # the next look tells what holds
            self._ask(self._client.set_async(self._shares, told, version=self._version))

    def step_back(self) -> None:
        """See CollectorGroup.  Until ZooKeeper says otherwise, nobody leads."""
        self._view = replace(self._view, members=())
        with suppress(KazooException, KazooTimeoutError):
            for name in self._own(self._names()):
                self._ask(self._client.delete_async(f"{self._members}/{name}"))

    def leave(self) -> None:
        """See CollectorGroup."""
        self._client.stop()
        self._client.close()

    def _seen(self) -> GroupView:
        if not self._client.connected:
            raise ConnectionLoss("no connection")  # asking would only wait for one
        names = self._names()
        # Found by its id: a connection that breaks while the node is made does not say whether it was.
        if not self._own(names):
            self._ask(self._client.create_async(f"{self._members}/{self._id}-", ephemeral=True, sequence=True))
            names = self._names()
        told, stat = self._ask(self._client.get_async(self._shares))
        self._version = stat.version
        members = tuple(name[: -_SEQUENCE_DIGITS - 1] for name in names)
        return GroupView(me=self._id, members=members, shares=json.loads(told) if told else {})

    def _names(self) -> list[str]:
        try:
            names: list[str] = self._ask(self._client.get_children_async(self._members))
        except NoNodeError:
            self._ask(self._client.ensure_path_async(self._members))
            with suppress(NodeExistsError):
                self._ask(self._client.create_async(self._shares, b""))
            names = []
        return sorted(names, key=lambda name: name[-_SEQUENCE_DIGITS:])

    def _own(self, names: Sequence[str]) -> list[str]:
        return [name for name in names if name.startswith(f"{self._id}-")]

    def _ask(self, request: Any) -> Any:
        return request.get(timeout=_ANSWER_SECONDS)


class FileGroup:
    """CollectorGroup on one machine: who holds the lock in *folder* does everything, the others wait."""

    def __init__(self, folder: Path) -> None:
        self._lock = FileLeadership(folder)
        self._shares: Mapping[str, Sequence[str]] = {}

    def look(self) -> GroupView:
        """See CollectorGroup."""
        attempts = iter((False,))
        if self._lock.lost():
            self._lock.acquire(lambda: next(attempts, True))
        members = () if self._lock.lost() else ("this",)
        return GroupView(me="this", members=members, shares=self._shares if members else {})

    def share(self, shares: Mapping[str, Sequence[str]]) -> None:
        """See CollectorGroup."""
        self._shares = shares

    def step_back(self) -> None:
        """See CollectorGroup."""
        self._lock.release()

    def leave(self) -> None:
        """See CollectorGroup."""
        self._lock.release()


def collector_group(settings: Settings) -> CollectorGroup:
    """The group that *settings* name: collectors meet where controllers elect."""
    election: ElectionSettings = settings.election
    if election.kind == "file":
        return FileGroup(Path(election.path) / "collectors")
    return ZooKeeperGroup(
        hosts=election.hosts,
        path=election.path,
        cluster=settings.cluster.name,
        session_timeout_seconds=election.session_timeout_seconds,
    )
