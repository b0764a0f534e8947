"""The addresses that get the credentials: the admin URLs of the settings, and the active brokers that these list.

Names of brokers come in commands, and addresses in redirects.  Neither is asked before it is found in the list.
"""

import math
import threading
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from urllib3.exceptions import LocationParseError
from urllib3.util import parse_url

from controller.adapters.network.deadline import Clock, steady

#: A list older than this is re-read before a broker in it is called, seconds.
_FRESH_SECONDS: Final = 60.0
#: How long the old list stays valid after a failed read, before the next attempt.
_TRY_AGAIN_SECONDS: Final = 30.0
#: How often the list is read anew for a name that is not in it, seconds: invented names cause no more calls.
_UNKNOWN_SECONDS: Final = 1.0
_PORTS: Final = {"http": 80, "https": 443}


class Origin(NamedTuple):
    """The target of a request."""

    scheme: str
    host: str
    port: int


@lru_cache(maxsize=256)
def origin(url: str) -> Origin | None:
    """Where a request to *url* would go; None: nowhere that is plain to see.

    The parser is the one that connections are made with, so both read the same host.  Each request asks five times.
    """
    try:
        parts = parse_url(url)
    except LocationParseError:
        return None
    if parts.auth is not None or not parts.host or parts.scheme not in _PORTS:
        return None
    return Origin(parts.scheme, parts.host.lower(), parts.port or _PORTS[parts.scheme])


class TrustedAddresses:
    """The admin *urls*, and the active brokers as last listed.  Shared by threads; asks nobody itself.

    A broker's name holds its port for http.  With https it answers at another port, where only brokers send callers
    to: there the host has to be a listed broker's.
    """

    def __init__(self, urls: Sequence[str], *, clock: Clock = steady) -> None:
        self._clock = clock
        self._own = frozenset(map(origin, urls)) - {None}
        self._places: frozenset[tuple[str, int]] = frozenset()
        self._hosts: frozenset[str] = frozenset()
        self._listed = self._requested_at = -math.inf
        #: The active brokers, as last listed.
        self.names: frozenset[str] = frozenset()
        #: Why the list could not be read the last time, "" if it could.
        self.problem = "they were not requested"
        #: Whether that was because no broker could be reached.
        self.away = False
        #: Held by the thread that reads the list; all others wait for its result.
        self.reading = threading.RLock()

    def is_own(self, url: str) -> bool:
        """Whether *url* leads to one of the admin URLs."""
        return origin(url) in self._own

    def admits(self, url: str) -> bool:
        """Whether *url* leads to an active broker, as last listed."""
        place = origin(url)
        if place is None:
            return False
        at = (place.host, place.port)
        return at in self._places or (place.scheme == "https" and place.host in self._hosts)

    def has_host(self, place: str) -> bool:
        """Whether *place*, host:port of any protocol, is on the host of an admin URL or of an active broker."""
        there = origin(f"http://{place}")
        return there is not None and there.host in self._hosts | {own.host for own in self._own if own}

    @property
    def is_known(self) -> bool:
        """Whether the list was ever read."""
        return self._listed > -math.inf

    def is_due(self, *, is_listed: bool) -> bool:
        """Whether the list is to be read now, where what was looked for was *is_listed* in it, or not."""
        now = self._clock()
        if is_listed:
            return now - self._listed >= _FRESH_SECONDS and now - self._requested_at >= _TRY_AGAIN_SECONDS
        return now - self._requested_at >= _UNKNOWN_SECONDS

    def learn(self, names: Iterable[str]) -> None:
        """*names* are the active brokers now."""
        self.names = frozenset(names)
        places = [place for name in self.names if (place := origin(f"http://{name}")) is not None]
        self._places = frozenset((place.host, place.port) for place in places)
        self._hosts = frozenset(place.host for place in places)
        self._listed = self._requested_at = self._clock()
        self.problem, self.away = "", False

    def failed(self, why: str, *, away: bool = False) -> None:
        """The list could not be read, where *away* since nobody could be reached; the last one counts on."""
        self._requested_at, self.problem, self.away = self._clock(), why, away
