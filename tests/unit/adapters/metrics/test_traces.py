"""Spans of an interval: one trace from all processes, sent to a receiver of OTLP over HTTP."""

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from unittest.mock import Mock

import pytest

from controller.adapters.metrics.collector import CollectorMetrics
from controller.adapters.metrics.controller import STAGES, ControllerMetrics
from controller.adapters.metrics.executor import ExecutorMetrics
from controller.adapters.metrics.process import ProcessMetrics
from controller.adapters.metrics.traces import Traces
from controller.adapters.network.waiting import wait_for
from controller.model.journal import DecidedInterval
from controller.wire.results import Result
from tests.journal_entries import UNLOAD, entry
from tests.otlp_receiver import Receiver, otlp_receiver
from tests.raw_answers import dripping, raw_server
from tests.records import CLUSTER, PERIOD, T

_MS = 1_000_000


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with otlp_receiver() as running:
        yield running


def told(metrics: ProcessMetrics, receiver: Receiver) -> None:
    metrics.trace_to(receiver.url, cluster=CLUSTER, version="1")


def batch(metrics: ControllerMetrics, interval: int) -> None:
    """A micro-batch that decides *interval*."""
    one = entry(interval, UNLOAD)
    decided = DecidedInterval(
        entry=one, journalled=True, too_large=None, dropped_rows=0, dropped_states=0, bundles=0, settled=()
    )
    for stage in STAGES:
        with metrics.stage(stage):
            if stage == "decide":
                journal = metrics.traces.of_journal(Mock())
                journal.append(one, epoch=3, issued_at_ms=interval, before_commit=lambda: None)
                metrics.decided(decided, interval + 900)


def answered(metrics: ExecutorMetrics, status: Any) -> None:
    started, finished = T + 1000, T + 1500
    result = Result(cluster=CLUSTER, id=UNLOAD.id, status=status, attempts=1, started_at=started, finished_at=finished)
    metrics.answered(UNLOAD, result)


def until(done: Callable[[], bool]) -> None:
    wait_for(done, 20, every=0.01)


def has_dropped(traces: Traces, number: int) -> bool:
    return traces.dropped == number


def by_name(spans: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {span["name"]: span for span in spans}


def test_an_interval_is_one_trace_of_all_processes(receiver: Receiver) -> None:
    collector, controller, executor = CollectorMetrics(), ControllerMetrics(), ExecutorMetrics()
    for metrics in (collector, controller, executor):
        told(metrics, receiver)
    collector.ticked(T, T + 500, brokers=3, silent=1)
    batch(controller, T)
    answered(executor, "done")
    names = {"interval", "sweep", "journal", "unload", *STAGES}
    until(lambda: names <= by_name(receiver.spans).keys())
    spans = by_name(receiver.spans)
    assert spans.keys() == names
    assert len({span["traceId"] for span in spans.values()}) == 1
    root = spans.pop("interval")
    assert "parentSpanId" not in root
    assert {span["parentSpanId"] for span in spans.values()} == {root["spanId"]}
    assert len({span["spanId"] for span in spans.values()}) == len(spans)
    assert (len(root["traceId"]), len(root["spanId"])) == (32, 16)
    assert (root["startTimeUnixNano"], root["endTimeUnixNano"]) == (str(T * _MS), str((T + 900) * _MS))
    assert spans["unload"]["endTimeUnixNano"] == str((T + 1500) * _MS)
    assert {"key": "trimtab.silent_brokers", "value": {"intValue": "1"}} in spans["sweep"]["attributes"]
    assert receiver.paths == {"/v1/traces"}
    assert receiver.services == {"trimtab-collector", "trimtab-controller", "trimtab-executor"}


def test_another_interval_is_another_trace_and_a_batch_that_comes_again_has_the_same_ids(receiver: Receiver) -> None:
    metrics = ControllerMetrics()
    told(metrics, receiver)
    for interval in (T, T + PERIOD, T):
        batch(metrics, interval)
    each = len(STAGES) + 2
    until(lambda: len(receiver.spans) == 3 * each)
    ids = [{(span["traceId"], span["spanId"]) for span in receiver.spans[n * each :][:each]} for n in range(3)]
    assert ids[0] == ids[2]
    assert not ids[0] & ids[1]


def test_a_batch_that_failed_leaves_nothing_to_the_next_one(receiver: Receiver) -> None:
    metrics = ControllerMetrics()
    told(metrics, receiver)
    with pytest.raises(ConnectionError), metrics.stage("query"):
        raise ConnectionError
    batch(metrics, T)
    until(lambda: len(receiver.spans) == len(STAGES) + 2)


def test_a_command_that_failed_is_an_error(receiver: Receiver) -> None:
    metrics = ExecutorMetrics()
    told(metrics, receiver)
    answered(metrics, "failed")
    until(lambda: bool(receiver.spans))
    assert receiver.spans[0]["status"] == {"code": 2}


def test_a_receiver_that_hangs_costs_spans_and_no_time(receiver: Receiver) -> None:
    receiver.holds.set()
    traces = Traces(receiver.url, cluster=CLUSTER, role="controller", version="1")
    began = time.monotonic()
    for _ in range(5000):
        traces.add(T, "query", 0, 1)
    assert time.monotonic() - began < 10
    assert traces.dropped >= 5000 - 2048 - 256


@pytest.mark.parametrize(
    ("first", "drops"),
    [
        (b"", b""),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\n", b"x"),
        (b"HTTP/1.1 -1 \x1b[2J\nforged line\r\n\r\n", b""),
    ],
)
def test_a_receiver_that_never_answers_or_answers_nonsense_is_told_in_one_line(
    first: bytes, drops: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with raw_server(dripping(first=first, drops=drops)) as url:
        traces = Traces(url, cluster=CLUSTER, role="controller", version="1", seconds=0.2)
        traces.add(T, "query", 0, 1)
        until(partial(has_dropped, traces, 1))
        until(lambda: bool(caplog.messages))
    assert "does not accept them" in caplog.messages[0]
    assert caplog.messages[0].isprintable()


def test_of_a_receivers_answer_only_the_status_is_read() -> None:
    with raw_server(dripping(first=b"HTTP/1.1 503 No\r\nContent-Length: 9999999999\r\n\r\n", drops=b"x")) as url:
        traces = Traces(url, cluster=CLUSTER, role="controller", version="1", seconds=30)
        began = time.monotonic()
        traces.add(T, "query", 0, 1)
        until(partial(has_dropped, traces, 1))
    assert time.monotonic() - began < 10


def test_after_an_outage_spans_are_sent_again(receiver: Receiver, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    receiver.refuses.set()
    traces = Traces(receiver.url, cluster=CLUSTER, role="controller", version="1")
    for dropped in (1, 2):
        traces.add(T, "query", 0, 1)
        until(partial(has_dropped, traces, dropped))
    receiver.refuses.clear()
    traces.add(T, "query", 0, 1)
    until(lambda: bool(receiver.spans))
    until(lambda: len(caplog.messages) == 2)
    assert "does not accept them: it answers 503" in caplog.messages[0]
    assert caplog.messages[1].endswith("accepts spans again; 2 were dropped so far")


def test_without_an_endpoint_there_is_no_thread_and_no_wrapper() -> None:
    before, journal = threading.active_count(), Mock()
    metrics = ControllerMetrics()
    metrics.trace_to("", cluster=CLUSTER, version="1")
    batch(metrics, T)
    assert threading.active_count() == before
    assert metrics.traces.of_journal(journal) is journal
