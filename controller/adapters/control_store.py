"""Where it is kept what persons have set: beside the election, so that every controller of the cluster sees it."""

import fcntl
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol

from kazoo.exceptions import BadVersionError, KazooException, NodeExistsError, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

from controller.adapters import files
from controller.adapters.zookeeper.access import ZooKeeperAccess, election_access
from controller.adapters.zookeeper.client import ZooKeeperConnection
from controller.model.controls import OperatorControls
from controller.model.errors import TrimtabError, WireError
from controller.settings.election import ElectionByFile
from controller.settings.trimtab_toml import Settings
from controller.wire.controls import encode_controls, parse_controls

#: The version of what is not there yet.
ABSENT: Final = -1
_ANSWER_SECONDS: Final = 5.0


class ControlsUnreachableError(TrimtabError):
    """What persons have set cannot be read or written now."""


class ControlsCorruptError(TrimtabError):
    """What is kept is no controls; nothing may be issued until somebody sets them anew."""


class ControlStore(Protocol):
    """The controls of one cluster, and the number below which no leadership goes on."""

    def read(self) -> tuple[OperatorControls, int]:
        """What persons have set, and its version.  ControlsUnreachableError, ControlsCorruptError."""
        ...

    def write(self, controls: OperatorControls, version: int) -> bool:
        """Set *controls* in the place of what has *version*; False where that is another one's by now."""
        ...

    def version(self) -> int:
        """The version of what is kept, readable or not."""
        ...

    def epoch(self) -> int:
        """The number of the newest leadership; 0 before the first."""
        ...

    def raise_epoch(self, epoch: int) -> None:
        """End every leadership below *epoch*: at its next check it finds out."""
        ...

    def close(self) -> None:
        """Give back what was opened."""
        ...


class FileControls:
    """ControlStore in the folder of a file election: ``controls.json`` beside ``epoch``."""

    def __init__(self, folder: Path) -> None:
        self._file, self._epoch, self._lock = folder / "controls.json", folder / "epoch", folder / "controls.lock"

    def read(self) -> tuple[OperatorControls, int]:
        """See ControlStore."""
        value = self._value()
        return (OperatorControls(), ABSENT) if value is None else (_parsed(value, str(self._file)), zlib.crc32(value))

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
            text = self._epoch.read_text(encoding="ascii")
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise ControlsUnreachableError(f"{self._epoch}: {error.strerror}") from error
        return int(text) if text.strip().isdigit() else 0

    def raise_epoch(self, epoch: int) -> None:
        """See ControlStore."""
        with self._locked():
            if self.epoch() < epoch:
                files.replace(self._epoch, b"%d\n" % epoch)

    def close(self) -> None:
        """See ControlStore."""

    def _value(self) -> bytes | None:
        try:
            return self._file.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ControlsUnreachableError(f"{self._file}: {error.strerror}") from error

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            self._lock.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise ControlsUnreachableError(f"{self._lock}: {error.strerror}") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        except OSError as error:
            raise ControlsUnreachableError(f"{self._file}: {error.strerror}") from error
        finally:
            os.close(descriptor)


class ZooKeeperControls:
    """ControlStore in the node ``<path>/<cluster>/controls``; connects when it is first used."""

    def __init__(self, *, access: ZooKeeperAccess, path: str, cluster: str, session_timeout_seconds: float) -> None:
        root = f"{path.rstrip('/')}/{cluster}"
        self._node, self._epoch, self._access = f"{root}/controls", f"{root}/epoch", access
        self._connection = ZooKeeperConnection(access, session_seconds=session_timeout_seconds)
        self._client = self._connection.client

    def read(self) -> tuple[OperatorControls, int]:
        """See ControlStore."""
        found = self._get(self._node)
        return (OperatorControls(), ABSENT) if found is None else (_parsed(found[0], self._where(self._node)), found[1])

    def write(self, controls: OperatorControls, version: int) -> bool:
        """See ControlStore."""
        return self._put(self._node, encode_controls(controls), version)

    def version(self) -> int:
        """See ControlStore."""
        found = self._get(self._node)
        return ABSENT if found is None else found[1]

    def epoch(self) -> int:
        """See ControlStore."""
        found = self._get(self._epoch)
        return int(found[0]) if found is not None and found[0].isdigit() else 0

    def raise_epoch(self, epoch: int) -> None:
        """See ControlStore."""
        while True:
            found = self._get(self._epoch)
            stored, version = (0, ABSENT) if found is None else (int(found[0]) if found[0].isdigit() else 0, found[1])
            if stored >= epoch or self._put(self._epoch, b"%d" % epoch, version):
                return

    def close(self) -> None:
        """See ControlStore."""
        self._connection.close()

    def _get(self, node: str) -> tuple[bytes, int] | None:
        try:
            value, stat = self._ask(node, "get_async", node)
        except NoNodeError:
            return None
        return bytes(value), int(stat.version)

    def _put(self, node: str, value: bytes, version: int) -> bool:
        try:
            if version == ABSENT:
                self._ask(node, "ensure_path_async", node.rpartition("/")[0])
                self._ask(node, "create_async", node, value)
            else:
                self._ask(node, "set_async", node, value, version=version)
        except (NodeExistsError, BadVersionError, NoNodeError):
            return False
        return True

    def _ask(self, node: str, request: str, *arguments: Any, **more: Any) -> Any:
        try:
            if self._connection.ended:
                self._connection.open(_ANSWER_SECONDS)
            if not self._client.connected:
                raise ControlsUnreachableError(f"{self._where(node)}: no connection")
            return getattr(self._client, request)(*arguments, **more).get(timeout=_ANSWER_SECONDS)
        except (NoNodeError, NodeExistsError, BadVersionError, ControlsUnreachableError):
            raise
        except KazooTimeoutError as error:
            raise ControlsUnreachableError(f"{self._where(node)}: no answer within {_ANSWER_SECONDS:g} s") from error
        except KazooException as error:
            raise ControlsUnreachableError(str(self._access.refusal(error, node))) from error
        except TrimtabError as error:
            raise ControlsUnreachableError(str(error)) from error

    def _where(self, node: str) -> str:
        return f"{node} in ZooKeeper at {self._access.hosts}"


def control_store(settings: Settings) -> ControlStore:
    """The store of the cluster in *settings*."""
    election = settings.election
    if isinstance(election, ElectionByFile):
        return FileControls(Path(election.path))
    return ZooKeeperControls(
        access=election_access(election),
        path=election.path,
        cluster=settings.cluster.name,
        session_timeout_seconds=election.session_timeout_seconds,
    )


def _parsed(value: bytes, where: str) -> OperatorControls:
    try:
        return parse_controls(value)
    except WireError as error:
        raise ControlsCorruptError(
            f"{where} holds no controls ({error}): set them anew with `trimtab pause` and `trimtab resume`"
        ) from error
