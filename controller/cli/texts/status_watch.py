"""``trimtab status --watch``: the status again and again, until a signal ends the process."""

import sys
import time
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Final, Protocol

import typer
from rich.console import Console
from rich.live import Live
from rich.text import Text

from controller.adapters.network.calls import Calls
from controller.adapters.network.deadline import Deadline
from controller.adapters.pulsar.access import pulsar_admin
from controller.cli.shared.console import captured, console
from controller.cli.texts.cluster_status import print_status, status_line
from controller.model.errors import AccessDeniedError, SettingsError, TrimtabError
from controller.settings.trimtab_toml import Settings
from controller.status.answer import status_answer
from controller.status.cluster import ClusterStatus, cluster_status
from controller.status.health import Problem, problems
from controller.wire.readable import ago, utc

#: Maximum time to wait for an answer.
_LOOK_SECONDS: Final = 15.0
#: Of the brokers, as in ``trimtab status``.
_ANSWER_SECONDS: Final = 10.0


class _View(Protocol):
    """Where the status is shown."""

    def show(self, status: ClusterStatus, problem_list: list[Problem], now_ms: float) -> None:
        """It was read at *now_ms*."""
        ...

    def away(self, why: str, now_ms: float) -> None:
        """It cannot be read now."""
        ...


def watch_status(settings: Settings, conf: Path, every: float, *, as_json: bool) -> None:
    """Show the status repeatedly, at a fixed interval; where the log does not answer, say so, and go on.

    Ends with SettingsError or AccessDeniedError: these do not go away by waiting.
    """
    out = console()
    with ExitStack() as stack:
        admin = None
        if settings.pulsar is not None:
            admin = stack.enter_context(closing(pulsar_admin(settings, answer_seconds=_ANSWER_SECONDS)))
        view: _View
        if as_json or not out.is_terminal:
            view = _Lines(as_json=as_json)
        else:
            view = _Screen(stack.enter_context(_live(out)), out, conf)
        calls = Calls(1)
        while True:
            next_look = Deadline.after(every)
            call = calls.together({"status": partial(cluster_status, settings, admin)}, _LOOK_SECONDS)["status"]
            now_ms = time.time() * 1000
            if isinstance(call.error, SettingsError | AccessDeniedError):
                raise call.error
            if call.late or isinstance(call.error, TrimtabError):
                view.away(str(call.error), now_ms)
            else:
                status = call.result()
                view.show(status, problems(status, settings, now_ms), now_ms)
            time.sleep(next_look.remaining)


def _live(out: Console) -> Live:
    # What does not fit is cut off below: the health is above.
    return Live(Text("waiting for the first answer"), console=out, auto_refresh=False, vertical_overflow="ellipsis")


class _Lines:
    """A line each time; in JSON only what was read, and all else on standard error."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json

    def show(self, status: ClusterStatus, problem_list: list[Problem], now_ms: float) -> None:
        """See _View."""
        self._write(
            status_answer(status, problem_list).as_line()
            if self._as_json
            else status_line(status, problem_list, now_ms)
        )

    def away(self, why: str, now_ms: float) -> None:
        """See _View."""
        self._write(f"{utc(int(now_ms))}  cannot be read: {' '.join(why.split())}", error=self._as_json)

    def _write(self, line: str, *, error: bool = False) -> None:
        typer.echo(line, err=error)
        (sys.stderr if error else sys.stdout).flush()


class _Screen:
    """The whole status, in place."""

    def __init__(self, live: Live, out: Console, conf: Path) -> None:
        self._live, self._out, self._conf = live, out, conf
        self._last = ""
        self._last_ms: float | None = None

    def show(self, status: ClusterStatus, problem_list: list[Problem], now_ms: float) -> None:
        """See _View."""
        self._last = captured(self._out.width, lambda out: print_status(out, status, problem_list, now_ms, self._conf))
        self._last_ms = now_ms
        self._draw(f"at {utc(int(now_ms))}; Ctrl-C ends")

    def away(self, why: str, now_ms: float) -> None:
        """See _View.  What was read last stays, with its age."""
        since = "" if self._last_ms is None else f"; below is what was read {ago(now_ms, self._last_ms)}"
        self._draw(f"at {utc(int(now_ms))} the status cannot be read: {why}{since}; Ctrl-C ends")

    def _draw(self, first: str) -> None:
        self._live.update(Text(f"{first}\n{self._last}"), refresh=True)
