"""Our credentials for Pulsar's brokers, re-read while a process runs: administrators replace tokens before they
expire."""

import base64
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from controller.adapters.network.deadline import Clock, Deadline
from controller.adapters.pulsar.oauth2 import TokenProvider
from controller.adapters.pulsar.tokens import end_of, is_sendable
from controller.model.errors import SettingsError, TrimtabError
from controller.settings.access import OAuth2Settings, PulsarLogin
from controller.settings.redaction import SECRETS, read_secret
from controller.settings.small_file import why_not_read_again
from controller.wire.readable import utc

log = logging.getLogger(__name__)

#: How often the files are checked.
_LOOK_AGAIN_SECONDS: Final = 1.0
#: How often an expired token is logged.
_SAY_AGAIN_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """How brokers authenticate the caller: a token, or a user with a password; may be empty."""

    token: str = ""
    user: str = ""
    password: str = ""

    def __post_init__(self) -> None:
        """Register them as secrets."""
        for secret in (self.token, self.password, self.credential):
            SECRETS.register("Pulsar", secret)

    @property
    def credential(self) -> str:
        """What the header of a request holds; "" for none."""
        return self.token or (base64.b64encode(f"{self.user}:{self.password}".encode()).decode() if self.user else "")

    def headers(self) -> dict[str, str]:
        """The headers of every request."""
        scheme = "Bearer" if self.token else "Basic"
        return {"Authorization": f"{scheme} {self.credential}"} if self.credential else {}

    def __repr__(self) -> str:
        """Without the secrets, because errors and logs show it."""
        return f"Credentials({'token' if self.token else self.user or 'none'})"


class CredentialFiles:
    """Credentials whose files are read anew, so that a token can be replaced while a process runs.

    If they become unreadable, the last ones stay in use, and the log says so.  Threads may share it.
    """

    def __init__(
        self,
        read: Callable[[], Credentials],
        section: str,
        *,
        renewed_by_us: bool = False,
        clock: Clock = time.monotonic,
    ) -> None:
        """*read* reads the files that [*section*] names, or asks for a token.  TrimtabError where it cannot."""
        self._read, self._section, self._clock, self._renewed_by_us = read, section, clock, renewed_by_us
        self._current = read()
        self._next_look = Deadline.after(_LOOK_AGAIN_SECONDS, clock)
        self._next_word = Deadline(0.0, clock)
        self._problem = ""
        self._turn = threading.Lock()
        self._look_at_end()

    def __call__(self) -> Credentials:
        """The credentials to use now. It never raises, because the client library calls it, too."""
        with self._turn:  # a concurrent request waits, rather than use credentials that may have expired
            if self._next_look.passed:
                self._next_look = Deadline.after(_LOOK_AGAIN_SECONDS, self._clock)
                self._look()
                self._look_at_end()
        return self._current

    def _look(self) -> None:
        try:
            credentials = self._read()
        except TrimtabError as error:
            if str(error) != self._problem:
                log.warning("%s; continuing with the credentials that were read before", error)
            self._problem = str(error)
            return
        self._problem = ""
        if credentials != self._current:
            level = logging.DEBUG if self._renewed_by_us else logging.INFO
            log.log(
                level,
                "the credentials in [%s] have changed: requests to Pulsar use the new ones from now on",
                self._section,
            )
            self._current, self._next_word = credentials, Deadline(0.0, self._clock)

    def _look_at_end(self) -> None:
        end = None if self._renewed_by_us else end_of(self._current.token)
        if end is None or end > time.time() or not self._next_word.passed:
            return
        self._next_word = Deadline.after(_SAY_AGAIN_SECONDS, self._clock)
        log.error(
            "the token in [%s] token_file expired at %s, so brokers reject it: write a new one to that file"
            " (`pulsar tokens create`); trimtab reads it again without a restart",
            self._section,
            utc(int(end * 1000)),
        )


def credential_files(login: PulsarLogin, section: str) -> CredentialFiles:
    """What [*section*], which is *login*, says we show: one for all of a process.

    Raises SettingsError where a file could never be read, TrimtabError where no token was to be had.
    """
    return _files(section, login.token_file or "", login.user, login.password_file or "", login.oauth2)


@cache
def _files(
    section: str, token_file: str, user: str, password_file: str, oauth2: OAuth2Settings | None
) -> CredentialFiles:
    if oauth2 is not None:
        provider = TokenProvider(oauth2, section)
        return CredentialFiles(lambda: Credentials(token=provider()), section, renewed_by_us=True)
    return CredentialFiles(lambda: read_credentials(section, token_file, user, password_file), section)


def read_credentials(section: str, token_file: str, user: str, password_file: str) -> Credentials:
    """What the files hold now.  SettingsError where one cannot be read, or what it holds cannot be sent."""
    token = _secret(token_file, f"{section}.token_file")
    if not is_sendable(token):
        raise SettingsError(
            f"{section}.token_file: the file does not contain a token: it has spaces, line breaks or "
            f"characters that are not ASCII"
        )
    return Credentials(token=token, user=user, password=_secret(password_file, f"{section}.password_file"))


def _secret(file: str, key: str) -> str:
    if not file:
        return ""
    problem = why_not_read_again(Path(file))
    if problem:
        raise SettingsError(f"{key}: the file that it names cannot be read: {problem}")
    return read_secret(file, key)
