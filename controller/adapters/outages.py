"""Logs outages of the servers that trimtab depends on: once, within seconds, and once when the server answers again."""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Final, NamedTuple, Self

from controller.adapters.election.systems import WatchedServer
from controller.adapters.factory import election_server, log_server
from controller.adapters.network.calls import side_by_side
from controller.adapters.network.unreachable import NO_ANSWER
from controller.adapters.pulsar.access import pulsar_admin
from controller.settings.trimtab_toml import Settings

log = logging.getLogger(__name__)

#: Between two checks. Including the time that a check takes, an outage is logged within five seconds.
_EVERY_SECONDS: Final = 2.0
#: A check that fails at once is repeated after this long: a server may only have restarted.
_AGAIN_SECONDS: Final = 0.5
_FAILED_AT_ONCE_SECONDS: Final = 1.0
#: For all checks together, if a person waits for them.
_LOOKS_SECONDS: Final = 4.5


class Part(Enum):
    """What trimtab depends on."""

    LOG = "log"
    ELECTION = "election"
    BROKERS = "brokers"


class Outage(NamedTuple):
    """A server that cannot be reached."""

    #: Which server, and why.
    sentence: str
    #: What to do.
    advice: str

    @classmethod
    def of(cls, server: WatchedServer, why: str) -> Self:
        """The message about *server*, with *why* it cannot be reached."""
        return cls(f"{server.name} cannot be reached: {why}", server.advice)

    def __str__(self) -> str:
        return f"{self.sentence}; {self.advice}"


def servers(settings: Settings, parts: Iterable[Part] = Part) -> dict[Part, WatchedServer]:
    """Those of *parts* that are servers.  SettingsError where the file of a secret cannot be read."""
    server_of: dict[Part, Callable[[], WatchedServer | None]] = {
        Part.LOG: lambda: log_server(settings),
        Part.ELECTION: lambda: election_server(settings),
        Part.BROKERS: lambda: _brokers(settings),
    }
    parts = set(parts)
    if settings.elects_on_log and Part.LOG in parts:
        parts.discard(Part.ELECTION)  # it is the same server
    by_part = {part: server_of[part]() for part in Part if part in parts}
    return {part: server for part, server in by_part.items() if server is not None}


def outages(settings: Settings, *parts: Part) -> dict[Part, Outage]:
    """Those of *parts*, or of all, that cannot be reached now; takes at most five seconds."""
    probed = servers(settings, parts or Part)
    outages_by_part: dict[Part, Outage] = {}
    for part, call in side_by_side({part: server.why for part, server in probed.items()}, _LOOKS_SECONDS).items():
        why = NO_ANSWER if call.late else call.result()
        if why:
            outages_by_part[part] = Outage.of(probed[part], why)
    for server in probed.values():
        _in_background(server.close)
    return outages_by_part


class OutageWatch:
    """Checks servers every two seconds, each in a thread; a context manager."""

    def __init__(self, watched: Mapping[Part, WatchedServer], say: Callable[[int, str], None] = log.log) -> None:
        """*say* takes a level of logging and a sentence."""
        self._watched, self._say = watched, say
        self._ended = threading.Event()
        #: Set once the part has been looked at; and those that cannot be reached now.
        self._looked = {part: threading.Event() for part in watched}
        self._away: set[Part] = set()

    def __enter__(self) -> Self:
        for part, server in self._watched.items():
            threading.Thread(target=self._look, args=[part, server], name=f"looks at {part.value}", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts that are watched."""
        return tuple(self._watched)

    def is_away(self, part: Part) -> bool:
        """Whether *part* could not be reached at the last check."""
        return part in self._away

    def wait_for(self, parts: Iterable[Part], stop: Callable[[], bool] = lambda: False, *, every: float = 0.1) -> bool:
        """Wait until all of *parts* that are watched can be reached; False where *stop* says to give up."""
        watched = [part for part in parts if part in self._watched]
        while not all(self._looked[part].is_set() and part not in self._away for part in watched):
            if stop():
                return False
            time.sleep(every)
        return not stop()

    def _look(self, part: Part, server: WatchedServer) -> None:
        since: float | None = None
        first = True
        while not self._ended.is_set():
            began = time.monotonic()
            why = _why(server)
            if why and since is None and time.monotonic() - began < _FAILED_AT_ONCE_SECONDS:
                self._ended.wait(_AGAIN_SECONDS)
                why = _why(server)
            if why and since is None:
                since = began
                self._away.add(part)
                outage = Outage.of(server, why)
                self._say(logging.WARNING, f"{outage.sentence}; waiting for it: {outage.advice}")
            elif not why and since is not None:
                again = "now" if first else "again"
                self._say(logging.INFO, f"{server.name} answers {again}, after {time.monotonic() - since:.0f} s")
                self._away.discard(part)
                since = None
            first = first and bool(why)
            self._looked[part].set()
            self._ended.wait(_EVERY_SECONDS)
        _in_background(server.close)


def _why(server: WatchedServer) -> str:
    """As *server* says; an error that nobody expects is a reason, too: this thread must go on."""
    try:
        return server.why()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _brokers(settings: Settings) -> WatchedServer | None:
    if settings.pulsar is None:
        return None
    admin = pulsar_admin(settings, answer_seconds=_EVERY_SECONDS)
    return WatchedServer(
        name=f"Pulsar's admin API at {', '.join(settings.pulsar.admin_url)}",
        advice="start the brokers, or correct admin_url in [pulsar]",
        why=admin.why_unreachable,
        close=admin.close,
    )


def _in_background(close: Callable[[], None]) -> None:
    """Call *close* without waiting for it: it may block on the server."""
    threading.Thread(target=close, name="close", daemon=True).start()
