"""A lost journal is an error, not an empty journal to start with; verdicts of another cluster stop nobody."""

import shutil
from pathlib import Path
from unittest.mock import Mock

import pytest

from controller.adapters.opened import own_verdict_store
from controller.model.errors import JournalLostError
from controller.settings.trimtab_toml import Settings
from streaming.assembly import Assembly


def settings(folder: Path) -> Settings:
    (folder / "broker.conf").write_text("", encoding="utf-8")
    return Settings.model_validate(
        {
            "cluster": {"name": "lab", "broker_conf": str(folder / "broker.conf")},
            "log": {"kind": "folder", "folder": {"path": str(folder / "log")}},
            "election": {"kind": "file", "path": str(folder / "election")},
            "checkpoint": {"path": str(folder / "checkpoint")},
        }
    )


def lead(folder: Path, *, has_begun: bool) -> None:
    leader = Mock(claim=lambda epoch: epoch + 1)
    assembly = Assembly(settings(folder))
    assembly.decision_sink(leader, assembly.control_store(), Mock(), has_begun=has_begun)


def test_an_empty_journal_beside_a_checkpoint_that_was_used_is_refused_and_the_message_says_what_to_do(
    tmp_path: Path,
) -> None:
    lead(tmp_path, has_begun=False)
    lead(tmp_path, has_begun=True)
    shutil.rmtree(tmp_path / "log" / "journal")
    for _ in range(2):  # a refused start leaves nothing that the next one would take for a journal
        with pytest.raises(JournalLostError) as caught:
            lead(tmp_path, has_begun=True)
    assert f"the checkpoint {tmp_path / 'checkpoint'} says that it was not" in str(caught.value)
    assert "restore the journal; or, to begin without memory, move the checkpoint away" in str(caught.value)
    assert caught.value.exit_code == 2
    lead(tmp_path, has_begun=False)


def test_a_leader_that_died_before_its_first_batch_is_followed_by_another(tmp_path: Path) -> None:
    lead(tmp_path, has_begun=False)
    lead(tmp_path, has_begun=False)


def test_where_verdicts_are_another_clusters_a_leader_keeps_none_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "checkpoint" / "verdicts"
    folder.mkdir(parents=True)
    (folder / "cluster").write_text("west\n")
    lead(tmp_path, has_begun=False)
    [told] = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert f"verdicts are not kept, decisions go on: {folder} is of cluster 'west'" in told
    assert "give cluster 'lab' a folder of its own with journal.verdicts_path" in told
    assert own_verdict_store(settings(tmp_path)) is None
