"""Text that looks like other text: letters of other scripts, and characters that nobody sees.

What a person reads and approves must be what it seems to be, and a second person must be a second one.  Unicode
Technical Standard 39 has tables of all such letters.  Here are those that common fonts draw just like Latin ones.
"""

import re
from typing import Final

#: What nobody sees, or what turns the direction of writing: Default_Ignorable_Code_Point of the Unicode Standard.
_INVISIBLE: Final = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
#: Of these, what turns the direction.
_TURNING: Final = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
#: Cyrillic, Greek and Armenian letters, and the Latin ones that they look like.
_LETTERS: Final = str.maketrans(
    "\u0430\u0441\u0501\u0435\u04bb\u0456\u0458\u04cf\u043e\u0440\u051b\u0455\u051d\u0445\u0443\u0475"
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u0405\u0406\u0408\u04ae\u04c0"
    "\u03b1\u03b9\u03ba\u03bd\u03bf\u03c1\u03c5\u03f2\u03f3"
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7"
    "\u0585\u057d\u0570\u0578\u0566\u0581",
    "acdehijlopqswxyvABEKMHOPCTXSIJYIaikvopucjABEZHIKMNOPTYXouhnqg",
)
_ALIKE: Final = "".join(map(chr, _LETTERS))
_NOT_SEEN: Final = re.compile(f"[{_INVISIBLE}]")
_TURNED: Final = re.compile(f"[{_TURNING}]")
_HIDDEN: Final = re.compile(f"[{_INVISIBLE}{_ALIKE}]")
#: A word with a Latin letter, or a digit, in it.
_LATIN_WORD: Final = re.compile(r"\S*[A-Za-z0-9]\S*")


def as_it_looks(text: str) -> str:
    """*text* without what nobody sees, in Latin letters where it looks so."""
    return text if text.isascii() else _NOT_SEEN.sub("", text).translate(_LETTERS)


def misleads(name: str) -> bool:
    """Whether *name* looks like another one that is written in plain letters."""
    return revealed(name) != name or (not name.isascii() and as_it_looks(name).isascii())


def revealed(text: str) -> str:
    """*text* with an escape for what misleads its reader: what turns the direction of writing, and in a word of Latin
    letters or digits what nobody sees and what is no Latin letter, though it looks so."""
    if text.isascii():
        return text
    return _TURNED.sub(_escaped, _LATIN_WORD.sub(lambda word: _HIDDEN.sub(_escaped, word[0]), text))


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
