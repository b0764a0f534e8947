"""No ACLs at all: librdkafka gives none as well where they may not be read, and where there is no authorizer."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka.admin import AclOperation  # type: ignore[attr-defined]

from controller.adapters.kafka import acls as kafka_acls
from controller.adapters.kafka.acls import read_acls
from controller.model.errors import AccessDeniedError

CLIENT = {"sasl.username": "alice"}


def answered(value: Any) -> "Future[Any]":
    future: Future[Any] = Future()
    future.set_result(value)
    return future


class PlayedAdmin:
    """A broker without ACLs, for somebody with *operations* on the cluster."""

    def __init__(self, operations: list[Any], authorizer: str) -> None:
        self._operations, self._authorizer = operations, authorizer

    def describe_acls(self, *_: object, **__: object) -> Any:
        return answered([])

    def describe_cluster(self, **_: object) -> Any:
        return answered(SimpleNamespace(authorized_operations=self._operations, nodes=[SimpleNamespace(id=1)]))

    def describe_configs(self, resources: list[Any], **_: object) -> Any:
        return {resources[0]: answered({"authorizer.class.name": SimpleNamespace(value=self._authorizer)})}


def read(monkeypatch: pytest.MonkeyPatch, operations: list[Any], authorizer: str) -> Any:
    monkeypatch.setattr(kafka_acls, "AdminClient", lambda *_, **__: PlayedAdmin(operations, authorizer))
    return read_acls("kafka:9092", client=CLIENT, answer_seconds=1)


def test_who_may_not_describe_the_cluster_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AccessDeniedError, match=r"user 'alice' of .* may not Describe the cluster"):
        read(monkeypatch, [AclOperation.CREATE], "StandardAuthorizer")


def test_no_authorizer_is_not_the_same_as_no_acls(monkeypatch: pytest.MonkeyPatch) -> None:
    everything = [AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS]
    assert read(monkeypatch, everything, "") is None
    assert read(monkeypatch, everything, "StandardAuthorizer") == ()
