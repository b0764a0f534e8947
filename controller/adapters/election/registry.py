"""The registry: every process of a cluster writes down that it runs, for people who ask.  No decision depends on it."""

from typing import Final, NamedTuple, Protocol

#: So many entries are read at most; a cluster has a few processes.
MOST_ENTRIES: Final = 1_000
#: A process renews its entry so often, seconds, also where nothing has changed.
RENEWED_EVERY: Final = 10.0
#: Where no session tells that a process has ended, its entry counts for so long after it was renewed, seconds.
LASTS_SECONDS: Final = 3 * RENEWED_EVERY


class RegistryEntry(NamedTuple):
    """What a process wrote, unchecked."""

    #: Of the node, the file or the key: messages name it.
    name: str
    #: None: too long to be read.
    value: bytes | None
    #: When it was written last, epoch ms by the store's clock.
    renewed_ms: int


class RegistryEntries(NamedTuple):
    """The entries of processes that have not ended, in the order of their names."""

    entries: tuple[RegistryEntry, ...]
    #: How many there are beyond MOST_ENTRIES.
    left_out: int = 0


class Registry(Protocol):
    """The entries of one cluster's processes.  Used from one thread; every method waits a few seconds at most.

    An entry ends with its process, however that ends, within LASTS_SECONDS or the election's session timeout.
    """

    def write(self, name: str, value: bytes) -> bool:
        """Write, or renew, the entry *name* of this process; it has one.

        Writes it again where it is gone, as after a lost session.  False, and nothing is written, while there is no
        election yet that the registry belongs to.  TrimtabError where it cannot be written.
        """
        ...

    def read(self, longest: int) -> RegistryEntries:
        """The entries, without the values of those longer than *longest* bytes.  Creates nothing.

        TrimtabError where they cannot be read.
        """
        ...

    def close(self) -> None:
        """Remove the entry that this object wrote, and end the connection."""
        ...
