"""What trimtab decides or remembers otherwise than Pulsar's load managers did, in recorded rounds."""

from collections.abc import Iterator, Mapping, Set
from typing import Any, Final

from controller.laws.verdicts import on_wrong_side
from controller.model.decision import CLUSTER, Decision, Reason
from controller.model.memory import Memory
from controller.strategies.common.usage_history import UsageHistory
from controller.strategies.placement.round_robin_broker_selector import RoundRobinTurn
from controller.strategies.shedding.avg_shedder.pairs import BrokerHitCounts
from controller.strategies.shedding.transfer_shedder.memory import TransferHistory
from tests.conformance.recorded_cycles import played
from tests.conformance.vectors import Case, close_to

#: What brokers accept whose bundles are split in halves.
_ALGORITHMS: Final = "range_equally_divide,specified_positions_divide"


def differences(case: Case) -> list[str]:
    """The differences of the first round that has any."""
    counters: Mapping[str, int] = {}
    rounds = played(case, supportedNamespaceBundleSplitAlgorithms=_ALGORITHMS)
    for nth, (given, (expected, decision, memory)) in enumerate(zip(case["input"]["rounds"], rounds, strict=True)):
        found = [
            *_of_commands(decision, expected),
            *_of_memory(memory, expected, {broker["name"] for broker in given["brokers"]}),
            *_of_reason(decision, counters, expected.get("counters", {})),
            *_of_numbers(decision),
        ]
        if found:
            return [f"round {nth}: {one}" for one in found]
        counters = expected.get("counters", {})
    return []


def _of_commands(decision: Decision, expected: Mapping[str, Any]) -> Iterator[str]:
    ours = {c.bundle: [c.source, c.destination] for c in decision.commands if c.action == "unload"}
    # Where Pulsar assigns a bundle to its own broker again, or to none, trimtab leaves it there.
    theirs = {name: [source, to] for name, source, to in expected.get("unloads", ()) if to not in ("", source)}
    yield from _apart("unloads", ours, theirs)
    splits = {c.bundle: c.unload_after_split for c in decision.commands if c.action == "split"}
    of_pulsar = {name: unloaded == "true" for name, unloaded in expected.get("splits", ())}
    yield from _apart("splits", splits, of_pulsar)


def _of_memory(memory: Memory, expected: Mapping[str, Any], reporting: Set[str]) -> Iterator[str]:
    shedder, placement = memory.shedder, memory.placement
    ours: dict[str, Any] = {}
    if isinstance(shedder, UsageHistory):
        ours["usage_history"] = shedder.usage
    if isinstance(placement, UsageHistory):
        ours["placement_history"] = placement.usage
    if isinstance(placement, RoundRobinTurn):
        ours["placements"] = placement.count
    if isinstance(shedder, TransferHistory):
        # A broker without new data keeps its averages; Pulsar's are with the broker itself.
        averages = {name: value for name, value in shedder.weighted_max_ema.items() if name in reporting}
        ours |= {"usage_history": averages, "hit_count": shedder.hit_count}
    if isinstance(shedder, BrokerHitCounts):
        ours |= {"hit_high": shedder.high, "hit_low": shedder.low}
    for name, value in ours.items():
        theirs = expected.get(name, {})
        if value != close_to(theirs):
            yield from _apart(name, *(one if isinstance(one, Mapping) else {"all": one} for one in (value, theirs)))


def _of_reason(decision: Decision, before: Mapping[str, int], after: Mapping[str, int]) -> Iterator[str]:
    """Why TransferShedder did nothing, where its counters say so."""
    skipped = {name.removeprefix("Skip/") for name, count in after.items() if count > before.get(name, 0)}
    theirs = {name for name in skipped if "/" not in name}
    ours = {str(verdict.reason) for verdict in decision.verdicts if verdict.subject == CLUSTER}
    if Reason.BALANCED in ours:
        ours.add(Reason.HIT_COUNT)  # Pulsar's word for both
    if not theirs <= ours:
        yield f"reasons: {sorted(ours)}, Pulsar: {sorted(theirs)}"


def _of_numbers(decision: Decision) -> Iterator[str]:
    """A verdict whose numbers contradict its reason: of a strategy with any options, of a filter, or of a guardrail."""
    wrong = on_wrong_side(decision.verdicts)
    if wrong is not None:
        yield f"numbers: {wrong}"


def _apart(what: str, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[str]:
    """The entries that are not the same."""
    names = sorted(name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name))
    if names:
        yield f"{what}: " + ", ".join(f"{name}: {ours.get(name)}, Pulsar: {theirs.get(name)}" for name in names)
