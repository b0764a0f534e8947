r"""Reads Java's regular expressions.

Texts are names: printable ASCII, see the package.  So ``.`` is any character, ``$`` and ``\Z`` are the end, ``(?m)``,
``(?s)`` and ``(?d)`` make no difference, and a set is what it holds of ASCII.

Java: java.util.regex.Pattern of JDK 9 and later; where versions differ the part is unreadable.
"""

import re
from dataclasses import dataclass
from typing import Final

from controller.model.java_regex import ascii_sets as sets
from controller.model.java_regex.syntax import (
    Alternation,
    Atomic,
    Char,
    Edge,
    Lookaround,
    Node,
    OneOf,
    Repeat,
    Sequence,
    Unreadable,
)

#: Groups, and sets, one within another.
MAX_NESTED: Final = 50

_SETS: Final = {
    "d": sets.DIGIT, "D": sets.ALL & ~sets.DIGIT,
    "s": sets.SPACE, "S": sets.ALL & ~sets.SPACE,
    "w": sets.WORD, "W": sets.ALL & ~sets.WORD,
    "h": sets.HORIZONTAL, "H": sets.ALL & ~sets.HORIZONTAL,
    "v": sets.VERTICAL, "V": sets.ALL & ~sets.VERTICAL,
}  # fmt: skip
#: Outside of sets: line ends, none of which a name has; and what a reader sees as one character.
_SETS_OUTSIDE: Final = {"R": sets.VERTICAL, "X": sets.ALL}
_EDGES: Final = {"A": "^", "z": "$", "Z": "$", "b": r"\b", "B": r"\B"}
_CONTROLS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_WHITE: Final = frozenset(" \t\n\x0b\f\r")
_LINE_ENDS: Final = frozenset("\n\r\x85\u2028\u2029")

_COUNT = re.compile(r"\{([0-9]{1,10})(?:(,)([0-9]{0,10}))?\}")
_FLAGS = re.compile(r"\(\?([imsdux]*)(?:-([imsdux]*))?([:)])")
_NAMED = re.compile(r"\(\?<([a-zA-Z][a-zA-Z0-9]*)>")
_LOOKS: Final = (("(?=", True, False), ("(?!", True, True), ("(?<=", False, False), ("(?<!", False, True))
_OCTAL = re.compile(r"0([0-3][0-7][0-7]|[0-7][0-7]?)")
_HEX = re.compile(r"x([0-9a-fA-F]{2})|x\{([0-9a-fA-F]{1,8})\}|u([0-9a-fA-F]{4})")
_PROPERTY = re.compile(r"[pP](?:([A-Z])|\{([^{}]{1,60})\})")
_GROUP_NAME = re.compile(r"k<\w{1,100}>", re.ASCII)
_GROUP_NUMBER = re.compile(r"[1-9][0-9]*")


class ParseError(ValueError):
    """The expression, or what follows in it, cannot be read; the message says why."""


def parse(regex: str) -> Node:
    """The parts of *regex*; ParseError where it cannot be read as a whole."""
    return _Parser(regex).whole()


class _Parser:
    def __init__(self, regex: str) -> None:
        self._text, self._quoted = _unquoted(regex)
        self._at = 0
        self._depth = 0
        #: ``i``: without case; ``u``: and so by Unicode; ``x``: white space and comments do not count.
        self._flags = frozenset[str]()
        self._names = set[str]()

    def whole(self) -> Node:
        node = self._choice()
        if self._at < len(self._text):
            raise ParseError("a closing parenthesis without an opening one")
        return node

    # Cursor

    def _sign(self, at: int | None = None) -> str:
        """The character at the cursor if it may be a sign; "" for one in a quotation, and at the end."""
        at = self._at if at is None else at
        return self._text[at] if at < len(self._text) and not self._quoted[at] else ""

    def _take(self, what: re.Pattern[str]) -> re.Match[str] | None:
        """*what* at the cursor, which moves behind it."""
        match = what.match(self._text, self._at)
        if match is None or any(self._quoted[match.start() : match.end()]):
            return None
        self._at = match.end()
        return match

    def _starts(self, head: str) -> bool:
        """Whether *head* is at the cursor, which moves behind it."""
        if not self._text.startswith(head, self._at) or any(self._quoted[self._at : self._at + len(head)]):
            return False
        self._at += len(head)
        return True

    def _skip_comments(self) -> bool:
        """Under ``(?x)``: go to the next character that counts; whether there was something to skip."""
        before = self._at
        while "x" in self._flags and (sign := self._sign()):
            if sign in _WHITE:
                self._at += 1
            elif sign == "#":
                while self._at < len(self._text) and self._text[self._at] not in _LINE_ENDS:
                    if self._quoted[self._at]:
                        raise ParseError("a quotation in a comment")
                    self._at += 1
            else:
                break
        return self._at > before

    # Groups and repetitions

    def _nested(self) -> None:
        self._depth += 1
        if self._depth > MAX_NESTED:
            raise ParseError(f"groups or sets nested more than {MAX_NESTED} deep")

    def _choice(self) -> Node:
        self._nested()
        flags, options = self._flags, [self._sequence()]
        while self._sign() == "|":
            self._at += 1
            options.append(self._sequence())
        self._flags = flags
        self._depth -= 1
        return options[0] if len(options) == 1 else Alternation(tuple(options))

    def _sequence(self) -> Node:
        parts = list[Node]()
        while True:
            self._skip_comments()
            if self._at == len(self._text) or self._sign() in ("|", ")"):
                return parts[0] if len(parts) == 1 else Sequence(tuple(parts))
            if not self._are_flags():
                parts.append(self._repeated(self._part()))

    def _are_flags(self) -> bool:
        """Flags for the rest of the group: ``(?i)``."""
        before, match = self._at, self._take(_FLAGS)
        if match is None or match[3] == ":":
            self._at = before
            return False
        self._set_flags(match)
        return True

    def _set_flags(self, match: re.Match[str]) -> None:
        if set(match[1]) & set(match[2] or ""):
            raise ParseError(f"flags switched on and off at once: {match[0]}")
        self._flags = (self._flags | frozenset(match[1])) - frozenset(match[2] or "")

    def _part(self) -> Node:
        sign = self._sign()
        if sign == "(":
            return self._group()
        if sign == "[":
            return self._set_node()
        if sign and sign in "*+?{":
            raise ParseError(f"nothing that {sign} could repeat")
        if sign == "\\":
            return self._escape()
        self._at += 1
        if sign == ".":
            return OneOf(sets.ALL)
        if sign and sign in "^$":
            return Edge(sign)
        return self._literal(self._text[self._at - 1])

    def _group(self) -> Node:
        outer = self._flags
        for head, ahead, negative in _LOOKS:
            if self._starts(head):
                return Lookaround(self._rest_of_group(outer), ahead, negative)
        if self._starts("(?>"):
            return Atomic(self._rest_of_group(outer))
        if flags := self._take(_FLAGS):
            self._set_flags(flags)
        elif named := self._take(_NAMED):
            if named[1] in self._names:
                raise ParseError(f"two groups of the same name: {named[1]}")
            self._names.add(named[1])
        else:
            if self._starts("(?"):
                raise ParseError(f"a group of an unknown kind: (?{self._sign()}")
            self._at += 1
        return self._rest_of_group(outer)

    def _rest_of_group(self, outer: frozenset[str]) -> Node:
        node = self._choice()
        if self._sign() != ")":
            raise ParseError("a group that does not end")
        self._at += 1
        self._flags = outer
        return node

    def _repeated(self, part: Node) -> Node:
        self._skip_comments()
        sign = self._sign()
        if not sign or sign not in "*+?{":
            return part
        least, most = self._times(sign)
        lazy, possessive = self._sign() == "?", self._sign() == "+"
        self._at += lazy or possessive
        self._skip_comments()
        if self._sign() and self._sign() in "*+?{":
            raise ParseError("a repetition of a repetition")
        return Repeat(part, least, most, lazy=lazy, possessive=possessive)

    def _times(self, sign: str) -> tuple[int, int | None]:
        if sign != "{":
            self._at += 1
            return (1 if sign == "+" else 0), (1 if sign == "?" else None)
        count = self._take(_COUNT)
        if count is None:
            raise ParseError("a { that begins no repetition")
        least = int(count[1])
        most = least if not count[2] else int(count[3]) if count[3] else None
        if max(least, most or 0) > 0x7FFFFFFF or (most is not None and most < least):
            raise ParseError(f"a repetition with such limits: {count[0]}")
        return least, most

    # Characters

    def _literal(self, char: str) -> Node:
        if "i" not in self._flags:
            return Char(char)
        if ord(char) > 127:
            return Unreadable("letters beyond ASCII under (?iu)") if "u" in self._flags else Char(char)
        return OneOf(sets.folded(sets.of(char))) if char.isalpha() else Char(char)

    def _escape(self) -> Node:
        self._at += 1
        letter = self._sign()
        if letter in _EDGES:
            self._at += 1
            if letter == "b" and self._sign() == "{":
                raise ParseError(r"\b{: a border of another kind")
            return Edge(_EDGES[letter])
        if letter in _SETS_OUTSIDE:
            self._at += 1
            return OneOf(_SETS_OUTSIDE[letter])
        if letter == "G":
            self._at += 1
            return Unreadable(r"\G")
        if self._take(_GROUP_NUMBER) or self._take(_GROUP_NAME):
            return Unreadable("a backreference")
        char = self._escaped()
        if isinstance(char, str):
            return self._literal(char)
        return Unreadable(char.why) if isinstance(char, UnknownSet) else OneOf(char)

    def _escaped(self) -> "str | int | UnknownSet":
        """What an escape means both in sets and outside: a character, or a set; the cursor is behind the backslash."""
        letter = self._sign()
        if letter in _SETS:
            self._at += 1
            return _SETS[letter]
        if letter in _CONTROLS:
            self._at += 1
            return _CONTROLS[letter]
        if match := self._take(_OCTAL):
            return chr(int(match[1], 8))
        if match := self._take(_HEX):
            return _char(int(match[1] or match[2] or match[3], 16))
        if match := self._take(_PROPERTY):
            return self._property(match[1] or match[2], negative=match[0][0] == "P")
        self._at += 1
        if not letter:
            raise ParseError("a backslash that escapes nothing")
        if letter == "c" and (sign := self._sign()) and ord(sign) < 128:
            self._at += 1
            return chr(ord(sign) ^ 64)
        if letter.isascii() and letter.isalnum():
            raise ParseError(f"an escape that is not known here: \\{letter}")
        return letter

    def _property(self, name: str, *, negative: bool) -> "int | UnknownSet":
        mask = sets.of_property(name)
        if mask is None:
            return UnknownSet(f"a property that is not known here: {name}")
        if "i" in self._flags and name.removeprefix("Is") in sets.CASED:
            return UnknownSet(f"{name} under (?i), which versions of Java read differently")
        return sets.ALL & ~mask if negative else mask

    # Sets

    def _set_node(self) -> Node:
        mask = self._set()
        return Unreadable(mask.why) if isinstance(mask, UnknownSet) else OneOf(mask)

    def _set(self) -> "int | UnknownSet":
        """``[...]``: what all of its operands, parted by ``&&``, have in common."""
        self._nested()
        self._at += 1
        negative = self._starts("^")
        mask: int | UnknownSet = sets.ALL
        first = True
        while first or self._starts("&&"):
            operand = self._operand(first=first)
            if not isinstance(mask, UnknownSet):
                mask = operand if isinstance(operand, UnknownSet) else mask & operand
            first = False
        if self._sign() != "]":
            raise ParseError("a set that does not end")
        self._at += 1
        self._depth -= 1
        return sets.ALL & ~mask if negative and not isinstance(mask, UnknownSet) else mask

    def _operand(self, *, first: bool) -> "int | UnknownSet":
        """The union of the members up to ``&&`` or the end of the set."""
        members, nested, unread = list[int](), 0, list[UnknownSet]()
        while self._at < len(self._text):
            sign = self._sign()
            if self._text.startswith("&&", self._at) and sign and self._sign(self._at + 1):
                break
            if sign == "]" and (members or unread or not first):
                break
            nested += sign == "["
            operand = self._set() if sign == "[" else self._member()
            unread += [operand] if isinstance(operand, UnknownSet) else []
            members += [] if isinstance(operand, UnknownSet) else [operand]
        if not members and not unread:
            raise ParseError("an intersection of sets in which one is missing")
        if not first and nested and nested < len(members) + len(unread):
            raise ParseError("a nested set beside other members behind &&")
        mask = 0
        for each in members:
            mask |= each
        return unread[0] if unread else mask

    def _member(self) -> "int | UnknownSet":
        """A character, a range, or a set with a backslash."""
        sign = self._sign()
        if sign and "x" in self._flags and (sign in _WHITE or sign == "#"):
            raise ParseError("white space in a set under (?x)")
        if sign == "&" and "&&" in self._text:
            raise ParseError("& beside && in a set")
        first = self._member_char()
        if not isinstance(first, str):
            return first
        behind = self._sign(self._at + 1)
        if self._sign() != "-" or behind in ("[", "]") or self._at + 1 >= len(self._text):
            return self._of_range(first, first)
        self._at += 1
        if "x" in self._flags and behind and (behind in _WHITE or behind == "#"):
            raise ParseError("white space in a set under (?x)")
        last = self._member_char()
        if not isinstance(last, str) or last < first:
            raise ParseError("a range in a set that ends before it begins")
        return self._of_range(first, last)

    def _member_char(self) -> "str | int | UnknownSet":
        self._at += 1
        if self._at > len(self._text):
            raise ParseError("a set that does not end")
        if self._text[self._at - 1] != "\\" or self._quoted[self._at - 1]:
            return self._text[self._at - 1]
        if self._sign() == "v" and self._sign(self._at + 1) == "-":
            raise ParseError(r"\v in a range")
        return self._escaped()

    def _of_range(self, first: str, last: str) -> "int | UnknownSet":
        if "i" not in self._flags:
            return sets.span(first, last)
        if "u" in self._flags and ord(last) > 127:
            return UnknownSet("letters beyond ASCII under (?iu)")
        return sets.folded(sets.span(first, last))


@dataclass(frozen=True, slots=True)
class UnknownSet:
    """A set, or a character, that is not known, and *why*."""

    why: str


def _char(code: int) -> "str | UnknownSet":
    if code > 0x10FFFF:
        raise ParseError("a character beyond Unicode")
    return UnknownSet("half of a surrogate pair") if 0xD800 <= code < 0xE000 else chr(code)


def _unquoted(regex: str) -> tuple[str, list[bool]]:
    r"""*regex* without ``\Q`` and ``\E``, and which of its characters stood between them."""
    if "\\Q" not in regex:
        return regex, [False] * len(regex)
    made, quoted, at = list[str](), list[bool](), 0
    while at < len(regex):
        if regex.startswith("\\Q", at):
            end = regex.find("\\E", at + 2)
            inside = regex[at + 2 : end if end >= 0 else len(regex)]
            at += 2 + len(inside) + (2 if end >= 0 else 0)
            made += inside
            quoted += [True] * len(inside)
            continue
        step = 2 if regex[at] == "\\" else 1
        made += regex[at : at + step]
        quoted += [False] * len(regex[at : at + step])
        at += step
    return "".join(made), quoted
