"""A file that an option of a command names, to be written."""

from pathlib import Path

from controller.adapters.disk import files
from controller.model.errors import SettingsError, TrimtabError


def require_writable(path: Path, option: str) -> None:
    """Raise SettingsError where the file *path* of *option* cannot be written: before the work, not after it.

    A device, a pipe or a folder is refused: a rename would put a file in its place.
    """
    why = f"{path.parent}: no such folder" if not path.parent.is_dir() else files.why_not_writable(path.parent)
    if not why and path.exists() and not path.is_file():
        why = "it is no file"
    if why:
        raise SettingsError(f"{option} {path}: {why}")


def write_output(path: Path, content: bytes, option: str) -> None:
    """Put *content* into the file *path* of *option*, in place of the one that may be there; TrimtabError."""
    require_writable(path, option)
    try:
        files.replace(path, content)
    except OSError as error:
        raise TrimtabError(f"{option} {path}: {error.strerror}") from error
