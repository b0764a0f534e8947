"""Whether a command may be carried out, and how it ended.  Pure: from what was seen on the cluster.

Three questions, in this order: may it be begun at all (``refusal``), is it still to be done (``before``), and has it
been done (``after``).  None as the answer of the first two means: go on.  None of the last: try once more.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from controller.model.bundle_ranges import equal_cuts
from controller.model.decision import Command
from controller.model.names import is_untouchable, namespace_of, parse_bundle
from controller.wire.results import Status

#: HTTP: the range is no bundle (any more), or the namespace is gone.
_NO_SUCH_BUNDLE: Final = frozenset({404, 412})
_CLIENT_ERRORS: Final = range(400, 500)
#: No answer, or that of a proxy which got none.
_MAYBE_UNDER_WAY: Final = frozenset({0, 502, 504})
_TOO_MANY: Final = 429
_HALVES: Final = "range_equally_divide"


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What the cluster says about a bundle."""

    #: Of its namespace's bundles, ascending; none where there is no such namespace.
    boundaries: tuple[int, ...]
    #: Who has the bundle, "" when nobody has, or when there is no such bundle.
    owner: str = ""

    def has(self, bundle: str) -> bool:
        """Whether there is such a *bundle*: with its very boundaries, and none in between."""
        name = parse_bundle(bundle)
        return (name.lower, name.upper) in pairwise(self.boundaries)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A call to act that failed according to its answer; it may have had an effect."""

    detail: str
    #: HTTP; 0: no answer came.
    status: int = 0
    #: False: the broker cannot have received it.
    sent: bool = True
    #: Nobody could be reached, or took the call.
    away: bool = False
    #: The broker asks for so much time before the next call.
    wait_seconds: float = 0.0

    @property
    def is_busy(self) -> bool:
        """Whether the broker has too many requests: it has done nothing with this one."""
        return self.status == _TOO_MANY


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The end of a command."""

    status: Status
    detail: str = ""


def refusal(
    command: Command, *, epoch: int, newest_epoch: int, now_ms: int, own_namespaces: Collection[str] = ()
) -> Answer | None:
    """Why *command*, issued under *epoch*, may not be begun.  *own_namespaces*: trimtab lives there itself."""
    if epoch < newest_epoch:
        return Answer(status="fenced", detail=f"epoch {epoch} is over: {newest_epoch} leads")
    if now_ms >= command.expires_at_ms:
        return Answer(status="expired", detail=f"{now_ms - command.expires_at_ms} ms too late")
    if is_untouchable(namespace_of(command.bundle)):
        return Answer(status="skipped", detail="a namespace of Pulsar's own")
    if namespace_of(command.bundle) in own_namespaces:
        return Answer(status="skipped", detail="the namespace of trimtab's own log ([log.pulsar])")
    return None


def before(command: Command, seen: Observation, *, maybe_begun: bool = False, dry_run: bool = False) -> Answer | None:
    """The answer that a look at the cluster gives: already done, or obsolete; None: it is to be done.

    *maybe_begun*: an executor that died may have acted on it; what looking cannot tell is unknown then, for nothing
    is done twice.
    """
    unmet = _split_precondition(command, seen) if command.action == "split" else _unload_precondition(command, seen)
    if unmet is None and not seen.owner:
        # A destination for a bundle that nobody has would steer another namespace's bundle of the same range.
        unmet = Answer(status="obsolete", detail="nobody has it: brokers place it at the next lookup")
    if unmet is None and seen.owner != command.source:
        unmet = Answer(status="obsolete", detail=f"{seen.owner} has it, not {command.source}")
    if maybe_begun and (unmet is None or unmet.status == "obsolete"):
        found = unmet.detail if unmet else f"{seen.owner} has it as before"
        return Answer(status="unknown", detail=f"an executor ended while it was at it; now: {found}")
    if unmet is None and (dry_run or command.mode == "dry_run"):
        return Answer(status="dry_run", detail=_would(command))
    return unmet


def after(command: Command, seen: Observation, failure: Failure | None) -> Answer | None:
    """The result of an attempt, from a second look; None: nothing has happened, and it may be tried again."""
    if command.action == "split":
        if _is_split(command, seen):
            return Answer(status="done", detail="" if failure is None else f"in spite of: {failure.detail}")
        if failure is None and not seen.has(command.bundle):
            return Answer(status="failed", detail=f"it was split elsewhere:{_cuts(_found_cuts(command, seen))}")
        return _nothing_happened(command, seen, failure, _not_split(command))
    if not seen.has(command.bundle):
        # Whether it was unloaded before that does not matter any more.
        return Answer(status="obsolete", detail=failure.detail if failure else "it was split or deleted meanwhile")
    if seen.owner and seen.owner == command.destination:
        return Answer(status="done", detail="" if failure is None else f"in spite of: {failure.detail}")
    if seen.owner and seen.owner != command.source:
        if command.destination:
            return Answer(status="failed", detail=f"it went to {seen.owner}, not to {command.destination}")
        return Answer(status="done", detail="" if failure is None else f"in spite of: {failure.detail}")
    if not seen.owner and (failure is None or failure.sent):
        return Answer(status="unknown", detail="nobody has it" + (f"; {failure.detail}" if failure else ""))
    return _nothing_happened(command, seen, failure, f"it came back to {command.source}")


def children(command: Command) -> tuple[tuple[int, int], ...]:
    """The ranges that a split leaves behind; none where only the brokers know them."""
    name = parse_bundle(command.bundle)
    cuts = sorted(set(command.boundaries))
    if not cuts and command.algorithm == _HALVES:
        cuts = list(equal_cuts(name.lower, name.upper, 2))
    return tuple(pairwise((name.lower, *cuts, name.upper))) if cuts else ()


def _unload_precondition(command: Command, seen: Observation) -> Answer | None:
    if not seen.has(command.bundle):
        return _gone(seen)
    if seen.owner and seen.owner == command.destination:
        # Pulsar would close it and open it again on the same broker.
        return Answer(status="already_done", detail=f"{seen.owner} has it")
    return None


def _split_precondition(command: Command, seen: Observation) -> Answer | None:
    name = parse_bundle(command.bundle)
    outside = [cut for cut in command.boundaries if not name.lower < cut < name.upper]
    if outside:
        # Pulsar answers 204 and leaves such boundaries out.
        return Answer(status="failed", detail=f"0x{outside[0]:08x} does not lie inside the bundle")
    if seen.has(command.bundle):
        return None
    if children(command) and _is_split(command, seen):
        return Answer(status="already_done")
    return _gone(seen)


def _is_split(command: Command, seen: Observation) -> bool:
    wanted = children(command)
    if not wanted:
        return bool(seen.boundaries) and not seen.has(command.bundle)
    # The parts may have been split again since: all that counts is that they end where they were to end.
    return {end for part in wanted for end in part} <= set(seen.boundaries)


def _not_split(command: Command) -> str:
    """Why brokers answer a split with 204 and cut nothing, as far as its algorithm tells, and what to do."""
    nothing = "answered as done, but nothing was split"
    if command.algorithm == _HALVES:
        return f"{nothing}: {_HALVES} needs no topics, so see the log of {command.source}"
    # SpecifiedPositionsBundleSplitAlgorithm and its like ask NamespaceService.getOwnedTopicListForNamespaceBundle,
    # which has no segments.
    return (
        f"{nothing}: {command.algorithm} needs a bundle of two topics or more, and segments of scalable topics (Pulsar"
        f" 5) do not count; only {_HALVES} splits a bundle of segments: defaultNamespaceBundleSplitAlgorithm in"
        " broker.conf"
    )


def _found_cuts(command: Command, seen: Observation) -> list[int]:
    """Where the bundle's range is cut now."""
    name = parse_bundle(command.bundle)
    return [cut for cut in seen.boundaries if name.lower < cut < name.upper]


def _cuts(cuts: Iterable[int]) -> str:
    return "".join(f" 0x{cut:08x}" for cut in cuts)


def _nothing_happened(command: Command, seen: Observation, failure: Failure | None, otherwise: str) -> Answer | None:
    if failure is None:
        return Answer(status="failed", detail=otherwise)
    # The same status is given for requests that brokers do not like; the extensible load manager only halves.
    if failure.status in _NO_SUCH_BUNDLE and not seen.has(command.bundle):
        return Answer(status="obsolete", detail=failure.detail)
    if failure.status in _CLIENT_ERRORS and not failure.away:
        return Answer(status="failed", detail=failure.detail)
    if failure.sent and failure.status in _MAYBE_UNDER_WAY:
        # It may still be under way: sent again, it could be done twice.
        return Answer(status="unknown", detail=failure.detail)
    return None


def _gone(seen: Observation) -> Answer:
    return Answer(status="obsolete", detail="no such bundle" if seen.boundaries else "no such namespace")


def _would(command: Command) -> str:
    if command.action == "split":
        return f"would split it by {command.algorithm}{_cuts(command.boundaries)}"
    return f"would unload it from {command.source} to {command.destination or 'the broker that Pulsar chooses'}"
