"""The query's Java, and where it lies compiled.

It is compiled when the package is built or installed (streaming.jvm.build), so a running controller only looks it up.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from controller.model.errors import SettingsError

SOURCES: Final = Path(__file__).parent


def jar(folder: Path = SOURCES) -> Path:
    """The Java files of *folder*, compiled: a jar beside them.

    SettingsError, saying how to make it, where it is missing or was made of other files.
    """
    built = path(folder)
    if not built.exists():
        raise SettingsError(
            f"the query's Java is not compiled: {built} is missing. Run `python -m streaming.jvm.build`, in the folder"
            " that trimtab is installed from"
        )
    return built


def path(folder: Path = SOURCES) -> Path:
    """Where the :func:`jar` is, or would be: its name says what it was made of."""
    content = hashlib.sha256(b"\0".join(file.read_bytes() for file in java_files(folder))).hexdigest()
    return folder / f"query-{content[:16]}.jar"


def java_files(folder: Path = SOURCES) -> Sequence[Path]:
    """The Java files of *folder*, in one order everywhere."""
    return sorted(folder.glob("*.java"))
