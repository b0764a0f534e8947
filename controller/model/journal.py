"""What one interval leaves in the journal."""

from dataclasses import dataclass

from controller.model.controls import Controls
from controller.model.decision import Decision
from controller.model.memory import Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalEntry:
    """One decided interval: the decision, the controls it was made with, and the memory after it."""

    cluster: str
    #: An entry that was read has no verdicts: they are kept elsewhere, and not for ever.
    decision: Decision
    #: After the decision: what the next interval starts from.
    memory: Memory
    controls: Controls

    @property
    def interval(self) -> int:
        """T, epoch ms."""
        return self.decision.interval
