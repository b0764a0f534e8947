"""Which cluster the folder of a file election is of: its file ``cluster`` has the name.

Folders of earlier releases have none: the first process that works there writes it.
"""

from contextlib import suppress
from pathlib import Path
from typing import Final

from controller.adapters.disk import files
from controller.model.errors import AnotherClusterError

_NAME: Final = "cluster"
_MOST_BYTES: Final = 1_000


def claim(folder: Path, cluster: str) -> None:
    """Make *folder* the one of *cluster*.  AnotherClusterError where it is another's; OSError."""
    if not (folder / _NAME).exists():
        folder.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):  # another process came first
            files.create(folder / _NAME, f"{cluster}\n".encode())
    refuse_another(folder, cluster)


def refuse_another(folder: Path, cluster: str) -> None:
    """AnotherClusterError where *folder* is another's than *cluster*'s; OSError where that cannot be read."""
    try:
        with (folder / _NAME).open("rb") as file:
            of = file.read(_MOST_BYTES).decode(errors="replace").strip()
    except FileNotFoundError:
        return
    if of != cluster:
        raise AnotherClusterError(
            f"the election in {folder} is that of cluster {of!r}, as its file {_NAME} says: give cluster {cluster!r} a"
            " folder of its own with election.path"
        )
