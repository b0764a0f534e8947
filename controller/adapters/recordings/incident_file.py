"""An incident in one file: a recording with what was known when it began, and versions.  An uncompressed tar.

    incident.json                     what it is about, and who wrote it
    recording/manifest.json           the recording (docs/recordings.md)
    recording/begin.jsonl             ...
    recording/metrics/000000.parquet

The same content has the same bytes.  A file from somebody else may hold anything: only these names are unpacked, each
once, only plain files, and no more bytes than the file itself has.
"""

import os
import re
import stat
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field

from controller.adapters.disk import files
from controller.adapters.disk.scratch import scratch_folder
from controller.adapters.recordings.manifest import BEGIN, MANIFEST, MOST_FILES, RecordingError
from controller.model.errors import WireError
from controller.wire.base import Millis, Name, Record, encode, validate

#: Bytes of such a file at most.
LARGEST_INCIDENT: Final = 1 << 30
_ABOUT, _RECORDING = "incident.json", "recording"
_LARGEST_ABOUT: Final = 1 << 20
_PARTS: Final = re.compile(
    r"recording/(manifest\.json|begin\.jsonl|(metrics|results|commands|journal)/[0-9]{6}\.parquet)", re.ASCII
)
_PLAIN: Final = 0o644


class IncidentAbout(Record):
    """What an incident is about."""

    format: Literal["trimtab-incident"] = "trimtab-incident"
    version: Literal[2] = 2
    cluster: Name
    around: Millis
    """T of the interval that it is about, epoch ms."""
    anonymised: bool
    """Whether names were replaced."""
    versions: Annotated[dict[str, str], Field(max_length=100)]
    """Of what made the decisions: trimtab, Python, NumPy, and the brokers' as they report it."""


def write_incident(path: Path, about: IncidentAbout, recording: Path) -> int:
    """Write *path*, a new file, with the *recording* in a folder; returns its size.

    RecordingError where it is too large, or is there already.
    """
    content = BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        _add(tar, _ABOUT, encode(about) + b"\n")
        for file in sorted(recording.rglob("*")):
            name = f"{_RECORDING}/{file.relative_to(recording).as_posix()}"
            if file.is_file() and _PARTS.fullmatch(name):
                _add(tar, name, file.read_bytes())
    value = content.getvalue()
    if len(value) > LARGEST_INCIDENT:
        raise RecordingError(f"the incident has {len(value)} bytes, allowed: {LARGEST_INCIDENT}: give fewer --minutes")
    try:
        files.create(path, value)
    except FileExistsError:
        raise RecordingError(f"{path}: already exists; choose another name with -o") from None
    return len(value)


def _add(tar: tarfile.TarFile, name: str, value: bytes) -> None:
    about = tarfile.TarInfo(name)
    about.size, about.mode = len(value), _PLAIN
    tar.addfile(about, BytesIO(value))


class UnpackedIncident:
    """An incident that was read, with its recording in a folder."""

    def __init__(self, about: IncidentAbout, recording: Path) -> None:
        self.about, self.recording = about, recording


@contextmanager
def unpacked_incident(path: Path) -> Iterator[UnpackedIncident]:
    """The incident in the file *path*, unpacked for the length of the block.

    Raises RecordingError where it is damaged, too large, or no incident.
    """
    with scratch_folder("trimtab-incident-") as folder:
        about_json = _unpack(path, folder)
        if about_json is None:
            raise RecordingError(f"{path}: has no {_ABOUT}: it is not an incident made by `trimtab incident make`")
        if not (folder / _RECORDING / MANIFEST).is_file():
            raise RecordingError(f"{path}: has no {_RECORDING}/{MANIFEST}: it is truncated; copy it again")
        try:
            about = validate(IncidentAbout, about_json)
        except WireError as error:
            raise RecordingError(f"{path}, {_ABOUT}: {error.detail}") from error
        yield UnpackedIncident(about, folder / _RECORDING)


def _unpack(path: Path, folder: Path) -> bytes | None:
    """Unpack the recording into *folder*; returns what the incident is about, None where it does not say so."""
    about_json: bytes | None = None
    names = set[str]()
    try:
        with tarfile.open(fileobj=BytesIO(_content(path)), mode="r:") as tar:
            for about in tar:
                name = about.name
                if name in names or not about.isreg() or about.sparse or len(names) > MOST_FILES:
                    raise RecordingError(
                        f"{path}: {name!r:.80} appears twice or is not a regular file: not an incident"
                    )
                names.add(name)
                member = tar.extractfile(about)
                value = b"" if member is None else member.read()
                if name == _ABOUT and len(value) <= _LARGEST_ABOUT:
                    about_json = value
                elif _PARTS.fullmatch(name):
                    target = folder / name
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(value)
                elif name == BEGIN:
                    raise RecordingError(
                        f"{path}: {BEGIN} is not in its recording: an older version of trimtab made it; make it again"
                    )
                else:
                    raise RecordingError(f"{path}: {name!r:.80} is not part of an incident")
    except (tarfile.TarError, ValueError, OverflowError, EOFError, RecursionError) as error:
        raise RecordingError(f"{path}: not an incident, or damaged: {error}") from error
    return about_json


def _content(path: Path) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            about = os.fstat(descriptor)
            if not stat.S_ISREG(about.st_mode):
                raise RecordingError(f"{path}: is not a regular file")
            if about.st_size > LARGEST_INCIDENT:
                raise RecordingError(f"{path}: has {about.st_size} bytes, allowed: {LARGEST_INCIDENT}")
            return file.read(LARGEST_INCIDENT)
    except OSError as error:
        raise RecordingError(f"{path}: cannot be read: {error.strerror}") from error
