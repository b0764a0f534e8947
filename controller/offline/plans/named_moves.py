"""Checks the moves that an operator named for a plan: is each name known, and each move possible?"""

from collections import Counter
from collections.abc import Collection, Sequence
from difflib import get_close_matches
from typing import Final

from controller.model.errors import SettingsError, TrimtabError
from controller.model.load import Floats
from controller.model.names import is_system_owned, namespace_of
from controller.model.some_of import some_of
from controller.offline.plans.source import PlanSource
from controller.planning.from_view import MappedProblem
from controller.planning.problem import PlannedMove

#: Maximum number of names that are listed.
_MAX_NAMED: Final = 5


def named_moves(source: PlanSource, mapped: MappedProblem, pairs: Sequence[tuple[str, str]]) -> tuple[PlannedMove, ...]:
    """*pairs*, (bundle, destination) by name, as moves of *mapped*.

    SettingsError where a name is unknown, a bundle is named twice, is there already, or must not move.
    """
    view, times = source.view, Counter(bundle for bundle, _ in pairs)
    row_of = {name: row for row, name in enumerate(view.bundles.names)}
    at_of = {row: at for at, row in enumerate(mapped.rows.tolist())}
    moves = []
    for bundle, broker in pairs:
        option = f"--move {bundle}={broker}"
        if times[bundle] > 1:
            raise SettingsError(f"{option}: the bundle is named {times[bundle]} times; give one destination")
        if bundle not in row_of:
            raise SettingsError(f"{option}: there is no bundle {bundle!r} in the load{_near_bundle(bundle, row_of)}")
        row, to = row_of[bundle], broker_named(source, broker, f"{option}: ")
        if int(view.bundles.broker[row]) == to:
            raise SettingsError(f"{option}: the bundle is there already; leave this move out")
        if row not in at_of:
            raise SettingsError(f"{option}: the bundle must not move: {_why_not(source, row)}")
        moves.append(PlannedMove(at_of[row], int(mapped.problem.owner[at_of[row]]), to))
    return tuple(moves)


def broker_named(source: PlanSource, name: str, option: str = "") -> int:
    """The row of the broker *name*.

    SettingsError, which begins with *option*, where there is no such broker; TrimtabError where it has no data now.
    """
    brokers = source.view.brokers
    if name in source.view.missing:
        raise TrimtabError(f"{option}broker {name} has no complete data in this interval: wait for the next one")
    if name not in brokers.code_of:
        raise SettingsError(f"{option}there is no broker {name!r} in the load{_near(name, brokers.names)}")
    return brokers.code_of[name]


def better_or_worse(before: Floats, after: Floats) -> str:
    """Whether brokers (n,) that are so full *after* the moves are better balanced than *before*, in a sentence."""
    fullest, then = float(before.max(initial=0.0)), float(after.max(initial=0.0))
    first, second = (fullest, then) if f"{fullest:.4f}" != f"{then:.4f}" else (_spread(before), _spread(after))
    judged = "as good as" if f"{first:.4f}" == f"{second:.4f}" else "better than" if second < first else "worse than"
    return f"the end is {judged} the present: the highest usage is {fullest:.1%} before, {then:.1%} after"


def _spread(usage: Floats) -> float:
    return float(usage.std())


def _why_not(source: PlanSource, row: int) -> str:
    name = source.view.bundles.names[row]
    if is_system_owned(namespace_of(name)):
        return "it is of one of Pulsar's own namespaces"
    return source.why_guarded(row) if source.guarded[row] else "its load or its broker's is not known"


def _near_bundle(bundle: str, known: Collection[str]) -> str:
    """The nearest bundle of its namespace; where the namespace is unknown, the nearest namespace."""
    beside = [name for name in known if namespace_of(name) == bundle.rpartition("/")[0]]
    if beside:
        return _near(bundle, beside)
    namespaces = sorted({namespace_of(name) for name in known})
    return _near(bundle.rpartition("/")[0], namespaces, "a bundle of ")


def _near(name: str, known: Collection[str], what: str = "") -> str:
    if near := get_close_matches(name, known, n=1):
        return f"; did you mean {what}{near[0]}?"
    return f"; it has {what}{some_of(known, _MAX_NAMED)}"
