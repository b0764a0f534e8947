"""What answers of Pulsar's REST API say: values, errors, and where to ask instead.  Pure; no answer is trusted."""

import json
import re
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

from pydantic_core import from_json

from controller.adapters.network.pool import HttpAnswer
from controller.model.errors import TrimtabError
from controller.settings.redaction import redacted, redacted_bytes

_LONGEST_EXCERPT: Final = 300
#: So many bytes of a body are searched for secrets before it is cut: none of them is longer.
_LOOKED_AT: Final = 64 << 10
#: All bytes but those that stand beside the values of JSON.
_NO_SIGNS: Final = bytes(set(range(256)) - set(b",[{"))
#: Of a whole number in an answer, with its sign.
_MOST_DIGITS: Final = 20
#: Too many requests; and what proxies say where no broker answers them, or brokers that only start.
TOO_MANY: Final = 429
_AWAY: Final = frozenset({TOO_MANY, 502, 503, 504})


class PulsarError(TrimtabError):
    """A call of the admin API failed. ``status`` is HTTP's, 0 if no answer came.

    ``sent`` is False if no broker can have received the call, so nothing has happened. ``away`` is True if no broker
    accepted the call: no connection, no answer, or an answer that says no more than that. ``wait_seconds``: how long
    the broker asks to wait before the next call; 0 if it does not say.
    """

    def __init__(
        self, message: str, *, status: int = 0, sent: bool = True, away: bool = False, wait_seconds: float = 0.0
    ) -> None:
        super().__init__(message)
        self.status, self.sent, self.away = status, sent, away or status in _AWAY
        self.wait_seconds = wait_seconds


class NotListedError(PulsarError):
    """The call was not sent, because its address is neither an admin URL nor an active broker."""

    def __init__(self, message: str) -> None:
        super().__init__(message, sent=False)


class LargeAnswerError(PulsarError):
    """An answer exceeds the limit on what is read."""


def refuse_many(body: bytes, most_values: int, path: str) -> None:
    """LargeAnswerError where *body*, which may be JSON, has more values than *most_values*; O(bytes)."""
    # Each has one of these beside it, or around it; names and texts may have more of them, and seldom do.
    values = len(body.translate(None, _NO_SIGNS)) if len(body) > most_values else 0
    if values > most_values:
        raise LargeAnswerError(f"GET {path}: {values} values, allowed: {most_values}", status=200)


def value_of(body: bytes, path: str) -> Any:
    """The value that *body*, the answer at *path*, holds as JSON."""
    try:
        text = body.decode()
        value = json.loads(text, parse_int=_number)
        if "\\u" in text:
            from_json(text)  # refuses halves of surrogate pairs: nothing can be written with them
        return value
    except (ValueError, RecursionError) as error:  # no JSON, or one nested too deep
        raise PulsarError(f"GET {path}: not JSON: {excerpt(body)}", status=200) from error


def as_object(value: Any, path: str) -> dict[str, Any]:
    """*value*, the value at *path*, which has to be an object."""
    if not isinstance(value, dict):
        raise PulsarError(f"GET {path}: expected an object, found {type(value).__name__}", status=200)
    return value


def _number(digits: str) -> int | float:
    """What has more digits than any counter is no count: as a float it breaks nothing that reckons with it."""
    return int(digits) if len(digits) <= _MOST_DIGITS else float(digits)


def reason(body: bytes) -> str:
    """The broker's reason, from its JSON; else the beginning of the body."""
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        return excerpt(body)
    return redacted(str(fields.get("reason", fields)))[:_LONGEST_EXCERPT] if isinstance(fields, dict) else excerpt(body)


def excerpt(body: bytes) -> str:
    """The beginning of *body*, for an error."""
    return redacted_bytes(body[:_LOOKED_AT])[:_LONGEST_EXCERPT].decode(errors="replace").strip()


def refused(method: str, url: str, answer: HttpAnswer) -> PulsarError:
    """The error that *answer*, to a call of *url*, is."""
    why = f"{method} {url}: {answer.status} {answer.reason}: {reason(answer.data)}"
    return PulsarError(why, status=answer.status, wait_seconds=retry_after(answer))


def location(url: str, answer: HttpAnswer) -> str:
    """The URL that *answer* redirects to."""
    target = str(answer.headers.get("Location", ""))
    try:
        there = urljoin(url, target)
        urlsplit(there)
    except ValueError as error:
        raise PulsarError(f"{url}: redirected to {redacted(repr(target)):.100}, which is not an address") from error
    return there


def retry_after(answer: HttpAnswer) -> float:
    """How long *answer* says to wait; 0 where it does not say it in seconds."""
    header = str(answer.headers.get("Retry-After", "")).strip()
    return float(header) if re.fullmatch("[0-9]{1,6}", header) else 0.0
