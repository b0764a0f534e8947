"""What the topics of a log in Pulsar hold now, by the brokers' admin API."""

import logging
import time
from collections.abc import Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import Any, Final

from controller.adapters.network.calls import side_by_side
from controller.adapters.network.pool import HttpAnswer
from controller.adapters.pulsar.http import PulsarError, PulsarHttp
from controller.adapters.pulsar.log.client import LARGEST_TOLD, log_http, partition_name
from controller.adapters.pulsar.log.positions import BEGINNING, Entry, before
from controller.adapters.pulsar.log.ranges import Ledgers, LedgerSize, Place
from controller.model.errors import TrimtabError
from controller.settings.pulsar_log import PulsarLogSettings

log = logging.getLogger(__name__)

#: For the answers about all partitions; a query that is told to stop waits for them.
_ALL_SECONDS: Final = 8.0
#: Partitions that brokers are asked about at a time.
_AT_ONCE: Final = 4
_NOT_FOUND: Final = 404
_MOST_PARTITIONS: Final = 100_000
_HIGHEST: Final = (1 << 63) - 1


class BrokersClock:
    """The time by the clock of the broker that answered last."""

    def __init__(self) -> None:
        self._ms: int | None = None

    def hear(self, date: str | None) -> None:
        """Take over the *date* of an answer, as HTTP writes it: whole seconds, so the next one is not over yet."""
        try:
            self._ms = int(parsedate_to_datetime(date or "").timestamp()) * 1_000 + 999
        except (ValueError, OverflowError):
            log.debug("a broker's response has no valid date: %.100s", date)

    @property
    def now_ms(self) -> int:
        """Epoch ms; by the clock of this host where no broker says."""
        return time.time_ns() // 1_000_000 if self._ms is None else self._ms


class LogExtents(PulsarHttp):
    """The admin API, as far as it says what topics hold.  Every call raises PulsarError."""

    section = "[log.pulsar]"
    largest_answer = LARGEST_TOLD

    def __init__(self, *settings: Any, **more: Any) -> None:
        super().__init__(*settings, **more)
        #: Shared by all that ``within`` returns.
        self.clock = BrokersClock()

    def _send(self, method: str, url: str, body: bytes | None) -> HttpAnswer:
        answer = super()._send(method, url, body)
        self.clock.hear(answer.headers.get("Date"))
        return answer

    def partitions(self, topic: str) -> int:
        """The number of partitions of *topic*, a full name; 0 where it does not exist, or has none."""
        path = f"{_path(topic)}/partitions"
        try:
            number = _whole(self._object(path), "partitions", path)
        except PulsarError as error:
            if error.status == _NOT_FOUND:
                return 0
            raise
        if number > _MOST_PARTITIONS:
            raise PulsarError(f"GET {path}: {number} partitions, allowed: {_MOST_PARTITIONS}", status=200)
        return number

    def extent(self, topic: str, partition: int) -> Ledgers:
        """What a partition of *topic* holds; of one that nobody has used yet nothing."""
        path = f"{_path(partition_name(topic, partition))}/internalStats"
        try:
            return read_extent(self._object(path), path)
        except PulsarError as error:
            if error.status == _NOT_FOUND:
                return Ledgers(ledgers=())
            raise

    def since(self, topic: str, partition: int, time_ms: int) -> Entry:
        """The last entry of a partition that was published before *time_ms*, or the place before its first one."""
        path = f"{_path(partition_name(topic, partition))}/messageid/{time_ms}"
        try:
            answer = self._object(path)
        except PulsarError as error:
            if error.status == _NOT_FOUND:
                return BEGINNING
            raise
        first = Entry(_whole(answer, "ledgerId", path), _whole(answer, "entryId", path))
        return before(first) if first.ledger >= 0 and first.entry >= 0 else BEGINNING


def log_extents(settings: PulsarLogSettings) -> LogExtents:
    """The admin API of the log's Pulsar.  TrimtabError where credentials or files cannot be used."""
    return log_http(settings, api=LogExtents)


def all_extents(http: LogExtents, topics: Sequence[str]) -> dict[Place, Ledgers]:
    """What each partition of *topics* (full names) holds, within a few seconds; TrimtabError for a missing topic."""
    limited = http.within(_ALL_SECONDS)
    places = [(topic, partition) for topic in topics for partition in range(_partitions(limited, topic))]
    calls = {place: (lambda at=place: limited.extent(*at)) for place in places}
    answers = side_by_side(calls, _ALL_SECONDS + 1, at_once=_AT_ONCE)
    return {place: answers[place].result() for place in places}


def starts(http: LogExtents, topics: Sequence[str], *, start_ms: int | None, at_end: bool) -> dict[Place, Entry]:
    """Where a query without a checkpoint begins in each partition: at *start_ms*, or else *at_end* or the beginning."""
    extents = all_extents(http, topics)
    if start_ms is None:
        return {place: extent.end if at_end else BEGINNING for place, extent in extents.items()}
    limited = http.within(_ALL_SECONDS)
    # Not later than its end: what comes while this is asked is read.
    return {
        place: min(limited.since(*place, start_ms), extent.end) if extent.entries else BEGINNING
        for place, extent in extents.items()
    }


def read_extent(stats: Mapping[str, Any], path: str) -> Ledgers:
    """What the broker's answer to *path* says of a partition.  PulsarError where that cannot be.

    Pulsar: PersistentTopicInternalStats
    """
    last_confirmed = stats.get("lastConfirmedEntry")
    try:
        ledger, _, entry = str(last_confirmed).partition(":")
        confirmed = Entry(int(ledger), int(entry))
        sizes = {_whole(each, "ledgerId", path): max(0, _whole(each, "entries", path)) for each in stats["ledgers"]}
        size = max(0, _whole(stats, "totalSize", path)) if "totalSize" in stats else 0
    except (AttributeError, KeyError, TypeError, ValueError, PulsarError) as error:
        raise PulsarError(
            f"GET {path}: expected ledgers and lastConfirmedEntry, found {stats!s:.200}", status=200
        ) from error
    # The list says 0 for the ledger that is open, and for a moment for one that has just ended.
    if confirmed.ledger in sizes:
        sizes[confirmed.ledger] = max(sizes[confirmed.ledger], confirmed.entry + 1)
    return Ledgers(ledgers=tuple(LedgerSize(*each) for each in sorted(sizes.items())), bytes=size)


def _partitions(http: LogExtents, topic: str) -> int:
    count = http.partitions(topic)
    if count == 0:
        raise TrimtabError(f"Pulsar has no partitioned topic {topic}: `trimtab collect` creates it")
    return count


def _path(topic: str) -> str:
    """The admin API's path of *topic*, a full name."""
    return "/admin/v2/" + topic.replace("://", "/", 1)


def _whole(answer: Mapping[str, Any], field: str, path: str) -> int:
    number = answer.get(field)
    if not isinstance(number, int) or isinstance(number, bool) or not -1 <= number <= _HIGHEST:
        raise PulsarError(f"GET {path}: {field} is {number!s:.100}, not a whole number", status=200)
    return number
