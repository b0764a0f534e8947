"""What a dry run leaves behind: it counts in the dry run, which shows the pace of a real run, and in nothing else.

Commands of a dry run move nothing.  So once the mode is active, or approve, they delay no move, use no budget and are
not in flight, and no verdict says that they unloaded a bundle.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from controller.cycle.checked import remembered
from controller.model.controls import Controls
from controller.model.decision import Reason, Verdict
from controller.model.memory import InFlight, Memory
from controller.model.strategy_memory import DryRunMoves

#: ``by`` of verdicts on bundles that wait for the result of a command of an earlier interval.
_WAITS: Final = frozenset({"in_flight", "trimtabSheddingWaitsForResults"})


def without_dry_run(memory: Memory, controls: Controls) -> Memory:
    """*memory* without the commands of a dry run if commands change the cluster by *controls*; else as it is."""
    return forget_dry_run(memory) if controls.moves_load else memory


def forget_dry_run(memory: Memory) -> Memory:
    """*memory* without the commands of a dry run, and without what strategies expect of them."""
    if not _has_dry_run(memory):
        return memory
    dry = [each for each in memory.issued.values() if each.dry_run]
    real = {each.source for each in memory.issued.values() if not each.dry_run}
    moves = DryRunMoves(
        bundles=memory.dry_run_unloaded.keys(),
        ends={(each.source, each.destination) for each in dry},
        idle_sources={each.source for each in dry} - real,
    )
    return replace(
        memory,
        shedder=remembered(memory.shedder, "forget_dry_run", moves),
        dry_run_unloaded={},
        in_flight=in_flight(memory, dry_run=False),
        issued={key: each for key, each in memory.issued.items() if not each.dry_run},
        failed={bundle: each for bundle, each in memory.failed.items() if not each.dry_run},
    )


def in_flight(memory: Memory, *, dry_run: bool) -> dict[str, InFlight]:
    """Id -> command without a result: those of a dry run, or the others."""
    return {key: each for key, each in memory.in_flight.items() if each.dry_run == dry_run}


def of_dry_run(verdicts: Sequence[Verdict], memory: Memory) -> list[Verdict]:
    """*verdicts*, where those that are only due to commands of a dry run in *memory* say so."""
    if not _has_dry_run(memory):
        return list(verdicts)
    real = {each.bundle for each in in_flight(memory, dry_run=False).values()}
    waiting = {each.bundle: each.interval for each in in_flight(memory, dry_run=True).values()}

    def reported(each: Verdict) -> Verdict:
        if each.reason is Reason.RECENTLY_UNLOADED:
            text = _detail_of(each, memory.dry_run_unloaded, memory.recently_unloaded)
        elif each.reason is Reason.IN_FLIGHT and each.by in _WAITS:
            text = _detail_of(each, waiting, real)
        else:
            return each
        return each if text is None else replace(each, reason=Reason.DRY_RUN, detail=text)

    return [reported(each) for each in verdicts]


def _detail_of(verdict: Verdict, dry_run: Mapping[str, int], real: Collection[str]) -> str | None:
    """What a verdict on a bundle, a broker or the cluster says if commands of a dry run alone are the reason."""
    if not dry_run or verdict.subject in real:
        return None
    if verdict.subject in dry_run:
        at = np.datetime64(dry_run[verdict.subject] // 1000, "s")
        return f"a dry run issued a command about it at {at}Z; it moved nothing"
    return None if real else "a dry run issued commands about the bundles; it moved nothing"


def _has_dry_run(memory: Memory) -> bool:
    return bool(memory.dry_run_unloaded) or any(
        each.dry_run for group in (memory.in_flight, memory.issued, memory.failed) for each in group.values()
    )
