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

    @property
    def waits_for_brokers(self) -> str:
        """Why nothing was issued: brokers balance by themselves, or may do so; "": another reason, or none.

        Without names of brokers, which are in the memory.
        """
        now, balancing = self.controls, self.memory.balancing
        otherwise = now.mode != "active" or now.paused or now.stale or now.maintenance or now.unknown
        if otherwise or not balancing.why:
            return ""
        if balancing.on:
            return f"the brokers' own balancing is on (brokers: {balancing.on}); `trimtab status` names them"
        unknown = len(balancing.unknown)
        return f"nobody knows whether brokers balance by themselves (brokers: {unknown}); `trimtab status` names them"
