"""What is new: ``(observation, facts) -> (observation, notifications)``.  Pure: whoever sends next finds the same.

Conditions that hold (an open breaker, silence, errors of the doctor, proposals that wait) are also found at the first
look; what happened before it (another leader, failed waves, undone moves) is not.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final, TypeAlias

from controller.doctor.finding import Finding
from controller.model.some_of import some_of
from controller.web.notifications.facts import ClusterFacts, LogFacts, ProposalFact
from controller.web.store.values import IssuedCommand
from controller.wire.notifications import MOST_OBSERVED, ClusterObservation, EventKind, Notification, notification
from controller.wire.readable import counted, duration, utc

#: Controllers that end again and again change the leader every minute; people hear of the newest one so often.
_LEADER_EVERY_MS: Final = 600_000
#: Undone moves are noticed interval by interval; people hear of them once an hour.
_UNDONE_EVERY_MS: Final = 3_600_000
#: Names in a sentence.
_NAMED: Final = 3
_Detected: TypeAlias = tuple[ClusterObservation, list[Notification]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """What each detector is given."""

    observation: ClusterObservation
    facts: ClusterFacts
    log: LogFacts
    silent_intervals: int

    def notified(
        self, kind: EventKind, key: str, at_ms: int, title: str, text: str, **data: str | int | list[str]
    ) -> Notification:
        """A notification about *key*, of which there is one with this *kind*."""
        identity = _hashed(self.facts.cluster, kind, key)
        return notification(identity, kind, at_ms, f"{self.facts.cluster}: {title}", text, data)


def detect(
    observation: ClusterObservation, facts: ClusterFacts, *, silent_intervals: int
) -> tuple[ClusterObservation, tuple[Notification, ...]]:
    """What is new in *facts* since *observation*, and the next observation; nothing while the log is being loaded."""
    if facts.log is None and not facts.unread:
        return observation, ()
    if not observation.watched_since_ms:
        observation = observation.model_copy(update={"watched_since_ms": facts.now_ms})
    known = facts.log is not None
    log = facts.log or LogFacts(decided=None, epoch=0, breaker=None, plan_failures=(), undone_moves=())
    look = _Look(observation=observation, facts=facts, log=log, silent_intervals=silent_intervals)
    events: list[Notification] = []
    for detector in _DETECTORS if known else (_silence, _doctor, _proposals):
        after, new = detector(look)
        look = replace(look, observation=after)
        events += new
    after = look.observation.model_copy(update={"started": look.observation.started or known})
    return after, tuple(events)


def _leader(look: _Look) -> _Detected:
    observation, epoch = look.observation, look.log.epoch
    if epoch <= observation.epoch or look.facts.now_ms - observation.leader_at_ms < _LEADER_EVERY_MS:
        return observation, []
    after = observation.model_copy(update={"epoch": epoch})
    if not observation.started or not observation.epoch:
        return after, []
    text = f"Epoch {epoch} began, after {observation.epoch}. `trimtab status` says which process leads."
    after = after.model_copy(update={"leader_at_ms": look.facts.now_ms})
    at_ms = look.log.decided or look.facts.now_ms
    title = "another controller leads"
    event = look.notified(
        EventKind.LEADER_CHANGED, str(epoch), at_ms, title, text, epoch=epoch, epochBefore=observation.epoch
    )
    return after, [event]


def _silence(look: _Look) -> _Detected:
    observation, facts = look.observation, look.facts
    decided = max(observation.decided, look.log.decided or 0)
    observation = observation.model_copy(update={"decided": decided})
    since = decided or observation.watched_since_ms
    silent_ms = facts.now_ms - since
    if silent_ms <= look.silent_intervals * facts.period_ms or observation.silent_at == decided:
        return observation, []
    last = f"The last decision is of {utc(decided)}." if decided else "There is no decision yet."
    why = f" The log cannot be read here: {facts.unread}." if facts.unread else ""
    text = f"{last}{why} Look at `trimtab status`, and at the logs of controllers and collectors."
    title = f"no decision for {duration(silent_ms / 1000)}"
    key = f"{decided or observation.watched_since_ms}"
    event = look.notified(EventKind.NO_DECISION, key, facts.now_ms, title, text, lastDecision=decided)
    return observation.model_copy(update={"silent_at": decided}), [event]


def _breaker(look: _Look) -> _Detected:
    observation, breaker = look.observation, look.log.breaker
    tripped = None if breaker is None else breaker.tripped_at
    if breaker is None or tripped == observation.breaker:
        return observation, []
    after = observation.model_copy(update={"breaker": tripped})
    if tripped is None:
        return after, []
    text = f"{breaker.why}. Nothing is issued: mend the cause, then run `trimtab resume`."
    title = "the breaker is open"
    return after, [look.notified(EventKind.BREAKER_OPENED, str(tripped), tripped, title, text, why=breaker.why)]


def _waves(look: _Look) -> _Detected:
    by_wave: dict[str, list[IssuedCommand]] = {}
    for command in look.log.plan_failures:
        by_wave.setdefault(command.why.detail, []).append(command)
    keys = {_hashed(wave)[:16]: wave for wave in by_wave}
    after = look.observation.model_copy(update={"waves": _bounded(keys)})
    if not look.observation.started:
        return after, []
    new = [wave for key, wave in keys.items() if key not in look.observation.waves]
    return after, [_wave_failed(look, wave, by_wave[wave]) for wave in new]


def _wave_failed(look: _Look, wave: str, commands: Sequence[IssuedCommand]) -> Notification:
    first = commands[-1]
    about = f"{first.status}{f', {first.detail}' if first.detail else ''}"
    text = f"{wave}: {counted(len(commands), 'move')} failed. The first is {first.bundle}: {about}."
    return look.notified(
        EventKind.WAVE_FAILED,
        wave,
        first.finished_at or first.interval,
        "a wave of a plan failed",
        text,
        wave=wave,
        failed=len(commands),
        bundles=[each.bundle for each in commands],
    )


def _undone(look: _Look) -> _Detected:
    observation, now_ms = look.observation, look.facts.now_ms
    moves = {_hashed(each.id)[:16]: each for each in look.log.undone_moves}
    if observation.started and now_ms - observation.undone_at_ms < _UNDONE_EVERY_MS:
        return observation, []
    after = observation.model_copy(update={"undone": _bounded(moves)})
    new = {key: move for key, move in moves.items() if key not in observation.undone}
    if not new or not observation.started:
        return after, []
    bundles = [each.bundle for each in new.values()]
    text = (
        f"{counted(len(new), 'bundle')} came back to where trimtab had moved them from, within an hour:"
        f" {some_of(bundles, _NAMED)}. `trimtab audit` says on whose command."
    )
    title = f"{counted(len(new), 'move')} undone"
    key = "\n".join(sorted(new))
    event = look.notified(EventKind.MOVES_UNDONE, key, now_ms, title, text, moves=len(new), bundles=bundles)
    return after.model_copy(update={"undone_at_ms": now_ms}), [event]


def _doctor(look: _Look) -> _Detected:
    observation, errors = look.observation, look.facts.doctor
    if errors is None:
        return observation, []
    keys = {f"{each.code}:{_hashed(*each.objects)[:16]}": each for each in errors[:MOST_OBSERVED]}
    after = observation.model_copy(update={"doctor": _bounded(keys)})
    new = {key: error for key, error in keys.items() if key not in observation.doctor}
    if not new:
        return after, []
    sentences = some_of(list(new.values()), _NAMED, between="; ", format_item=_sentence)
    key = "\n".join([str(look.facts.now_ms), *sorted(new)])
    event = look.notified(
        EventKind.DOCTOR_ERROR,
        key,
        look.facts.now_ms,
        f"the doctor finds {counted(len(new), 'new error')}",
        f"{sentences}. `trimtab doctor` says what to do.",
        codes=sorted({each.code for each in new.values()}),
    )
    return after, [event]


def _sentence(finding: Finding) -> str:
    return f"{finding.code}, {some_of(finding.objects, _NAMED)}: {finding.observed}"


def _proposals(look: _Look) -> _Detected:
    observation, stored, decided = look.observation, look.facts.proposals, look.log.proposed
    proposals = {each.id: each for each in (*([decided] if decided else ()), *(stored or ()))}
    states = {each.id: each.state for each in [*proposals.values()][:MOST_OBSERVED]}
    if stored is None or look.facts.log is None:  # what one of the two has is not known now
        states = dict([*(observation.proposals | states).items()][-MOST_OBSERVED:])
    new = [proposals[key] for key in states if key in proposals and observation.proposals.get(key) != states[key]]
    events = [_waits(look, each) for each in new if each.state == "pending"]
    if observation.started:
        events += [_plan_failed(look, each) for each in new if each.state == "failed"]
    return observation.model_copy(update={"proposals": states}), events


def _waits(look: _Look, proposal: ProposalFact) -> Notification:
    text = (
        f"{proposal.title}, proposed by {proposal.author}. It lapses at {utc(proposal.expires_at_ms)}."
        " Look at the page, or at `trimtab proposals list`."
    )
    return look.notified(
        EventKind.PROPOSAL_WAITS,
        proposal.id,
        look.facts.now_ms,
        "a proposal waits for approval",
        text,
        proposal=proposal.id,
        author=proposal.author,
        expiresAt=proposal.expires_at_ms,
    )


def _plan_failed(look: _Look, proposal: ProposalFact) -> Notification:
    text = f"{proposal.title}, proposed by {proposal.author}, ended without success. Look at the page."
    return look.notified(
        EventKind.PLAN_FAILED, proposal.id, look.facts.now_ms, "a plan failed", text, proposal=proposal.id
    )


def _bounded(keys: Iterable[str]) -> tuple[str, ...]:
    return tuple(keys)[:MOST_OBSERVED]


def _hashed(*parts: str) -> str:
    return sha256("\n".join(parts).encode(errors="surrogatepass")).hexdigest()[:32]


_DETECTORS: Final[tuple[Callable[[_Look], _Detected], ...]] = (
    _breaker,
    _silence,
    _leader,
    _waves,
    _undone,
    _doctor,
    _proposals,
)
