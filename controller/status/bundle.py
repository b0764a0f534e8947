"""One bundle: who has it now, with what load, and what trimtab decided about it last, and why."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from controller.adapters.factory import verdict_store
from controller.adapters.pulsar.admin import PulsarAdmin, PulsarError
from controller.log.recent import journal_tail, recent_results
from controller.model.decision import CLUSTER, Command, Verdict
from controller.model.names import BundleName, parse_bundle
from controller.model.some_of import some_of
from controller.settings.trimtab_toml import Settings
from controller.wire.readable import counted
from controller.wire.results import Result

#: How far back the last decision about a bundle is searched.
_DECISIONS: Final = 500
#: Ranges that are listed where a bundle does not exist.
_RECENT_MOVES: Final = 4
_RATES: Final = ("msgRateIn", "msgRateOut", "msgThroughputIn", "msgThroughputOut")


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveBundle:
    """A bundle as the brokers have it now."""

    bundle: str
    #: Why there is no such bundle; "" where there is.
    missing: str = ""
    #: "" where nobody has it.
    owner: str = ""
    #: Under Pulsar's names: msg/s, bytes/s, and topics; empty where nobody has it.
    load: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LastDecision:
    """The newest command about a bundle with its result, and the newest verdicts about it and its owner."""

    command: Command | None
    result: Result | None
    #: The interval of the verdicts, epoch ms; None where none are kept.
    judged: int | None
    verdicts: tuple[Verdict, ...]


def live_bundle(admin: PulsarAdmin, bundle: str) -> LiveBundle:
    """Ask the brokers about *bundle*; none gets an owner by it.  PulsarError."""
    missing = _missing(admin, parse_bundle(bundle))
    if missing:
        return LiveBundle(bundle=bundle, missing=missing)
    owner = admin.owner(bundle)
    return LiveBundle(bundle=bundle, owner=owner, load=_load(admin.topic_stats(owner), bundle) if owner else {})


def last_decision(settings: Settings, bundle: str, owner: str) -> LastDecision:
    """What the journal and the kept verdicts say about *bundle*, and about *owner* where that is not ""."""
    command = next(
        (
            command
            for decision in journal_tail(settings, _DECISIONS, about=bundle).decisions
            for command in decision.commands
            if command.bundle == bundle
        ),
        None,
    )
    result = None if command is None else recent_results(settings, command.interval).get(command.id)
    judged, verdicts = last_verdicts(settings)
    about = tuple(verdict for verdict in verdicts if verdict.subject in (bundle, owner, CLUSTER))
    return LastDecision(command=command, result=result, judged=judged, verdicts=about)


def last_verdicts(settings: Settings) -> tuple[int | None, tuple[Verdict, ...]]:
    """The newest interval whose verdicts are kept, epoch ms, and these; None and nothing where none are.

    They lie beside the checkpoint, or where [journal] verdicts_path says, so another machine's are only seen where
    that is shared.
    """
    store = verdict_store(settings)
    for interval in reversed(store.intervals()):
        try:
            return interval, store.read(interval)
        except FileNotFoundError:  # pruned just now
            continue
    return None, ()


def _missing(admin: PulsarAdmin, name: BundleName) -> str:
    """Why the cluster has no bundle of this *name*; "" where it has."""
    try:
        edges = admin.boundaries(name.namespace)
    except PulsarError as error:
        if error.status == 404:
            return f"the cluster has no namespace {name.namespace}"
        raise
    ranges = list(pairwise(edges))
    if (name.lower, name.upper) in ranges:
        return ""
    there = [f"0x{lower:08x}_0x{upper:08x}" for lower, upper in ranges if lower < name.upper and upper > name.lower]
    return (
        f"namespace {name.namespace} has {counted(len(ranges), 'bundle')}, and not {name.range};"
        f" there now: {some_of(there, _RECENT_MOVES) or 'none'}"
    )


def _load(stats: Mapping[str, Any], bundle: str) -> dict[str, float]:
    """The sums over *bundle*'s topics in a broker's topic statistics."""
    name = parse_bundle(bundle)
    kinds = stats.get(name.namespace, {}).get(name.range, {})
    topics = [topic for kind in kinds.values() for topic in kind.values()]
    sums = {rate: float(sum(topic.get(rate, 0) for topic in topics)) for rate in _RATES}
    return {**sums, "topics": len(topics)}
