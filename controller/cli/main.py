"""Entry point of ``trimtab``.  Sets the signal handlers before it imports the commands, which may take seconds."""

import sys
from typing import Final

from controller.adapters import signals

#: Commands that run until a signal stops them, with exit code 0.
UNTIL_TOLD: Final = ("run", "execute", "collect", "demo")


def main() -> None:
    """Run the command in the arguments."""
    if sys.argv[1:2] and sys.argv[1] in UNTIL_TOLD:
        signals.end_at_once()
    from controller.cli.app import main as run_command

    run_command()


if __name__ == "__main__":
    main()
