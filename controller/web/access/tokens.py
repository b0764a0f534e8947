"""Tokens in a file: only their hashes are there, so that whoever reads the file cannot log in.

A token has 256 random bits.  For such a secret one SHA-256 is enough: a slow hash protects passwords that can be
guessed, and would let strangers make the server work.
"""

import hashlib
import secrets
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field, ValidationError

from controller.model.errors import SettingsError
from controller.settings.problems import lines_of, problems
from controller.settings.section import Section, Text
from controller.settings.small_file import read_tables
from controller.settings.web import ViewerRole
from controller.web.access.file_reader import FileReader
from controller.web.access.viewer import LONGEST_NAME, Viewer

#: What a token begins with, so that a person and a scanner of secrets recognise it.
PREFIX: Final = "trimtab_"
_RANDOM_BYTES: Final = 32
_MOST_TOKENS: Final = 10_000
#: A longer text is no token of ours.
_LONGEST: Final = 200


class _Token(Section):
    """[tokens.NAME]"""

    role: Annotated[ViewerRole, Field(strict=False)]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    expires: datetime | None = None


class _TokenFile(Section):
    tokens: Annotated[dict[Annotated[Text, Field(max_length=LONGEST_NAME)], _Token], Field(max_length=_MOST_TOKENS)] = (
        Field(default_factory=dict)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownToken:
    """Whose a token is."""

    name: str
    role: ViewerRole
    #: Epoch seconds; None: never.
    expires: float | None


class Tokens:
    """The tokens in the file *path*.  SettingsError where it cannot be used."""

    def __init__(self, path: str) -> None:
        self._file: FileReader[Mapping[str, KnownToken]] = FileReader(path, read_tokens, {})

    def viewer(self, token: str, now: float) -> Viewer | None:
        """Whose *token* is at *now*, epoch seconds; None where nobody's."""
        return self.viewer_by_hash(token_hash(token), now) if len(token) <= _LONGEST else None

    def viewer_by_hash(self, digest: str, now: float) -> Viewer | None:
        """Whose token has the hash *digest*; None where nobody's, or where it has expired.

        The digest is looked up, not compared byte by byte: how long that takes says nothing about the token.
        """
        entry = self._file.value.get(digest)
        if entry is None or (entry.expires is not None and entry.expires <= now):
            return None
        return Viewer(name=entry.name, role=entry.role, login="token")


def token_hash(token: str) -> str:
    """SHA-256 of *token* in hexadecimal, as the file has it."""
    return hashlib.sha256(token.encode()).hexdigest()


def new_token() -> str:
    """A token that nobody can guess."""
    return PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)


def read_tokens(path: Path) -> Mapping[str, KnownToken]:
    """Hash -> whose token it is, of the file *path*.  SettingsError where it cannot be used."""
    try:
        values = tomllib.loads(read_tables(path).decode())
        file = _TokenFile.model_validate(values)
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}; `trimtab token NAME` prints what it is to hold") from error
    except ValidationError as error:
        lines = lines_of(path, [*problems(error, _TokenFile)])
        raise SettingsError(lines) from None
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{path}: not TOML: {error}") from error
    by_hash: dict[str, KnownToken] = {}
    for name, token in file.tokens.items():
        if token.sha256 in by_hash:
            raise SettingsError(
                f"{path}: {name} and {by_hash[token.sha256].name} have the same token: make another one"
            )
        by_hash[token.sha256] = KnownToken(name=name, role=token.role, expires=_epoch(token.expires))
    return by_hash


def _epoch(moment: datetime | None) -> float | None:
    """*moment* in epoch seconds; one without a zone is UTC."""
    if moment is None:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
