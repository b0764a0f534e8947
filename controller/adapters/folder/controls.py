"""The operator's controls in the folder of a file election: ``controls.json`` beside ``epoch``."""

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from controller.adapters.disk import files
from controller.adapters.disk.cluster_file import claim, refuse_another
from controller.adapters.election.controls import ABSENT
from controller.adapters.folder.changes_lock import changes_locked, lock_in
from controller.adapters.folder.disk_errors import content_of
from controller.adapters.folder.epoch_file import epoch_in
from controller.model.controls import OperatorControls
from controller.model.errors import ControlsUnreachableError
from controller.wire.controls import encode_controls, stored_controls

#: The setting that names the folder of a file election.
ELECTION_PATH: Final = "election.path"


class FileControls:
    """ControlStore in the folder of a file election: ``controls.json`` beside ``epoch``.

    Every method raises AnotherClusterError where the folder is another cluster's.
    """

    def __init__(self, folder: Path, *, cluster: str) -> None:
        self._folder, self._cluster = folder, cluster
        self._file, self._epoch, self._lock = folder / "controls.json", folder / "epoch", lock_in(folder)

    def read(self) -> tuple[OperatorControls, int]:
        """See ControlStore."""
        value = self._value()
        if value is None:
            return OperatorControls(), ABSENT
        return stored_controls(value, str(self._file)), zlib.crc32(value)

    def write(self, controls: OperatorControls, version: int) -> bool:
        """See ControlStore."""
        with self._locked():
            if self.version() != version:
                return False
            files.replace(self._file, encode_controls(controls))
            return True

    def version(self) -> int:
        """See ControlStore."""
        value = self._value()
        return ABSENT if value is None else zlib.crc32(value)

    def epoch(self) -> int:
        """See ControlStore."""
        try:
            refuse_another(self._folder, self._cluster, key=ELECTION_PATH)
            return epoch_in(self._epoch) or 0
        except OSError as error:
            raise ControlsUnreachableError(f"{self._epoch}: {error.strerror}") from error

    def raise_epoch(self, epoch: int) -> None:
        """See ControlStore."""
        with self._locked():
            if self.epoch() < epoch:
                files.replace(self._epoch, b"%d\n" % epoch)

    def close(self) -> None:
        """See ControlStore."""

    def _value(self) -> bytes | None:
        try:
            refuse_another(self._folder, self._cluster, key=ELECTION_PATH)
            return content_of(self._file)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ControlsUnreachableError(f"{error.filename or self._file}: {error.strerror}") from error

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            if not (self._file.exists() or self._epoch.exists()):
                # Nobody has worked here yet.  A folder of an earlier release is claimed by who leads there.
                claim(self._folder, self._cluster, key=ELECTION_PATH)
        except OSError as error:
            raise ControlsUnreachableError(f"{self._lock}: {error.strerror}") from error
        try:
            with changes_locked(self._folder):
                yield
        except OSError as error:
            raise ControlsUnreachableError(f"{self._file}: {error.strerror}") from error
