"""Reading a file that somebody wrote by hand: settings, a scenario, a secret.  One that has no end is refused.

So is a named pipe: it would be waited for until somebody writes to it.  /dev/stdin, and what a shell makes of
<(command), are no such pipes: somebody has opened them already.
"""

import errno
import stat
from pathlib import Path
from typing import BinaryIO, Final

#: Longest file that is read, bytes.
LARGEST_FILE: Final = 8 << 20
#: Tables and arrays in a file of settings: each may have several errors, and of millions a message takes 8 GB.
MOST_TABLES: Final = 100_000


def why_not_read_again(path: Path) -> str:
    """Why *path* cannot be read now and then while a process runs, which a pipe would stop; "" where it can.

    One that is not there, or that we have no right to, is told by whoever reads it.
    """
    try:
        about = path.stat()
    except OSError:
        return ""
    if not stat.S_ISREG(about.st_mode):
        return "it is a pipe, a device or a folder; expected a regular file"
    return f"it is longer than {LARGEST_FILE >> 20} MiB" if about.st_size > LARGEST_FILE else ""


def open_to_read(path: Path) -> BinaryIO:
    """The file *path*, to be read.  Raises OSError as Path.open does, and also where it is a named pipe."""
    # What a process has inherited leads to no place in a file system.
    if path.is_fifo() and path.resolve().is_fifo():
        raise OSError(errno.EINVAL, "it is a named pipe; expected a regular file", str(path))
    return path.open("rb")


def read_small_file(path: Path) -> bytes:
    """The content of the file *path*.

    Raises OSError as ``open_to_read`` does, and also where the file is longer than LARGEST_FILE; no more than that is
    read, for /dev/zero has no end.
    """
    with open_to_read(path) as file:
        content = file.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise OSError(errno.EFBIG, f"it is longer than {LARGEST_FILE >> 20} MiB", str(path))
    return content


def read_tables(path: Path) -> bytes:
    """The content of the file *path*, which is TOML or JSON.

    Raises OSError as ``read_small_file`` does, and also where it has more than MOST_TABLES tables and arrays.
    """
    content = read_small_file(path)
    tables = content.count(b"[") + content.count(b"{")
    if tables > MOST_TABLES:
        raise OSError(errno.EFBIG, f"it has {tables:,} tables and arrays, allowed: {MOST_TABLES:,}", str(path))
    return content
