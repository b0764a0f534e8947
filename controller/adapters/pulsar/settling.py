"""Has an unloaded bundle taken by its destination, before lookups of clients make the brokers place it elsewhere.

The leader of Pulsar's modular load manager forgets a destination at the first lookup of a bundle that nobody has, and
sends later lookups elsewhere until a broker has the bundle.  Who is first to write its name to ZooKeeper has it.
"""

from collections.abc import Callable
from threading import Event
from typing import Final, Protocol

from controller.adapters.network.calls import side_by_side
from controller.adapters.pulsar.http import PulsarError

#: Behind each time that the brokers are asked: at first they may take the old owner for the owner.
_PAUSES: Final = (0.005, 0.01, 0.02, 0.04)


class Ask(Protocol):
    """Looks the bundle up at *broker*: whom that names as the owner, "" where it sends us on.  PulsarError."""

    def __call__(self, broker: str, *, authoritative: bool = False) -> str:
        """*authoritative*: as if the leader had sent us, so that *broker* takes the bundle if nobody has it."""
        ...


def settle(
    ask: Ask, *, source: str, destination: str, leader: str, head_start: float, sleep: Callable[[float], None]
) -> None:
    """Have *destination* take the bundle that *source* had.  No answer is no error: it is to be looked up who has it.

    The leader is asked, too, so that it forgets the destination: unused, it would stay and move another namespace's
    bundle of the same range.  Whom it names does not matter.
    """
    forgotten = False
    for pause in _PAUSES:
        if forgotten:
            owner = named = _asked(ask, destination, authoritative=True)
        elif leader == destination:
            # Asked as by a client it takes the bundle and forgets; asked to take it, it would not forget.
            owner = named = _asked(ask, leader)
        else:
            owner, named = _both(ask, source, destination, leader, head_start)
        if owner not in (None, "", source):
            return
        forgotten = forgotten or named == ""
        sleep(pause)


def _both(ask: Ask, source: str, destination: str, leader: str, head_start: float) -> tuple[str | None, str | None]:
    """What the destination and the leader say.

    A leader that has forgotten already may take the bundle itself.  So the destination gets a *head_start*, seconds,
    and the leader is not asked while the destination takes the source for the owner.
    """
    told: dict[str, str | None] = {}
    answered = Event()

    def take() -> None:
        try:
            told[destination] = _asked(ask, destination, authoritative=True)
        finally:
            answered.set()

    def forget() -> None:
        if not answered.wait(head_start) or told.get(destination) not in (None, "", source):
            told[leader] = _asked(ask, leader)

    for call in side_by_side({"take": take, "forget": forget}).values():
        call.result()
    return told.get(destination), told.get(leader)


def _asked(ask: Ask, broker: str, *, authoritative: bool = False) -> str | None:
    try:
        return ask(broker, authoritative=authoritative)
    except PulsarError:
        return None
