"""A checkpoint says which version its state has: other releases refuse it by name."""

from importlib.metadata import version
from pathlib import Path
from unittest.mock import Mock

import pytest

from controller.aggregate.shard import state_blob
from controller.model.errors import AnotherClusterError, StateVersionError
from streaming import supervisor
from streaming.checkpoint import FolderFiles, refuse_another_cluster, refuse_other_version
from tests.unit.streaming.test_supervisor import PlayedAssembly, PlayedLeadership

OURS = f"state-{state_blob.VERSION}"
NEXT = state_blob.VERSION + 1


def refuse(folder: Path) -> None:
    refuse_other_version(FolderFiles(folder), "s3a://bucket/checkpoint")


def test_a_new_checkpoint_and_one_from_before_there_were_marks_get_the_mark_of_this_release(tmp_path: Path) -> None:
    for _ in range(2):
        refuse(tmp_path / "new")
        assert [path.name for path in (tmp_path / "new").iterdir()] == [OURS]
    assert (tmp_path / "new" / OURS).read_text() == f"trimtab {version('trimtab')}"


def test_an_older_state_is_refused_by_name_and_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / "state-1").write_text("trimtab 0.0.9")
    with pytest.raises(StateVersionError, match=r"trimtab 0\.0\.9 wrote its state in version 1, .* Set another"):
        refuse(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["state-1"]


def test_a_state_that_this_release_read_of_an_older_one_is_its_own(tmp_path: Path) -> None:
    (tmp_path / "state-1").write_text("trimtab 0.0.9")
    (tmp_path / OURS).write_text("trimtab 0.1.0")
    refuse(tmp_path)


def test_a_later_releases_state_is_refused_by_name_and_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / f"state-{NEXT}").write_text("trimtab 9.1.0\n")
    with pytest.raises(StateVersionError) as caught:
        refuse(tmp_path)
    told = str(caught.value)
    assert f"trimtab 9.1.0 wrote its state in version {NEXT}, trimtab {version('trimtab')} reads" in told
    assert "Start that release again" in told
    assert caught.value.exit_code == 2
    assert [path.name for path in tmp_path.iterdir()] == [f"state-{NEXT}"]


@pytest.mark.parametrize("content", [b"", b"\xff\xfe" * 100_000])
def test_a_damaged_mark_is_refused_all_the_same(tmp_path: Path, content: bytes) -> None:
    (tmp_path / f"state-{NEXT}").write_bytes(content)
    with pytest.raises(StateVersionError) as caught:
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
    refusal = Mock(side_effect=StateVersionError("later"))
    assembly = PlayedAssembly(
        tmp_path, PlayedLeadership(gone=False), decision_query=query, refuse_other_version=refusal
    )
    with pytest.raises(StateVersionError):
        supervisor.balance(assembly, stop=lambda: False, poll_seconds=0.0)
    query.assert_not_called()


def test_a_checkpoint_is_one_clusters_and_one_of_an_earlier_release_is_the_first_ones(tmp_path: Path) -> None:
    files = FolderFiles(tmp_path)
    refuse_other_version(files, str(tmp_path))  # as an earlier release leaves it
    for _ in range(2):
        refuse_another_cluster(files, str(tmp_path), "east")
    with pytest.raises(
        AnotherClusterError,
        match="of cluster 'east', as its file cluster says: give cluster 'west' a checkpoint of its own",
    ):
        refuse_another_cluster(files, str(tmp_path), "west")
