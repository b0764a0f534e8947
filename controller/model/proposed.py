"""What strategies decided in mode approve: a decision that waits until persons approve it.

An approval is for one hash.  So the hash is computed from what the decision says, and is never read from anywhere: a
decision that was changed in the journal has another one.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from controller.model.decision import Command

#: Commands of a decision at most: a person is to read it, and the memory holds it.
MOST_PROPOSED: Final = 200
#: Characters of a hash that name a decision to people.
_SHORT: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedBroker:
    """Usage of a broker that a decision touches, as a share of what it can carry."""

    #: Of its fullest resource, as it is.
    before: float
    #: Of its fullest resource, once everything is moved.
    after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedDecision:
    """A decision that waits for approval, or is approved and not issued yet."""

    cluster: str
    #: T in which it was decided, epoch ms.
    interval: int
    #: When it expires, epoch ms, by the time at which intervals are decided.
    expires_at_ms: int
    #: As they were decided, splits first.  Commands that are issued have the id and the expiry of their own interval.
    commands: tuple[Command, ...]
    #: Producers and consumers that have to reconnect.
    connections: int = 0
    #: Usage above which the shedder takes bundles from a broker, as a share; None: it has no such limit.
    limit: float | None = None
    #: Broker -> its usage.  What is split counts where it is.
    usage: Mapping[str, PredictedBroker] = field(default_factory=dict)
    #: ``digest_of`` the active brokers of T.
    brokers: str = ""

    @property
    def hash(self) -> str:
        """What an approval is for: SHA-256 over the content, 64 hex digits."""
        return sha256(self.content).hexdigest()

    @property
    def content(self) -> bytes:
        """What is approved: cluster, T, splits and unloads, as canonical JSON."""
        splits = [
            [each.bundle, each.source, each.algorithm, list(each.boundaries), each.unload_after_split]
            for each in self.commands
            if each.action == "split"
        ]
        unloads = [[each.bundle, each.source, each.destination] for each in self.commands if each.action == "unload"]
        content = {"cluster": self.cluster, "interval": self.interval, "splits": splits, "unloads": unloads}
        return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()

    @property
    def short_hash(self) -> str:
        """How people name it."""
        return self.hash[:_SHORT]

    @property
    def text(self) -> str:
        """What it does, in a few words."""
        splits = sum(each.action == "split" for each in self.commands)
        return decision_text(len(self.commands) - splits, splits)


def decision_text(unloads: int, splits: int) -> str:
    """What a decision of so many commands does, in a few words."""
    counts = ((unloads, "unload"), (splits, "split"))
    return ", ".join(f"{n} {action}{'s' if n > 1 else ''}" for n, action in counts if n)


def digest_of(brokers: tuple[str, ...]) -> str:
    """A digest of the names of *brokers*, sorted."""
    return sha256("\n".join(brokers).encode()).hexdigest()[:16]


def needs_no_approval(moves: int, connections: int, *, free_moves: int, free_connections: int) -> bool:
    """Whether so many *moves* (splits too), which make *connections* clients reconnect, need no approval.

    A limit of 0 is not set.  Where both are set, both hold; where none is, everything needs an approval.
    """
    if not (free_moves or free_connections):
        return False
    return not ((free_moves and moves > free_moves) or (free_connections and connections > free_connections))
