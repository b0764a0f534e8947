"""Which of several processes sends a cluster's notifications, and what they share of them."""

from typing import Protocol


class NotificationStore(Protocol):
    """One process's part in choosing the sender, and the state that all of them share.  Used from one thread.

    Every method waits a few seconds at most, and raises TrimtabError where the store cannot be reached.
    """

    def sends(self) -> bool:
        """Whether this process sends now; it takes part from the first call on.  False while there is no election yet.

        Two processes may both be told so for a moment, when one has lost the connection: ``write`` then lets one of
        them succeed.
        """
        ...

    def read(self) -> tuple[bytes | None, int]:
        """The state, None where there is none, and its version."""
        ...

    def write(self, value: bytes, version: int) -> int | None:
        """Replace the state if it still has *version*, and return the new version; else None, and nothing changes."""
        ...

    def close(self) -> None:
        """Let another process send, and end the connection."""
        ...
