"""Messages in which a producer has written what no client of ours would, and answers that no broker would give."""

import json
import time
from collections.abc import Callable
from contextlib import closing, nullcontext
from dataclasses import dataclass
from threading import Event
from typing import Any

import pulsar
import pytest

from controller.adapters.network.calls import NoAnswerError
from controller.adapters.network.pool import HttpAnswer
from controller.adapters.pulsar.http import PulsarError, PulsarHttp
from controller.adapters.pulsar.log import topics
from controller.adapters.pulsar.log.client import log_http
from controller.adapters.pulsar.log.connection import LogConnection
from controller.adapters.pulsar.log.ends import LogExtents, log_extents, read_extent, starts
from controller.adapters.pulsar.log.topics import LogAdmin, create_topics, log_admin
from controller.log.port import OLDEST
from controller.log.pulsar import once
from controller.log.pulsar.log import PulsarLog
from controller.log.pulsar.reading import PartitionReader
from controller.log.tail import newest_first
from controller.model.errors import AccessDeniedError, TrimtabError
from tests.pulsar_in_memory import Client, PulsarInMemory, StoredMessage, broker, log_settings

__all__ = ["broker"]

LOG = log_settings(partitions=1)
METRICS = f"persistent://{LOG.namespace}/metrics-partition-0"


@dataclass
class Strange(StoredMessage):
    """Its key and its properties are no text."""

    def partition_key(self) -> str:
        return b"\xff".decode()

    def properties(self) -> Any:
        return {b"\xff".decode(): ""}


def put(broker: PulsarInMemory, *times_ms: int, kind: type[StoredMessage] = StoredMessage) -> None:
    messages = broker.partitions[METRICS].messages
    for time_ms in times_ms:
        messages.append(kind(len(messages), b"%d" % len(messages), "", {}, time_ms))


@pytest.fixture
def connection(broker: PulsarInMemory) -> LogConnection:
    made = LogConnection(LOG)
    create_topics(made)
    return made


def test_keys_and_properties_that_are_no_text_are_none(broker: PulsarInMemory, connection: LogConnection) -> None:
    put(broker, 5, kind=Strange)
    [found] = PartitionReader(connection, "metrics", 0, OLDEST).read_to_end()
    assert (found.key, found.value, dict(found.headers)) == (b"", b"0", {})


NOW = 1_700_000_000_000


def test_a_time_far_in_the_future_counts_as_of_now(broker: PulsarInMemory, connection: LogConnection) -> None:
    put(broker, (1 << 64) - 1)
    [found] = PartitionReader(connection, "metrics", 0, OLDEST).read_to_end()
    assert NOW < found.timestamp_ms < (time.time() + 3_600) * 1000


@pytest.mark.parametrize("first", [0, 1, NOW - 86_400_000, (1 << 64) - 1])
def test_the_end_is_found_whatever_the_oldest_record_claims(broker: PulsarInMemory, first: int) -> None:
    with closing(PulsarLog(LOG, cluster="lab")) as log:
        log.partitions("metrics")
        put(broker, first, *range(NOW, NOW + 50))
        found = [record.value for record in newest_first(log, "metrics")]
    assert found == [b"%d" % nth for nth in range(50, -1, -1)]


def test_a_connection_that_comes_too_late_does_not_keep_the_name(
    broker: PulsarInMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_topics(LogConnection(LOG))
    may_come, whole, made = Event(), Client.create_producer, list[Any]()

    def slowly(*args: Any, **kwargs: Any) -> Any:
        may_come.wait(30)
        made.append(whole(*args, **kwargs))
        return made[0]

    log = PulsarLog(LOG, cluster="lab")
    monkeypatch.setattr(once, "_NAME_SECONDS", 0.01)
    monkeypatch.setattr(Client, "create_producer", slowly)
    with pytest.raises(TrimtabError) as caught:
        log.once("ticks", [("metrics", 0)])
    assert isinstance(caught.value.__cause__, NoAnswerError)
    monkeypatch.setattr(Client, "create_producer", whole)
    monkeypatch.setattr(once, "_NAME_SECONDS", 15.0)
    may_come.set()
    log.once("ticks", [("metrics", 0)]).close()
    assert [each.state for each in made] in ([], ["closed"])


@pytest.mark.parametrize(
    "stats",
    [
        {"lastConfirmedEntry": "3:1", "ledgers": [{"ledgerId": float("inf"), "entries": 0}]},
        {"lastConfirmedEntry": "3:1", "ledgers": [{"ledgerId": 3, "entries": float("nan")}]},
        {"lastConfirmedEntry": "3:1", "ledgers": [{"ledgerId": 3, "entries": 10**30}]},
        {"lastConfirmedEntry": "3:1", "ledgers": [{"ledgerId": True, "entries": 1}]},
        {"lastConfirmedEntry": "3:1", "ledgers": [7]},
        {"lastConfirmedEntry": "3:1", "ledgers": 7},
        {"lastConfirmedEntry": "3:1", "ledgers": [], "totalSize": 1e400},
        {"lastConfirmedEntry": ["3"], "ledgers": []},
    ],
)
def test_an_answer_that_says_nothing_of_ledgers_is_an_error(stats: dict[str, Any]) -> None:
    with pytest.raises(PulsarError, match="GET /path"):
        read_extent(stats, "/path")


def test_an_encrypted_message_is_asked_for_as_it_is(broker: PulsarInMemory, connection: LogConnection) -> None:
    put(broker, 5)
    PartitionReader(connection, "metrics", 0, OLDEST)
    assert broker.asked["crypto_failure_action"] == pulsar.ConsumerCryptoFailureAction.CONSUME


TOPIC = f"persistent://{LOG.namespace}/metrics"
CALLS: dict[str, Callable[[LogAdmin, LogExtents], object]] = {
    "policies": lambda admin, _: admin.policies("a/b"),
    "cursors": lambda admin, _: admin.cursors("a/b", "journal"),
    "active consumers": lambda admin, _: admin.active_consumers("a/b", "commands", "s"),
    "partitions": lambda _, extents: extents.partitions(TOPIC),
    "extent": lambda _, extents: extents.extent(TOPIC, 0),
    "since": lambda _, extents: extents.since(TOPIC, 0, 1),
    "starts": lambda _, extents: starts(extents, [TOPIC], start_ms=1, at_end=False),
}
BODIES: tuple[object, ...] = (
    None, True, 3, 1e400, "text", [], {}, [1], {"partitions": -2}, {"partitions": 1e400}, {"partitions": 10**9},
    {"partitions": "1"}, {"ledgerId": 1e400, "entryId": 0}, {"ledgerId": [], "entryId": {}}, {"ledgerId": 10**40},
    {"lastConfirmedEntry": "9" * 5000 + ":1", "ledgers": []}, {"lastConfirmedEntry": "3:1", "ledgers": {"a": 1}},
    {"lastConfirmedEntry": None, "ledgers": None, "partitions": 1, "ledgerId": 1, "entryId": 1},
    {"partitions": {f"c-partition-{'9' * 5000}": {"subscriptions": {"s": {"activeConsumerName": "a"}}}}},
    {"partitions": {"c-partition-1": {"subscriptions": {"s": {"activeConsumerName": []}}}, "c": {"subscriptions": 1}}},
)  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_whatever_json_the_logs_brokers_answer_with_the_outcome_is_a_value_or_an_error_of_ours(
    call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for body in (*(json.dumps(each).encode() for each in BODIES), b"", b"\xff", b"{", b"[" * 9999):
        monkeypatch.setattr(PulsarHttp, "_send", lambda *_, body=body: HttpAnswer(200, "OK", {}, body))
        with closing(log_admin(LOG)) as admin, closing(log_extents(LOG)) as extents:
            try:
                CALLS[call](admin, extents)
            except TrimtabError:
                continue


@pytest.mark.parametrize("api", [LogAdmin, LogExtents])
def test_answers_of_the_logs_brokers_are_smaller_than_those_about_all_topics(api: type[PulsarHttp]) -> None:
    assert api.largest_answer <= PulsarHttp.largest_answer / 16


@pytest.mark.parametrize("api", [LogAdmin, LogExtents])
def test_who_is_redirected_to_a_stranger_is_told_which_setting_names_the_brokers(
    api: type[PulsarHttp], monkeypatch: pytest.MonkeyPatch
) -> None:
    def redirects(self: PulsarHttp, method: str, url: str, body: bytes | None) -> HttpAnswer:
        self._require(method, url)
        if "/brokers" in url:
            return HttpAnswer(403, "Forbidden", {}, b"")
        return HttpAnswer(307, "Moved", {"Location": "http://stranger:8080/"}, b"")

    monkeypatch.setattr(PulsarHttp, "_send", redirects)
    with (
        closing(log_http(LOG, api=api)) as http,
        pytest.raises(PulsarError, match=r"nor an admin_url in \[log.pulsar\];"),
    ):
        http._call("GET", "/admin/v2/x", {})


@pytest.mark.parametrize(("known", "refused"), [(True, False), (False, True)])
def test_who_is_not_known_is_told_so_and_who_may_only_not_read_the_policies_goes_on(
    broker: PulsarInMemory, monkeypatch: pytest.MonkeyPatch, known: bool, refused: bool
) -> None:
    def answers(_: PulsarHttp, __: str, url: str, ___: bytes | None) -> HttpAnswer:
        return HttpAnswer(200 if known and url.endswith("/version") else 401, "", {}, b"")

    create_topics(LogConnection(LOG))
    monkeypatch.setattr(topics, "log_admin", log_admin)
    monkeypatch.setattr(PulsarHttp, "_send", answers)
    told = pytest.raises(AccessDeniedError, match=r"the credentials in \[log.pulsar\] are refused")
    with told if refused else nullcontext():
        create_topics(LogConnection(LOG))
