"""The commit that this trimtab was made from.

``controller/commit.txt`` holds it in a wheel, in an sdist and in what ``git archive`` writes.  In a checkout the file
has a placeholder, and git is asked.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

FILE: Final = Path(__file__).parents[2] / "commit.txt"
#: As many digits as no two commits of a repository share.
_DIGITS: Final = 12
_SECONDS: Final = 10


def commit(file: Path = FILE) -> str:
    """The first digits of the commit; ``-dirty`` follows where files differed from it.  Empty where it is not known.

    Calls git in a checkout, so not for a thread that has to go on.
    """
    try:
        text = file.read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return ""
    if text.startswith("$"):
        return _of_checkout(file.parents[1])
    digits, *changed = text.split("-")
    return "-".join([digits[:_DIGITS], *changed])


@contextmanager
def named_in_the_file(file: Path = FILE) -> Iterator[None]:
    """For as long as something is built from a checkout, have *file* name the commit instead of the placeholder."""
    before = file.read_bytes()
    known = commit(file)
    if known:
        file.write_text(f"{known}\n", encoding="utf-8")
    try:
        yield
    finally:
        if file.read_bytes() != before:
            file.write_bytes(before)


def _of_checkout(root: Path) -> str:
    if not (root / ".git").exists():  # git would tell the commit of a repository further up
        return ""
    words = ("git", "-C", str(root), "describe", "--always", "--dirty", f"--abbrev={_DIGITS}", "--exclude=*")
    environment = os.environ | {"GIT_OPTIONAL_LOCKS": "0"}
    try:
        done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
