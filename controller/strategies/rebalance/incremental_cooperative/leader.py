"""The leader's rules, by release, and its memory of the last rebalance."""

from dataclasses import dataclass
from enum import StrEnum

from controller.strategies.common.worker_group import NOTHING, ConnectorsAndTasks


class Release(StrEnum):
    """Whose behaviour."""

    #: Once a member has nothing, takes away one member's share in all, from the first by name; what was lost goes to
    #: one newcomer.
    V2_6_0 = "2.6.0"
    #: Once a member has nothing, takes from each what it holds above the average, rounded up; what was lost is dealt
    #: out to all newcomers.
    V2_6_3 = "2.6.3"
    #: Takes from each what it holds above its share whenever the group is uneven, and again and again only after a
    #: wait (KAFKA-12495); what was lost is dealt out to all newcomers, and without a delay at once (KAFKA-15693).
    V3_9 = "3.9"
    #: As 3.9, but what was lost goes to those with least, and a wait ends only when it is over.
    TRIMTAB = "trimtab"

    @property
    def later(self) -> bool:
        """Whether it waits before it takes away again, and deals out around what it takes away."""
        return self in (Release.V3_9, Release.TRIMTAB)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderMemory:
    """What the leader remembers of its last rebalance."""

    #: What it left running or gave out, and what it found missing.
    assigned: ConnectorsAndTasks = NOTHING
    lost: ConnectorsAndTasks = NOTHING
    #: What it told members to stop.
    revoked: ConnectorsAndTasks = NOTHING
    members: frozenset[str] = frozenset()
    generation: int = -1
    #: Releases 2.6: whether it may take away for the sake of balance next time.
    can_revoke: bool = True
    #: Later ones: whether it took away for the sake of balance last time, and how often that had to wait since.
    revoked_in_previous: bool = False
    successive_revocations: int = 0
    #: When what is lost is given out, epoch ms; 0: nothing waits.
    scheduled_rebalance_ms: int = 0
    delay_ms: int = 0
    #: Members that had nothing while something waited, in the order they were seen.
    candidates: tuple[str, ...] = ()
