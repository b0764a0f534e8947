"""Where the page and REST change the controls of one cluster: under a name, a version and a key, and nothing twice."""

import hashlib
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

from controller.adapters.election.changes import ControlsChange, change_controls
from controller.adapters.election.controls import ControlStore
from controller.model.controls import AnsweredRequest, ControlChange, OperatorControls
from controller.model.errors import TrimtabError
from controller.web.access.viewer import RefusedError
from controller.web.desk import TURN_SECONDS, Desk
from controller.wire.base import printable
from controller.wire.controls import MAX_REASON, encode_controls
from controller.wire.controls_text import change_text
from controller.wire.readable import utc

log = logging.getLogger(__name__)

#: What pages show of the controls is no older.
_SHOWN_SECONDS: Final = 1.0
_HASH: Final = 32
#: The version that stands for whatever the controls are.
ANY_VERSION: Final = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlsRead:
    """The controls as people set them, and their version."""

    controls: OperatorControls
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlsWrite:
    """A change that somebody asks for."""

    by: str
    #: Epoch ms.
    at_ms: int
    change: ControlsChange
    #: The versions that the person may have looked at; ANY_VERSION: whatever the controls are.
    versions: frozenset[str]
    #: The client's key (Idempotency-Key), "" without one; and all that it asks for: the same key is for the same again.
    key: str
    content: str
    #: Controls that cannot be read are replaced: only for what makes less move.
    may_replace: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlsWritten:
    """A change that is stored."""

    at_ms: int
    #: Of the controls after it.
    version: str
    #: What was noted beside it; "": nothing.
    note: str
    #: Hash of the request's key; "" without one.
    key: str
    #: Nothing is changed yet: the change waits for approvals as the proposal with this hash.  "": it is made.
    proposal: str = ""


class _AnsweredError(Exception):
    """The request was carried out before."""

    def __init__(self, before: AnsweredRequest) -> None:
        super().__init__()
        self.before = before


class ControlDesk(Desk[ControlStore, ControlsRead]):
    """Reads and changes the controls."""

    def __init__(self, open_store: Callable[[], ControlStore], *, written: Callable[[], None] = lambda: None) -> None:
        """*written* is called after each change."""
        super().__init__(open_store, _read, name="controls", seconds=_SHOWN_SECONDS)
        self._written = written
        #: Hashes of the keys of requests that are being carried out.
        self._under_way = set[str]()
        self._one_ended = threading.Condition()

    def write(self, write: ControlsWrite) -> ControlsWritten:
        """Make the change of *write*, or answer as before where its key is known.

        RefusedError: 409 it cannot be made, 412 somebody else was faster, 422 the key was used for something else,
        503 the store cannot be reached.  Then nothing is changed.
        """
        try:
            with self.store() as store:
                after = change_controls(store, lambda now: _changed(now, write), may_replace=write.may_replace)[1]
        except _AnsweredError as error:
            return _answered(error.before)
        except RefusedError:
            self.cached.forget()  # another process changed them: whoever looks again sees that
            raise
        except TrimtabError as error:
            raise _not_now(str(error)) from error
        self._after_change()
        return ControlsWritten(at_ms=write.at_ms, version=version_of(after), note="", key=_key(write.by, write.key))

    @contextmanager
    def answered(self, *, by: str, key: str, content: str, now_ms: int) -> Iterator[str | None]:
        """What the request of *by* with this *key* was answered before; None: it is new, or has no key.

        Until the block ends the same request, as of a second click, waits; then it finds what ``write_after`` stored.
        RefusedError: 422 the key was used for something else, 503 the store cannot be reached, or it waited too long.
        """
        if not key:
            yield None
            return
        own = _key(by, key)
        with self._alone(own):
            try:
                controls = self.read().controls
            except TrimtabError as error:
                raise _not_now(str(error)) from error
            before = _known(controls, own, content, now_ms)
            yield None if before is None else before.answer

    @contextmanager
    def _alone(self, key: str) -> Iterator[None]:
        """Within the block no other request with the hash *key* is carried out by this server.  RefusedError 503."""
        with self._one_ended:
            if not self._one_ended.wait_for(lambda: key not in self._under_way, TURN_SECONDS):
                raise _later("the same request was sent before and has not ended: look again in a moment")
            self._under_way.add(key)
        try:
            yield
        finally:
            with self._one_ended:
                self._under_way.remove(key)
                self._one_ended.notify_all()

    def refuse_outdated(self, write: ControlsWrite) -> None:
        """RefusedError 412 where the controls are not those that *write* names, 503 where they cannot be read."""
        try:
            now = self.read().controls
        except TrimtabError as error:
            raise _not_now(str(error)) from error
        try:
            _refuse_outdated(now, write)
        except RefusedError:
            self.cached.forget()
            raise

    def write_after(self, write: ControlsWrite, answer: str) -> None:
        """Make the change of *write* for something that is done already, answered with *answer*; best effort."""

        def changed(now: OperatorControls) -> OperatorControls:
            after = write.change(now)
            if not write.key:
                return after
            key, body = _key(write.by, write.key), _hash(write.content)
            return after.with_request(AnsweredRequest(key=key, body=body, at_ms=write.at_ms, answer=answer))

        self._best_effort(changed)

    def note(self, written: ControlsWritten, note: str) -> ControlsWritten:
        """Have the answer to the request of *written* say *note* where it is sent again; best effort."""

        def noted(now: OperatorControls) -> OperatorControls:
            requests = tuple(
                replace(each, answer=f"{written.version} {note}") if each.key == written.key else each
                for each in now.requests
            )
            return replace(now, requests=requests)

        if written.key:
            self._best_effort(noted)
        return replace(written, note=note)

    def refuse(self, *, by: str, action: str, why: str, at_ms: int) -> None:
        """Have the history say that *by* was refused *action*; best effort."""
        log.warning("refused %s %s: %s", by, action, why)
        detail = printable(f"{action}: {why}")[:MAX_REASON]
        attempt = ControlChange(at_ms=at_ms, by=by, action="refused", detail=detail)
        self._best_effort(lambda now: now.with_refused(attempt))

    def _best_effort(self, change: ControlsChange) -> None:
        try:
            with self.store() as store:
                before, after = change_controls(store, change)
        except TrimtabError as error:
            log.warning("not kept with the controls: %s", error)
        else:
            if after != before:
                self._after_change()

    def _after_change(self) -> None:
        self.cached.forget()
        self._written()


def _read(store: ControlStore) -> ControlsRead:
    controls = store.read()[0]
    return ControlsRead(controls=controls, version=version_of(controls))


def version_of(controls: OperatorControls) -> str:
    """Another text after each change that people make.  The orders of a plan, which are renewed, do not change it."""
    return hashlib.sha256(encode_controls(controls.as_people_set_them())).hexdigest()[:_HASH]


def _changed(now: OperatorControls, write: ControlsWrite) -> OperatorControls:
    key = _key(write.by, write.key)
    before = _known(now, key, write.content, write.at_ms)
    if before is not None:
        raise _AnsweredError(before)
    _refuse_outdated(now, write)
    try:
        after = write.change(now)
    except TrimtabError as error:
        raise RefusedError(409, "Not possible now", str(error)) from error
    if not key:
        return after
    return after.with_request(
        AnsweredRequest(key=key, body=_hash(write.content), at_ms=write.at_ms, answer=version_of(after))
    )


def _refuse_outdated(now: OperatorControls, write: ControlsWrite) -> None:
    if ANY_VERSION not in write.versions and version_of(now) not in write.versions:
        raise RefusedError(412, "Somebody was faster", _faster(now))


def _known(controls: OperatorControls, key: str, content: str, now_ms: int) -> AnsweredRequest | None:
    """The request with the hash *key* that was carried out; None: none was.  RefusedError 422: it was another one."""
    before = next((each for each in controls.answered_at(now_ms) if key and each.key == key), None)
    if before is not None and before.body != _hash(content):
        raise RefusedError(422, "Key used before", "the Idempotency-Key was used for something else: take a new one")
    return before


def _answered(before: AnsweredRequest) -> ControlsWritten:
    version, _, note = before.answer.partition(" ")
    return ControlsWritten(at_ms=before.at_ms, version=version, note=note, key=before.key)


def _faster(now: OperatorControls) -> str:
    """Who changed the controls, and when."""
    if not now.history:
        return "The controls are not those that you looked at. Nothing was changed: look again."
    last = now.history[-1]
    return f"{utc(last.at_ms)}: {change_text(last)}. Your change was not made: look at the new state, and set it again."


def _key(by: str, key: str) -> str:
    return _hash(f"{by}\0{key}") if key else ""


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_HASH]


def _not_now(why: str) -> RefusedError:
    return _later(f"nothing was changed: {why}")


def _later(why: str) -> RefusedError:
    error = RefusedError(503, "Not possible now", why)
    error.headers["Retry-After"] = "10"
    return error
