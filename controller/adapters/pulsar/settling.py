"""Has an unloaded bundle taken by its destination, before lookups of clients make the brokers place it elsewhere.

The leader of Pulsar's modular load manager forgets a destination at the first lookup of a bundle that nobody has, and
sends later lookups elsewhere until a broker has the bundle.  Who is first to write its name to ZooKeeper has it.
"""

from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

from controller.adapters.network.calls import side_by_side
from controller.adapters.pulsar.http import PulsarError

#: Behind each time that the brokers are asked: at first they may take the old owner for the owner.
_PAUSES: Final = (0.005, 0.01, 0.02, 0.04)


class LookupAt(Protocol):
    """Looks the bundle up at *broker*: whom that names as the owner, "" where it sends us on.  PulsarError."""

    def __call__(self, broker: str, *, authoritative: bool = False) -> str:
        """*authoritative*: as if the leader had sent us, so that *broker* takes the bundle if nobody has it."""
        ...


def settle(ask: LookupAt, *, source: str, destination: str, leader: str, sleep: Callable[[float], None]) -> None:
    """Have *destination* take the bundle that *source* had.  No answer is no error: it is to be looked up who has it.

    At the same time the *leader* is asked, so that it forgets the destination: unused, it would stay and move another
    namespace's bundle of the same range.  Later it would not forget, since the bundle has an owner.  Where it sends us
    does not matter.
    """
    take = {destination: partial(_answer_of, ask, destination, authoritative=True)}
    # A leader that is the destination takes the bundle and forgets; asked to take it, it would not forget.
    work = take | {leader: partial(_answer_of, ask, leader)}
    for pause in _PAUSES:
        owners = {broker: call.result() for broker, call in side_by_side(work).items()}
        if owners[destination] not in (None, "", source):
            return
        if owners.get(leader) == "":
            work = take  # it has forgotten; asked again, it could take the bundle itself
        sleep(pause)


def _answer_of(ask: LookupAt, broker: str, *, authoritative: bool = False) -> str | None:
    try:
        return ask(broker, authoritative=authoritative)
    except PulsarError:
        return None
