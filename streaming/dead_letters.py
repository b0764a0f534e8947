"""Dead letters: records that the query refused, with the full reason.

The query says where they lie; they are read again here, so that good records are read once.  A batch without refused
records costs nothing.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from controller.adapters.metrics.controller import ControllerMetrics
from controller.aggregate.columns.rows import METRICS
from controller.aggregate.places import Span
from controller.log.dead_letters import DeadLetterLog
from controller.model.errors import WireError
from controller.wire.dead_letter import DeadLetter, Source, dead_letter
from controller.wire.metrics import decode_metric
from controller.wire.results import decode_result
from streaming.decode import DecodeOptions, suspects

log = logging.getLogger(__name__)

#: So many bytes of suspect records come to this process at once, far below spark.driver.maxResultSize: with more of
#: them in one batch, as when somebody floods the topic, Spark would fail the batch again and again.
AT_ONCE = 128 << 20


#: The log's records in some spans, as streaming.sources has them.
Records = Callable[[Sequence[Span]], DataFrame]


class DeadLetters:
    """Looks at refused records once more, and keeps those that controller.wire refuses, too.  Counts them."""

    def __init__(
        self,
        letters: DeadLetterLog,
        options: DecodeOptions,
        topics: Mapping[int, str],
        records: Records,
        metrics: ControllerMetrics | None = None,
    ) -> None:
        """*topics*: the role of a record's source -> the topic's name; empty for a folder.

        *records* reads the log again.
        """
        self._letters, self._options, self._topics, self._records = letters, options, topics, records
        self._metrics = metrics or ControllerMetrics()
        self.count = 0

    def store_suspects(self, spans: Sequence[Span], batch_id: int) -> None:
        """Store the dead letters among the records in *spans*, which micro-batch *batch_id* has read."""
        if not spans:
            return
        rows = suspects(self._records(spans), self._options)
        rows.persist()  # read twice or more; the function that finds suspects is expensive
        try:
            for number, part in enumerate(_parts(rows)):
                self._store(part, batch_id, number)
        finally:
            rows.unpersist()

    def _store(self, rows: DataFrame, batch_id: int, part: int) -> None:
        letters = [letter for row in rows.toLocalIterator() if (letter := self._judge(row)) is not None]
        self._letters.write(batch_id, letters, part=part)
        self.count += len(letters)
        self._metrics.dead_letters(letter.reason for letter in letters)
        if letters:
            log.warning(
                "%d new dead letters, %d since the start; reason of the first: %s",
                len(letters),
                self.count,
                letters[0].reason,
            )

    def _judge(self, row: Row) -> DeadLetter | None:
        error = self._refusal(row)
        if error is None:
            return None
        topic = self._topics.get(row["source"])
        source = Source(topic=topic, file=row["file"] or None, partition=row["partition"], offset=row["offset"])
        return dead_letter(error, source, head=bytes(row["head"]), size=row["size"], digest=row["sha256"])

    def _refusal(self, row: Row) -> WireError | None:
        """What controller.wire finds wrong with the record; None for a good fact or tick."""
        if row["refusal"] is not None:
            return WireError("too_large", row["refusal"])
        if row["value"] is None:
            return WireError("too_large", f"{row['size']} bytes, allowed: {self._options.max_record_bytes}")
        decode = decode_metric if row["source"] == METRICS else decode_result
        try:
            record = decode(
                bytes(row["value"]),
                cluster=self._options.cluster,
                period_ms=self._options.period_ms,
                append_time_ms=row["append_time"],
                max_bytes=self._options.max_record_bytes,
            )
        except WireError as error:
            return error
        if record is None or not row["refused"]:
            return None
        # The query refused it, but controller.wire does not: keep it, so that no record is lost silently.
        return WireError("bad_value", "refused by the query")


def _parts(batch: DataFrame) -> Iterator[DataFrame]:
    """*batch* in parts of about AT_ONCE bytes, the same ones whenever the batch runs again."""
    sizes = F.length("head") + F.coalesce(F.length("value"), F.lit(0))
    (total,) = batch.agg(F.sum(sizes)).first() or (0,)
    parts = 1 + (total or 0) // AT_ONCE
    if parts == 1:
        yield batch
        return
    part_of = F.pmod(F.xxhash64("source", "file", "partition", "offset"), F.lit(parts))
    for part in range(parts):
        yield batch.where(part_of == part)
