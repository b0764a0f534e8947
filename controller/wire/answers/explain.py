"""The answers of ``trimtab journal`` and ``trimtab explain``."""

from controller.wire.answers.base import CommandAnswer, JsonAnswer, VerdictAnswer


class JournalAnswer(JsonAnswer):
    """``trimtab journal --json``, a line for each decision, the newest first."""

    interval: int
    """T, epoch ms."""
    summary: str
    mode: str
    paused: bool
    stale: bool
    """Whether the interval was too old to act on."""
    commands: list[CommandAnswer]
    """Those that were looked for."""
    verdicts: list[VerdictAnswer] | None
    """Those that were looked for; null: none were looked for, or those of this interval are not kept any more."""
