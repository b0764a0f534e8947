"""Calls of Kafka's client that do not return in spite of their timeout."""

import threading
from collections.abc import Iterator
from unittest.mock import Mock

import confluent_kafka as ck
import pytest

from controller.adapters.kafka import transactions as kafka
from controller.adapters.kafka.transactions import Transaction, TransactionalProducer
from controller.model.errors import JournalError


@pytest.fixture
def never() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture(autouse=True)
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka, "_OFFSETS_SECONDS", 0.05)
    monkeypatch.setattr(kafka, "_GRACE_SECONDS", 0.05)


def producer(**calls: object) -> Mock:
    return Mock(**{"flush.return_value": 0, **calls})


def test_offsets_that_are_never_taken_are_given_up(never: threading.Event) -> None:
    stuck = producer(**{"send_offsets_to_transaction.side_effect": lambda *_: never.wait(60)})
    with pytest.raises(ck.KafkaException) as caught:
        Transaction(stuck).send_offsets([], "group")
    assert caught.value.args[0].code() == ck.KafkaError._TIMED_OUT


def test_offsets_that_are_refused_are_refused_with_their_own_error() -> None:
    error = ck.KafkaException(ck.KafkaError(ck.KafkaError.ILLEGAL_GENERATION))
    refused = producer(**{"send_offsets_to_transaction.side_effect": error})
    with pytest.raises(ck.KafkaException) as caught:
        Transaction(refused).send_offsets([], "group")
    assert caught.value is error


def test_offsets_that_are_taken_go_with_the_time_that_there_is() -> None:
    taken = producer()
    transaction = Transaction(taken)
    transaction.send_offsets(["offset"], "group")  # type: ignore[list-item]
    assert taken.send_offsets_to_transaction.call_args.args == (["offset"], "group", 0.05)
    assert not transaction.stuck


def test_a_producer_that_is_stuck_is_not_called_again(never: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    stuck = producer(**{"send_offsets_to_transaction.side_effect": lambda *_: never.wait(60)})
    monkeypatch.setattr("controller.adapters.kafka.transactions.ck.Producer", Mock(return_value=stuck))
    transactional = TransactionalProducer("localhost:1", "id")
    transactional.init()
    with (
        pytest.raises(JournalError, match="no response to the request for the group's offsets"),
        transactional.transaction() as one,
    ):
        one.send_offsets([], "group")
    stuck.abort_transaction.assert_not_called()
    with pytest.raises(JournalError), transactional.transaction():
        pass
    stuck.commit_transaction.assert_not_called()


def test_what_is_refused_is_aborted(monkeypatch: pytest.MonkeyPatch) -> None:
    error = ck.KafkaException(ck.KafkaError(ck.KafkaError.ILLEGAL_GENERATION))
    refused = producer(**{"send_offsets_to_transaction.side_effect": error})
    monkeypatch.setattr("controller.adapters.kafka.transactions.ck.Producer", Mock(return_value=refused))
    transactional = TransactionalProducer("localhost:1", "id")
    transactional.init()
    with pytest.raises(JournalError), transactional.transaction() as one:
        one.send_offsets([], "group")
    refused.abort_transaction.assert_called_once()
