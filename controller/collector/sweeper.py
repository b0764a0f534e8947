"""Asks one broker for its whole load, with either load manager."""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, Final, Protocol

from controller.adapters.pulsar.admin import LargeAnswerError, PulsarAdmin, PulsarError
from controller.collector.reports import (
    BrokerReport,
    ReportError,
    SweepName,
    extensible_report,
    listed_topics,
    modular_report,
    swept,
    usage_from_metrics,
)
from controller.model.names import LONGEST_NAME
from controller.settings.capacity import CapacityOverrides
from controller.wire.chunks import KeyValue, SweptBroker

log = logging.getLogger(__name__)

#: How a broker with ExtensibleLoadManagerImpl refuses its load report.
_NO_LOAD_REPORT = "UnsupportedOperationException"
#: Bytes of the answers that brokers are asked for side by side: those of 15,000 topics.  A byte may become twenty: what
#: is longer is read of one broker at a time.
USUAL_ANSWER: Final = 16 << 20
#: So many times the time of an answer a broker with a large one waits for its turn.
_TURNS: Final = 2


class LoadData(Protocol):
    """What brokers with ExtensibleLoadManagerImpl publish of their load among each other."""

    def of(self, broker: str) -> Mapping[str, Any] | None:
        """*broker*'s last load data; None: none came yet."""
        ...

    def close(self) -> None:
        """End the connection."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Swept:
    """One broker's sweep, ready to be published."""

    name: SweepName
    report: BrokerReport
    #: As they go into the metrics topic.
    records: tuple[KeyValue, ...]
    #: How many rates were impossible (negative, not finite) and are taken for 0.
    flaws: int
    #: From the question to the whole load.
    seconds: float


class Sweeper:
    """Asks brokers.  Many threads may use it, each for another broker."""

    def __init__(
        self,
        admin: PulsarAdmin,
        overrides: CapacityOverrides,
        load_data: LoadData,
        *,
        form: Callable[[SweptBroker], Iterable[KeyValue]],
        timeout_seconds: float,
    ) -> None:
        self._form = form
        self._admin, self._overrides, self._load_data = admin, overrides, load_data
        self._usual = admin.reading_at_most(USUAL_ANSWER)
        self._timeout_seconds = timeout_seconds
        #: Those with ExtensibleLoadManagerImpl.
        self._extensible = set[str]()
        #: Brokers whose answers were larger than usual: they are asked one after the other.
        self._large = set[str]()
        self._one_large = Lock()
        #: Parsed topics take up to twenty times as much as the answer: those of one broker are in memory at a time.
        self._one_parsed = Lock()

    def retain(self, brokers: Collection[str]) -> None:
        """Forget all but *brokers*: those that are there now."""
        for removed in [broker for broker in self._extensible.copy() if broker not in brokers]:
            self._extensible.discard(removed)  # its own thread may do so, too
        self._large = {broker for broker in self._large.copy() if broker in brokers}

    def sweep(self, name: SweepName, now_ms: int, answering: Callable[[], object] = lambda: None) -> Swept:
        """The sweep called *name*.  PulsarError, ReportError or another TrimtabError: the broker has none to give.

        *answering* is called when the broker has begun to answer.
        """
        try:
            if name.broker not in self._large:
                with suppress(LargeAnswerError):
                    return self._sweep(name, now_ms, answering, self._usual)
                self._large.add(name.broker)
            with self._turn():
                return self._sweep(name, now_ms, answering, self._admin)
        except Exception:
            self._extensible.discard(name.broker)  # it may come back as something else
            raise

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """The turn of a broker with a large answer; ReportError where it does not come for so long that it is late."""
        seconds = _TURNS * self._timeout_seconds
        if not self._one_large.acquire(timeout=seconds):
            raise ReportError(
                f"its answer is larger than {USUAL_ANSWER} bytes; such answers are read one at a time, "
                f"and its turn did not come within {seconds:g} s: start more collectors, which share the brokers"
            )
        try:
            yield
        finally:
            self._one_large.release()

    def _sweep(self, name: SweepName, now_ms: int, answering: Callable[[], object], admin: PulsarAdmin) -> Swept:
        began = time.monotonic()
        admin = admin.within(self._timeout_seconds, answering)
        # Topics first: a bundle that the report does not list any more has been unloaded in between.
        parsed = admin.asked_topic_stats(name.broker)
        with self._one_parsed:
            topics = listed_topics(parsed())
        del parsed  # it has the answer
        report = self._report(admin, name.broker, now_ms)
        columns, flaws = swept(name, report, topics)
        records = tuple(self._form(columns))
        return Swept(name=name, report=report, records=records, flaws=flaws, seconds=time.monotonic() - began)

    def _report(self, admin: PulsarAdmin, broker: str, now_ms: int) -> BrokerReport:
        if broker not in self._extensible:
            try:
                report = modular_report(admin.load_report(broker))
            except PulsarError as error:
                if error.status != 500 or _NO_LOAD_REPORT not in str(error):
                    raise
            else:
                return report if report.broker_version else replace(report, broker_version=_version(admin, broker))
            self._extensible.add(broker)
            log.info("%s runs the extensible load manager: its load comes from its topics", broker)
        # Each time: a broker that was upgraded may be back before it is missed.
        version = _version(admin, broker)
        load = self._load_data.of(broker)
        if load is None:
            if self._overrides.of(broker):
                # The metrics are percent of an unknown limit, so a capacity cannot be applied to them.
                raise ReportError("it has not published load data yet")
            load = usage_from_metrics(admin.metrics(broker), now_ms=now_ms)
        return extensible_report(load, owned=admin.owned(broker), broker_version=version)


def _version(admin: PulsarAdmin, broker: str) -> str | None:
    """What *broker* says of its version where its report says nothing; None where that cannot be used."""
    with suppress(PulsarError):
        version = admin.version(broker)[0]
        return version if len(version) <= LONGEST_NAME else None
    return None
