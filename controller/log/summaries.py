"""The summaries of intervals: written by the leader, read by whoever shows them.  No decision depends on them."""

from controller.log.port import Log, Out
from controller.model.summary import IntervalSummary
from controller.wire.summary import encode_summary

#: How long to wait until a summary is stored.
_PATIENCE_SECONDS = 30.0


class SummaryLog:
    """Writes summaries to *log*, whose topic is created with the first one.  The same one twice does no harm."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def write(self, summary: IntervalSummary) -> int:
        """Append *summary*; returns its length in bytes when it is stored.  TrimtabError."""
        self._log.partitions("summaries")
        value = encode_summary(summary)
        self._log.append([Out("summaries", value, partition=0)], within_seconds=_PATIENCE_SECONDS)
        return len(value)

    def close(self) -> None:
        """End all connections."""
        self._log.close()
