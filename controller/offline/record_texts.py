"""Records of a log that are not decoded yet, and the rows of the fold that they become."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from controller.adapters.recordings.reading import Recording
from controller.adapters.recordings.record_log import Extents, RecordedTopic, RecordLog, StoredRecord
from controller.adapters.recordings.records_file import SplitRecord
from controller.aggregate.columns.rows import METRICS, RESULTS, Rows
from controller.aggregate.shard.fold import DetailLimits
from controller.model.errors import WireError
from controller.wire.json_sweeps import JsonSweeps, RecordText, joined_rows
from controller.wire.metrics import decode_metric
from controller.wire.results import decode_result
from controller.wire.rows import Located, rows_from_records

#: The topics that a fold reads, by source.
FOLDED_TOPICS: Final[dict[int, RecordedTopic]] = {METRICS: "metrics", RESULTS: "results"}


def record_texts(log: RecordLog, source: int, part: Extents | None = None) -> Iterator[RecordText]:
    """The records of the topic *source*, METRICS or RESULTS, about in the order of time; those of *part*, or all.

    TrimtabError where *log* cannot be read.
    """
    topic = FOLDED_TOPICS[source]
    records: Iterator[StoredRecord | SplitRecord]
    if part is None and isinstance(log, Recording):
        records = log.split_records(topic)  # values in parts take less time to decode
    else:
        records = log.read(topic, log.extents(topic) if part is None else part)
    for each in records:
        time_ms = None if each.timestamp_ms < 0 else each.timestamp_ms
        yield RecordText(source, each.partition, each.offset, time_ms, each.value)


def begin_of(log: RecordLog) -> tuple[bytes, ...]:
    """Records of metrics that count before all of *log*: of a recording what was known when it begins."""
    return log.begin if isinstance(log, Recording) else ()


def known_texts(begin: Sequence[bytes]) -> Iterator[RecordText]:
    """Records of metrics that count before all others: what was known when a log begins."""
    for number, value in enumerate(begin, start=-len(begin)):
        yield RecordText(METRICS, 0, number, None, value)


class DecodedTexts(NamedTuple):
    """Records that were decoded together."""

    rows: Rows
    #: Those that could not be used.
    refused: int


class TextDecoder:
    """Makes rows of the records of one cluster; sweeps in JSON many at once, the others one by one."""

    def __init__(self, *, cluster: str, period_ms: int, max_bytes: int, detail: DetailLimits) -> None:
        self._cluster, self._period_ms, self._max_bytes, self._detail = cluster, period_ms, max_bytes, detail
        self._sweeps = JsonSweeps(cluster=cluster, period_ms=period_ms, max_bytes=max_bytes, detail=detail)

    def rows(self, texts: Sequence[RecordText], known: Sequence[Located] = ()) -> DecodedTexts:
        """The rows of *texts*, and of the records *known*, which are decoded already."""
        columnar, others = self._sweeps.rows([each for each in texts if each.source == METRICS])
        located, refused = [*known], 0
        for text in [*others, *(each for each in texts if each.source != METRICS)]:
            try:
                position = self.located(text)
            except WireError:
                refused += 1
                continue
            if position is not None:
                located.append(position)
        return DecodedTexts(joined_rows([columnar, rows_from_records(located, self._detail)]), refused)

    def located(self, text: RecordText) -> Located | None:
        """The record in *text*; None of another cluster's.  WireError where it cannot be used."""
        decode = decode_metric if text.source == METRICS else decode_result
        record = decode(
            text.whole,
            cluster=self._cluster,
            period_ms=self._period_ms,
            append_time_ms=text.append_time_ms,
            max_bytes=self._max_bytes,
        )
        if record is None:
            return None
        return Located(source=text.source, partition=text.partition, offset=text.offset, record=record)
