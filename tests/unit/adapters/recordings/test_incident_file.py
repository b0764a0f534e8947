"""The file of an incident: the same bytes for the same content, and nothing unpacked that does not belong into it."""

import tarfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest

from controller.adapters.recordings import incident_file
from controller.adapters.recordings.incident_file import IncidentAbout, unpacked_incident, write_incident
from controller.adapters.recordings.manifest import RecordingError
from controller.adapters.recordings.reading import Recording
from controller.wire.base import encode
from tests.recordings import made, some_log
from tests.records import CLUSTER, T

ABOUT = IncidentAbout(cluster=CLUSTER, around=T, anonymised=False, versions={"trimtab": "0.1.0"})


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    made(tmp_path / "recording", some_log())
    return tmp_path / "recording"


def tar(*members: tuple[str, bytes] | tarfile.TarInfo) -> bytes:
    content = BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as out:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                out.addfile(member)
            else:
                about = tarfile.TarInfo(member[0])
                about.size = len(member[1])
                out.addfile(about, BytesIO(member[1]))
    return content.getvalue()


def nested(headers: int) -> bytes:
    """A tar with so many headers in front of one file, each of which belongs to the next."""
    about = tarfile.TarInfo("x")
    about.type, about.size = tarfile.GNUTYPE_LONGNAME, 512
    return (about.tobuf(tarfile.GNU_FORMAT) + b"name".ljust(512, b"\0")) * headers + tar(*GOOD)


def link(name: str, kind: bytes, target: str = "/etc/passwd") -> tarfile.TarInfo:
    about = tarfile.TarInfo(name)
    about.type, about.linkname = kind, target
    return about


def test_what_was_written_is_read_and_the_same_content_has_the_same_bytes(tmp_path: Path, recording: Path) -> None:
    for name in ("one.tar", "other.tar"):
        size = write_incident(tmp_path / name, ABOUT, recording)
        assert size == (tmp_path / name).stat().st_size
    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "other.tar").read_bytes()
    with unpacked_incident(tmp_path / "one.tar") as found:
        assert found.about == ABOUT
        log = Recording(found.recording)
        assert len(list(log.read("metrics", log.extents("metrics")))) == 20
        folder = found.recording
    assert not folder.exists()


def test_a_file_that_is_there_is_not_replaced(tmp_path: Path, recording: Path) -> None:
    (tmp_path / "kept.tar").write_bytes(b"mine")
    with pytest.raises(RecordingError, match="already exists"):
        write_incident(tmp_path / "kept.tar", ABOUT, recording)
    assert (tmp_path / "kept.tar").read_bytes() == b"mine"


GOOD = [("incident.json", encode(ABOUT)), ("recording/begin.jsonl", b""), ("recording/manifest.json", b"{}")]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (lambda: b"", "not an incident"),
        (lambda: b"\0" * 4096, "has no incident.json"),
        (lambda: b"not a tar at all" * 100, "not an incident"),
        (lambda: tar(*GOOD)[:700], "not an incident|has no"),
        (lambda: nested(5000), "not an incident"),
        (lambda: tar(*GOOD[1:]), "has no incident.json"),
        (lambda: tar(*GOOD[:2]), "has no recording/manifest.json"),
        (lambda: tar(GOOD[0], ("begin.jsonl", b""), GOOD[2]), "an older version of trimtab made it; make it again"),
        (lambda: tar(("incident.json", b"{}"), *GOOD[1:]), "incident.json"),
        (lambda: tar(("incident.json", b"\xff["), *GOOD[1:]), "incident.json"),
        (lambda: tar(*GOOD, GOOD[0]), "appears twice"),
        (lambda: tar(*GOOD, ("../evil", b"x")), "is not part of an incident"),
        (lambda: tar(*GOOD, ("/tmp/evil", b"x")), "is not part of an incident"),
        (lambda: tar(*GOOD, ("recording/../../evil", b"x")), "is not part of an incident"),
        (lambda: tar(*GOOD, ("recording/metrics/000000.parquet/x", b"x")), "is not part of an incident"),
        (lambda: tar(*GOOD, ("recording/metrics/00000\u0660.parquet", b"x")), "is not part of an incident"),
        (lambda: tar(*GOOD, link("recording/metrics/000000.parquet", tarfile.SYMTYPE)), "not a regular file"),
        (lambda: tar(*GOOD, link("recording/metrics/000000.parquet", tarfile.LNKTYPE)), "not a regular file"),
        (lambda: tar(*GOOD, link("recording/metrics", tarfile.DIRTYPE)), "not a regular file"),
        (lambda: tar(*GOOD, link("recording/metrics/000000.parquet", tarfile.CHRTYPE)), "not a regular file"),
        (lambda: tar(*GOOD, link("recording/metrics/000000.parquet", tarfile.FIFOTYPE)), "not a regular file"),
    ],
)
def test_what_does_not_belong_is_refused(tmp_path: Path, content: Callable[[], bytes], says: str) -> None:
    path = tmp_path / "inner" / "bad.tar"
    path.parent.mkdir()
    path.write_bytes(content())
    with pytest.raises(RecordingError, match=says), unpacked_incident(path):
        pytest.fail("it was unpacked")
    assert sorted(each.name for each in tmp_path.rglob("*")) == ["bad.tar", "inner"]


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incident_file, "LARGEST_INCIDENT", 100)
    (tmp_path / "large.tar").write_bytes(tar(*GOOD))
    with pytest.raises(RecordingError, match="allowed: 100"), unpacked_incident(tmp_path / "large.tar"):
        pass


@pytest.mark.parametrize("path", ["/dev/zero", "/nowhere/at/all.tar", "/"])
def test_what_is_no_file_is_refused(path: str) -> None:
    with pytest.raises(RecordingError), unpacked_incident(Path(path)):
        pass
