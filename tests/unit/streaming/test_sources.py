"""What Spark is told about a log, and what it is not asked for."""

from pathlib import Path

import pytest

from controller.settings.log import KafkaLogSettings
from controller.settings.trimtab_toml import Settings
from streaming.sources import FolderSource, kafka_options
from tests.records import T


def test_a_log_in_a_folder_does_not_look_for_offsets_of_kafka_in_its_checkpoint(tmp_path: Path) -> None:
    settings = Settings.model_validate(
        {
            "cluster": {"name": "demo"},
            "log": {"kind": "folder", "folder": {"path": str(tmp_path)}},
            "election": {"kind": "file", "path": str(tmp_path)},
            "checkpoint": {"path": str(tmp_path)},
        }
    )
    source = FolderSource(tmp_path, settings)
    assert source.backlog(lambda: pytest.fail("looked for Kafka's offsets"), T) is None


@pytest.mark.parametrize(("client", "answer_ms"), [({}, 10_000), ({"socket.timeout.ms": 45_000}, 45_000)])
def test_spark_gives_up_a_broker_that_does_not_answer_and_asks_others_for_minutes(
    client: dict[str, str | int | float | bool], answer_ms: int
) -> None:
    options = kafka_options(KafkaLogSettings(bootstrap="localhost:1", client=client), 1 << 20)
    # Kafka's admin client would wait for all its attempts, and refuses less time for all than for one.
    assert options["kafka.request.timeout.ms"] == options["kafka.default.api.timeout.ms"] == str(answer_ms)
    assert int(options["fetchOffset.numRetries"]) * answer_ms == 180_000
