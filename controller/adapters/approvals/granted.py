"""Which changes of the controls are obeyed under a policy: what makes it safer always, what allows more by a grant.

What was in force stays in force until a grant changes it: an approved change, signed, within its short life, and newer
than the one of its kind that was obeyed before.
"""

import math
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from controller.adapters.approvals.standing import ProposalSubject, StatementChecks, counting, standing_by, unmet
from controller.model.controls import (
    MAX_DRAINED,
    MAX_EXCLUDED,
    MAX_PAUSES,
    Choice,
    Controls,
    Drained,
    ExcludedName,
    OperatorControls,
    Pause,
)
from controller.model.proposals import CONTROLLER, EVERY_PAUSE, ControlRequest, Grant, ProposalKind, ProposalState
from controller.model.some_of import some_of
from controller.settings.approvals import ApprovalSettings
from controller.wire.proposals import encode_request, hash_of

_T = TypeVar("_T")

MODE: Final = "mode"
RESUME: Final = "resume"
RELEASE: Final = "release"
INCLUDE: Final = "include"
#: From the mode in which least moves.
_RANKS: Final = {"observe": 0, "dry_run": 1, "approve": 2, "active": 3}
#: Pauses that were removed without a grant are remembered up to this number; any one of them holds.
_MAX_REMEMBERED: Final = MAX_PAUSES
#: Brokers, or bundles and namespaces, that a sentence names.
_MAX_NAMED: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ObeyedControls:
    """What is in force of the stored controls."""

    controls: OperatorControls
    #: See Controls.
    granted: tuple[Grant, ...] = ()
    not_approved: tuple[str, ...] = ()


def allows_more(mode: str, than: str) -> bool:
    """Whether more moves in *mode* than in the mode *than*, so that setting it needs approvals."""
    return _RANKS.get(mode, len(_RANKS)) > _RANKS.get(than, -1)


def ended_pauses(pauses: Sequence[Pause]) -> tuple[str, ...]:
    """The values of a request to resume that ends *pauses*; of none: what stands although it is not stored any more."""
    return tuple(sorted({str(each.at_ms) for each in pauses})) or (EVERY_PAUSE,)


class GrantedControls:
    """The controls under a policy.  Pure: the same arguments give the same answer."""

    def __init__(self, policy: ApprovalSettings, *, cluster: str, mode: str) -> None:
        """*mode* is that of the settings, which needs no grant."""
        self._policy, self._cluster, self._mode = policy, cluster, mode

    def obeyed(
        self,
        controls: OperatorControls,
        before: Controls | None,
        now_ms: int,
        released: frozenset[str] = frozenset(),
    ) -> ObeyedControls:
        """What is in force at *now_ms* of *controls*, as they are stored, after *before* was in force.

        *before*: of this process, or of the journal's last decision; None: there is none.  *released*: brokers that
        need no grant to be released, since an approved plan that is in force does that.
        """
        granted = [each for each in (() if before is None else before.granted) if _is_whole(each)]
        obeyed = {each.request.action: each for each in granted}
        grants, older, refused = self._new_grants(controls, obeyed, now_ms)
        mode, modes, why = self._mode_in_force(controls, [*filter(_is_mode, granted)], grants, now_ms)
        pauses, why_paused = _pauses_in_force(controls, before, grants, now_ms)
        drained, why_drained = _drained_in_force(controls, before, grants, released)
        excluded, why_excluded = _excluded_in_force(controls, before, grants)
        resumes = [each.request.at_ms for each in grants if each.request.action == RESUME]
        resumed_ms = max([0 if before is None else before.resumed_ms, *resumes])
        # Grants stay in the document once they were obeyed, so that one is old is said only where something is refused.
        causes = {MODE: why, RESUME: why_paused, RELEASE: why_drained, INCLUDE: why_excluded}
        old = [each for each in older if causes[each.request.action]]
        refused += [f"{_name(each)} is older than the last one that was obeyed" for each in old]
        for each in grants:
            obeyed[each.request.action] = replace(each, statements=())
        obeyed.pop(MODE, None)
        if controls.resumed_ms > resumed_ms and not why_paused:
            refused.append("a resume is not approved, so the breaker and decisions.paused stay as they were")
        in_force = replace(
            controls, mode=mode, pauses=pauses, resumed_ms=resumed_ms, drained=drained, excluded=excluded
        )
        return ObeyedControls(
            controls=in_force,
            granted=(*modes, *(obeyed[action] for action in sorted(obeyed))),
            not_approved=(*why, *why_paused, *why_drained, *why_excluded, *refused),
        )

    def _new_grants(
        self, controls: OperatorControls, obeyed: dict[str, Grant], now_ms: int
    ) -> tuple[list[Grant], list[Grant], list[str]]:
        """The grants of *controls* that are valid and newer than those *obeyed*, the oldest first, without statements
        that do not count; those that are older; and why others are refused."""
        valid, older, refused = list[Grant](), list[Grant](), list[str]()
        for each in sorted(controls.grants, key=lambda grant: grant.request.at_ms):
            last = obeyed.get(each.request.action)
            if last is not None and each.request.at_ms <= min(last.request.at_ms, now_ms):
                if each.request != last.request:
                    older.append(each)
                continue
            why = self._flaw_of(each, now_ms)
            if why:
                refused.append(f"{_name(each)} is not obeyed: {why}")
            else:
                proposed, *statements = each.statements
                approvals = counting(proposed, statements, self._checks(now_ms), _subject(each))
                valid.append(replace(each, statements=(proposed, *approvals)))
        return valid, older, refused

    def _checks(self, now_ms: int) -> StatementChecks:
        return StatementChecks(policy=self._policy, cluster=self._cluster, now_ms=now_ms)

    def _flaw_of(self, grant: Grant, now_ms: int) -> str:
        request = grant.request
        if request.cluster != self._cluster:
            return f"it is for cluster {request.cluster!r}"
        if not grant.statements:
            return "nobody has signed it"
        if not _is_whole(grant):
            return "it names no mode"
        proposed, *statements = grant.statements
        if request.at_ms != proposed.statement.at_ms:
            return "its time is not that of the statement with it"
        standing = standing_by(
            proposed, statements, self._policy, cluster=self._cluster, now_ms=now_ms, subject=_subject(grant)
        )
        return "" if standing.state is ProposalState.APPROVED else "; ".join(unmet(standing))

    def _mode_in_force(
        self, controls: OperatorControls, modes: Sequence[Grant], grants: Sequence[Grant], now_ms: int
    ) -> tuple[Choice | None, Sequence[Grant], list[str]]:
        """The mode, what it is in force by, and why another one is not.

        It is in force by *modes*: the grant of a mode, and a lowering after that.
        """
        refused = list[str]()
        why = self._flaw_of_modes(modes)
        if why:
            refused.append(f"the mode {modes[-1].request.values[0]} that was in force is not believed: {why}")
        modes = [*([] if why else modes), *filter(_is_mode, grants)]
        last = modes[-1] if modes else None
        limit = self._mode if last is None else last.request.values[0]
        requested = controls.mode_in_force(self._mode)
        if allows_more(requested, limit):
            by = "the settings" if controls.mode is None else controls.mode.by
            why = f"mode {requested}, set by {by}, is not approved: {limit} stays in force"
            at_ms = 0 if last is None else last.request.at_ms
            return Choice(value=limit, reason=why, by=CONTROLLER, at_ms=at_ms), _newest(modes), [*refused, why]
        if requested != limit:
            chosen_ms = 0 if controls.mode is None else min(controls.mode.at_ms, now_ms)
            at_ms = max(chosen_ms, 0 if last is None else last.request.at_ms)
            lowered = ControlRequest(cluster=self._cluster, action=MODE, values=(requested,), at_ms=at_ms)
            modes = [*modes, Grant(request=lowered)]
        return controls.mode, _newest(modes), refused

    def _flaw_of_modes(self, modes: Sequence[Grant]) -> str:
        """Why the last of *modes* is not believed; "" where it is.

        Another process may have written the journal: a mode in which more moves than in that of the settings is
        believed where it, or one before it in which at least as much moves, is signed.
        """
        if not modes or not allows_more(modes[-1].request.values[0], self._mode):
            return ""
        signed = next((each for each in modes if each.statements), modes[-1])
        if allows_more(modes[-1].request.values[0], signed.request.values[0]):
            return f"the mode {signed.request.values[0]} was approved"
        # It was completed by its last statement.
        return self._flaw_of(signed, max((each.statement.at_ms for each in signed.statements), default=0))


def _pauses_in_force(
    controls: OperatorControls, before: Controls | None, grants: Sequence[Grant], now_ms: int
) -> tuple[tuple[Pause, ...], list[str]]:
    """The pauses that stand, with those that were removed without a grant; and which these are."""
    standing = controls.pauses_at(now_ms)
    ended = {
        (value, each.request.at_ms) for each in grants if each.request.action == RESUME for value in each.request.values
    }

    def has_ended(pause: Pause) -> bool:
        return any(value in (str(pause.at_ms), EVERY_PAUSE) and pause.at_ms <= at_ms for value, at_ms in ended)

    removed = [
        each
        for each in (() if before is None else before.pauses)
        if each.in_force_at(now_ms) and each not in standing and not has_ended(each)
    ]
    # Those that end last hold for longest.
    removed = sorted(removed, key=lambda each: -(each.until_ms or math.inf))[:_MAX_REMEMBERED]
    return (*removed, *standing), [f"the pause of {each} was ended without approval: it stands" for each in removed]


def _drained_in_force(
    controls: OperatorControls, before: Controls | None, grants: Sequence[Grant], released: frozenset[str]
) -> tuple[tuple[Drained, ...], list[str]]:
    """The drained brokers, with those that were released without a grant and are not *released* by a plan; and which
    these are."""
    since_ms = 0 if before is None else before.drained_since_ms
    drained, restored = _named_in_force(
        () if before is None else before.drained,
        {each.broker: each for each in controls.drained},
        _allowed(grants, RELEASE) | released,
        lambda name: Drained(broker=name, by=CONTROLLER, at_ms=since_ms),
        MAX_DRAINED,
    )
    why = f"{some_of(restored, _MAX_NAMED)}: released without approval, so still drained"
    return drained, [why] if restored else []


def _excluded_in_force(
    controls: OperatorControls, before: Controls | None, grants: Sequence[Grant]
) -> tuple[tuple[ExcludedName, ...], list[str]]:
    """What is excluded, with what was included without a grant; and which this is."""
    excluded, restored = _named_in_force(
        () if before is None else before.excluded,
        {each.name: each for each in controls.excluded},
        _allowed(grants, INCLUDE),
        lambda name: ExcludedName(name=name, by=CONTROLLER, reason="", at_ms=0),
        MAX_EXCLUDED,
    )
    why = f"{some_of(restored, _MAX_NAMED)}: included without approval, so still excluded"
    return excluded, [why] if restored else []


def _named_in_force(
    before: Sequence[str], now: Mapping[str, _T], allowed: Set[str], again: Callable[[str], _T], limit: int
) -> tuple[tuple[_T, ...], list[str]]:
    """The values of *now*, and what *again* makes of the names of *before* that are gone and that nobody *allowed* to
    go, by name; and these names.

    At most *limit*.  What is new never pushes out what was in force.
    """
    restored = sorted({*before} - now.keys() - allowed)
    values = {name: again(name) for name in restored} | {name: now[name] for name in now if name in before} | {**now}
    return tuple(values[name] for name in sorted([*values][:limit])), restored


def _allowed(grants: Sequence[Grant], action: str) -> Set[str]:
    """What the *grants* of *action* name."""
    return {value for each in grants if each.request.action == action for value in each.request.values}


def _is_whole(grant: Grant) -> bool:
    """Whether *grant* says what it sets, where it is about the mode."""
    values = grant.request.values
    return grant.request.action != MODE or (len(values) == 1 and values[0] in _RANKS)


def _subject(grant: Grant) -> ProposalSubject:
    return ProposalSubject(hash=hash_of(encode_request(grant.request)), kind=ProposalKind.CONTROL)


def _is_mode(grant: Grant) -> bool:
    return grant.request.action == MODE


def _newest(modes: Sequence[Grant]) -> Sequence[Grant]:
    """Of *modes*, the oldest first, the last that is signed, and the lowering after it."""
    signed = [each for each in modes if each.statements]
    lowered = [each for each in modes[-1:] if not each.statements]
    return (*signed[-1:], *lowered)


def _name(grant: Grant) -> str:
    request = grant.request
    return " ".join((request.action, *request.values))[:200]
