"""A checkpoint says which version its state has: an earlier release refuses it by name."""

from importlib.metadata import version
from pathlib import Path
from unittest.mock import Mock

import pytest

from controller.aggregate.shard import state_blob
from controller.model.errors import AnotherClusterError, NewerStateError
from streaming import supervisor
from streaming.checkpoint import FolderFiles, refuse_another_cluster, refuse_newer_state
from tests.unit.streaming.test_supervisor import PlayedAssembly, PlayedLeadership

OURS = f"state-{state_blob.VERSION}"
NEXT = state_blob.VERSION + 1


def refuse(folder: Path) -> None:
    refuse_newer_state(FolderFiles(folder), "s3a://bucket/checkpoint")


def test_a_new_checkpoint_and_one_from_before_there_were_marks_get_the_mark_of_this_release(tmp_path: Path) -> None:
    for _ in range(2):
        refuse(tmp_path / "new")
        assert [path.name for path in (tmp_path / "new").iterdir()] == [OURS]
    assert (tmp_path / "new" / OURS).read_text() == f"trimtab {version('trimtab')}"


def test_an_older_state_is_read_and_the_mark_of_who_wrote_it_stays(tmp_path: Path) -> None:
    (tmp_path / "state-1").write_text("trimtab 0.0.9")
    refuse(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["state-1", OURS]


def test_a_later_releases_state_is_refused_by_name_and_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / f"state-{NEXT}").write_text("trimtab 9.1.0\n")
    with pytest.raises(NewerStateError) as caught:
        refuse(tmp_path)
    told = str(caught.value)
    assert f"trimtab 9.1.0 wrote its state in version {NEXT}, trimtab {version('trimtab')} reads" in told
    assert "Start that release again" in told
    assert caught.value.exit_code == 2
    assert [path.name for path in tmp_path.iterdir()] == [f"state-{NEXT}"]


@pytest.mark.parametrize("content", [b"", b"\xff\xfe" * 100_000])
def test_a_damaged_mark_is_refused_all_the_same(tmp_path: Path, content: bytes) -> None:
    (tmp_path / f"state-{NEXT}").write_bytes(content)
    with pytest.raises(NewerStateError) as caught:
        refuse(tmp_path)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    "name", ["state-", "state-x", "state-99999999999999999999", "state", "xstate-9", "state-9.crc"]
)
def test_other_files_are_no_marks(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    refuse(tmp_path)


def test_a_leader_looks_before_its_query_starts(tmp_path: Path) -> None:
    query = Mock()
    refusal = Mock(side_effect=NewerStateError("later"))
    assembly = PlayedAssembly(tmp_path, PlayedLeadership(gone=False), decision_query=query, refuse_newer_state=refusal)
    with pytest.raises(NewerStateError):
        supervisor.balance(assembly, stop=lambda: False, poll_seconds=0.0)
    query.assert_not_called()


def test_a_checkpoint_is_one_clusters_and_one_of_an_earlier_release_is_the_first_ones(tmp_path: Path) -> None:
    files = FolderFiles(tmp_path)
    refuse_newer_state(files, str(tmp_path))  # as an earlier release leaves it
    for _ in range(2):
        refuse_another_cluster(files, str(tmp_path), "east")
    with pytest.raises(
        AnotherClusterError,
        match="of cluster 'east', as its file cluster says: give cluster 'west' a checkpoint of its own",
    ):
        refuse_another_cluster(files, str(tmp_path), "west")
