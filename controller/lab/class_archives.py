"""The classes of a server as an archive that its JVM maps into memory: its start takes half of the processor time.

A server that finds no archive for its Java and its jars writes one into its own folder when it is told to end.
"""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from controller.adapters.disk import jars
from controller.adapters.disk.scratch import scratch_folder

#: Where archives are kept.
FOLDER: Final = jars.FOLDER / "trimtab"
_ENDING: Final = ".jsa"
_KEPT_SECONDS: Final = 30 * 86_400
#: Java says nothing where it cannot use an archive, and starts without it.
_QUIET: Final = ("-Xshare:auto", "-Xlog:cds*=off")


def options(server: str, classpath: str, folder: Path | None) -> list[str]:
    """The JVM options that read the archive of *server*, or where there is none have one written to *folder*."""
    archive = FOLDER / f"{server}-{jars.fingerprint(_jars(classpath))}{_ENDING}"
    if archive.exists():
        return [f"-XX:SharedArchiveFile={archive}", *_QUIET]
    return [f"-XX:ArchiveClassesAtExit={folder / archive.name}", *_QUIET] if folder is not None else []


def store_archive(folder: Path) -> None:
    """Keep the archive that a server has written to *folder* as it ended, if any, for those that start later."""
    for written in folder.glob(f"*{_ENDING}"):
        with suppress(OSError):  # it is written again by the next server
            FOLDER.mkdir(parents=True, exist_ok=True)
            with scratch_folder(".archive-", FOLDER) as temporary:
                shutil.move(written, temporary)
                (temporary / written.name).replace(FOLDER / written.name)
            _delete_old(written.stem.partition("-")[0])


def _delete_old(server: str) -> None:
    """Delete archives of other jars and Javas after a month; one that is still used is written again."""
    for archive in FOLDER.glob(f"{server}-*{_ENDING}"):
        if time.time() - archive.stat().st_mtime > _KEPT_SECONDS:
            archive.unlink()


def _jars(classpath: str) -> Iterator[Path]:
    for entry in map(Path, classpath.split(os.pathsep)):
        yield from sorted(entry.parent.glob("*.jar")) if entry.name == "*" else [entry]
