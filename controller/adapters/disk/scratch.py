"""Folders for what a command needs while it works; they go with it, also where a signal ends it."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from controller.adapters.process import signals


@contextmanager
def scratch_folder(prefix: str, inside: Path | None = None) -> Iterator[Path]:
    """A new folder for the length of the block, which only this user may read; *inside* the system's, or another one.

    Unlike TemporaryDirectory's it is deleted where Ctrl-C ends the process, too: recordings hold the names of clusters.
    """
    made = Path(tempfile.mkdtemp(prefix=prefix, dir=inside))
    try:
        with signals.cleaned_up_at_end(lambda: shutil.rmtree(made, ignore_errors=True)):
            yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)
