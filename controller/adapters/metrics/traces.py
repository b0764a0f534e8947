"""An interval as a trace for OpenTelemetry: sweep, decision, journal, commands; each process sends its own spans.

The ids follow from the cluster, the interval and the span's name, so that processes need not hand them on, and a batch
that Spark repeats has the same spans again.  What is sent is OTLP over HTTP in JSON, which every OpenTelemetry
collector reads (opentelemetry.io/docs/specs/otlp), from a thread of its own: a receiver that hangs or is away costs
spans, and nothing else.
"""

import hashlib
import json
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, NamedTuple, TypeAlias

from controller.adapters.network.pool import HttpError, because, connection_pool
from controller.adapters.network.tls import Tls
from controller.model.journal import Journal, JournalEntry, JournalHead

log = logging.getLogger(__name__)

#: What a span says besides its name and times.
SpanFacts: TypeAlias = Mapping[str, str | int]

#: The span that has all others of its interval below it.
ROOT: Final = "interval"
_PATH: Final = "/v1/traces"
#: Spans that wait at most; more are dropped.
_MOST_WAITING: Final = 2048
#: Spans in a request at most.
_MOST_SENT: Final = 256
#: For a connection, and again for the answer.
_TIMEOUT_SECONDS: Final = 5.0
_NS_OF_MS: Final = 1_000_000
#: OTLP: SPAN_KIND_INTERNAL, and STATUS_CODE_ERROR.
_INTERNAL, _ERROR = 1, 2


class _Span(NamedTuple):
    interval: int
    name: str
    #: Tells it from others of its name.
    key: str
    start_ns: int
    end_ns: int
    facts: SpanFacts
    failed: bool


class Traces:
    """Sends the spans of one process; without an endpoint it does nothing."""

    def __init__(
        self,
        endpoint: str = "",
        *,
        cluster: str = "",
        role: str = "",
        version: str = "",
        seconds: float = _TIMEOUT_SECONDS,
    ) -> None:
        """*endpoint*: http:// or https:// of the receiver, without a path; it has so many *seconds* for an answer."""
        self._endpoint, self._cluster = endpoint.rstrip("/"), cluster
        self._about = {"service.name": f"trimtab-{role}", "service.version": version, "trimtab.cluster": cluster}
        self._waiting = queue.Queue[_Span](_MOST_WAITING)
        self._is_away = False
        #: Whether anything is sent.
        self.on = bool(endpoint)
        self._seconds = seconds
        #: Spans that were dropped, because the receiver is away or too slow.
        self.dropped = 0
        if self.on:
            context = Tls().context("the receiver of traces") if endpoint.startswith("https:") else None
            self._connections = connection_pool(hosts=1, connections=1, ssl_context=context, verify_host=True)
            threading.Thread(target=self._send, name="traces", daemon=True).start()

    def add(
        self,
        interval: int,
        name: str,
        start_ns: int,
        end_ns: int,
        facts: SpanFacts | None = None,
        *,
        key: str = "",
        failed: bool = False,
    ) -> None:
        """Something took from *start_ns* to *end_ns*, by the wall clock, for *interval*, epoch ms.  Returns at once."""
        if not self.on:
            return
        try:
            self._waiting.put_nowait(_Span(interval, name, key, start_ns, end_ns, facts or {}, failed))
        except queue.Full:
            self.dropped += 1

    def of_journal(self, journal: Journal) -> Journal:
        """*journal*, with a span for each entry that is written."""
        return _TracedJournal(journal, self) if self.on else journal

    def _send(self) -> None:
        while True:
            spans = [self._waiting.get()]
            with suppress(queue.Empty):
                while len(spans) < _MOST_SENT:
                    spans.append(self._waiting.get_nowait())
            why = self._why_not_taken(json.dumps(self._request(spans)).encode())
            if why:
                self.dropped += len(spans)
                if not self._is_away:
                    message = (
                        "spans are dropped, decisions continue: %s does not accept them: %s; see endpoint in [tracing]"
                    )
                    log.warning(message, self._endpoint, why)
            elif self._is_away:
                log.info("%s accepts spans again; %d were dropped so far", self._endpoint, self.dropped)
            self._is_away = bool(why)

    def _why_not_taken(self, body: bytes) -> str:
        """Send *body*; "" where the receiver takes it."""
        headers = {"Content-Type": "application/json", "Connection": "close"}
        try:
            answer = self._connections.request(
                "POST",
                self._endpoint + _PATH,
                body=body,
                headers=headers,
                timeout=self._seconds,
                redirect=False,
                preload_content=False,
            )
        except HttpError as error:
            return because(error)
        answer.close()  # what it says besides is not read
        return "" if answer.status == 200 else f"it answers {answer.status}"  # OTLP knows no other success

    def _request(self, spans: Sequence[_Span]) -> dict[str, Any]:
        """OTLP: ExportTraceServiceRequest."""
        scope = {"name": "trimtab", "version": self._about["service.version"]}
        encoded_spans = [self._encoded(span) for span in spans]
        resource = {"attributes": _attributes(self._about)}
        return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": scope, "spans": encoded_spans}]}]}

    def _encoded(self, span: _Span) -> dict[str, Any]:
        trace = self._id(span.interval)[:32]
        root = self._id(span.interval, ROOT)[:16]
        above = {} if span.name == ROOT else {"parentSpanId": root}
        own = root if span.name == ROOT else self._id(span.interval, span.name, span.key)[:16]
        return {
            "traceId": trace,
            "spanId": own,
            **above,
            "name": span.name,
            "kind": _INTERNAL,
            "startTimeUnixNano": str(span.start_ns),
            "endTimeUnixNano": str(max(span.start_ns, span.end_ns)),
            "attributes": _attributes({"trimtab.interval": span.interval, **span.facts}),
            "status": {"code": _ERROR} if span.failed else {},
        }

    def _id(self, interval: int, *parts: str) -> str:
        """Hex digits that follow from the cluster, *interval* and *parts*."""
        return hashlib.sha256("\n".join([self._cluster, str(interval), *parts]).encode()).hexdigest()


class BatchSpans:
    """The spans of a micro-batch: its stages count for each interval that it decided."""

    def __init__(self) -> None:
        self._stages: list[tuple[str, int, int]] = []
        self._intervals: list[int] = []

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Within the block the stage *name* runs."""
        began = time.time_ns()
        yield
        self._stages.append((name, began, time.time_ns()))

    def begin(self) -> None:
        """A micro-batch begins; what an earlier one left, which failed, is forgotten."""
        self._stages, self._intervals = [], []

    def decided(self, interval: int) -> None:
        """The batch has decided *interval*."""
        self._intervals.append(interval)

    def end(self, traces: Traces) -> None:
        """Give *traces* the spans of the batch."""
        for interval in self._intervals:
            for name, start_ns, end_ns in self._stages:
                traces.add(interval, name, start_ns, end_ns, {"trimtab.batch_intervals": len(self._intervals)})
        self.begin()


class _TracedJournal:
    """Journal: another one, with a span for each entry that is written."""

    def __init__(self, journal: Journal, traces: Traces) -> None:
        self._journal, self._traces = journal, traces
        self.open: Callable[[], JournalHead] = journal.open
        self.begin_epoch, self.prune = journal.begin_epoch, journal.prune

    def append(self, entry: JournalEntry, *, epoch: int, issued_at_ms: int, before_commit: Callable[[], None]) -> None:
        """See Journal."""
        began = time.time_ns()
        self._journal.append(entry, epoch=epoch, issued_at_ms=issued_at_ms, before_commit=before_commit)
        facts = {"trimtab.epoch": epoch, "trimtab.commands": len(entry.decision.commands)}
        self._traces.add(entry.interval, "journal", began, time.time_ns(), facts)


def ns(epoch_ms: float) -> int:
    """*epoch_ms* in ns."""
    return int(epoch_ms * _NS_OF_MS)


def _attributes(facts: SpanFacts) -> list[dict[str, Any]]:
    return [
        {"key": key, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}}
        for key, value in facts.items()
    ]
