"""The dead letters: records that cannot be used."""

import hashlib
from collections.abc import Sequence
from typing import Final

from controller.log.port import Log, Out
from controller.wire.base import encode
from controller.wire.dead_letter import DeadLetter, Source

#: How long to wait until letters are stored.
_PATIENCE_SECONDS: Final = 30.0


class DeadLetterLog:
    """Writes dead letters to *log*.  A batch that runs again brings its letters again, under the same keys and name."""

    def __init__(self, log: Log) -> None:
        self._log = log
        log.partitions("dead_letters")

    def write(self, batch: int, letters: Sequence[DeadLetter], *, part: int = 0) -> None:
        """Write *letters*, found in *part* of micro-batch *batch*.  If the batch is repeated, so are its letters."""
        if letters:
            outs = [Out("dead_letters", encode(each), key=_place(each.source).encode()) for each in letters]
            self._log.append(outs, within_seconds=_PATIENCE_SECONDS, name=_name(batch, part, letters))

    def close(self) -> None:
        """End all connections."""
        self._log.close()


def _name(batch: int, part: int, letters: Sequence[DeadLetter]) -> str:
    """A new checkpoint counts batches anew, so the name also says which records they are."""
    places = b"\n".join(sorted(encode(letter.source) for letter in letters))
    return f"{batch:015d}-{part}-{hashlib.sha256(places).hexdigest()[:16]}"


def _place(source: Source) -> str:
    return f"{source.topic or source.file}/{source.partition}/{source.offset}"
