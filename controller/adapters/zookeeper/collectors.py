"""The group of collectors in ZooKeeper: its members, the one that leads, and which brokers each one sweeps.

    <path>/<cluster>/collectors/members/<id>-<sequence>   ephemeral, one a collector; the lowest sequence leads
    <path>/<cluster>/collectors/shares                    member -> brokers, JSON

ZooKeeper says which collector writes the ticks; the log ensures that no other can.  So a group that loses ZooKeeper
keeps its leader and shares, and a member whose session ended joins again.
"""

import json
import logging
import os
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final
from uuid import uuid4

from kazoo.exceptions import (
    BadVersionError,
    ConnectionLoss,
    InvalidACLError,
    KazooException,
    NoAuthError,
    NodeExistsError,
)
from kazoo.handlers.threading import KazooTimeoutError

from controller.adapters.election.collectors import GroupView, shares_in
from controller.adapters.zookeeper.access import ZooKeeperAccess
from controller.adapters.zookeeper.client import ZooKeeperConnection
from controller.adapters.zookeeper.contenders import Contenders, id_of
from controller.model.errors import TrimtabError

log = logging.getLogger(__name__)

#: How long to wait for one answer; a collector must not miss its interval.
_ANSWER_SECONDS: Final = 2.0


class ZooKeeperGroup:
    """CollectorGroup in the ZooKeeper of *access*, under *path*."""

    def __init__(self, *, access: ZooKeeperAccess, path: str, cluster: str, session_timeout_seconds: float) -> None:
        root = f"{path.rstrip('/')}/{cluster}/collectors"
        self._members, self._shares = f"{root}/members", f"{root}/shares"
        self._view = GroupView(me=f"{socket.gethostname()}-{os.getpid()}-{uuid4().hex[:8]}")
        self._version = 0
        self._answers = True
        self._access = access
        self._connection = ZooKeeperConnection(access, session_seconds=session_timeout_seconds)
        self._client = self._connection.client
        self._contenders = Contenders(self._client, self._members, self._view.me, self._ask)
        self._connection.open(max(session_timeout_seconds, 5.0))
        try:
            self._view = self._read_view()
        except (KazooException, KazooTimeoutError) as error:
            if isinstance(error, NoAuthError | InvalidACLError):
                self._connection.close()
                raise self._refusal(error) from error

    def look(self) -> GroupView:
        """See CollectorGroup."""
        try:
            self._view = self._read_view()
        except (KazooException, KazooTimeoutError, TrimtabError) as error:
            if self._answers:
                why = self._refusal(error) if isinstance(error, NoAuthError | InvalidACLError) else repr(error)
                # That ZooKeeper cannot be reached is said by controller.adapters.outages.
                level = logging.DEBUG if isinstance(error, ConnectionLoss) else logging.WARNING
                log.log(level, "cannot read the group of collectors; using its last known members: %s", why)
            self._answers = False
        else:
            if not self._answers:
                log.debug("the group of collectors can be read again")
            self._answers = True
        return self._view

    def share(self, shares: Mapping[str, Sequence[str]]) -> None:
        """See CollectorGroup."""
        encoded = json.dumps({name: list(brokers) for name, brokers in shares.items()}, separators=(",", ":")).encode()
        with suppress(BadVersionError, KazooException, KazooTimeoutError):  # the next look shows the result
            self._ask(self._client.set_async(self._shares, encoded, version=self._version), self._shares)

    def step_back(self) -> None:
        """See CollectorGroup.  Until the next answer from ZooKeeper, nobody leads."""
        self._view = replace(self._view, members=())
        with suppress(KazooException, KazooTimeoutError):
            for name in self._contenders.own(self._contenders.names()):
                node = f"{self._members}/{name}"
                self._ask(self._client.delete_async(node), node)

    def leave(self) -> None:
        """See CollectorGroup."""
        self._connection.close()

    def _read_view(self) -> GroupView:
        if self._connection.ended:
            # The server refused our credentials, after which kazoo gives up.  They may be in order again.
            self._connection.open(_ANSWER_SECONDS)
        if not self._client.connected:
            raise ConnectionLoss("no connection")  # a request would only wait for a connection
        names = self._contenders.names()
        if not self._contenders.own(names):
            self._enter()
            names = self._contenders.names()
        encoded, stat = self._ask(self._client.get_async(self._shares), self._shares)
        self._version = stat.version
        return GroupView(me=self._view.me, members=tuple(map(id_of, names)), shares=shares_in(encoded or b""))

    def _enter(self) -> None:
        self._ask(self._client.ensure_path_async(self._members), self._members)
        with suppress(NodeExistsError):
            self._ask(self._client.create_async(self._shares, b""), self._shares)
        self._contenders.enter()

    def _refusal(self, error: KazooException) -> TrimtabError:
        return self._access.refusal(error, self._members)

    def _ask(self, request: Any, _: str) -> Any:
        return request.get(timeout=_ANSWER_SECONDS)
