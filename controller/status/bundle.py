"""One bundle: who has it now, with what load, and what trimtab decided about it last, and why."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from controller.adapters.pulsar.admin import PulsarAdmin
from controller.adapters.recent import journal_tail, recent_results
from controller.adapters.verdicts import VerdictStore
from controller.model.decision import Command, Verdict
from controller.model.names import parse_bundle
from controller.settings.trimtab_toml import Settings
from controller.wire.results import Result

#: How far back the last decision about a bundle is searched.
_DECISIONS: Final = 500
_RATES: Final = ("msgRateIn", "msgRateOut", "msgThroughputIn", "msgThroughputOut")


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveBundle:
    """A bundle as the brokers have it now."""

    bundle: str
    #: "" where nobody has it.
    owner: str
    #: Under Pulsar's names: msg/s, bytes/s, and topics; empty where nobody has it.
    load: Mapping[str, float]


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
    about = tuple(verdict for verdict in verdicts if verdict.subject in (bundle, owner, "cluster"))
    return LastDecision(command=command, result=result, judged=judged, verdicts=about)


def last_verdicts(settings: Settings) -> tuple[int | None, tuple[Verdict, ...]]:
    """The newest interval whose verdicts are kept, epoch ms, and these; None and nothing where none are.

    They lie beside the checkpoint, or where [journal] verdicts_path says, so another machine's are only seen where
    that is shared.
    """
    folder = Path(settings.verdicts_folder)
    if not folder.is_dir():
        return None, ()
    store = VerdictStore(folder)
    for interval in reversed(store.intervals()):
        try:
            return interval, store.read(interval)
        except FileNotFoundError:  # pruned just now
            continue
    return None, ()


def _load(stats: Mapping[str, Any], bundle: str) -> dict[str, float]:
    """The sums over *bundle*'s topics in a broker's topic statistics."""
    name = parse_bundle(bundle)
    kinds = stats.get(name.namespace, {}).get(name.range, {})
    topics = [topic for kind in kinds.values() for topic in kind.values()]
    sums = {rate: float(sum(topic.get(rate, 0) for topic in topics)) for rate in _RATES}
    return {**sums, "topics": len(topics)}
