"""The history of every bundle's load: rows by name, kept as bundles come, go, and are out of sight for a while."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, Final, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from controller.model import packed
from controller.model.load import Bools, Floats, Ints
from controller.model.packed import Keys
from controller.model.strategy_memory import OMIT_DEFAULT
from controller.planning.foresight.day import HOUR_MS, HOURS, DayProfile, with_day
from controller.planning.foresight.followed import NEVER, Followed

#: Bundles out of sight are forgotten where there are more of them than in sight, and than this.
_OUT_OF_SIGHT: Final = 1000
_MINUTE_MS: Final = 60_000
#: After a longer time without a round, a step counts as this many minutes.
_LONGEST_STEP: Final = 10.0
#: A share of the load: so much has jumped.
_MUCH: Final = 0.1
#: What is foretold is compared with the load of so many hours before; and what an hour shows counts for such a part.
_SKILL_HOURS: Final = 6
_LEARNS: Final = 0.2

_Column: TypeAlias = NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedHistory:
    """A ``BundleHistory`` as a strategy's memory holds it: columns as text (``packed``).

    9 bytes a bundle, 8 more for its name, 2 for each hour of the day, and 2 while its load is far off.
    """

    #: T of the last round, epoch ms; -1 before the first.
    as_of_ms: int = -1
    #: A digest of the names of the bundles in the last view.
    bundles: str = ""
    #: Columns, a row for each bundle of the last view in its order; then those of bundles that it did not have.
    #: 8 bytes: the bundle's name, hashed.
    keys: str = ""
    #: The load without bursts, its trend a minute, the typical error of the next minute's, and for how many rounds in a
    #: row it was far above (or below: less than 0): float32, and the upper half of float32 twice, and int8.
    level: str = ""
    trend: str = ""
    error: str = ""
    streak: str = ""
    #: The load of the last round of those far above or below, in their order: the upper half of float32.
    far: str = field(default="", metadata=OMIT_DEFAULT)
    #: T of the last round in which a tenth of the load jumped.
    jumped_ms: int = field(default=-1, metadata=OMIT_DEFAULT)
    #: Hour of the day, UTC, "00" to "23" -> the level at its end, the upper half of float32.  Newer days count more.
    hours: Mapping[str, str] = field(default_factory=dict)
    #: How much better the hours of the days before foretell the load than the load of some hours before: 1 at most, and
    #: 0 where they do not.
    day_skill: float = field(default=0.0, metadata=OMIT_DEFAULT)
    #: The share of the load that is on other bundles an hour later, typically; -1: not known.
    shifting: float = field(default=-1.0, metadata=OMIT_DEFAULT)


H = TypeVar("H", bound=PackedHistory)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BundleHistory:
    """Columns: first the bundles in sight (n), in the order of the view, then others."""

    names: str
    keys: Keys
    followed: Followed
    #: Hour of the day, "00" to "23" -> the level at its end, packed; 0: not known.
    hours: Mapping[str, str]
    day_skill: float
    shifting: float
    as_of_ms: int
    #: T of the last round in which a tenth of the load jumped; -1: none.
    jumped_ms: int
    in_sight: int

    @classmethod
    def read(cls, memory: PackedHistory, names: Sequence[str]) -> Self:
        """The history in *memory*, with the rows of *names* first; columns that do not fit together begin anew."""
        keys = packed.unpack_keys(memory.keys)
        streak = packed.unpack_bytes(memory.streak)
        followed = Followed(
            level=packed.unpack_floats(memory.level),
            trend=packed.unpack_halves(memory.trend),
            error=packed.unpack_halves(memory.error),
            streak=streak,
            far=_unpacked_far(memory.far, streak),
        )
        whole = all(len(of) == len(keys) for of in _columns(followed))
        digest = _digest(names)
        history = cls(
            names=memory.bundles,
            keys=keys,
            followed=followed,
            hours=memory.hours,
            day_skill=memory.day_skill,
            shifting=memory.shifting,
            as_of_ms=memory.as_of_ms,
            jumped_ms=memory.jumped_ms,
            in_sight=len(names),
        )
        if whole and memory.bundles == digest and len(keys) >= len(names):
            return history
        return history._with_rows(digest, _hashed(names), known=whole)

    def after(self, load: Floats, at_first: Floats, at_ms: int) -> Self:
        """After a round at *at_ms*, in which the load of the bundles in sight was *load* (n,)."""
        n, rows = self.in_sight, slice(0, self.in_sight)
        # Of the first round of all it does not matter how long it was.
        minutes = min(max((at_ms - self.as_of_ms) / _MINUTE_MS, 0.1), _LONGEST_STEP)
        before = _of(self.followed, rows)
        now = before.after(load, at_first, minutes)
        jumps = before.jumped(load, minutes) > _MUCH * float(now.level.sum())
        columns: list[_Column] = [
            np.append(new, old[n:]) for new, old in zip(_columns(now), _columns(self.followed), strict=True)
        ]
        return replace(
            self._after_hour(at_ms),
            followed=_followed(columns),
            as_of_ms=at_ms,
            jumped_ms=at_ms if jumps else self.jumped_ms,
        )

    def of_view(self) -> Followed:
        """The bundles in sight."""
        return _of(self.followed, slice(0, self.in_sight))

    def day(self) -> DayProfile | None:
        """What is known of the time of day of the bundles in sight; None where no day is known yet."""
        if len(self.hours) < HOURS:
            return None
        levels = [self._level_of(f"{hour:02}")[: self.in_sight] for hour in range(HOURS)]
        profile = DayProfile(levels=np.stack(levels))
        return profile if profile.is_known else None

    def written(self, memory: H) -> H:
        """*memory* with this history; columns that did not change stay the same text."""
        return replace(
            memory,
            day_skill=self.day_skill,
            shifting=self.shifting,
            jumped_ms=self.jumped_ms,
            as_of_ms=self.as_of_ms,
            bundles=self.names,
            keys=packed.pack_keys(self.keys),
            level=packed.pack_floats(self.followed.level),
            trend=packed.pack_halves(self.followed.trend),
            error=packed.pack_halves(self.followed.error),
            streak=packed.pack_bytes(self.followed.streak),
            far=packed.pack_halves(self.followed.far[_is_far(self.followed.streak)]),
            hours=self.hours,
        )

    def _level_of(self, hour: str) -> Floats:
        """(rows,) the level at the end of *hour*; 0 where it is not known."""
        levels = packed.unpack_halves(self.hours.get(hour, ""))
        return levels if len(levels) == len(self.keys) else np.zeros(len(self.keys))

    def _after_hour(self, at_ms: int) -> Self:
        """With the level before this round for the hour that has ended since then, and what the hour has shown."""
        ended = self.as_of_ms // HOUR_MS
        if self.as_of_ms < 0 or at_ms // HOUR_MS != ended + 1:
            return self
        hour, is_known, now = f"{ended % HOURS:02}", self.followed.streak != NEVER, self.followed.level
        day, earlier, last = (self._level_of(f"{(ended - ago) % HOURS:02}") for ago in (0, _SKILL_HOURS, 1))
        rows = is_known & (day > 0) & (earlier > 0)
        by_day, as_now = (float(np.abs(now - than)[rows].sum()) for than in (day, earlier))
        skill, both, shifted = self.day_skill, by_day + as_now, _on_others(last, np.where(is_known, now, 0.0))
        return replace(
            self,
            hours={**self.hours, hour: packed.pack_halves(np.where(is_known, with_day(day, now), 0.0))},
            day_skill=skill + (_LEARNS * ((as_now - by_day) / both - skill) if both > 0 else 0.0),
            shifting=shifted
            if min(shifted, self.shifting) < 0
            else self.shifting + _LEARNS * (shifted - self.shifting),
        )

    def _with_rows(self, digest: str, names: Keys, *, known: bool) -> Self:
        """These columns for the rows *names*, then the others, unless there are too many."""
        names_now = self.keys if known else self.keys[:0]
        row_of = {key: row for row, key in enumerate(names_now.tolist())}
        rows: Ints = np.array([row_of.get(key, -1) for key in names.tolist()], np.int64)
        out_of_sight = np.setdiff1d(np.arange(len(names_now)), rows)
        if len(out_of_sight) > max(len(names), _OUT_OF_SIGHT):
            out_of_sight = out_of_sight[:0]
        rows = np.append(rows, out_of_sight)

        def column(old: _Column, missing: float) -> Floats:
            return np.append(old, missing)[rows]

        missing = (0.0, 0.0, 0.0, NEVER, 0.0)
        columns = [column(old, new) for old, new in zip(_columns(self.followed), missing, strict=True)]
        return replace(
            self,
            names=digest,
            keys=np.append(names, names_now[out_of_sight]),
            followed=_followed(columns),
            hours={hour: packed.pack_halves(column(self._level_of(hour), 0.0)) for hour in self.hours} if known else {},
        )


def _columns(followed: Followed) -> Sequence[_Column]:
    return followed.level, followed.trend, followed.error, followed.streak, followed.far


def _followed(columns: Sequence[_Column]) -> Followed:
    level, trend, error, streak, far = columns
    return Followed(level=level, trend=trend, error=error, streak=streak.astype(np.int64), far=far)


def _of(followed: Followed, rows: slice) -> Followed:
    return _followed([column[rows] for column in _columns(followed)])


def _is_far(streak: Ints) -> Bools:
    far: Bools = (streak != 0) & (streak != NEVER)
    return far


def _unpacked_far(text: str, streak: Ints) -> Floats:
    """(rows,) the column ``far``; of a memory that lacks it nothing is known."""
    is_far, far = _is_far(streak), np.zeros(len(streak))
    values = packed.unpack_halves(text)
    far[is_far] = values if len(values) == np.count_nonzero(is_far) else np.inf
    return far


def _on_others(before: Floats, now: Floats) -> float:
    """The share of the load that is on other bundles *now* than *before*; -1 where no bundle was known then.

    Shares are compared: what all bundles have more makes no broker fuller than the others.
    """
    known = (before > 0) & (now > 0)
    whole, then = float(now[known].sum()), float(before[known].sum())
    # What some bundles have less, others have more.
    return float(np.abs(now - before * (whole / then))[known].sum()) / 2 / whole if whole > 0 else -1.0


def _digest(names: Sequence[str]) -> str:
    return blake2b("\n".join(names).encode(), digest_size=16).hexdigest()


def _hashed(names: Sequence[str]) -> Keys:
    """(n,) a number for each name.  That two names have the same one does not happen."""
    return np.frombuffer(b"".join(blake2b(name.encode(), digest_size=8).digest() for name in names), "<u8").astype(
        np.uint64
    )
