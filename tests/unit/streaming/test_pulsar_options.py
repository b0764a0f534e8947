"""What the source of a log in Pulsar is told, through Spark's options."""

from pathlib import Path

from controller.adapters.pulsar.log.gate_file import GateFile
from controller.aggregate.places import Span
from controller.settings.pulsar_log import PulsarLogSettings
from streaming.pulsar.options import PulsarOptions

LOG = PulsarLogSettings(service_url="pulsar://b:6650", admin_url=("http://b:8080",), token_file="/secrets/token")


def test_options_come_back_from_spark_as_they_were() -> None:
    options = PulsarOptions(
        log=LOG, max_entries=9, start_ms=1_732_000_000_000, gate="/x/gate", spans=[Span(1, 2, "", 3, 1 << 62)]
    )
    assert PulsarOptions.from_spark(options.to_spark()) == options
    assert all(isinstance(value, str) for value in options.to_spark().values())


def test_options_name_the_file_of_a_token_and_not_the_token(tmp_path: Path) -> None:
    secret = tmp_path / "token"
    secret.write_text("eyJhbGciOi")
    told = PulsarOptions(log=LOG.model_copy(update={"token_file": str(secret)})).to_spark()
    assert str(secret) in told["log"]
    assert "eyJhbGciOi" not in str(told)


def test_a_gate_counts_how_often_it_was_opened(tmp_path: Path) -> None:
    gate = GateFile(tmp_path / "gate")
    assert gate.times_opened() is None
    gate.open()
    gate.open()
    assert GateFile(tmp_path / "gate").times_opened() == 2
