"""Entry point of ``trimtab``.  Signals are handled before the commands are loaded, which takes a second or more."""

import sys
from typing import Final

from controller.adapters import signals

#: Commands that run until they are told to end: a signal ends them with exit code 0.
UNTIL_TOLD: Final = ("run", "execute", "collect", "demo")


def main() -> None:
    """Run the command that the arguments name."""
    if sys.argv[1:2] and sys.argv[1] in UNTIL_TOLD:
        signals.end_at_once()
    from controller.cli.app import main as run_command

    run_command()


if __name__ == "__main__":
    main()
