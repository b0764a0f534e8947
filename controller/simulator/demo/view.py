"""Shows a running demo: a live screen on a terminal, one line per interval anywhere else."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Final, Protocol, Self

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from controller.model.load import Floats

_BAR_WIDTH = 40
#: How often the spinner is drawn.
_REFRESHES_PER_SECOND = 10
#: Lines of commands that fit a screen of 24 lines beside the bars.
_LINES_OF_COMMANDS = 8
#: A broker this far above the mean is warm, and this far hot.
_WARM, _HOT = 1.15, 1.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """The unit in which load is shown."""

    name: str
    #: One unit, in the unit of the load's numbers.
    size: float

    def format(self, load: float, width: int = 0) -> str:
        """*load* for a person, padded to *width*."""
        return f"{load / self.size:{width}.1f} {self.name}"


#: Of bytes/s, and of messages/s.
MEGABYTES: Final = Unit(name="MB/s", size=1e6)
MESSAGES: Final = Unit(name="msg/s", size=1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImbalanceLine:
    """How uneven the brokers' load is."""

    #: The busiest broker over the mean; 1 is even.
    max_over_mean: float
    #: Standard deviation over the brokers.
    deviation: float
    unit: Unit = MEGABYTES

    @classmethod
    def of(cls, load: Floats, unit: Unit = MEGABYTES) -> Self:
        """Of (brokers,) bytes/s, or what *unit* is of; a cluster without load is even."""
        mean = load.mean()
        over = float(load.max() / mean) if mean else 1.0
        return cls(max_over_mean=over, deviation=float(load.std()), unit=unit)

    def __str__(self) -> str:
        return f"max/mean {self.max_over_mean:.2f}, standard deviation {self.unit.format(self.deviation)}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Frame:
    """The demo after interval *number* of *intervals* has been decided and its commands executed."""

    number: int
    intervals: int
    #: T, epoch ms, in the cluster's own time.
    interval: int
    brokers: tuple[str, ...]
    #: (brokers,) in + out that the decision was made on, counted as the imbalance at the start.
    load: Floats
    at_start: ImbalanceLine
    #: The controller's summary of its decision on T.
    summary: str
    #: The commands of T, a line each, and those of all intervals so far, oldest first.
    commands: tuple[str, ...] = ()
    history: tuple[str, ...] = ()
    #: Intervals are shorter than a minute.
    with_seconds: bool = False

    @property
    def imbalance(self) -> ImbalanceLine:
        """Of this frame's load."""
        return ImbalanceLine.of(self.load, self.at_start.unit)

    @property
    def clock(self) -> str:
        """T as the time of day, UTC."""
        return f"{datetime.fromtimestamp(self.interval / 1000, UTC):{'%H:%M:%S' if self.with_seconds else '%H:%M'}}"


class View(Protocol):
    """Shows frames while it is open."""

    def __enter__(self) -> Self:
        """Open."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close, leaving what was shown last."""
        ...

    def waiting(self, text: str) -> None:
        """Show below the last frame what the demo waits for."""
        ...

    def show(self, frame: Frame) -> None:
        """Show *frame* in the place of the one before."""
        ...


def view_on(console: Console) -> View:
    """The view that suits *console*: live on a terminal, plain lines in a file or a CI log."""
    return LiveView(console) if console.is_terminal else PlainView(console)


class LiveView:
    """Redraws the screen for each frame, with a spinner while the demo waits."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, refresh_per_second=_REFRESHES_PER_SECOND)
        self._screen: RenderableType = ""

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def waiting(self, text: str) -> None:
        """See :class:`View`."""
        self._live.update(Group(self._screen, Spinner("dots", Text(text, style="dim"))), refresh=True)

    def show(self, frame: Frame) -> None:
        """See :class:`View`."""
        self._screen = screen(frame)
        self._live.update(self._screen, refresh=True)


class PlainView:
    """Prints one line per interval, and one indented line per command."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def waiting(self, text: str) -> None:
        """See :class:`View`."""
        self._print(text)

    def show(self, frame: Frame) -> None:
        """See :class:`View`."""
        self._print(progress_line(frame))
        for command in frame.commands:
            self._print(f"    {command}")

    def _print(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


def progress_line(frame: Frame) -> str:
    """*frame* as one line of a log."""
    return (
        f"[{frame.number:{len(str(frame.intervals))}}/{frame.intervals}] {frame.clock}  "
        f"{frame.imbalance}  {frame.summary}"
    )


def screen(frame: Frame) -> RenderableType:
    """*frame* as a whole screen: progress, a bar for each broker, the newest commands."""
    return Group(
        _progress(frame),
        _bars(frame),
        Text.assemble(("now    ", "bold"), str(frame.imbalance)),
        Text.assemble(("start  ", "dim"), (str(frame.at_start), "dim")),
        Panel(
            _Newest(frame.history) if frame.history else Text("none yet"),
            title=f"commands ({len(frame.history)})",
            title_align="left",
        ),
        Text(frame.summary, style="italic"),
    )


class _Newest:
    """The newest of *commands* that fit: what does not fit on a line is wrapped between words."""

    def __init__(self, commands: Sequence[str]) -> None:
        self._commands = commands

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        visible: list[str] = []
        for command in reversed(self._commands):
            lines = textwrap.wrap(
                command,
                options.max_width,
                subsequent_indent="    ",
                break_long_words=False,
                break_on_hyphens=False,
            )
            if visible and len(visible) + len(lines) > _LINES_OF_COMMANDS:
                break
            visible = lines + visible
        yield Text("\n".join(visible), overflow="fold")


def _progress(frame: Frame) -> RenderableType:
    row = Table.grid(padding=(0, 2))
    row.add_row(
        Text("trimtab demo", style="bold"),
        Text(f"interval {frame.number} of {frame.intervals}"),
        ProgressBar(total=frame.intervals, completed=frame.number, width=_BAR_WIDTH),
        Text(f"cluster time {frame.clock}"),
    )
    return row


def _bars(frame: Frame) -> RenderableType:
    """A bar for each broker, on one scale for the whole demo, the mean marked."""
    mean, unit = float(frame.load.mean()), frame.at_start.unit
    scale = max(frame.at_start.max_over_mean * mean, float(frame.load.max()), 1.0)
    table = Table.grid(padding=(0, 1))
    for broker, load in zip(frame.brokers, frame.load.tolist(), strict=True):
        table.add_row(broker, _bar(load / scale, mean / scale), unit.format(load, 7))
    return table


def _bar(fraction: float, mark: float) -> Text:
    """*fraction* of the width filled, with a stroke at *mark*, coloured by how far it goes beyond."""
    style = "red" if fraction > _HOT * mark else "yellow" if fraction > _WARM * mark else "green"
    filled, stroke = round(fraction * _BAR_WIDTH), min(round(mark * _BAR_WIDTH), _BAR_WIDTH - 1)
    bar = Text("█" * filled + "·" * (_BAR_WIDTH - filled))
    bar.stylize(style, 0, filled)
    bar.stylize("dim", filled)
    return Text.assemble(bar[:stroke], ("│", "bold"), bar[stroke + 1 :])
