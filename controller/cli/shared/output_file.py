"""A file that an option of a command names, to be written.  No command overwrites one: a plan may be approved."""

import errno
from pathlib import Path
from typing import Final

from controller.adapters.disk import files
from controller.model.errors import SettingsError, TrimtabError

#: A file system without links, as on a stick or a share, says so.
_NO_LINKS: Final = frozenset({errno.EPERM, errno.ENOTSUP, errno.ENOSYS})

ALREADY_THERE: Final = "it already exists, and is not overwritten: choose another name, or remove it"


def require_writable(path: Path, option: str) -> None:
    """Raise SettingsError where the file *path* of *option* is there, or cannot be written: before the work."""
    why = f"{path.parent}: no such folder" if not path.parent.is_dir() else files.why_not_writable(path.parent)
    if not why and (path.exists() or path.is_symlink()):
        why = ALREADY_THERE if path.is_file() else "it is not a file"
    if why:
        raise SettingsError(f"{option} {path}: {why}")


def write_output(path: Path, content: bytes, option: str) -> None:
    """Put *content* into the new file *path* of *option*; SettingsError where it is there, TrimtabError."""
    require_writable(path, option)
    try:
        try:
            files.create(path, content)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            files.replace(path, content)  # there is no such file, as was just seen
    except FileExistsError:  # somebody has made it meanwhile
        raise SettingsError(f"{option} {path}: {ALREADY_THERE}") from None
    except OSError as error:
        raise TrimtabError(f"{option} {path}: {error.strerror}") from error
