"""A log in a folder needs no offsets of Kafka: its checkpoints hold others."""

from pathlib import Path

import pytest

from controller.settings.trimtab_toml import Settings
from streaming.sources import FolderSource
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
