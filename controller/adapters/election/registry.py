"""The registry: every process of a cluster records that it runs, for people who ask. No decision depends on it."""

from typing import Final, NamedTuple, Protocol

#: Maximum number of entries that are read; a cluster has a few processes.
MOST_ENTRIES: Final = 1_000
#: How often a process renews its entry, even if nothing has changed, seconds.
RENEWED_EVERY: Final = 10.0
#: How long an entry is valid after its renewal if no session ends with its process, seconds.
LASTS_SECONDS: Final = 3 * RENEWED_EVERY


class RegistryEntry(NamedTuple):
    """What a process wrote, unchecked."""

    #: The node, file or key, as messages name it.
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

        Writes it again if it was lost, as after the end of a session. Returns False, and writes nothing, while the
        election that the registry belongs to does not exist yet. TrimtabError if it cannot be written.
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
