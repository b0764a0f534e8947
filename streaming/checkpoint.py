"""A checkpoint's own files, besides Spark's: in a folder, or through Hadoop's file system where the path is a URI."""

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, Protocol
from uuid import uuid4

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from controller.adapters.disk import files
from controller.adapters.long_work import long_work
from controller.aggregate.shard import state_blob
from controller.model.errors import (
    AccessDeniedError,
    AnotherClusterError,
    SettingsError,
    StateVersionError,
    TrimtabError,
)
from controller.settings.section import is_uri

#: A file of a checkpoint that says in which version its state is.
_MARK: Final = "state-"
_MARKED: Final = re.compile(rf"{_MARK}[0-9]{{1,9}}")
#: A file of a checkpoint with the name of its cluster.
_CLUSTER: Final = "cluster"
#: Of a file's content, bytes that are shown.
_LONGEST: Final = 80
#: Java's error for a file system without a class.
_NO_CLASS: Final = ("ClassNotFoundException", "No FileSystem for scheme")
#: What it says of a place that does not exist or is none: Java's own, and that of s3a.
_MISTAKES: Final = ("IllegalArgumentException", "UnknownStoreException")
#: s3a's error if no provider gives it credentials; the service may be unavailable.
_NO_CREDENTIALS: Final = ("NoAuthWithAWSException",)
#: Errors for refused credentials, from s3a and from HDFS.
_DENIED: Final = ("AccessDeniedException", "AccessControlException")


class CheckpointFiles(Protocol):
    """Small files below a checkpoint's path.  Only the leader writes."""

    def read(self, name: str) -> bytes | None:
        """The content of the file *name*; None if it does not exist."""
        ...

    def create(self, name: str, content: bytes) -> None:
        """Create the file *name*, whole or not at all; one that is there already stays as it is."""
        ...

    def replace(self, name: str, content: bytes) -> None:
        """Write the file *name*, in place of the one that may be there.  OSError, TrimtabError."""
        ...

    def names(self, folder: str) -> tuple[str, ...]:
        """The names in *folder*, in no order; none where it does not exist."""
        ...

    def try_to_write(self) -> None:
        """Write a file and delete it.  TrimtabError where that fails: SettingsError for a mistake of the settings."""
        ...


def refuse_other_version(files: CheckpointFiles, path: str) -> None:
    """Raise StateVersionError if the state of the checkpoint at *path* has another version; else mark its version.

    The mark is a file ``state-<version>``, with the name of the first release that wrote it.  Raises StateVersionError.
    """
    versions = [int(name.removeprefix(_MARK)) for name in files.names(".") if _MARKED.fullmatch(name)]
    newest = max(versions, default=state_blob.VERSION)
    if newest != state_blob.VERSION:
        writer = (files.read(f"{_MARK}{newest}") or b"")[:_LONGEST].decode(errors="replace").strip()
        again = "Start that release again, or a later one; or set" if newest > state_blob.VERSION else "Set"
        raise StateVersionError(
            f"checkpoint.path = {path!r}: {writer or 'another release of trimtab'} wrote its state in version {newest},"
            f" trimtab {version('trimtab')} reads {state_blob.VERSION}.  {again} another "
            f"checkpoint.path, and averages start from scratch"
        )
    files.create(f"{_MARK}{state_blob.VERSION}", f"trimtab {version('trimtab')}".encode())


def refuse_another_cluster(files: CheckpointFiles, path: str, cluster: str) -> None:
    """Make the checkpoint at *path* that of *cluster*: its file ``cluster`` has the name.

    AnotherClusterError where it is another's.  One of an earlier release has no such file.
    """
    of = files.read(_CLUSTER)
    if of is None:
        files.create(_CLUSTER, cluster.encode())
        of = files.read(_CLUSTER) or b""
    if of != cluster.encode():
        name = of[:_LONGEST].decode(errors="replace")
        raise AnotherClusterError(
            f"checkpoint.path = {path!r}: it is that of cluster {name!r}, as its file {_CLUSTER} says: give cluster"
            f" {cluster!r} a checkpoint of its own"
        )


def checkpoint_files(spark: SparkSession, path: str) -> CheckpointFiles:
    """The files below *path*.  SettingsError where Spark has no file system for it, TrimtabError where it fails."""
    return HadoopFiles(spark, path) if is_uri(path) else FolderFiles(Path(path))


class FolderFiles:
    """CheckpointFiles in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, name: str) -> bytes | None:
        """See CheckpointFiles."""
        try:
            return (self._folder / name).read_bytes()
        except FileNotFoundError:
            return None

    def create(self, name: str, content: bytes) -> None:
        """See CheckpointFiles."""
        self._folder.mkdir(parents=True, exist_ok=True)
        try:
            files.create(self._folder / name, content)
        except FileExistsError:
            return

    def replace(self, name: str, content: bytes) -> None:
        """See CheckpointFiles."""
        files.replace(self._folder / name, content)

    def names(self, folder: str) -> tuple[str, ...]:
        """See CheckpointFiles."""
        return tuple(path.name for path in (self._folder / folder).glob("*"))

    def try_to_write(self) -> None:
        """See CheckpointFiles."""
        files.refuse_not_writable("checkpoint.path", str(self._folder))


class HadoopFiles:
    """CheckpointFiles in whatever file system the URI names, as Spark reaches it.

    An object store that does not answer is tried again for many minutes: while that lasts, the log says so.
    """

    def __init__(self, spark: SparkSession, uri: str) -> None:
        self._uri = uri
        self._jvm: Any = spark._jvm
        context: Any = spark.sparkContext
        with self._translated_errors():
            self._root = self._path(uri)
            self._system = self._root.getFileSystem(context._jsc.hadoopConfiguration())

    def read(self, name: str) -> bytes | None:
        """See CheckpointFiles."""
        with self._translated_errors():
            path = self._path(self._root, name)
            if not self._system.exists(path):
                return None
            stream = self._system.open(path)
            try:
                return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
            finally:
                stream.close()

    def create(self, name: str, content: bytes) -> None:
        """See CheckpointFiles.  Written beside, then renamed: some file systems show a file before it is whole."""
        with self._translated_errors():
            path, beside = self._path(self._root, name), self._path(self._root, f".{name}.{uuid4().hex}")
            if self._system.exists(path):
                return
            stream = self._system.create(beside)
            try:
                stream.write(bytearray(content))
            finally:
                stream.close()
            if not self._system.rename(beside, path):
                self._system.delete(beside, False)

    def replace(self, name: str, content: bytes) -> None:
        """See CheckpointFiles.  Not in one step: a file system of Hadoop's may not rename over a file."""
        with self._translated_errors():
            stream = self._system.create(self._path(self._root, name), True)
            try:
                stream.write(bytearray(content))
            finally:
                stream.close()

    def names(self, folder: str) -> tuple[str, ...]:
        """See CheckpointFiles."""
        with self._translated_errors():
            path = self._path(self._root, folder)
            entries = self._system.listStatus(path) if self._system.exists(path) else ()
            return tuple(str(each.getPath().getName()) for each in entries)

    def try_to_write(self) -> None:
        """See CheckpointFiles."""
        with self._translated_errors():
            path = self._path(self._root, f".{uuid4().hex}")
            self._system.create(path).close()
            self._system.delete(path, False)

    def _path(self, *parts: object) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(*parts)

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """Translate errors of the file system.

        SettingsError for a mistake of the settings, AccessDeniedError where it refuses our credentials, TrimtabError
        for all else: it may be away, so the service manager is to start this process again.
        """
        try:
            with long_work(f"waiting for the file system of checkpoint.path = {self._uri!r}"):
                yield
        except Py4JJavaError as error:
            raise _refusal(self._uri, error) from error


def _refusal(uri: str, error: Py4JJavaError) -> TrimtabError:
    """Java's message on one line, with advice if it has no class for the file system."""
    why = f"checkpoint.path = {uri!r}: {' '.join(str(error.java_exception).split())}"
    if any(words in why for words in _NO_CLASS):
        why += (
            '; another file system needs its jars in [spark.conf] "spark.jars" or "spark.jars.packages", and what'
            ' it wants to be told as "spark.hadoop...."'
        )
    kinds: tuple[tuple[Collection[str], type[TrimtabError]], ...] = (
        (_NO_CLASS, SettingsError),
        (_MISTAKES, SettingsError),
        (_NO_CREDENTIALS, TrimtabError),
        (_DENIED, AccessDeniedError),
    )
    kind = next((kind for words, kind in kinds if any(word in why for word in words)), TrimtabError)
    return kind(why)
