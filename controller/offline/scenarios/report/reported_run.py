"""The data of one run in a report: usage by broker and time, moves with their reasons, and decisions."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import numpy as np

from controller.model.decision import Decision, Reason
from controller.model.load import Floats
from controller.offline.scenarios.figures import max_over_mean
from controller.offline.scenarios.simulate import SimulatedRun

#: Columns of the heat map at most.  Of more intervals each column has the lowest and the highest usage of several.
COLUMNS: Final = 720
#: Percent of usage in a level; the last level is ABSENT.
PERCENT_A_LEVEL: Final = 0.5
#: The level of a broker that is not there.
ABSENT: Final = 255
#: Moves and intervals with verdicts that are kept, of each run; the report says how many more there were.
MAX_MOVES: Final = 20_000
MAX_EXPLAINED: Final = 400
#: Verdicts of an interval, and characters of a text.
_MAX_VERDICTS, _LONGEST = 12, 240
#: Why a bundle moves that no command moved, in a scenario.
OF_A_SPLIT: Final = "it is a part of a split bundle, which is unloaded"
#: Verdicts about commands of earlier intervals.
_ABOUT_RESULTS: Final = {Reason.SETTLED, Reason.FAILED, Reason.LOST}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedRun:
    """One run, as the page's script reads it: small numbers and tables of texts."""

    strategy: str
    #: Intervals in a column.
    step: int
    #: (columns, brokers) lowest and highest level of usage in each column, as base64.
    low: str
    high: str
    #: (intervals,) highest usage over the mean.
    ratio: tuple[float, ...]
    #: In which interval it came, in which it was decided, bundle, source, destination, usage that moves, connections,
    #: reason.  Bundles, brokers and reasons are numbers in the tables.
    moves: tuple[tuple[int, int, int, int, int, float, int, int], ...]
    bundles: tuple[str, ...]
    reasons: tuple[str, ...]
    #: Moves that are left out.
    more_moves: int
    #: Interval -> its summary, where something was done or tried; then what was found about other subjects.
    decided: dict[int, tuple[str, ...]]

    def as_fields(self) -> dict[str, Any]:
        """For JSON."""
        return {name: getattr(self, name) for name in self.__slots__}


def reported_run(
    strategy: str, run: SimulatedRun, decisions: Sequence[Decision], uncommanded: str = OF_A_SPLIT
) -> ReportedRun:
    """What is shown of *run*, in which each interval had its one of *decisions*.

    *uncommanded*: why a bundle moves that no command moved.
    """
    step = -(-len(run.usage) // COLUMNS)
    low, high = _levels(run.usage, step)
    issued = _issued(decisions)
    bundles, reasons = _Table(), _Table()
    moves = []
    for move in run.moves[:MAX_MOVES]:
        decided, why = _cause(issued, move.bundle, move.turn, uncommanded)
        numbers = (move.turn, decided, bundles.number(move.bundle), move.source, move.destination)
        moves.append((*numbers, round(move.usage, 2), move.connections, reasons.number(why)))
    return ReportedRun(
        strategy=strategy,
        step=step,
        low=low,
        high=high,
        ratio=tuple(round(float(each), 4) for each in np.nan_to_num(max_over_mean(run.usage), nan=1.0)),
        moves=tuple(moves),
        bundles=bundles.texts,
        reasons=reasons.texts,
        more_moves=len(run.moves) - len(moves),
        decided=_decided(decisions),
    )


def _levels(usage: Floats, step: int) -> tuple[str, str]:
    """(columns, brokers) lowest and highest level, as base64; absent only where a broker never is in the column."""
    columns = -(-len(usage) // step)
    padded = np.full((columns * step, usage.shape[1]), np.nan)
    padded[: len(usage)] = usage
    parts = padded.reshape(columns, step, usage.shape[1])
    is_absent = np.isnan(parts).all(axis=1)
    low = np.where(np.isnan(parts), np.inf, parts).min(axis=1)
    high = np.where(np.isnan(parts), -np.inf, parts).max(axis=1)
    return _as_text(low, is_absent), _as_text(high, is_absent)


def _as_text(usage: Floats, is_absent: np.ndarray[Any, np.dtype[np.bool_]]) -> str:
    level = np.clip(np.rint(np.where(is_absent, 0.0, usage) / PERCENT_A_LEVEL), 0, ABSENT - 1)
    return base64.b64encode(np.where(is_absent, ABSENT, level).astype(np.uint8).tobytes()).decode()


def _issued(decisions: Sequence[Decision]) -> dict[str, list[tuple[int, str]]]:
    """Bundle -> interval and reason of each of its unloads."""
    by_bundle: dict[str, list[tuple[int, str]]] = {}
    for at, decision in enumerate(decisions):
        for command in decision.commands:
            if command.action == "unload":
                by_bundle.setdefault(command.bundle, []).append((at, _short(str(command.why))))
    return by_bundle


def _cause(issued: dict[str, list[tuple[int, str]]], bundle: str, came: int, uncommanded: str) -> tuple[int, str]:
    """Interval and reason of the unload that moved *bundle*: the last one before the interval in which it *came*."""
    before = [each for each in issued.get(bundle, ()) if each[0] < came]
    return before[-1] if before else (came - 1, uncommanded)


def _decided(decisions: Sequence[Decision]) -> dict[int, tuple[str, ...]]:
    """Of the intervals with commands, then of the first others: the summary, and verdicts about what was examined."""
    chosen = sorted(range(len(decisions)), key=lambda at: (not decisions[at].commands, at))[:MAX_EXPLAINED]
    texts = {}
    for at in sorted(chosen):
        examined = (each for each in decisions[at].verdicts if each.reason not in _ABOUT_RESULTS)
        verdicts = map(str, islice(examined, _MAX_VERDICTS))
        texts[at] = (_short(decisions[at].summary), *map(_short, verdicts))
    return texts


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


class _Table:
    """Texts that are told by their number."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        return self._numbers.setdefault(text, len(self._numbers))

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(self._numbers)
