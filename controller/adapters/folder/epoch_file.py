"""The file of a file election that holds the number of the last leadership."""

from pathlib import Path
from typing import Final

from controller.model.leadership import epoch_of
from controller.settings.small_file import open_to_read

_MOST_BYTES: Final = 100


def epoch_in(path: Path) -> int | None:
    """The epoch that *path* holds, 0 where there is no such file, None where it holds something else.  OSError."""
    try:
        with open_to_read(path) as file:
            text = file.read(_MOST_BYTES)
    except FileNotFoundError:
        return 0
    return epoch_of(text)
