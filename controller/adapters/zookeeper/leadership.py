"""Leadership in ZooKeeper: the contender with the lowest sequence leads, as long as its session lives.

    <path>/<cluster>/contenders/<id>-<sequence>   ephemeral, one a process; the lowest sequence leads;
                                                  holds host and number of the process, for people who ask
    <path>/<cluster>/epoch                        the number of the newest leadership
    <path>/<cluster>/checkpoint                   which checkpoint all contenders share

kazoo's Lock and Election still report that they hold after their session ended.  Here the listener only counts
interruptions, so it never delays the session; only an answer from ZooKeeper confirms leadership again.
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final
from uuid import uuid4

from kazoo.client import TransactionRequest
from kazoo.exceptions import (
    BadVersionError,
    ConnectionLoss,
    KazooException,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    OperationTimeoutError,
    RolledBackError,
    RuntimeInconsistency,
    SessionExpiredError,
    SessionMovedError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KazooState

from controller.adapters.process.own_process import own_process
from controller.adapters.zookeeper.access import ZooKeeperAccess
from controller.adapters.zookeeper.client import ZooKeeperConnection
from controller.adapters.zookeeper.contenders import Contenders
from controller.model.errors import LeadershipLostError, StateError
from controller.model.leadership import Agreement, epoch_of, newer_epoch, no_preparation
from controller.settings.redaction import redacted

_POLL_SECONDS: Final = 0.1
#: Maximum number of bytes shown of a node with unexpected content.
_LONGEST_EXCERPT: Final = 60
#: No answer: the request may have been carried out or not.
_UNANSWERED: Final = (ConnectionLoss, OperationTimeoutError, SessionExpiredError, SessionMovedError, KazooTimeoutError)


class ZooKeeperLeadership:
    """Leadership by an ephemeral node under *path* in the ZooKeeper of *access*.

    A process that sends nothing for the session's timeout is replaced, and must be restarted.
    """

    def __init__(self, *, access: ZooKeeperAccess, path: str, cluster: str, session_timeout_seconds: float) -> None:
        self._root = f"{path.rstrip('/')}/{cluster}"
        self._folder, self._epoch_path = f"{self._root}/contenders", f"{self._root}/epoch"
        self._access, self._hosts, self._timeout_seconds = access, access.hosts, session_timeout_seconds
        self._contender = ""
        self._epoch_version: int | None = None
        self._doubts = 0
        #: Interruptions after which an answer confirmed leadership; this process leads while there were no more.
        self._settled: int | None = None
        self._started = self._session_lost = False
        self._connection = ZooKeeperConnection(access, session_seconds=session_timeout_seconds)
        self._client = self._connection.client
        self._contenders = Contenders(self._client, self._folder, uuid4().hex, self._ask, own_process())
        self._client.add_listener(self._on_state)

    def acquire(self, stop: Callable[[], bool], stand_by: Callable[[], None] = no_preparation) -> bool:
        """See Leadership.  TrimtabError where ZooKeeper cannot be reached at first, or refuses."""
        self._settled = self._epoch_version = None
        if not self._started and not self._connect(stop):
            return False
        while not stop():
            doubts, changed = self._doubts, threading.Event()
            if self._session_lost:
                why = ": it now refuses the configured credentials" if self._connection.auth_failed else ""
                raise LeadershipLostError(f"the session at ZooKeeper ({self._hosts}) has ended{why}")
            if not self._client.connected:
                time.sleep(_POLL_SECONDS)
                continue
            try:
                first = self._is_first(changed.set)
            except _UNANSWERED:
                time.sleep(_POLL_SECONDS)
                continue
            self._settled = doubts if first else None
            if not self.lost():
                return True
            if not first and self._contender:
                stand_by()
                stand_by = no_preparation
            while self._doubts == doubts and not changed.wait(_POLL_SECONDS) and not stop():
                pass
        return False

    def claim(self, journal_epoch: int) -> int:
        """See Leadership."""
        conditions = self._conditions()
        try:
            stored, stat = self._ask(self._client.get_async(self._epoch_path), self._epoch_path)
        except _UNANSWERED as error:
            raise self._loss(f"ZooKeeper at {self._hosts} did not answer: {redacted(repr(error))}") from error
        except NoNodeError as error:
            raise LeadershipLostError(f"{self._epoch_path} was deleted; the next start creates it again") from error
        known = epoch_of(stored)
        if known is None:
            raise StateError(
                f"{self._epoch_path} holds {stored[:_LONGEST_EXCERPT]!r}, not an epoch: `trimtab "
                f"stop-all` starts a new one"
            )
        epoch = newer_epoch(known, journal_epoch) + 1
        conditions.set_data(self._epoch_path, b"%d" % epoch, version=stat.version)
        self._epoch_version = self._commit(conditions)[-1].version
        return epoch

    def check(self) -> None:
        """See Leadership.  One round trip: the contender is there, and nobody has claimed an epoch since."""
        self._commit(self._conditions())

    def lost(self) -> bool:
        """See Leadership."""
        return self._settled != self._doubts

    def session_lost(self) -> bool:
        """See Leadership.  ZooKeeper has ended the session, and with it the contender."""
        return self._session_lost

    def release(self) -> None:
        """See Leadership."""
        self._settled = None
        self._connection.close()

    def agreement(self, name: str) -> Agreement:
        """See Leadership."""
        node = f"{self._root}/{name}"
        return Agreement(where=f"{node} in ZooKeeper ({self._hosts})", propose=partial(self._agreed, node))

    def _agreed(self, node: str, value: str) -> str:
        try:
            with suppress(NodeExistsError):
                self._ask(self._client.create_async(node, value.encode()), node)
            stored, _ = self._ask(self._client.get_async(node), node)
        except _UNANSWERED as error:
            raise self._loss(f"ZooKeeper at {self._hosts} did not answer: {redacted(repr(error))}") from error
        return str(stored.decode(errors="replace"))

    def _on_state(self, state: str) -> None:
        if state != KazooState.CONNECTED:
            self._doubts += 1
        if state == KazooState.LOST:
            self._session_lost = True

    def _connect(self, stop: Callable[[], bool]) -> bool:
        try:
            self._started = self._connection.open(self._timeout_seconds, stop)
        except BaseException:
            self._session_lost = False  # it never was a contender: acquire may be called again
            raise
        return self._started

    def _is_first(self, on_change: Callable[[], None]) -> bool:
        """True when no other contender came earlier; *on_change* is called when it is time to look again."""
        names = self._contenders.names(on_change)
        own = self._contenders.own(names)
        if not own:
            self._enter()
            on_change()
            return False
        self._contender = f"{self._folder}/{own[0]}"
        return own[0] == names[0]

    def _enter(self) -> None:
        self._ask(self._client.ensure_path_async(self._folder), self._folder)
        with suppress(NodeExistsError):
            self._ask(self._client.create_async(self._epoch_path, b"0"), self._epoch_path)
        self._contenders.enter()

    def _conditions(self) -> TransactionRequest:
        """A transaction that fails unless this process leads."""
        if self.lost():
            raise LeadershipLostError(f"the connection to ZooKeeper ({self._hosts}) was interrupted")
        transaction = self._client.transaction()
        transaction.check(self._contender, 0)  # nobody writes to it, so its version never changes
        if self._epoch_version is not None:
            transaction.check(self._epoch_path, self._epoch_version)
        return transaction

    def _commit(self, transaction: TransactionRequest) -> list[Any]:
        try:
            results: list[Any] = self._ask(transaction.commit_async(), self._epoch_path)
        except _UNANSWERED as error:
            raise self._loss(f"ZooKeeper at {self._hosts} did not answer: {redacted(repr(error))}") from error
        failed = [result for result in results if isinstance(result, KazooException)]
        causes = [result for result in failed if not isinstance(result, RolledBackError | RuntimeInconsistency)]
        if failed:
            if isinstance((causes or failed)[0], NoAuthError):
                raise self._access.refusal((causes or failed)[0], self._epoch_path)
            raise self._loss(self._why((causes or failed)[0]))
        if self.lost():
            raise LeadershipLostError(f"the connection to ZooKeeper ({self._hosts}) was interrupted")
        return results

    def _why(self, refusal: KazooException) -> str:
        """Why ZooKeeper refused an operation that only the leader may do."""
        if isinstance(refusal, BadVersionError):
            return f"a newer epoch has begun ({self._epoch_path}): another controller leads, or somebody ran stop-all"
        if isinstance(refusal, NoNodeError):
            return f"this process no longer takes part in the election: {self._contender} was deleted"
        return f"ZooKeeper at {self._hosts} refused {self._contender}: {refusal!r}"

    def _ask(self, request: Any, node: str) -> Any:
        try:
            return request.get(timeout=self._timeout_seconds)
        except (*_UNANSWERED, NoNodeError, NodeExistsError):
            raise
        except KazooException as error:
            raise self._access.refusal(error, node) from error

    def _loss(self, why: str) -> LeadershipLostError:
        self._settled = None
        return LeadershipLostError(why)
