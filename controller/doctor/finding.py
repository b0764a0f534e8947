"""A finding: what was observed, what is expected, and what to do."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from controller.model.some_of import some_of

Severity: TypeAlias = Literal["error", "warning", "ok"]

_LISTED_OBJECTS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of the doctor's answer; ``code`` never changes its meaning."""

    code: str
    severity: Severity
    #: What it is about: brokers, topics, folders, servers, by name.
    objects: tuple[str, ...]
    observed: str
    expected: str = ""
    #: The command, or the setting.
    advice: str = ""


def fine(code: str, objects: Iterable[str], observed: str) -> Finding:
    """Nothing to do about it."""
    return Finding(code=code, severity="ok", objects=tuple(objects), observed=observed)


def error(code: str, objects: str | Iterable[str], *, observed: str, expected: str = "", advice: str = "") -> Finding:
    """trimtab cannot work with it, or would do harm; *objects*: one, or several."""
    return Finding(
        code=code, severity="error", objects=_named(objects), observed=observed, expected=expected, advice=advice
    )


def warning(code: str, objects: str | Iterable[str], *, observed: str, expected: str = "", advice: str = "") -> Finding:
    """A person should look at it; *objects*: one, or several."""
    return Finding(
        code=code, severity="warning", objects=_named(objects), observed=observed, expected=expected, advice=advice
    )


def _named(objects: str | Iterable[str]) -> tuple[str, ...]:
    return (objects,) if isinstance(objects, str) else tuple(objects)


def listed(names: Sequence[str]) -> str:
    """A few *names*, and how many more there are."""
    return some_of(names, _LISTED_OBJECTS)
