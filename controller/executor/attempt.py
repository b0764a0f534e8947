"""Carries one command out: look at the cluster, act, look again; tries again where that is safe."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol, Self

from controller.adapters.process.failpoints import failpoint
from controller.adapters.pulsar.admin import PulsarAdmin, PulsarError, probe_topic
from controller.executor.judge import Answer, Failure, Observation, after, before
from controller.model.decision import Command
from controller.model.names import namespace_of
from controller.wire.results import Status

log = logging.getLogger(__name__)

_NOT_FOUND: Final = 404
#: An unloaded bundle is looked up so often until a broker has it.
_LOOK_AGAIN_SECONDS: Final = 0.2
#: The largest share of a command's remaining time for an act; the rest is for looking at its effect.
_SHARE_OF_AN_ACT: Final = 0.5
#: A broker that wants more time before the next call is asked as if it had not said so.
_LONGEST_WAIT_SECONDS: Final = 30.0
#: To ask who leads Pulsar's load manager.
_LEADER_SECONDS: Final = 2.0
#: Between looks, where an act was answered well and seems to have led to nothing.
_LOOK_TWICE_SECONDS: Final = (0.5, 1.0)


class Cluster(Protocol):
    """The cluster as an attempt sees it.  Every method may raise PulsarError."""

    def within(self, seconds: float) -> Self:
        """The same cluster for one command; after *seconds* every call fails."""
        ...

    def not_active(self, command: Command) -> tuple[str, ...]:
        """The brokers that *command* names and that are not active ones; none of them is asked anything."""
        ...

    def look(self, command: Command) -> Observation:
        """The state of the command's bundle; changes nothing."""
        ...

    def act(self, command: Command) -> None:
        """Send the command, once."""
        ...

    def look_after(self, command: Command) -> Observation:
        """The state after an act.  An unloaded bundle is looked up, so that a broker becomes its owner."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a result record tells."""

    answer: Answer
    owner_before: str = ""
    owner_after: str = ""
    #: Calls to act; 0 where looking was enough.
    attempts: int = 0
    #: Nothing was sent, since no broker took a call.
    nobody_reached: bool = False


def carry_out(
    command: Command,
    cluster: Cluster,
    *,
    may_act: Callable[[], Answer | None],
    may_wait: Callable[[], bool] = lambda: False,
    maybe_begun: bool = False,
    dry_run: bool = False,
    most_attempts: int = 3,
    pause_seconds: float = 0.5,
    sleep: Callable[[float], None] = time.sleep,
) -> Outcome:
    """Bring *command* to its end.  *may_act* is asked right before every act; its answer ends the command instead.

    *maybe_begun*: an executor that died may have acted on it.  It is looked at alone; an unloaded bundle that nobody
    has yet is looked up as its executor would have done, so that the brokers place it where it was to go.

    A command that names a broker which is not active has failed: who wrote it may have made that address up.
    Where nobody can be reached, or brokers have too many requests, it is tried again as long as *may_wait*, also beyond
    *most_attempts*.
    """
    first: Observation | None = None
    tries = attempts = 0
    sent, failure = False, Failure(detail="never tried")
    while tries < most_attempts or (failure.away and not sent and may_wait()):
        if tries:
            sleep(_pause(failure, pause_seconds * 2 ** (min(tries, most_attempts) - 1)))
        tries += 1
        try:
            if not (maybe_begun or attempts) and (strange := cluster.not_active(command)):
                return Outcome(answer=Answer(status="failed", detail=_strange(strange)))
            seen = cluster.look(command)
            if maybe_begun and command.action == "unload" and seen.has(command.bundle) and not seen.owner:
                first, seen = seen, cluster.look_after(command)
        except PulsarError as error:
            failure = _failure(error)
            continue
        first = first or seen
        answer = before(command, seen, maybe_begun=maybe_begun, dry_run=dry_run) or may_act()
        if answer is None:
            attempts += 1
            acted = _act(command, cluster)
            failure = acted or failure
            if acted is None or (acted.sent and not acted.is_busy):  # else nothing has happened
                sent = True
                seen, answer = _effect(command, cluster, acted, sleep)
        if answer is not None:
            return Outcome(answer=answer, owner_before=first.owner, owner_after=seen.owner, attempts=attempts)
    ended = _given_up(failure, tries, sent=sent, maybe_begun=maybe_begun)
    return replace(ended, owner_before=first.owner if first else "", attempts=attempts)


def _pause(failure: Failure, usual_seconds: float) -> float:
    """Seconds before the next attempt."""
    told = failure.wait_seconds if failure.wait_seconds <= _LONGEST_WAIT_SECONDS else 0.0
    return max(told, usual_seconds)


def _given_up(failure: Failure, tries: int, *, sent: bool, maybe_begun: bool) -> Outcome:
    if failure.away and not sent and not maybe_begun:
        answer = Answer(status="expired", detail=f"not begun, since nobody could be reached: {failure.detail}")
        return Outcome(answer=answer, nobody_reached=True)
    status: Status = "unknown" if maybe_begun else "failed"
    return Outcome(answer=Answer(status=status, detail=f"after {tries} attempts: {failure.detail}"))


def _effect(
    command: Command, cluster: Cluster, acted: Failure | None, sleep: Callable[[float], None]
) -> tuple[Observation, Answer | None]:
    """What is seen after an act, and the answer that follows; None: nothing has happened, and it may be tried again."""
    try:
        seen = _look_after(command, cluster, acted, sleep)
    except PulsarError as error:
        told = acted.detail if acted else "sent"
        return Observation(boundaries=()), Answer(status="unknown", detail=f"{told}; then {error}")
    return seen, after(command, seen, acted)


def _look_after(
    command: Command, cluster: Cluster, acted: Failure | None, sleep: Callable[[float], None]
) -> Observation:
    """What an act that was answered so has led to; looked at again where it seems to have led to nothing.

    Brokers may answer an act before all of them know of it.
    """
    for pause in _LOOK_TWICE_SECONDS:
        seen = cluster.look_after(command)
        as_before = seen.owner == command.source if command.action == "unload" else True
        if acted is not None or not seen.has(command.bundle) or not as_before:
            return seen
        sleep(pause)
    return cluster.look_after(command)


def _strange(names: Sequence[str]) -> str:
    shown = " and ".join(f"{name!r:.100}" for name in names)
    return f"{shown} {'is no active broker' if len(names) == 1 else 'are no active brokers'} of the cluster: not asked"


def _act(command: Command, cluster: Cluster) -> Failure | None:
    try:
        cluster.act(command)
    except PulsarError as error:
        fields = {"command": command.id, "bundle": command.bundle}
        log.warning("%s of %s: %s", command.action, command.bundle, error, extra=fields)
        return _failure(error)
    failpoint("after-act")
    return None


def _failure(error: PulsarError) -> Failure:
    return Failure(
        detail=str(error), status=error.status, sent=error.sent, away=error.away, wait_seconds=error.wait_seconds
    )


class PulsarTarget:
    """Cluster behind Pulsar's admin API."""

    def __init__(self, admin: PulsarAdmin) -> None:
        self._admin = admin
        #: The leader of Pulsar's load manager, who keeps the destination of an unload; "" where that is not known.
        self._keeper = ""

    def within(self, seconds: float) -> Self:
        """See Cluster."""
        return type(self)(self._admin.within(seconds))

    def not_active(self, command: Command) -> tuple[str, ...]:
        """See Cluster."""
        named = dict.fromkeys(name for name in (command.source, command.destination) if name)
        return tuple(name for name in named if not self._admin.is_active(name))

    def look(self, command: Command) -> Observation:
        """See Cluster."""
        seen = self._boundaries(command)
        if not seen.has(command.bundle):
            return seen
        if command.action == "unload" and not probe_topic(command.bundle):
            # Without a topic name it could not be looked up afterwards, and its destination would stay set.
            raise PulsarError(
                f"{command.bundle}: no topic name was found whose hash lies in this narrow range", sent=False
            )
        owner = self._admin.owner(command.bundle, [command.source, command.destination])
        if command.destination and owner == command.source:
            # Asked now: between the last check and the act there is no time for it.
            self._keeper = self._leading()
        return replace(seen, owner=owner)

    def act(self, command: Command) -> None:
        """See Cluster."""
        admin = self._admin.within(self._admin.seconds_left * _SHARE_OF_AN_ACT)
        if command.action == "split":
            admin.split(
                command.bundle,
                algorithm=command.algorithm,
                boundaries=command.boundaries,
                unload=command.unload_after_split,
            )
        else:
            try:
                admin.unload(command.bundle, command.destination)
            except PulsarError:
                self._keeper = ""  # who has it is not known, nor whether there is such a bundle: nobody is to take it
                raise

    def look_after(self, command: Command) -> Observation:
        """See Cluster.  Where nobody can be reached it is asked again until time is over."""
        if self._keeper:
            # Once, and before all else: lookups of clients are on their way.
            leader, self._keeper = self._keeper, ""
            self._admin.settle(command.bundle, command.source, command.destination, leader)
        while True:
            try:
                seen = self._boundaries(command)
                if command.action == "split" or not seen.has(command.bundle):
                    return seen
                if owner := self._placed(command.bundle):
                    return replace(seen, owner=owner)
            except PulsarError as error:
                if not error.away or self._admin.seconds_left <= _LOOK_AGAIN_SECONDS:
                    raise
            time.sleep(_LOOK_AGAIN_SECONDS)

    def _leading(self) -> str:
        try:
            return self._admin.within(_LEADER_SECONDS).leader()
        except PulsarError:
            # Then the first lookup decides where the bundle goes, whosever that is.
            return ""

    def _boundaries(self, command: Command) -> Observation:
        try:
            return Observation(boundaries=self._admin.boundaries(namespace_of(command.bundle)))
        except PulsarError as error:
            if error.status == _NOT_FOUND:
                return Observation(boundaries=())
            raise

    def _placed(self, bundle: str) -> str:
        """The owner of *bundle* now, "" while there is none.  PulsarError when time is over.

        A lookup makes the brokers place it, before they forget where it was to go.  With a broker that died it may take
        the length of its session till anybody can have it.
        """
        try:
            owner = self._admin.lookup(bundle)
            # Brokers name a dead one as the owner as long as its session lasts.
            if self._admin.serves(owner, bundle):
                return owner
            problem = PulsarError(f"{bundle} is {owner}'s, which does not have it")
        except PulsarError as error:
            problem = error
        if self._admin.seconds_left <= _LOOK_AGAIN_SECONDS:
            raise problem
        return ""
