"""Removes this process's secrets from texts that servers send back: some quote the request in what they answer.

Every secret is registered where it is read (read_secret).  Adapters pass what a server says through ``redacted``
before they shorten it or put it into an error.  The logs do so once more, for texts that reach them another way.
"""

import base64
import html
import json
import re
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Final

from controller.model.errors import SettingsError
from controller.settings.small_file import read_small_file

HIDDEN: Final = "<hidden>"
#: Names of secrets and of files with secrets: somebody may have written the secret in place of the file name.
_SECRET: Final = re.compile(
    r"passw|passphrase|secret|token|credential|jaas|authorization|private|(?:^|[._-])(?:key|auth|pin)$", re.IGNORECASE
)
#: The user information of a URL: the text between the scheme and @.
_USERINFO: Final = re.compile(r"(\w[\w+.-]*://)?[^\s@'\"]+@(?=[\w\[.-])")


def is_secret(name: str) -> bool:
    """Whether the value of the setting *name* must not be shown."""
    return bool(_SECRET.search(name))


def printable_value(path: Iterable[object], value: object) -> str:
    """*value* at *path* in the settings, as a message may show it."""
    return repr(_without_secrets([str(name) for name in path], value))


def without_userinfo(text: str) -> str:
    """*text*, with user and password hidden in every URL."""
    return _USERINFO.sub(rf"\g<1>{HIDDEN}@", text)


def has_userinfo(url: str) -> bool:
    """Whether *url* holds a user or a password."""
    return "@" in url


def _without_secrets(path: list[str], value: object) -> object:
    if any(map(is_secret, path)):
        return HIDDEN
    if isinstance(value, Mapping):
        return {name: _without_secrets([*path, str(name)], each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_without_secrets(path, each) for each in value]
    return without_userinfo(value) if isinstance(value, str) else value


def read_secret(path: str, key: str) -> str:
    """The content of the file *path*, which the setting *key* names, without white space around it.

    SettingsError where it cannot be read, is not text, or is empty.  Errors show neither content nor path: somebody may
    have written the secret in place of the path.  What servers say is shown without it from then on (redaction.py).
    """
    try:
        secret = read_small_file(Path(path)).decode().strip()
    except OSError as error:
        raise SettingsError(f"{key}: the file that it names cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{key}: the file that it names is not text in UTF-8") from None
    if not secret:
        raise SettingsError(f"{key}: the file that it names is empty")
    SECRETS.register(key, secret)
    return secret


#: A shorter secret may be a part of any word, so only whole words are compared with it.
_SHORT: Final = 8
#: A secret of this length is recognised by any part of it that has _PART characters: servers shorten what they quote.
_LONG: Final = 16
_PART: Final = 12
#: At the end of a text, which a server may have cut there, the beginning of a secret counts, from this length on.
_LEAST_BEGINNING: Final = 4
#: Not within a word; escaped characters before it are no letters.
_WORD_BEGINS: Final = r"(?:(?<!\w)|(?<=%[\da-fA-F]{2})|(?<=\\[nrtbf])|(?<=\\u[\da-fA-F]{4}))"
#: No server takes longer credentials; what follows is not looked for.
_LONGEST: Final = 16 << 10
#: Values of one setting that are remembered: files are read again while a process runs, and old tokens stay valid.
_REMEMBERED: Final = 32


@dataclass(frozen=True)
class _Secret:
    value: str

    @cached_property
    def spellings(self) -> tuple[str, ...]:
        """The secret itself, and what is in base64 wherever it begins in the encoded text."""
        data, spellings = self.value.encode(), [self.value]
        for before in range(3 if len(data) >= _SHORT else 1):
            bits = 8 * (before + len(data))
            for altchars in (b"+/", b"-_"):
                encoded = base64.b64encode(bytes(before) + data, altchars).decode()
                spellings.append(encoded[-(-8 * before // 6) : bits // 6])
        return tuple(dict.fromkeys(spellings))

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Matches every spelling, also where characters are escaped as in JSON, URLs or HTML."""
        return re.compile("|".join(map(self._pattern_of, self.spellings)))

    def _pattern_of(self, spelling: str) -> str:
        whole = "".join(map(_escaped, spelling))
        if len(self.value) >= _SHORT:
            return whole
        return rf"{_WORD_BEGINS}{whole}(?!\w)" if re.fullmatch(r"\w.*\w|\w", spelling, re.DOTALL) else whole

    @cached_property
    def parts(self) -> frozenset[str]:
        if len(self.value) < _LONG:
            return frozenset()
        return frozenset(text[at : at + _PART] for text in self.spellings for at in range(len(text) - _PART + 1))

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Where *text* shows the secret, or a part of it."""
        for match in self.pattern.finditer(text):
            yield match.span()
        if self.parts:
            for at in range(len(text) - _PART + 1):
                if text[at : at + _PART] in self.parts:
                    yield at, at + _PART
        if len(self.value) >= _SHORT:
            for spelling in self.spellings:
                for length in range(min(len(spelling), len(text)), _LEAST_BEGINNING - 1, -1):
                    if text.endswith(spelling[:length]):
                        yield len(text) - length, len(text)
                        break


class Redactor:
    """The secrets of a process, and texts without them.  Threads may share it."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._by_setting: dict[str, deque[_Secret]] = {}
        self._secrets: tuple[_Secret, ...] = ()

    def register(self, setting: str, secret: str) -> None:
        """From now on *secret*, a value of *setting*, is removed; so are the last few values that the setting had."""
        added = _Secret(secret.strip()[:_LONGEST])
        with self._turn:
            values = self._by_setting.setdefault(setting, deque(maxlen=_REMEMBERED))
            if not added.value or added in values:
                return
            values.append(added)
            self._secrets = tuple(dict.fromkeys(each for values in self._by_setting.values() for each in values))

    def redacted(self, text: str, *, shortest: int = 1) -> str:
        """*text* with HIDDEN for each secret of at least *shortest* characters in it."""
        secrets = [each for each in self._secrets if len(each.value) >= shortest]
        spans = sorted(span for secret in secrets for span in secret.spans(text))
        pieces: list[str] = []
        done = 0
        for begin, end in spans:
            if begin > done or not pieces:
                pieces += [text[done:begin], HIDDEN]
            done = max(done, end)
        return "".join([*pieces, text[done:]])


#: The secrets of this process.
SECRETS: Final = Redactor()
#: A text of a server's, without any secret.
redacted: Final = SECRETS.redacted
#: A text that is mostly our own words: short secrets may be among them by chance.
redacted_log: Final = partial(SECRETS.redacted, shortest=_SHORT)


def redacted_bytes(data: bytes) -> bytes:
    """As ``redacted``, of *data*, which is text in UTF-8 or nearly so."""
    return redacted(data.decode(errors="surrogateescape")).encode(errors="surrogateescape")


def _escaped(character: str) -> str:
    """An expression for *character*, or for what encoders write in its place; they leave letters and digits alone."""
    if character.isascii() and character.isalnum():
        return character
    code = ord(character)
    percent = "".join(f"%(?:25)*{byte:02x}" for byte in character.encode(errors="surrogateescape"))
    forms = [percent, rf"\\*{re.escape(json.dumps(character)[1:-1])}", rf"\\x{code:02x}", rf"\\+u{code:04x}"]
    forms += [f"&#0*{code};", f"&#x0*{code:x};", re.escape(html.escape(character))]
    plus = [r"\+"] if character == " " else []
    own = rf"\\*{re.escape(character)}"
    return f"(?:{own}|(?i:{'|'.join(forms + plus)}))"
