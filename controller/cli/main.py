"""Entry point of ``trimtab``.  Sets the signal handlers before it imports anything that takes time."""

import os
import signal
import sys

#: Commands that run until a signal stops them, with exit code 0.
UNTIL_TOLD = ("run", "execute", "collect", "demo", "commands")
#: Exit code where a signal ends another command; controller.adapters.process.signals has it, too.
_INTERRUPTED = 130


def main() -> None:
    """Run the command in the arguments."""
    exit_code = 0 if _command(sys.argv[1:]) in UNTIL_TOLD else _INTERRUPTED

    def stop(number: int, _: object) -> None:
        name = signal.Signals(number).name
        os.write(2, f"trimtab: {name}: stopping\ntrimtab: ended: {name}\n".encode())
        os._exit(exit_code)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    from controller.adapters.process import signals

    signals.end_at_once(exit_code)
    from controller.cli.app import main as run_command

    try:
        run_command()
    except SystemExit as ended:
        signals.leave(int(ended.code or 0))


def _command(words: list[str]) -> str:
    """The command that *words* name; "" where they name none."""
    return next((word for word in words if not word.startswith("-")), "")


if __name__ == "__main__":
    main()
