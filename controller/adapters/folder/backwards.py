"""Lines of a file's content, the last first, without a list of them: of 80 MB of tiny ones it takes more than a GB."""

from collections.abc import Iterator
from typing import Final

_END: Final = b"\n"


def lines_backwards(content: bytes, wanted: tuple[bytes, ...]) -> Iterator[bytes]:
    """The lines of *content* that hold one of the texts *wanted*, the last first; empty ones hold none."""
    texts, end = [_Text(content, text) for text in wanted], len(content)
    while end > 0 and (at := max((text.last_before(end) for text in texts), default=-1)) >= 0:
        begin = content.rfind(_END, 0, at) + 1
        line_end = content.find(_END, at)
        line = content[begin : len(content) if line_end < 0 else line_end].removesuffix(b"\r")
        if line:
            yield line
        end = begin - 1


class _Text:
    """Looks for a text in *content*, ever closer to its begin; what it has found last is not looked for again."""

    def __init__(self, content: bytes, text: bytes) -> None:
        self._content, self._text = content, text
        self._found = len(content) + 1

    def last_before(self, end: int) -> int:
        """Where the text begins last, of those that lie before *end*; -1: nowhere."""
        if self._found >= 0 and self._found + len(self._text) > end:
            self._found = self._content.rfind(self._text, 0, end)
        return self._found
