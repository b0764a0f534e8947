"""Carries out one command: observe the cluster, act, observe again; retry where that is safe."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol, Self

from controller.adapters.process.failpoints import failpoint
from controller.adapters.pulsar.admin import PulsarAdmin, PulsarError, probe_topic
from controller.executor.judge import Answer, Failure, Observation, answer_after_act, answer_before_act
from controller.model.decision import Command
from controller.model.names import namespace_of
from controller.wire.results import Status

log = logging.getLogger(__name__)

_NOT_FOUND: Final = 404
#: Interval between lookups of an unloaded bundle until a broker owns it.
_LOOK_AGAIN_SECONDS: Final = 0.2
#: Largest share of a command's remaining time that one call may take; the rest is for observing its effect.
_SHARE_OF_AN_ACT: Final = 0.5
#: A longer Retry-After of a broker is ignored.
_LONGEST_WAIT_SECONDS: Final = 30.0
#: Timeout of the request for the load manager's leader.
_LEADER_SECONDS: Final = 2.0
#: Pauses between observations after a successful call that seems to have had no effect.
_LOOK_TWICE_SECONDS: Final = (0.5, 1.0)


class Cluster(Protocol):
    """The cluster as an attempt sees it.  Every method may raise PulsarError."""

    def within(self, seconds: float) -> Self:
        """The same cluster for one command; after *seconds* every call fails."""
        ...

    def not_active(self, command: Command) -> tuple[str, ...]:
        """The brokers that *command* names and that are not active.  Sends no request to them."""
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
    """How a command ended: the content of its result record."""

    answer: Answer
    owner_before: str = ""
    owner_after: str = ""
    #: Calls that act; 0 if observing was enough.
    attempts: int = 0
    #: No broker could be reached, so nothing was sent.
    nobody_reached: bool = False


def carry_out(
    command: Command,
    cluster: Cluster,
    *,
    may_act: Callable[[], Answer | None],
    may_wait: Callable[[], bool] = lambda: False,
    maybe_started: bool = False,
    dry_run: bool = False,
    max_attempts: int = 3,
    pause_seconds: float = 0.5,
    sleep: Callable[[float], None] = time.sleep,
) -> Outcome:
    """Carry out *command*.  *may_act* is called right before every act; an answer from it ends the command instead.

    *maybe_started*: an executor that died may have acted already.  Then nothing is sent, only observed; an unloaded
    bundle without an owner is looked up, as that executor would have done, so that it goes to its destination.

    A command that names an inactive broker fails, since its author may have invented the address.  While no broker can
    be reached, or brokers are too busy, attempts continue as long as *may_wait*, even beyond *max_attempts*.
    """
    first: Observation | None = None
    tries = attempts = 0
    sent, failure = False, Failure(detail="never tried")
    while tries < max_attempts or (failure.away and not sent and may_wait()):
        if tries:
            sleep(_pause(failure, pause_seconds * 2 ** (min(tries, max_attempts) - 1)))
        tries += 1
        try:
            if not (maybe_started or attempts) and (inactive := cluster.not_active(command)):
                return Outcome(answer=Answer(status="failed", detail=_inactive_detail(inactive)))
            observation = cluster.look(command)
            no_owner = observation.has(command.bundle) and not observation.owner
            if maybe_started and command.action == "unload" and no_owner:
                first, observation = observation, cluster.look_after(command)
        except PulsarError as error:
            failure = _failure(error)
            continue
        first = first or observation
        answer = answer_before_act(command, observation, maybe_started=maybe_started, dry_run=dry_run) or may_act()
        if answer is None:
            attempts += 1
            act_failure = _act(command, cluster)
            failure = act_failure or failure
            if act_failure is None or (act_failure.sent and not act_failure.is_busy):  # else nothing has happened
                sent = True
                observation, answer = _effect(command, cluster, act_failure, sleep)
        if answer is not None:
            return Outcome(answer=answer, owner_before=first.owner, owner_after=observation.owner, attempts=attempts)
    ended = _given_up(failure, tries, sent=sent, maybe_started=maybe_started)
    return replace(ended, owner_before=first.owner if first else "", attempts=attempts)


def _pause(failure: Failure, usual_seconds: float) -> float:
    """Seconds before the next attempt."""
    requested = failure.wait_seconds if failure.wait_seconds <= _LONGEST_WAIT_SECONDS else 0.0
    return max(requested, usual_seconds)


def _given_up(failure: Failure, tries: int, *, sent: bool, maybe_started: bool) -> Outcome:
    if failure.away and not sent and not maybe_started:
        answer = Answer(status="expired", detail=f"not started: no broker could be reached: {failure.detail}")
        return Outcome(answer=answer, nobody_reached=True)
    status: Status = "unknown" if maybe_started else "failed"
    return Outcome(answer=Answer(status=status, detail=f"after {tries} attempts: {failure.detail}"))


def _effect(
    command: Command, cluster: Cluster, act_failure: Failure | None, sleep: Callable[[float], None]
) -> tuple[Observation, Answer | None]:
    """The observation after an act, and the answer; None: nothing happened, so a retry is safe."""
    try:
        observation = _look_after(command, cluster, act_failure, sleep)
    except PulsarError as error:
        sent = act_failure.detail if act_failure else "sent"
        return Observation(boundaries=()), Answer(status="unknown", detail=f"{sent}; then {error}")
    return observation, answer_after_act(command, observation, act_failure)


def _look_after(
    command: Command, cluster: Cluster, act_failure: Failure | None, sleep: Callable[[float], None]
) -> Observation:
    """Observe the effect of an act, repeatedly while there seems to be none.

    A broker may answer before all brokers know the change.
    """
    for pause in _LOOK_TWICE_SECONDS:
        observation = cluster.look_after(command)
        as_before = observation.owner == command.source if command.action == "unload" else True
        if act_failure is not None or not observation.has(command.bundle) or not as_before:
            return observation
        sleep(pause)
    return cluster.look_after(command)


def _inactive_detail(names: Sequence[str]) -> str:
    brokers = " and ".join(f"{name!r:.100}" for name in names)
    are_not = "is not an active broker" if len(names) == 1 else "are not active brokers"
    return f"{brokers} {are_not} of the cluster: not called"


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
        #: The leader of Pulsar's load manager, which stores the destination of an unload; "" if it is not known.
        self._leader_broker = ""

    def within(self, seconds: float) -> Self:
        """See Cluster."""
        return type(self)(self._admin.within(seconds))

    def not_active(self, command: Command) -> tuple[str, ...]:
        """See Cluster."""
        named = dict.fromkeys(name for name in (command.source, command.destination) if name)
        return tuple(name for name in named if not self._admin.is_active(name))

    def look(self, command: Command) -> Observation:
        """See Cluster."""
        observation = self._boundaries(command)
        if not observation.has(command.bundle):
            return observation
        if command.action == "unload" and not probe_topic(command.bundle):
            # Without a topic name it could not be looked up afterwards, and its destination would stay set.
            raise PulsarError(
                f"{command.bundle}: cannot find a topic name whose hash lies in this narrow range", sent=False
            )
        owner = self._admin.owner(command.bundle, [command.source, command.destination])
        if command.destination and owner == command.source:
            # Requested now, because there is no time between the last check and the act.
            self._leader_broker = self._leading()
        return replace(observation, owner=owner)

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
                # The owner is not known any more, so the destination must not be removed.
                self._leader_broker = ""
                raise

    def look_after(self, command: Command) -> Observation:
        """See Cluster.  Retries until the deadline while no broker can be reached."""
        if self._leader_broker:
            # Once, and first of all: clients are about to look the bundle up.
            leader, self._leader_broker = self._leader_broker, ""
            self._admin.settle(command.bundle, command.source, command.destination, leader)
        while True:
            try:
                observation = self._boundaries(command)
                if command.action == "split" or not observation.has(command.bundle):
                    return observation
                if owner := self._look_up_owner(command.bundle):
                    return replace(observation, owner=owner)
            except PulsarError as error:
                if not error.away or self._admin.seconds_left <= _LOOK_AGAIN_SECONDS:
                    raise
            time.sleep(_LOOK_AGAIN_SECONDS)

    def _leading(self) -> str:
        try:
            return self._admin.within(_LEADER_SECONDS).leader()
        except PulsarError:
            # Then the first lookup of any client decides where the bundle goes.
            return ""

    def _boundaries(self, command: Command) -> Observation:
        try:
            return Observation(boundaries=self._admin.boundaries(namespace_of(command.bundle)))
        except PulsarError as error:
            if error.status == _NOT_FOUND:
                return Observation(boundaries=())
            raise

    def _look_up_owner(self, bundle: str) -> str:
        """The current owner of *bundle*, "" while there is none.  PulsarError after the deadline.

        The lookup makes the brokers assign it before they forget its destination.  After the death of its owner this
        can take until that broker's session ends.
        """
        try:
            owner = self._admin.lookup(bundle)
            # A dead broker is reported as the owner until its session ends.
            if self._admin.serves(owner, bundle):
                return owner
            problem = PulsarError(f"lookup of {bundle} names {owner}, which does not serve it")
        except PulsarError as error:
            problem = error
        if self._admin.seconds_left <= _LOOK_AGAIN_SECONDS:
            raise problem
        return ""
