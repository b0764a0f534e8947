"""Clients of the controls and of the election that call at random: histories for ``linearizable``."""

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from random import Random
from typing import Any

from controller.adapters.election.controls import ABSENT, ControlStore
from controller.model.controls import OperatorControls, Pause
from controller.model.errors import TrimtabError
from controller.model.leadership import Leadership
from tests.protocol.linearizable import UNKNOWN, Call, Fencing, Register, check, with_values


class History:
    """What several clients called, and what came of it.  For several threads."""

    def __init__(self) -> None:
        self._clock, self._lock = count(1), threading.Lock()
        self.calls: list[Call] = []

    def call(self, client: str, name: str, argument: object, do: Callable[[], Any]) -> Any:
        """Call *do*, which raises TrimtabError where it has no answer: the result is not known then."""
        invoked = next(self._clock)
        try:
            result = do()
        except TrimtabError:
            self._add(Call(client, name, argument, UNKNOWN, invoked, None))
            raise
        self._add(Call(client, name, argument, result, invoked, next(self._clock)))
        return result

    def _add(self, call: Call) -> None:
        with self._lock:
            self.calls.append(call)


def change_controls(store: ControlStore, history: History, client: str, random: Random, times: int) -> None:
    """Read the controls and replace them, *times* in all; nobody writes the same twice."""
    version: int | None = None
    for nth in range(times):
        with suppress(TrimtabError):
            if version is None or random.random() < 0.4:
                version = None
                _, version = history.call(client, "read", None, lambda: _read(store))
            else:
                old, version, new = version, None, f"{client}-{nth}"
                history.call(client, "cas", (old, new), partial(store.write, _controls(new), old))


def _controls(value: str) -> OperatorControls:
    return OperatorControls(pauses=(Pause(by=value, reason="", at_ms=1),))


def _read(store: ControlStore) -> tuple[str | None, int]:
    controls, version = store.read()
    return (controls.pauses[0].by if controls.pauses else None), version


def lead(leadership: Leadership, history: History, client: str, random: Random, until: threading.Event) -> bool:
    """Lead, claim, and look whether this client still leads, until it does not; whether it may be elected again."""
    try:
        if not leadership.acquire(until.is_set):
            return False
        history.call(client, "claim", None, lambda: leadership.claim(0))
        while random.random() < 0.9 and not until.is_set():
            history.call(client, "check", None, lambda: _leads(leadership))
            until.wait(random.random() * 0.02)
    except TrimtabError:
        return not leadership.session_lost()
    return False


def _leads(leadership: Leadership) -> bool:
    leadership.check()
    return True


def raise_epochs(store: ControlStore, history: History, client: str, random: Random, times: int) -> None:
    """Raise the election's epoch now and then, as `trimtab stop-all` does, and read it."""
    for _ in range(times):
        with suppress(TrimtabError):
            epoch = history.call(client, "read", None, store.epoch)
            if random.random() < 0.5:
                wanted = epoch + random.randint(1, 3)
                history.call(client, "raise", wanted, partial(store.raise_epoch, wanted))


def all_at_once(works: Sequence[Callable[[], object]]) -> None:
    """Each of *works* in a thread of its own; returns when all have ended, and raises what one of them raised."""
    failures = list[BaseException]()

    def guarded(work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    if failures:
        raise failures[0]


def controls_are_linearizable(history: History) -> None:
    """AssertionError where no order of the calls of ``change_controls`` explains their results."""
    broken = check(Register(), with_values(history.calls, ABSENT))
    assert broken is None, broken


def election_is_linearizable(history: History) -> None:
    """The same of ``lead`` and ``raise_epochs``."""
    broken = check(Fencing(), history.calls)
    assert broken is None, broken
