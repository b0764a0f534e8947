"""Asks strategies, and checks all that they answer before the cycle acts on it: a user may have written them.

A faulty answer raises StrategyError, which names the strategy, what it answered and what is expected; so does an error
that a strategy raises itself, also where its answer is looked at.  The columns that strategies are given are read-only
(controller/model/load.py), so that none changes what others see.
"""

import re
import reprlib
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final, NoReturn, TypeVar

import numpy as np

from controller.cycle.typed import misfit, misfit_of_all, quoted
from controller.model.decision import Reason, Split, SplitDecision, Unload, UnloadDecision, UsageOutlook, Verdict
from controller.model.errors import StrategyError
from controller.model.load import ClusterView, Floats, Ints
from controller.model.names import FULL_UPPER, parse_bundle
from controller.model.strategy_memory import StrategyMemory
from controller.strategies.common.blamed import Blamed
from controller.strategies.common.capabilities import capability
from controller.strategies.common.cutting import MAX_CUTS
from controller.strategies.protocols import (
    HurriedShedder,
    Observer,
    Placement,
    Shedder,
    SplitAlgorithm,
    SplitPolicy,
    SplitThresholds,
)

M = TypeVar("M", bound=StrategyMemory)

#: Characters of a text in the verdict of a command.  The command has it, and Kafka takes a command of 1 MiB at most.
_LONGEST_TEXT: Final = 4096

#: Metrics of a memory, and what their names have: a label of trimtab's own metrics may follow.
_MOST_METRICS: Final = 20
_METRIC: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,99}(\{[a-z]+=[a-z]+\})?")

#: The fields of verdicts, and the types that they may have.
_VERDICT: Final[tuple[tuple[str, Any], ...]] = (
    ("subject", str), ("reason", Reason), ("observed", float), ("limit", float), ("unit", str), ("by", str),
    ("detail", str),
)  # fmt: skip


def unloads_by(shedder: Shedder[Any], view: ClusterView, memory: StrategyMemory) -> tuple[UnloadDecision, Any]:
    """What *shedder*, or the membership rebalancer, decides, and its next memory."""
    with Blamed(shedder, "decide"):
        decision, next_memory = _pair(shedder, shedder.decide(view, memory))
        _refuse(shedder, _unloads_flaw(view, decision) or memory_flaw(memory, next_memory))
    return decision, next_memory


def splits_by(policy: SplitPolicy[Any], view: ClusterView, memory: StrategyMemory) -> tuple[SplitDecision, Any]:
    """What *policy* decides, and its next memory."""
    with Blamed(policy, "decide"):
        decision, next_memory = _pair(policy, policy.decide(view, memory))
        _refuse(policy, _splits_flaw(view, decision) or memory_flaw(memory, next_memory))
    return decision, next_memory


def observed_by(strategy: Shedder[Any] | Placement[Any], view: ClusterView, memory: StrategyMemory) -> Any:
    """The memory of *strategy* after the interval of *view*; *memory* where it observes nothing."""
    observer: Observer[Any] | None = capability(strategy, Observer)
    if observer is None:
        return memory
    with Blamed(strategy, "observed"):
        moved = observer.observed(view, memory)
        _refuse(strategy, memory_flaw(memory, moved))
    return moved


def first_memory(strategy: Any) -> Any:
    """The memory of *strategy* before its first interval."""
    with Blamed(strategy, "initial_memory"):
        memory = strategy.initial_memory()
        _refuse(strategy, memory_flaw(memory, memory))
    return memory


def thresholds_of(policy: SplitPolicy[Any]) -> SplitThresholds:
    """The thresholds of *policy*."""
    with Blamed(policy, "thresholds"):
        thresholds = policy.thresholds
    flaw = (
        None
        if isinstance(thresholds, SplitThresholds)
        else f"its thresholds are {quoted(thresholds)}, not SplitThresholds"
    )
    if flaw is None:
        flaw = misfit_of_all(thresholds, float, "one of its thresholds")
    if flaw is None and not all(value >= 0 for value in thresholds):
        flaw = f"its thresholds are {quoted(tuple(thresholds))}, and numbers from 0 up are expected"
    _refuse(policy, flaw)
    return thresholds


def relieving_of(shedder: Shedder[Any], view: ClusterView) -> Shedder[Any] | None:
    """*shedder*, which does no more than relieve brokers that cannot wait; None where none of *view* is such a one."""
    hurried: HurriedShedder | None = capability(shedder, HurriedShedder)
    if hurried is None:
        return None
    with Blamed(shedder, "hurries"):
        hurries = hurried.hurries(view)
    if not isinstance(hurries, bool | np.bool_):
        _fail(shedder, f"hurries() answers {quoted(hurries)}, and True or False is expected")
    if not hurries:
        return None
    with Blamed(shedder, "relieving"):
        urgent_shedder = hurried.relieving()
        if not all(callable(getattr(urgent_shedder, method, None)) for method in ("decide", "initial_memory")):
            _fail(shedder, f"relieving() answers {quoted(urgent_shedder)}, and a shedder is expected")
        _refuse(shedder, memory_flaw(shedder.initial_memory(), urgent_shedder.initial_memory()))
    return urgent_shedder


@dataclass(frozen=True, slots=True)
class CheckedPlacement:
    """Asks a placement.  Its memory is looked at by ``memory_checked``, once for all bundles of an interval."""

    placement: Placement[Any]

    @property
    def wrapped(self) -> Placement[Any]:
        """The placement."""
        return self.placement

    def initial_memory(self) -> Any:
        """That of the placement."""
        return first_memory(self.placement)

    def acceptable(self, view: ClusterView, bundle: int, candidates: Ints, memory: M) -> tuple[Ints, M]:
        """The rows of *candidates* that the placement accepts."""
        if candidates.flags.writeable:
            candidates = candidates.view()
            candidates.flags.writeable = False
        with Blamed(self.placement, "acceptable"):
            accepted, next_memory = _pair(self.placement, self.placement.acceptable(view, bundle, candidates, memory))
        flaw = _rows_flaw(candidates, accepted)
        if flaw is None and type(next_memory) is not type(memory):
            flaw = memory_flaw(memory, next_memory)
        _refuse(self.placement, flaw)
        return accepted, next_memory

    def memory_checked(self, before: StrategyMemory, after: Any) -> Any:
        """*after*, the memory once all bundles were placed."""
        _refuse(self.placement, memory_flaw(before, after))
        return after


@dataclass(frozen=True, slots=True)
class CheckedAlgorithm:
    """Asks a split algorithm.  Positions that brokers cannot cut at are refused by ``cut``, as in Pulsar."""

    algorithm: SplitAlgorithm

    @property
    def wrapped(self) -> SplitAlgorithm:
        """The algorithm."""
        return self.algorithm

    @property
    def name(self) -> str:
        """That of the algorithm."""
        with Blamed(self.algorithm, "name"):
            name = self.algorithm.name
        _refuse(self.algorithm, misfit(name, str, "its name"))
        return name

    @property
    def needs_topic_detail(self) -> bool:
        """Whether the algorithm looks at topics."""
        with Blamed(self.algorithm, "needs_topic_detail"):
            needed = self.algorithm.needs_topic_detail
        _refuse(self.algorithm, misfit(needed, bool, "needs_topic_detail"))
        return needed

    def cuts(self, lower: int, upper: int, positions: Ints, load: Floats) -> tuple[int, ...] | Reason:
        """The positions that the algorithm finds, or its reason why there are none."""
        with Blamed(self.algorithm, "cuts"):
            cuts: Any = self.algorithm.cuts(lower, upper, positions, load)
        if isinstance(cuts, Reason):
            return cuts
        flaw = misfit(cuts, tuple[int, ...], "what it answers")
        if flaw is None and not cuts:
            flaw = "it returns no cuts, and no reason for that"
        if flaw is None and not all(0 <= at <= FULL_UPPER for at in cuts):
            flaw = f"it cuts at {quoted(cuts)}, and positions from 0 to {FULL_UPPER} are expected"
        if flaw is not None:
            _fail(self.algorithm, f"{flaw}; the range is 0x{lower:08x}_0x{upper:08x}")
        return tuple(cuts)


def remembered(memory: StrategyMemory, method: str, *arguments: Any) -> Any:
    """*memory* after one of its own methods, such as ``keep_brokers``."""
    with Blamed(memory, method):
        after = getattr(memory, method)(*arguments)
        if after is not memory:
            _refuse(memory, memory_flaw(memory, after))
    return after


def failed_predictions(memory: StrategyMemory, interval: int) -> Collection[str]:
    """What *memory* says of *interval*."""
    with Blamed(memory, "failed_predictions"):
        bundles: Any = memory.failed_predictions(interval)
        flaw = misfit(bundles, tuple[str, ...], "failed_predictions")
        _refuse(memory, flaw)
    return tuple(bundles)


def memory_flaw(before: StrategyMemory, after: object) -> str | None:
    """Why the memory *after* cannot follow *before*, or cannot be journalled; None where it can."""
    if not isinstance(after, StrategyMemory):
        return f"its memory is {quoted(after)}, and a StrategyMemory is expected"
    if type(after) is not type(before):
        return f"it returns a {type(after).__name__}; the memory that it was given is a {type(before).__name__}"
    return misfit(after, type(after), "memory") or _metrics_flaw(after)


def _metrics_flaw(memory: StrategyMemory) -> str | None:
    """Why the metrics of *memory* cannot be exported; None where they can."""
    metrics: Any = memory.metrics()
    flaw = misfit(metrics, dict[str, float], "metrics()")
    if flaw is not None:
        return flaw
    if len(metrics) > _MOST_METRICS:
        return f"metrics() has {len(metrics)} names, and {_MOST_METRICS} are allowed"
    strange = next((name for name in metrics if not _METRIC.fullmatch(name)), None)
    return None if strange is None else f"metrics() has {quoted(strange)}: letters, digits and underscores are allowed"


def _pair(strategy: Any, answer: Any) -> tuple[Any, Any]:
    if not isinstance(answer, tuple) or len(answer) != 2:
        _fail(strategy, f"it answers {quoted(answer)}, and two values are expected: what it chose, and its memory")
    return answer


def _unloads_flaw(view: ClusterView, decision: Any) -> str | None:
    if not isinstance(decision, UnloadDecision):
        return f"it decides {quoted(decision)}, and an UnloadDecision is expected"
    flaw = misfit(decision.reason, Reason, "its reason") or _chosen_flaw(decision.unloads, Unload, ("bundle", "source"))
    flaw = (
        flaw
        or _verdicts_flaw(decision.verdicts)
        or _owners_flaw(view, decision.unloads, "unloads {} from {}", "source")
    )
    flaw = flaw or _outlook_flaw(view, decision.outlook)
    if flaw is not None or not decision.unloads:
        return flaw
    brokers = view.brokers.code_of
    for unload in decision.unloads:
        to = unload.destination
        if not isinstance(to, str) or (to and (to == unload.source or to not in brokers)):
            return f"it sends {unload.bundle} from {unload.source} to {reprlib.repr(to)}, which is no other broker"
        for name in ("final", "in_order", "ignores_grace"):
            if type(getattr(unload, name)) is not bool:
                return f"{name} of its unload of {unload.bundle} is neither True nor False"
        if unload.final and not to:
            return f"its unload of {unload.bundle} is final, but names no destination"
    return None


def _outlook_flaw(view: ClusterView, outlook: Any) -> str | None:
    flaw = misfit(outlook, UsageOutlook | None, "its outlook")
    if flaw is not None or outlook is None:
        return flaw
    usages = [*(each for each in (outlook.limit, outlook.goal) if each is not None), *outlook.forecast.values()]
    if not all(0 <= usage < np.inf for usage in usages):
        return "a usage in its outlook is no number from 0 up"
    if outlook.limit is not None and outlook.goal is not None and outlook.goal > outlook.limit:
        return f"the goal of its outlook, {outlook.goal:g}, is above the limit, {outlook.limit:g}"
    unknown = outlook.forecast.keys() - view.brokers.code_of.keys()
    return f"its outlook forecasts {quoted(min(unknown))}, which is no broker with data" if unknown else None


def _splits_flaw(view: ClusterView, decision: Any) -> str | None:
    if not isinstance(decision, SplitDecision):
        return f"it decides {quoted(decision)}, and a SplitDecision is expected"
    flaw = _chosen_flaw(decision.splits, Split, ("bundle", "broker")) or _verdicts_flaw(decision.verdicts)
    flaw = flaw or _owners_flaw(view, decision.splits, "splits {} on {}", "broker")
    if flaw is not None:
        return flaw
    for split in decision.splits:
        cuts: Any = split.boundaries
        flaw = misfit(cuts, tuple[int, ...], f"boundaries of its split of {split.bundle}")
        if flaw is not None:
            return flaw
        if not cuts:
            continue  # the split algorithm computes them
        if len(cuts) > MAX_CUTS:
            return f"it splits {split.bundle} at {len(cuts)} positions, and {MAX_CUTS} are allowed"
        bundle = parse_bundle(split.bundle)
        ends = len(cuts) > 2 and (cuts[0], cuts[-1]) == (bundle.lower, bundle.upper)
        if not (ends and list(cuts) == sorted(set(cuts))):
            expected = "both ends of its range and ascending positions between are expected"
            return f"it splits {split.bundle} at {quoted(cuts)}, and {expected}"
    return None


def _chosen_flaw(chosen: Any, kind: type[Any], names: Sequence[str]) -> str | None:
    """Why *chosen*, unloads or splits, are not of *kind*, with texts for *names* and a verdict each; else None."""
    if not isinstance(chosen, tuple | list):
        return f"its {kind.__name__.lower()}s are {quoted(chosen)}, and a tuple is expected"
    flaw = misfit_of_all(chosen, kind, f"one of its {kind.__name__.lower()}s") if _strange(chosen, kind) else None
    for name in names:
        flaw = flaw or misfit_of_all(_all(chosen, name), str, f"the {name} of one of its {kind.__name__.lower()}s")
    if flaw is not None:
        return flaw
    reasons = tuple({id(one.why): one.why for one in chosen}.values())
    return _verdicts_flaw(reasons) or _long_text_flaw(reasons)


def _verdicts_flaw(verdicts: Any) -> str | None:
    if not isinstance(verdicts, Sequence) or isinstance(verdicts, str | bytes):
        return f"its verdicts are {quoted(verdicts)}, and a sequence is expected"
    verdicts = tuple(verdicts)
    if _strange(verdicts, Verdict):
        strange = next(one for one in verdicts if type(one) is not Verdict)
        return f"one of its verdicts is {quoted(strange)}, and a Verdict is expected"
    for name, hint in _VERDICT:
        values: Collection[Any] = _all(verdicts, name)
        if hint is float:
            values = [value for value in values if value is not None]
        if hint is Reason and set(map(type, values)) <= {Reason}:
            continue
        flaw = misfit_of_all(values, hint, f"{name} of one of its verdicts")
        if flaw is not None:
            return flaw
    return None


def _long_text_flaw(verdicts: Collection[Verdict]) -> str | None:
    """Why a command cannot hold one of *verdicts*: a text is too long; else None."""
    for name in (name for name, hint in _VERDICT if hint is str):
        longest = max((len(value) for value in _all(verdicts, name)), default=0)
        if longest > _LONGEST_TEXT:
            return (
                f"{name} of one of its verdicts has {longest} characters, and {_LONGEST_TEXT} are allowed in a command"
            )
    return None


def _owners_flaw(view: ClusterView, chosen: Sequence[Any], does: str, broker: str) -> str | None:
    """Why not each of *chosen* is about another bundle, of the broker that owns it; else None."""
    if not chosen:
        return None
    names: Sequence[str] = _all(chosen, "bundle")
    verb = does.partition(" ")[0]
    rows = np.array([view.bundles.code_of.get(name, -1) for name in names], np.int64)
    if (rows < 0).any():
        return f"it {verb} {names[int(np.flatnonzero(rows < 0)[0])]}, which is no bundle of the cluster"
    if len(set(names)) < len(names):
        return f"it {verb} {Counter(names).most_common(1)[0][0]} twice"
    named = np.array([view.brokers.code_of.get(name, -2) for name in _all(chosen, broker)], np.int64)
    wrong = np.flatnonzero((named != view.bundles.broker[rows]) | (named < 0))
    if not len(wrong):
        return None
    one, code = chosen[int(wrong[0])], int(view.bundles.broker[rows[wrong[0]]])
    owner = view.brokers.names[code] if code >= 0 else "no broker"
    return f"it {does.format(one.bundle, getattr(one, broker))}, and {owner} owns it"


def _rows_flaw(candidates: Ints, accepted: Any) -> str | None:
    if accepted is candidates:
        return None
    if not isinstance(accepted, np.ndarray) or accepted.ndim != 1 or accepted.dtype.kind not in "iu":
        return f"it accepts {quoted(accepted)}, and an array of rows of candidates is expected"
    if not len(accepted):
        return None
    at = np.searchsorted(candidates, accepted)
    known = at < len(candidates)
    if not known.all() or (candidates[at] != accepted).any():
        strange = next(row for row in accepted.tolist() if row not in candidates.tolist())
        return f"it accepts {strange}, which is no row of a candidate"
    if (accepted[1:] <= accepted[:-1]).any():
        return f"its rows {reprlib.repr(accepted.tolist())} do not ascend, or one is in them twice"
    return None


def _strange(values: Collection[object], kind: type[Any]) -> bool:
    return not set(map(type, values)) <= {kind}


def _all(values: Collection[Any], name: str) -> list[Any]:
    return list(map(attrgetter(name), values))


def _refuse(strategy: Any, flaw: str | None) -> None:
    if flaw is not None:
        _fail(strategy, flaw)


def _fail(strategy: Any, flaw: str) -> NoReturn:
    raise StrategyError(type(strategy).__name__, flaw)
