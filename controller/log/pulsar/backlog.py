"""How far the log in Pulsar is ahead of a query: by the entries of its partitions, and the ticks among them."""

from collections.abc import Mapping
from contextlib import closing
from typing import Final

from controller.adapters.pulsar.log.client import topic_name
from controller.adapters.pulsar.log.ends import LogExtents, all_extents, log_extents, starts
from controller.adapters.pulsar.log.offsets import from_json
from controller.adapters.pulsar.log.positions import BEGINNING, Entry, number_of
from controller.adapters.pulsar.log.ranges import Place
from controller.log.pulsar.log import PulsarLog
from controller.log.ticked import PARTITION, intervals_ticked
from controller.model.backlog import Backlog
from controller.settings.pulsar_log import PulsarLogSettings

#: For an answer of the brokers.
_ANSWER_SECONDS: Final = 5.0


def backlog(settings: PulsarLogSettings, *, cluster: str, period_ms: int, read: object, now_ms: int) -> Backlog:
    """The backlog, in entries, of a query that has *read* so far, or, where that is None, begins at ``start_at``.

    *read*: an offset as Spark keeps it.  Raises TrimtabError where Pulsar does not answer.
    """
    start_ms = settings.start_ms(now_ms)
    if read is None and settings.start_at == "latest":
        return Backlog(intervals=0, offsets=0)
    topics = [topic_name(settings, settings.metrics_topic), topic_name(settings, settings.results_topic)]
    with closing(log_extents(settings)) as http:
        extents = all_extents(http, topics)
        first_unread = _first_unread(http, topics, read, start_ms)
    ahead = {place: extent.after(first_unread.get(place, BEGINNING)) for place, extent in extents.items()}
    ticked = (topics[1], PARTITION)
    intervals = 0
    if ahead.get(ticked):  # an entry may hold many ticks
        first = first_unread.get(ticked, BEGINNING)
        position = 0 if first == BEGINNING else number_of(*first.next, -1)
        with closing(PulsarLog(settings, cluster=cluster, seconds=_ANSWER_SECONDS)) as log:
            intervals = intervals_ticked(log, position, cluster=cluster, period_ms=period_ms)
    return Backlog(intervals=intervals, offsets=sum(ahead.values()))


def _first_unread(http: LogExtents, topics: list[str], read: object, start_ms: int | None) -> Mapping[Place, Entry]:
    return starts(http, topics, start_ms=start_ms, at_end=False) if read is None else from_json(read).read
