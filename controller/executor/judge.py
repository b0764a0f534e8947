"""Decides whether a command may be carried out, and how it ended, from observations of the cluster.  Pure.

In this order: ``refusal`` (may it start), ``answer_before_act`` (does it still apply) and ``answer_after_act`` (did it
succeed).  None from the first two means: continue.  None from the last means: retry.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from controller.model.bundle_ranges import equal_cuts
from controller.model.decision import Command
from controller.model.names import is_system_owned, namespace_of, parse_bundle
from controller.wire.results import Status

#: HTTP: no such bundle, or no such namespace.
_NO_SUCH_BUNDLE: Final = frozenset({404, 412})
_CLIENT_ERRORS: Final = range(400, 500)
#: No answer, or a proxy's answer that it got none.
_MAYBE_UNDER_WAY: Final = frozenset({0, 502, 504})
_TOO_MANY: Final = 429
_HALVES: Final = "range_equally_divide"


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """The state of a bundle in the cluster."""

    #: Boundaries of all bundles of its namespace, ascending; empty if the namespace does not exist.
    boundaries: tuple[int, ...]
    #: The bundle's owner; "" if it has none, or does not exist.
    owner: str = ""

    def has(self, bundle: str) -> bool:
        """Whether *bundle* exists: both boundaries, and none in between."""
        name = parse_bundle(bundle)
        return (name.lower, name.upper) in pairwise(self.boundaries)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A failed call.  It may have had an effect all the same."""

    detail: str
    #: HTTP status; 0: no answer.
    status: int = 0
    #: False: the broker cannot have received it.
    sent: bool = True
    #: No broker could be reached, or none accepted the call.
    away: bool = False
    #: Retry-After of the broker, seconds.
    wait_seconds: float = 0.0

    @property
    def is_busy(self) -> bool:
        """Whether the broker refused the call because of too many requests, and so did nothing."""
        return self.status == _TOO_MANY


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The end of a command."""

    status: Status
    detail: str = ""


def refusal(
    command: Command, *, epoch: int, newest_epoch: int, now_ms: int, own_namespaces: Collection[str] = ()
) -> Answer | None:
    """Why *command*, issued under *epoch*, must not start.  *own_namespaces*: those of trimtab's own topics."""
    if epoch < newest_epoch:
        return Answer(status="fenced", detail=f"epoch {epoch} is over: {newest_epoch} leads")
    if now_ms >= command.expires_at_ms:
        return Answer(status="expired", detail=f"{now_ms - command.expires_at_ms} ms too late")
    if is_system_owned(namespace_of(command.bundle)):
        return Answer(status="skipped", detail="a system namespace of Pulsar")
    if namespace_of(command.bundle) in own_namespaces:
        return Answer(status="skipped", detail="the namespace of trimtab's own log ([log.pulsar])")
    return None


def answer_before_act(
    command: Command, observation: Observation, *, maybe_started: bool = False, dry_run: bool = False
) -> Answer | None:
    """The answer if *command* is already done or obsolete; None: it has to be carried out.

    *maybe_started*: an executor that died may have acted already.  Nothing is done twice, so if the observation does
    not show the outcome, the answer is unknown.
    """
    unmet = (
        _split_precondition(command, observation)
        if command.action == "split"
        else _unload_precondition(command, observation)
    )
    if unmet is None and not observation.owner:
        # Its destination would steer another namespace's bundle of the same range.
        unmet = Answer(status="obsolete", detail="it has no owner: brokers assign it at the next lookup")
    if unmet is None and observation.owner != command.source:
        unmet = Answer(status="obsolete", detail=f"its owner is {observation.owner}, not {command.source}")
    if maybe_started and (unmet is None or unmet.status == "obsolete"):
        state = unmet.detail if unmet else f"its owner is still {observation.owner}"
        return Answer(status="unknown", detail=f"an executor ended during this command; now: {state}")
    if unmet is None and (dry_run or command.mode == "dry_run"):
        return Answer(status="dry_run", detail=_dry_run_detail(command))
    return unmet


def answer_after_act(command: Command, observation: Observation, failure: Failure | None) -> Answer | None:
    """The result of an attempt, from an observation after it; None: nothing happened, so a retry is safe."""
    if command.action == "split":
        if _is_split(command, observation):
            return Answer(status="done", detail="" if failure is None else f"in spite of: {failure.detail}")
        if failure is None and not observation.has(command.bundle):
            return Answer(
                status="failed", detail=f"it was split elsewhere:{_cuts(_current_cuts(command, observation))}"
            )
        return _nothing_happened(command, observation, failure, _not_split(command))
    if not observation.has(command.bundle):
        # Whether it was unloaded before does not matter any more.
        return Answer(
            status="obsolete", detail=failure.detail if failure else "it was split or deleted in the meantime"
        )
    if observation.owner and observation.owner == command.destination:
        return Answer(status="done", detail="" if failure is None else f"in spite of: {failure.detail}")
    if observation.owner and observation.owner != command.source:
        if command.destination:
            return Answer(status="failed", detail=f"it went to {observation.owner}, not to {command.destination}")
        return Answer(status="done", detail="" if failure is None else f"in spite of: {failure.detail}")
    if not observation.owner and (failure is None or failure.sent):
        return Answer(status="unknown", detail="it has no owner" + (f"; {failure.detail}" if failure else ""))
    return _nothing_happened(command, observation, failure, f"it came back to {command.source}")


def children(command: Command) -> tuple[tuple[int, int], ...]:
    """The ranges that a split produces; empty if only the brokers know them."""
    name = parse_bundle(command.bundle)
    cuts = sorted(set(command.boundaries))
    if not cuts and command.algorithm == _HALVES:
        cuts = list(equal_cuts(name.lower, name.upper, 2))
    return tuple(pairwise((name.lower, *cuts, name.upper))) if cuts else ()


def _unload_precondition(command: Command, observation: Observation) -> Answer | None:
    if not observation.has(command.bundle):
        return _no_such_bundle(observation)
    if observation.owner and observation.owner == command.destination:
        # Pulsar would close it and load it again on the same broker.
        return Answer(status="already_done", detail=f"its owner is {observation.owner}")
    return None


def _split_precondition(command: Command, observation: Observation) -> Answer | None:
    name = parse_bundle(command.bundle)
    outside = [cut for cut in command.boundaries if not name.lower < cut < name.upper]
    if outside:
        # Pulsar answers 204 and ignores such boundaries.
        return Answer(status="failed", detail=f"0x{outside[0]:08x} does not lie inside the bundle")
    if observation.has(command.bundle):
        return None
    if children(command) and _is_split(command, observation):
        return Answer(status="already_done")
    return _no_such_bundle(observation)


def _is_split(command: Command, observation: Observation) -> bool:
    ranges = children(command)
    if not ranges:
        return bool(observation.boundaries) and not observation.has(command.bundle)
    # The parts may have been split again since, so only their boundaries count.
    return {end for part in ranges for end in part} <= set(observation.boundaries)


def _not_split(command: Command) -> str:
    """Why a broker answers a split with 204 and splits nothing, as far as the algorithm shows, and what to do."""
    nothing = "the broker reports success, but nothing was split"
    if command.algorithm == _HALVES:
        return f"{nothing}: {_HALVES} works without topics, so check the log of {command.source}"
    # SpecifiedPositionsBundleSplitAlgorithm and others use NamespaceService.getOwnedTopicListForNamespaceBundle, which
    # lists no segments.
    return (
        f"{nothing}: {command.algorithm} needs a bundle of two topics or more, and segments of scalable topics (Pulsar"
        f" 5) do not count; only {_HALVES} splits a bundle of segments: defaultNamespaceBundleSplitAlgorithm in"
        " broker.conf"
    )


def _current_cuts(command: Command, observation: Observation) -> list[int]:
    """The present boundaries inside the bundle's range."""
    name = parse_bundle(command.bundle)
    return [cut for cut in observation.boundaries if name.lower < cut < name.upper]


def _cuts(cuts: Iterable[int]) -> str:
    return "".join(f" 0x{cut:08x}" for cut in cuts)


def _nothing_happened(
    command: Command, observation: Observation, failure: Failure | None, otherwise: str
) -> Answer | None:
    if failure is None:
        return Answer(status="failed", detail=otherwise)
    # Brokers give the same status for invalid requests; the extensible load manager only splits in halves.
    if failure.status in _NO_SUCH_BUNDLE and not observation.has(command.bundle):
        return Answer(status="obsolete", detail=failure.detail)
    if failure.status in _CLIENT_ERRORS and not failure.away:
        return Answer(status="failed", detail=failure.detail)
    if failure.sent and failure.status in _MAYBE_UNDER_WAY:
        # It may still be in progress: a second call could do it twice.
        return Answer(status="unknown", detail=failure.detail)
    return None


def _no_such_bundle(observation: Observation) -> Answer:
    return Answer(status="obsolete", detail="no such bundle" if observation.boundaries else "no such namespace")


def _dry_run_detail(command: Command) -> str:
    if command.action == "split":
        return f"would split it by {command.algorithm}{_cuts(command.boundaries)}"
    return f"would unload it from {command.source} to {command.destination or 'the broker that Pulsar chooses'}"
