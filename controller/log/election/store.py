"""One process's copy of the cells, and its session.

Whoever changes a cell appends an operation to the topic and reads up to it: so the order of the topic says which of two
changes came first, and all that was acknowledged before is known then.  A process that hung, or was cut off, cannot
change anything by what it knew: conditions name versions, and sessions end in the topic, too.

A session is a cell that its process writes again and again.  Other processes end it once they have read nothing of it
for its timeout, by their own steady clocks, and only if it has still the version that they read.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Final
from uuid import uuid4

from controller.log.election.cells import (
    ABSENT,
    EXISTS,
    ElectionCell,
    StoreChangedError,
    StoreReplay,
    snapshot_of,
)
from controller.log.port import OLDEST, Log, Out, Reader, Start
from controller.model.errors import AnotherClusterError, StateError, TrimtabError, WireError
from controller.wire.base import encode
from controller.wire.cells import (
    CellChange,
    CellCondition,
    CellOperation,
    StoreBegin,
    StoreMark,
    parse_store_record,
    text_of,
)

log = logging.getLogger(__name__)

#: How long one call may take to append, or to wait for another one of this process.
_ANSWER_SECONDS: Final = 5.0
SESSIONS: Final = "sessions/"
#: How to recover from a damaged topic, for messages.
_REMEDY: Final = (
    "stop all processes, delete the topic, and start them again: controls, proposals and approvals are lost with it"
)
#: A snapshot is written after so many records, or after twice the bytes of all cells and these.
SNAPSHOT_EVERY: Final = 1_000
_BYTES: Final = 8 << 20
#: A larger store is written less often: one record more for so many bytes of it.
_BYTES_OF_A_RECORD: Final = 16 << 10
_BEATS_IN_TIMEOUT: Final = 3
_SKEW_SECONDS: Final = 30.0
#: Of a session's timeout, seconds.  What another process wrote is not believed beyond.
_TIMEOUTS: Final = (0.01, 3_600.0)


def put(key: str, value: bytes, owner: str = "") -> CellChange:
    """The change that writes *value*."""
    return CellChange(key=key, value=text_of(value), owner=owner)


def end(key: str) -> CellChange:
    """The change that ends the cell *key*."""
    return CellChange(key=key, value=None)


def has(key: str, version: int) -> CellCondition:
    """That the cell *key* has *version*: ABSENT, EXISTS, or the one that was read."""
    return CellCondition(key=key, version=version)


class ElectionCells:
    """The cells of *cluster* in the log that *connect* opens.  Safe for threads; connects when it is first used.

    TrimtabError where the log does not answer: it is unknown then whether a change was made.  While a session is held,
    a thread repeats what failed, and other calls fail at once until the log answers again.
    """

    def __init__(
        self, connect: Callable[[], Log], *, cluster: str, session_seconds: float, snapshot_every: int = SNAPSHOT_EVERY
    ) -> None:
        """*snapshot_every*: after so many records somebody writes all cells, so that older records can be deleted."""
        self._connect, self._cluster = connect, cluster
        self.session_seconds, self._snapshot_every = session_seconds, snapshot_every
        self._log: Log | None = None
        self._reader: Reader | None = None
        self._replay: StoreReplay | None = None
        self._turn = threading.RLock()
        #: What was read last; replaced, never changed.
        self._view: Mapping[str, ElectionCell] = {}
        self._session = ""
        #: Sessions that have ended although this process did not end them.
        self._lost: set[str] = set()
        #: When this process last knew that its session had not ended, seconds; and that the log answered.
        self._confirmed = self._heard_at = 0.0
        #: Session -> its version, and for how long nothing else was read of it while the log answered, seconds.
        self._quiet: dict[str, tuple[int, float]] = {}
        #: How many records there were since the last snapshot when this process tried to write the next one.
        self._tried_at = -snapshot_every
        #: Whether the log names a record that is none.
        self._reported = False
        self._failure: TrimtabError | None = None
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    # ---- reading ----

    def get(self, key: str) -> ElectionCell | None:
        """The cell *key* as it was read last."""
        return self._view.get(key)

    def below(self, prefix: str) -> list[tuple[str, ElectionCell]]:
        """The cells whose keys begin with *prefix*, the one that was made first comes first."""
        matches = [(key, cell) for key, cell in self._view.items() if key.startswith(prefix)]
        return sorted(matches, key=lambda each: (each[1].created, each[0]))

    def refresh(self) -> bool:
        """Read all that was acknowledged before this call.  False: nobody has written anything yet."""
        with self._one_at_a_time():
            return self._read(create=False)

    # ---- changing ----

    def commit(self, conditions: Sequence[CellCondition], changes: Sequence[CellChange] = ()) -> int | None:
        """Make *changes* if all *conditions* hold; returns the version of what was written, None where they do not."""
        with self._one_at_a_time():
            return self._commit(conditions, changes)

    def _commit(self, conditions: Sequence[CellCondition], changes: Sequence[CellChange]) -> int | None:
        self._read(create=True)
        replay = self._loaded()
        operation = CellOperation(
            store=replay.store,
            since=replay.since,
            id=uuid4().hex,
            conditions=tuple(conditions),
            changes=tuple(changes),
        )
        replay.await_outcome(operation.id)
        self._append(encode(operation))
        self._read(create=False)
        if self._replay is not replay or operation.id not in replay.awaited:
            # It was read anew: records were deleted behind this process, or the topic was.
            self._drop()
            raise TrimtabError(f"{self._name()}: what was written there a moment ago is not there")
        return replay.awaited[operation.id]

    # ---- the session ----

    def session(self) -> str:
        """The key of this process's session, which is started where there is none; what ends with it names it as owner.

        A thread keeps it up until ``close``.
        """
        with self._one_at_a_time():
            if self._session and self._session not in self._lost:
                return self._session
            key, began = f"{SESSIONS}{uuid4().hex}", time.monotonic()
            if self._commit([has(key, ABSENT)], [self._beat(key)]) is None:
                raise TrimtabError(f"{self._name()}: there is no room for one more process")
            self._session, self._confirmed = key, began
            if self._thread is None:
                self._thread = threading.Thread(target=self._keep_up, name="session", daemon=True)
                self._thread.start()
            return key

    def session_lost(self, session: str) -> bool:
        """Whether *session* has ended, although this process did not end it."""
        return session in self._lost

    def in_doubt(self, session: str) -> bool:
        """Whether others may have ended *session* by now: it was not kept up for its timeout."""
        return session != self._session or session in self._lost or self._silent_for() > self.session_seconds

    def seems_ended(self, session: str) -> bool:
        """Whether nothing was written of *session* for long, by the clocks of the log and of this host.

        For people who ask while no process runs that would end it.
        """
        cell = self._view.get(session)
        if cell is None:
            return True
        return time.time() * 1000 - cell.changed_ms > (3 * _timeout_of(cell) + _SKEW_SECONDS) * 1000

    def close(self) -> None:
        """End the session, and all that it owns, and the connection."""
        self._ended.set()
        session, self._session = self._session, ""
        with suppress(TrimtabError), self._one_at_a_time(keeping_up=True):
            if session and session not in self._lost and self._failure is None:
                self._commit([], [end(session)])
        if self._turn.acquire(timeout=_ANSWER_SECONDS):
            try:
                self._drop()
                if self._log is not None:
                    self._log.close()
            finally:
                self._turn.release()

    def _keep_up(self) -> None:
        every = self.session_seconds / _BEATS_IN_TIMEOUT
        while not self._ended.wait(every):
            try:
                with self._one_at_a_time(keeping_up=True):
                    self._keep_up_once()
                    self._failure = None
            except TrimtabError as error:
                if self._failure is None:
                    log.debug("the election's topic: %s", error)
                self._failure = error
            except Exception as error:
                # Without this thread others would end the session, and this process would not notice.
                log.exception("the election's topic")
                self._failure = TrimtabError(f"the election's topic: {type(error).__name__}: {error}")

    def _keep_up_once(self) -> None:
        session, began = self._session, time.monotonic()
        if self._ended.is_set():
            return
        if session and session not in self._lost:
            if self._commit([has(session, EXISTS)], [self._beat(session)]) is None:
                log.warning("%s: this process's session has ended: it wrote nothing for too long", self._name())
                self._lost.add(session)
            else:
                self._confirmed = began
        else:
            self._read(create=False)
        self._end_silent_sessions()
        try:
            self._write_snapshot()
        except TrimtabError as error:  # the session was kept up, and that is what others depend on
            log.warning("%s: no snapshot could be written, so nothing is deleted: %s", self._name(), error)
        self._report_foreign()

    def _end_silent_sessions(self) -> None:
        """End the sessions of which nothing was read for their timeouts, while the log answered."""
        now = time.monotonic()
        # An outage, or a pause of this process, is nobody's silence.
        answered = self._failure is None
        passed = answered * min(now - self._heard_at, 2 * self.session_seconds / _BEATS_IN_TIMEOUT)
        self._heard_at = now
        quiet: dict[str, tuple[int, float]] = {}
        for key, cell in self.below(SESSIONS):
            version, silence = self._quiet.get(key, (ABSENT, 0.0))
            quiet[key] = (cell.version, silence + passed if version == cell.version else 0.0)
        self._quiet = quiet
        for key, (version, silence) in quiet.items():
            if key != self._session and silence > _timeout_of(self._view.get(key)):
                self._commit([has(key, version)], [end(key)])

    def _report_foreign(self) -> None:
        """Say once that somebody writes there what is none of trimtab's."""
        if not self._reported and self._replay is not None and self._replay.foreign:
            log.warning("%s: this is no record of an election, and is ignored; so are others", self._replay.foreign)
            self._reported = True

    def _beat(self, session: str) -> CellChange:
        return put(session, b"%d" % (self.session_seconds * 1000))

    def _silent_for(self) -> float:
        return time.monotonic() - self._confirmed

    # ---- the topic ----

    def _read(self, *, create: bool) -> bool:
        for _ in range(2):
            try:
                if self._reader is None and not self._load(create):
                    return False
                self._read_on()
            except StoreChangedError:
                log.warning("%s: records are missing there since this process read it: reading it anew", self._name())
                self._drop()
                continue
            except BaseException:
                self._drop()
                raise
            return True
        raise StateError(
            f"{self._name()}: records are missing there, or were changed: does the topic have a retention, or does"
            f" anybody else write there?  To start anew, {_REMEDY}"
        )

    def _read_on(self) -> None:
        assert self._reader is not None
        replay, ordinal = self._loaded(), self._ordinal()
        while True:
            marks = replay.marks_read
            for record in self._reader.read_to_end():
                replay.feed(record)
            # The first record behind deleted ones is a mark, and its snapshot shows that this process missed them.
            if replay.marks_read == marks:
                break
        replay.loaded = True
        if self._ordinal() != ordinal or not self._view:
            self._publish()

    def _load(self, create: bool) -> bool:
        """Read the topic from where its newest record says, or from its beginning."""
        log = self._connection()
        if create:
            log.partitions("election")
        elif not log.ends("election"):
            return False
        passed = self._read_from(*self._hint(), OLDEST)
        if not passed and create:
            self._append(encode(StoreBegin(store=uuid4().hex, cluster=self._cluster)))
            passed = self._read_from(OLDEST)  # another process may have been first
        if self._replay is not None:
            return self._check_cluster()
        if passed:
            raise StateError(
                f"{self._name()}: its first records are gone, and no snapshot is complete: did somebody delete them, or"
                " a retention?  Where processes run, their next snapshot mends this, after some"
                f" {self._snapshot_every} records.  Where none does: {_REMEDY}"
            )
        return False

    def _read_from(self, *starts: Start) -> bool:
        """Read from the first of *starts* from which there is a store; whether there was any record of one."""
        passed = False
        for start in starts:
            replay = self._replay = StoreReplay(lambda position: self._connection().place("election", 0, position))
            self._reader = self._connection().read("election", start, partition=0)
            for record in self._reader.read_to_end():
                replay.feed(record)
            if replay.state is not None:
                return True
            passed = passed or replay.passed
            self._drop()
        return passed

    def _hint(self) -> Sequence[Start]:
        """Where the newest record says that one may begin to read."""
        newest = self._connection().read_backwards("election", 0, None, 1)
        try:
            since = parse_store_record(newest[-1].value, self._name()).since if newest else 0
        except (WireError, StateError):  # who reads the store finds out whether it belongs to it
            since = 0
        return (Start(position=since),) if since else ()

    def _check_cluster(self) -> bool:
        replay = self._loaded()
        if replay.cluster != self._cluster:
            raise AnotherClusterError(
                f"{self._name()} is the election of cluster {replay.cluster!r}, not of {self._cluster!r}: give each"
                " cluster a topic of its own"
            )
        self._publish()
        return True

    def _publish(self) -> None:
        state = self._loaded().state
        self._view = {} if state is None else dict(state.cells)

    def _append(self, *values: bytes) -> None:
        outs = [Out("election", value, partition=0) for value in values]
        self._connection().append(outs, within_seconds=_ANSWER_SECONDS)

    def _write_snapshot(self) -> None:
        """Write a snapshot where one is due, and have what came before the one before it deleted."""
        replay = self._replay
        if replay is None or replay.state is None:
            return
        size, position = replay.state.size, replay.since
        many = replay.records_since >= self._snapshot_every + size // _BYTES_OF_A_RECORD
        if not many and replay.bytes_since < _BYTES + 2 * size:
            return
        # One that failed is not tried with every beat: its parts are there, too.
        if 0 <= replay.records_since - self._tried_at < self._snapshot_every:
            return
        self._tried_at = replay.records_since
        mark = replay.own_mark = uuid4().hex
        self._append(encode(StoreMark(store=replay.store, since=position, id=mark)))
        self._read(create=False)
        if self._replay is not replay or mark not in replay.marks:
            return
        self._append(*snapshot_of(replay, mark))
        self._read(create=False)
        if self._replay is replay and replay.since != position:
            try:
                self._connection().delete_before("election", 0, position)
            except TrimtabError as error:  # another process may have the right
                log.debug("%s: records before the last snapshot are not deleted: %s", self._name(), error)

    @contextmanager
    def _one_at_a_time(self, *, keeping_up: bool = False) -> Iterator[None]:
        if self._failure is not None and not keeping_up:
            raise self._failure
        if not self._turn.acquire(timeout=_ANSWER_SECONDS):
            raise TrimtabError(f"the election's topic: no answer within {_ANSWER_SECONDS:g} s")
        try:
            yield
        finally:
            self._turn.release()

    def _drop(self) -> None:
        """Read everything anew the next time.  What was read last stays visible."""
        reader, self._reader, self._replay = self._reader, None, None
        if reader is not None:
            reader.close()

    def _connection(self) -> Log:
        if self._log is None:
            self._log = self._connect()
        return self._log

    def _loaded(self) -> StoreReplay:
        if self._replay is None:
            raise TrimtabError(f"{self._name()}: it was not read")
        return self._replay

    def _ordinal(self) -> int:
        state = self._loaded().state
        return -1 if state is None else state.ordinal

    def _name(self) -> str:
        return self._connection().name("election")


def _timeout_of(session: ElectionCell | None) -> float:
    """The timeout of *session*, seconds, as its process wrote it."""
    shortest, longest = _TIMEOUTS
    value = b"" if session is None else session.value
    return min(max(int(value) / 1000, shortest), longest) if value.isdigit() and len(value) < 10 else shortest
