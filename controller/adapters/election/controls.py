"""The store of the operator's controls (pause, resume, mode), the same for every controller of the cluster."""

from typing import Final, Protocol

from controller.model.controls import OperatorControls

#: The version of controls that nobody has set yet.
ABSENT: Final = -1


class ControlStore(Protocol):
    """The controls of one cluster, and the lowest epoch that may still lead it."""

    def read(self) -> tuple[OperatorControls, int]:
        """The controls and their version.  Raises ControlsUnreachableError, ControlsCorruptError."""
        ...

    def write(self, controls: OperatorControls, version: int) -> bool:
        """Replace the controls if they still have *version*; otherwise change nothing and return False."""
        ...

    def version(self) -> int:
        """The version of the stored controls, even if they cannot be read."""
        ...

    def epoch(self) -> int:
        """The number of the newest leadership; 0 before the first."""
        ...

    def raise_epoch(self, epoch: int) -> None:
        """End every leadership below *epoch*: its next check fails."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...
