"""What happened in a run, as the world around the ports saw it.  Nothing of the product writes here."""

from dataclasses import dataclass
from typing import Final

#: The result of a call that got no answer: it may have had an effect or not.
UNKNOWN: Final = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event; the order of a list of them is the order in which the log shows them.  "" and 0: does not apply."""

    #: In the log: epoch, entry, decided, marked, issued, answered, tick.  Elsewhere: begun, looked, act, effect,
    #: controls, read-lost, started, died, stood-still.
    kind: str
    #: Epoch ms, by a clock that is right.
    at: int = 0
    process: str = ""
    epoch: int = 0
    #: T, epoch ms.
    interval: int = 0
    #: Of the command topic.
    partition: int = 0
    #: A command's id.
    command: str = ""
    #: A command's status; of other kinds what else there is to say.
    outcome: str = ""
    expires_at: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a client of the election or of the controls, for the check of linearizability."""

    client: str
    name: str
    argument: object
    result: object
    #: Microseconds of the simulation; None: it never returned.
    invoked: int
    returned: int | None
