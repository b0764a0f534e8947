"""The answer of ``trimtab doctor``."""

from typing import Final, Literal

from controller.wire.answers.base import JsonAnswer


class FindingAnswer(JsonAnswer):
    """A finding of the doctor."""

    code: str
    severity: Literal["error", "warning", "ok"]
    objects: list[str]
    """Brokers, topics, folders, servers, by name."""
    seen: str
    wanted: str
    advice: str
    """The command or setting that fixes it."""


class DoctorAnswer(JsonAnswer):
    """``trimtab doctor --json``."""

    healthy: bool
    """No errors; with --strict, no warnings either."""
    findings: list[FindingAnswer]


#: Name of the schema in docs/schemas -> answer.
ANSWERS: Final[dict[str, type[JsonAnswer]]] = {
    "answer.doctor": DoctorAnswer,
}
