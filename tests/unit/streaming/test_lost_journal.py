"""A journal that lost entries is an error until a person accepts it (accept_loss); verdicts of another stop nobody."""

import shutil
import time
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest
from typer.testing import CliRunner

from controller.adapters.factory import own_verdict_store
from controller.cli import app as cli
from controller.log.journal_evidence import JOURNALLED, content_of
from controller.model.errors import JournalLostError
from controller.settings.trimtab_toml import Settings, read_settings
from controller.wire.commands import command_event, epoch_event
from streaming.assembly import Assembly
from streaming.checkpoint import FolderFiles
from tests.folder_settings import write_settings
from tests.folders import file_of, issue, journal_in
from tests.journal_entries import UNLOAD, entry
from tests.records import CLUSTER, T

NEXT = T + 60_000


def settings(folder: Path) -> Settings:
    return read_settings(write_settings(folder, cluster=CLUSTER))


def lead(folder: Path, *, has_begun: bool = False) -> int:
    """Begin a leadership; returns its epoch."""
    leader = Mock(claim=lambda epoch: claimed(folder, epoch + 1))
    assembly, files = Assembly(settings(folder)), FolderFiles(folder / "checkpoint")
    sink = assembly.decision_sink(leader, assembly.control_store(), Mock(), has_begun=has_begun, files=files)
    return sink.epoch


def claimed(folder: Path, epoch: int) -> int:
    """Store *epoch* in the election, as every leader does first."""
    Assembly(settings(folder)).control_store().raise_epoch(epoch)
    return epoch


def decided(folder: Path, *intervals: int) -> None:
    """The first leader decides *intervals*, with a command in each."""
    journal = journal_in(folder / "log", cluster=CLUSTER)
    epoch = claimed(folder, journal.open().epoch + 1)
    journal.begin_epoch(epoch)
    for interval in intervals:
        command = replace(UNLOAD, id=f"of-{interval}", interval=interval)
        journal.append(entry(interval, command), epoch=epoch, issued_at_ms=interval, before_commit=lambda: None)


def lose(folder: Path, interval: int) -> None:
    """The journal loses the entry of *interval*, and what lies behind it."""
    first = file_of(folder / "log", interval)
    for path in [*first.parent.iterdir()]:
        if path >= first:
            path.unlink()


def test_an_empty_journal_beside_a_checkpoint_that_was_used_is_refused_and_the_message_says_what_to_do(
    tmp_path: Path,
) -> None:
    lead(tmp_path)
    lead(tmp_path, has_begun=True)
    shutil.rmtree(tmp_path / "log" / "journal")
    for _ in range(2):  # a refused start leaves nothing that the next one would take for a journal
        with pytest.raises(JournalLostError) as caught:
            lead(tmp_path, has_begun=True)
    assert f"the checkpoint {tmp_path / 'checkpoint'} says that it was not" in str(caught.value)
    assert "Restore the journal; or go on without what they held" in str(caught.value)
    assert "`trimtab accept-loss`" in str(caught.value)
    assert caught.value.exit_code == 2
    shutil.rmtree(tmp_path / "log" / "commands")  # they have the epochs that were begun
    lead(tmp_path)


def test_a_leader_that_died_before_its_first_batch_is_followed_by_another(tmp_path: Path) -> None:
    lead(tmp_path)
    lead(tmp_path)


def test_a_journal_without_the_interval_of_the_newest_commands_is_refused(tmp_path: Path) -> None:
    decided(tmp_path, T, NEXT)
    lead(tmp_path)
    lose(tmp_path, NEXT)
    with pytest.raises(JournalLostError, match=r"epoch 1, and .*the command topic has commands of interval"):
        lead(tmp_path)


def test_a_journal_that_was_used_farther_than_it_goes_is_refused_though_no_command_is_missing(tmp_path: Path) -> None:
    decided(tmp_path, T)
    files = FolderFiles(tmp_path / "checkpoint")
    files.create("identity", b"x")
    files.replace(JOURNALLED, content_of(T))
    lead(tmp_path, has_begun=True)
    files.replace(JOURNALLED, content_of(NEXT))
    with pytest.raises(JournalLostError, match="was used up to interval"):
        lead(tmp_path, has_begun=True)


def test_a_journal_without_the_epoch_of_the_newest_commands_is_refused(tmp_path: Path) -> None:
    decided(tmp_path, T)
    marks = [epoch_event(CLUSTER, 2, NEXT), command_event(replace(UNLOAD, interval=T), 2, NEXT)]
    issue(tmp_path / "log", marks)
    claimed(tmp_path, 2)
    with pytest.raises(JournalLostError, match=r"ends with interval .*, epoch 1, and"):
        lead(tmp_path)


def test_commands_of_an_epoch_that_no_leader_claimed_refuse_nothing_and_hide_no_older_ones(tmp_path: Path) -> None:
    decided(tmp_path, T, NEXT)
    forged = command_event(replace(UNLOAD, interval=NEXT + 60_000), 2, NEXT + 60_000)
    issue(tmp_path / "log", [forged])
    assert lead(tmp_path) == 3  # above the forged epoch, so that executors believe the leader
    issue(tmp_path / "log", [command_event(replace(UNLOAD, interval=NEXT + 60_000), 9, NEXT + 60_000)])
    lose(tmp_path, NEXT)
    with pytest.raises(JournalLostError, match="the command topic has commands of interval"):
        lead(tmp_path)


@pytest.mark.parametrize("noted", [b"", b"00000", b"not a number yet", content_of(T)])
def test_a_note_that_is_half_written_or_older_than_the_journal_refuses_nothing(tmp_path: Path, noted: bytes) -> None:
    decided(tmp_path, T, NEXT)
    files = FolderFiles(tmp_path / "checkpoint")
    files.create(JOURNALLED, noted)
    lead(tmp_path, has_begun=True)


def test_commands_of_another_cluster_and_damaged_ones_refuse_nothing(tmp_path: Path) -> None:
    decided(tmp_path, T)
    another = command_event(replace(UNLOAD, cluster="another", interval=NEXT), 9, NEXT)
    issue(tmp_path / "log", [another, b"{damaged"])
    lead(tmp_path)


@pytest.mark.slow
def test_after_accept_loss_it_starts_paused_above_all_epochs_and_a_later_loss_is_refused_again(tmp_path: Path) -> None:
    decided(tmp_path, T)
    decided(tmp_path, NEXT)
    lose(tmp_path, NEXT)
    with pytest.raises(JournalLostError):
        lead(tmp_path)
    accepted = CliRunner().invoke(cli.app, ["accept-loss", "--conf", str(tmp_path / "trimtab.toml")])
    assert accepted.exit_code == 0, accepted.output
    assert lead(tmp_path) == 3
    controls, _ = Assembly(settings(tmp_path)).control_store().read()
    assert [each.reason for each in controls.pauses] == ["journal entries lost"]
    soon = time.time_ns() // 1_000_000 + 60_000
    FolderFiles(tmp_path / "checkpoint").replace(JOURNALLED, content_of(soon))
    with pytest.raises(JournalLostError):
        lead(tmp_path)


def test_where_verdicts_are_another_clusters_a_leader_keeps_none_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "checkpoint" / "verdicts"
    folder.mkdir(parents=True)
    (folder / "cluster").write_text("west\n")
    lead(tmp_path)
    [told] = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert f"cannot store verdicts; decisions continue: {folder} is of cluster 'west'" in told
    assert f"give cluster '{CLUSTER}' a folder of its own with journal.verdicts_path" in told
    assert own_verdict_store(settings(tmp_path)) is None
