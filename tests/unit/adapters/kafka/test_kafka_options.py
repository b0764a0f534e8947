"""Options of [log.kafka.client] that librdkafka judges."""

import pytest

from controller.adapters.kafka import transactions as kafka_transactions
from controller.adapters.kafka.transactions import TransactionalProducer
from controller.adapters.outages import Part, servers
from controller.model.errors import JournalError, SettingsError
from controller.settings.trimtab_toml import Settings


@pytest.mark.parametrize("value", ["soon", "1e4", 0, 400_000])
def test_a_value_that_kafkas_client_refuses_is_named_before_anything_is_asked(value: str | int) -> None:
    kafka = {"bootstrap": "localhost:1", "client": {"socket.timeout.ms": value}}
    settings = Settings.model_validate(
        {
            "cluster": {"name": "c"},
            "log": {"kind": "kafka", "kafka": kafka},
            "election": {"kind": "file", "path": "election"},
            "checkpoint": {"path": "checkpoint"},
        }
    )
    with pytest.raises(SettingsError, match=r"^\[log\.kafka\.client\]: .*socket\.timeout\.ms[^\n]*$"):
        servers(settings, [Part.LOG])


@pytest.mark.parametrize("answer_ms", [1_000, 45_000])
def test_an_answer_may_take_longer_than_a_transaction_usually_does(
    answer_ms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_transactions, "PATIENCE_SECONDS", 0.1)
    writer = TransactionalProducer("127.0.0.1:1", "id", {"socket.timeout.ms": answer_ms, "log_level": 0})
    with pytest.raises(JournalError, match="init_transactions"):
        writer.init()
