"""Checks the JSON that a command printed: ``python -m controller.web.printed_json FILE [NAME]``.

Exit code 1: it is no JSON.  Parsed JSON takes many times its size in memory, so this runs in a process of its own, not
in the server.
"""

import json
import os
import sys
from pathlib import Path

from controller.adapters.process.tied_child import end_with_parent


def check(path: Path) -> None:
    """ValueError where the file *path* is not JSON, as when a process was killed while it printed."""
    with path.open("rb") as file:
        json.load(file)


def join_lines(path: Path, name: str) -> None:
    """Make one object of the file *path*, which has JSON on each line: the list *name*.  ValueError as of ``check``."""
    joined = path.with_suffix(".joined")
    with path.open("rb") as lines, joined.open("wb") as out:
        out.write(b'{"%s":[' % name.encode())
        for number, line in enumerate(lines):
            json.loads(line)
            out.write(b",%s" % line.rstrip() if number else line.rstrip())
        out.write(b"]}\n")
    os.replace(joined, path)


def main(path: str, name: str = "") -> None:
    """See the module docstring."""
    end_with_parent()
    try:
        if name:
            join_lines(Path(path), name)
        else:
            check(Path(path))
    except (ValueError, RecursionError) as error:
        sys.exit(f"{error}")


if __name__ == "__main__":
    main(*sys.argv[1:])
