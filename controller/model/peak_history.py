"""What PeakShedder remembers: how the load of each bundle went, what it has waited for, and what its moves promised.

Numbers of bundles are columns, packed into text (controller/planning/foresight/packed.py), so that the journal can
hold them: 9 bytes a bundle, 8 more for its name, and 2 for each hour of the day.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

#: Metadata of fields that the journal leaves out while they have their default, as entries did that know none of them.
OMITTED: Final[Mapping[str, Any]] = {"omitted": True}


@dataclass(frozen=True, slots=True, kw_only=True)
class MovePromise:
    """What a move was to bring about, until that is looked at."""

    source: str
    destination: str
    #: In so many rounds the decision was made again since then.
    rounds: int = 0
    #: Utilisation of the destination after the plan, of the source before it, and the mean of all brokers then.
    promised: float = 0.0
    source_before: float = 0.0
    mean: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingUndo:
    """A move that made things worse: its bundle goes back once it may, if that still pays."""

    #: Where it goes back to, and the broker that owns it; with any other owner nothing is undone.
    source: str
    destination: str
    #: T of the round in which that was found, epoch ms.
    noted_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Proven:
    """How well the promises were kept so far."""

    #: Typical difference between what brokers were to have and what they had, as a utilisation.
    error: float = 0.0
    #: Moves that were looked at; of these, those whose destination is fuller than promised, and those that another
    #: broker owns; and moves that were undone because they made things worse.
    verified: int = 0
    broken: int = 0
    strayed: int = 0
    undone: int = 0
    #: Gap between the last plan and its bound, as a share of the bound.
    gap: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakHistory:
    """See the module docstring."""

    kind: Literal["peak_history"] = "peak_history"
    #: T of the first round and of the last one, epoch ms; -1 before the first.
    since_ms: int = -1
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
    #: T of the last round in which a tenth of the load jumped.
    jumped_ms: int = field(default=-1, metadata=OMITTED)
    #: A bit for each of the last two rounds: 1 if bundles were split whose parts went to other brokers.
    splits: int = field(default=0, metadata=OMITTED)
    #: Hour of the day, UTC, "00" to "23" -> the level at its end, the upper half of float32.  Newer days count more.
    hours: Mapping[str, str] = field(default_factory=dict)
    #: Broker, or "" for the cluster -> a bit for each of the last rounds: 1 if it was to act.
    over: Mapping[str, int] = field(default_factory=dict)
    #: The active brokers, sorted; T of the last round in which some came or went; and the longest time, ms, between two
    #: such rounds that followed each other within an hour.
    brokers: tuple[str, ...] = ()
    changed_ms: int = -1
    apart_ms: int = 0
    #: Broker -> T of the last round in which it was to get bundles by an urgent move.
    helped: Mapping[str, int] = field(default_factory=dict, metadata=OMITTED)
    #: Broker -> T of the last round in which it was to give bundles by an urgent move after load jumped; empty once
    #: brokers came or went.
    relieved: Mapping[str, int] = field(default_factory=dict, metadata=OMITTED)
    #: Broker -> T of the round since which it is gone, for an hour; and, of one that came back within that time, T of
    #: the round in which it was back, for a day.
    gone: Mapping[str, int] = field(default_factory=dict, metadata=OMITTED)
    returned: Mapping[str, int] = field(default_factory=dict, metadata=OMITTED)
    #: Rounds in which nothing is planned, as the last plans were not worth it; how many there were last time; and the
    #: highest utilisation then.
    rest: int = 0
    rested: int = 0
    rested_at: float = 0.0
    #: The rest of a plan of which the last rounds carried out a part, bundle -> destination, in the order of the plan;
    #: and the highest utilisation that it leads to.
    plan: tuple[tuple[str, str], ...] = ()
    plan_end: float = 0.0
    #: Bundle -> what its move was to bring about.
    promises: Mapping[str, MovePromise] = field(default_factory=dict)
    #: Bundle -> its move, which is to be undone.
    undo: Mapping[str, PendingUndo] = field(default_factory=dict)
    #: Bundles whose move was found out in the last round to have broken its promise.
    broken: tuple[str, ...] = ()
    proven: Proven = field(default_factory=Proven)
