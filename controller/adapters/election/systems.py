"""The interface of an election system, and of the servers that systems run on."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from controller.adapters.election.collectors import CollectorGroup
from controller.adapters.election.controls import ControlStore
from controller.adapters.election.notifications import NotificationStore
from controller.adapters.election.proposals import ProposalStore
from controller.adapters.election.registry import Registry
from controller.model.leadership import Leader, Leadership


class WatchedServer(NamedTuple):
    """A server that a system runs on, as its clients see it."""

    #: Its name in messages.
    name: str
    #: What to do where it cannot be reached.
    advice: str
    #: Why it cannot be reached, "" if it can; takes at most four seconds. For one thread.
    why: Callable[[], str]
    close: Callable[[], None] = lambda: None


class ElectionSystem(Protocol):
    """A system in which controllers elect their leader; it also stores everything else that all processes of a cluster
    share."""

    def leadership(self) -> Leadership:
        """This process's part in the election."""
        ...

    def leader(self) -> Leader | None:
        """The process that leads now, None if there is none; for people who ask.  Creates nothing.

        Raises TrimtabError where the election cannot be read.
        """
        ...

    def collectors(self) -> CollectorGroup:
        """The group of collectors."""
        ...

    def controls(self) -> ControlStore:
        """The operator's controls."""
        ...

    def proposals(self) -> ProposalStore:
        """What waits for approval, or is carried out."""
        ...

    def registry(self) -> Registry:
        """The processes that run, as each describes itself."""
        ...

    def notifications(self) -> NotificationStore:
        """Which process sends notifications, and what is shared of them."""
        ...
