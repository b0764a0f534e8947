"""Calls that ask one of several brokers, of which one no longer answers."""

import threading
import time
from types import SimpleNamespace

import confluent_kafka as ck
import pytest

from controller.adapters.kafka.client import ANSWER_MS, NO_CLIENT
from controller.adapters.kafka.topics import topics_there
from controller.adapters.kafka.writer import Producer
from controller.model.errors import TrimtabError


class Brokers:
    """Calls wait in vain for a broker that lost its machine, until its connection is given up.

    The clock of the thread that makes them is theirs; other threads keep their own.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, lost_seconds: float) -> None:
        self.now, self._lost_seconds = 0.0, lost_seconds
        monkeypatch.setattr("controller.adapters.kafka.topics.silence", lambda *_: TrimtabError("silent"))
        monkeypatch.setattr("controller.adapters.kafka.topics.why_unreachable", lambda *_: "")
        own, clock, sleep = threading.get_ident(), time.monotonic, time.sleep
        monkeypatch.setattr("time.monotonic", lambda: self.now if threading.get_ident() == own else clock())
        monkeypatch.setattr("time.sleep", lambda each: (self._pass if threading.get_ident() == own else sleep)(each))

    def _pass(self, seconds: float) -> None:
        self.now += seconds

    def list_topics(self, topic: str, timeout: float) -> SimpleNamespace:
        if self.now < self._lost_seconds:
            self._pass(timeout)
            raise ck.KafkaException(ck.KafkaError(ck.KafkaError._TIMED_OUT))
        partition = SimpleNamespace(leader=1)
        return SimpleNamespace(topics={topic: SimpleNamespace(error=None, partitions={0: partition})})


def test_a_lost_broker_is_given_up_before_a_question_about_a_topic_is(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = Brokers(monkeypatch, lost_seconds=ANSWER_MS / 1000)
    monkeypatch.setattr("controller.adapters.kafka.writer.ck.Producer", lambda *_, **__: brokers)
    assert Producer("localhost:1").existing("journal").partitions == 1


def test_a_question_about_a_topic_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = Brokers(monkeypatch, lost_seconds=1_000)
    with pytest.raises(TrimtabError, match="cannot be reached"):
        topics_there(brokers, "localhost:1", NO_CLIENT, "journal", 15.0)
    assert brokers.now < 30
