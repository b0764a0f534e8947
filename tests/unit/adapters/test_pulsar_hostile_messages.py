"""Messages in which a producer has written what no client of ours would, and answers that no broker would give."""

from dataclasses import dataclass
from threading import Event
from typing import Any

import pulsar
import pytest

from controller.adapters.calls import NoAnswerError
from controller.adapters.pulsar.http import PulsarError
from controller.adapters.pulsar.log import sequenced
from controller.adapters.pulsar.log.connection import LogConnection
from controller.adapters.pulsar.log.ends import read_extent
from controller.adapters.pulsar.log.reader import OLDEST, PartitionReader
from controller.adapters.pulsar.log.sequenced import SequencedWriter
from controller.adapters.pulsar.log.tail import newest_first
from controller.adapters.pulsar.log.topics import create_topics
from controller.model.errors import TrimtabError
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
    [found] = PartitionReader(connection, "metrics", 0, OLDEST).rest()
    assert (found.key, found.value, dict(found.properties)) == ("", b"0", {})


def test_a_time_of_64_bits_is_cut_to_63(broker: PulsarInMemory, connection: LogConnection) -> None:
    put(broker, (1 << 64) - 1)
    [found] = PartitionReader(connection, "metrics", 0, OLDEST).rest()
    assert found.timestamp_ms == (1 << 63) - 1


NOW = 1_700_000_000_000


@pytest.mark.parametrize("first", [0, 1, NOW - 86_400_000, (1 << 64) - 1])
def test_the_end_is_found_whatever_the_oldest_record_claims(
    broker: PulsarInMemory, connection: LogConnection, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(broker, first, *range(NOW, NOW + 50))
    looks: list[str] = []
    whole = Client.create_reader

    def counted(self: Client, full: str, start: Any, **asked: Any) -> Any:
        looks.append(full)
        return whole(self, full, start, **asked)

    monkeypatch.setattr(Client, "create_reader", counted)
    found = [record.value for record in newest_first(connection, "metrics")]
    assert found == [b"%d" % nth for nth in range(50, -1, -1)]
    assert len(looks) < 30


def test_a_connection_that_comes_too_late_does_not_keep_the_name(
    broker: PulsarInMemory, connection: LogConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_come, whole, made = Event(), Client.create_producer, list[Any]()

    def slowly(*args: Any, **kwargs: Any) -> Any:
        may_come.wait(30)
        made.append(whole(*args, **kwargs))
        return made[0]

    monkeypatch.setattr(sequenced, "_NAME_SECONDS", 0.01)
    monkeypatch.setattr(Client, "create_producer", slowly)
    writer = SequencedWriter(connection, writer="trimtab-ticks")
    with pytest.raises(TrimtabError) as caught:
        writer.connect([("metrics", 0)])
    assert isinstance(caught.value.__cause__, NoAnswerError)
    monkeypatch.setattr(Client, "create_producer", whole)
    monkeypatch.setattr(sequenced, "_NAME_SECONDS", 15.0)
    may_come.set()
    SequencedWriter(connection, writer="trimtab-ticks").connect([("metrics", 0)])
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
