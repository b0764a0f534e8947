"""The cluster that a folder belongs to, for folders that only one cluster may use: the file ``cluster`` has its name.

Folders of earlier releases lack it; the first process that uses such a folder writes it.
"""

from contextlib import suppress
from pathlib import Path
from typing import Final

from controller.adapters.disk import files
from controller.model.errors import AnotherClusterError
from controller.settings.small_file import open_to_read

_NAME: Final = "cluster"
_MOST_BYTES: Final = 1_000


def claim(folder: Path, cluster: str, *, key: str) -> None:
    """Make *folder*, which the setting *key* names, the one of *cluster*.

    AnotherClusterError if it belongs to another cluster; OSError.
    """
    if not (folder / _NAME).exists():
        folder.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):  # another process came first
            files.create(folder / _NAME, f"{cluster}\n".encode())
    refuse_another(folder, cluster, key=key)


def refuse_another(folder: Path, cluster: str, *, key: str) -> None:
    """AnotherClusterError if *folder*, which *key* names, belongs to another cluster than *cluster*; OSError."""
    try:
        with open_to_read(folder / _NAME) as file:
            of = file.read(_MOST_BYTES).decode(errors="replace").strip()
    except FileNotFoundError:
        return
    if of != cluster:
        raise AnotherClusterError(
            f"{folder} is of cluster {of!r}, as its file {_NAME} says: give cluster {cluster!r} a folder of its own"
            f" with {key}"
        )
