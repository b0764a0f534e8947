"""Entry point of ``trimtab``.  Sets the signal handlers before it imports anything that takes time."""

import os
import signal
import sys

#: Commands that run until a signal stops them, with exit code 0.
UNTIL_TOLD = ("run", "execute", "collect", "demo", "commands", "serve")
#: Exit code where a signal ends another command; controller.adapters.process.signals has it, too.
_INTERRUPTED = 130
#: The last of the three file descriptors that every process has.
_STANDARD_ERROR = 2


def main() -> None:
    """Run the command in the arguments."""
    _open_what_is_closed()
    exit_code = 0 if _runs_until_told(sys.argv[1:]) else _INTERRUPTED

    def stop(number: int, _: object) -> None:
        name = signal.Signals(number).name
        os.write(2, f"trimtab: {name}: stopping\ntrimtab: ended: {name}\n".encode())
        os._exit(exit_code)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:  # nohup
            signal.signal(number, stop)
    from controller.adapters.process import signals
    from controller.adapters.process.tied_child import end_with_parent

    signals.end_at_once(exit_code)
    end_with_parent()
    from controller.cli.app import main as run_command

    try:
        run_command()
    except SystemExit as ended:
        signals.leave(int(ended.code or 0))


def _open_what_is_closed() -> None:
    """Have output go nowhere where whoever started us closed it: else the next file that is opened would get it."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= _STANDARD_ERROR:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8")
    sys.stderr = sys.stderr or os.fdopen(_STANDARD_ERROR, "w", encoding="utf-8")


def _runs_until_told(words: list[str]) -> bool:
    command = _command(words)
    return command in UNTIL_TOLD or (command == "status" and "--watch" in words)


def _command(words: list[str]) -> str:
    """The command that *words* name; "" where they name none."""
    return next((word for word in words if not word.startswith("-")), "")


if __name__ == "__main__":
    main()
