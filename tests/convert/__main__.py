"""``scripts/convert KIND OLD NEW``: write a copy of OLD in the present format."""

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tests.convert.folder import convert_folder
from tests.convert.recording import convert_recording

#: What can be converted -> the function that reads the old form and writes the new one.
KINDS: Final[Mapping[str, Callable[[Path, Path], None]]] = {
    "folder": convert_folder,
    "recording": convert_recording,
}


def main() -> None:
    """Convert what the command line names."""
    parser = argparse.ArgumentParser(prog="scripts/convert", description=__doc__)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path, help="must not exist yet")
    words = parser.parse_args()
    if words.new.exists():
        parser.error(f"{words.new} exists already")
    try:
        KINDS[words.kind](words.old, words.new)
    except (ValueError, OSError) as error:
        raise SystemExit(f"scripts/convert: {error}") from error


if __name__ == "__main__":
    main()
