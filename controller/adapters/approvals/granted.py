"""Which changes of the controls are obeyed under a policy: what makes it safer always, what allows more by a grant.

What was in force stays in force until a grant changes it: an approved change, signed, within its short life, and newer
than the one of its kind that was obeyed before.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from controller.adapters.approvals.standing import ProposalSubject, standing_by, unmet
from controller.model.controls import MAX_PAUSES, Choice, Controls, Drained, OperatorControls, Pause
from controller.model.proposals import CONTROLLER, ControlRequest, Grant, ProposalKind, ProposalState
from controller.settings.approvals import ApprovalSettings
from controller.wire.proposals import encode_request, hash_of

MODE: Final = "mode"
RESUME: Final = "resume"
RELEASE: Final = "release"
#: From the mode in which least moves.
_RANKS: Final = {"observe": 0, "dry_run": 1, "approve": 2, "active": 3}
#: Pauses that were removed without a grant are remembered up to this number; any one of them holds.
_MAX_REMEMBERED: Final = MAX_PAUSES


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
    """The values of a request to resume that ends *pauses*."""
    return tuple(sorted({str(each.at_ms) for each in pauses}))


class GrantedControls:
    """The controls under a policy.  Pure: the same arguments give the same answer."""

    def __init__(self, policy: ApprovalSettings, *, cluster: str, mode: str) -> None:
        """*mode* is that of the settings, which needs no grant."""
        self._policy, self._cluster, self._mode = policy, cluster, mode

    def obeyed(self, controls: OperatorControls, before: Controls | None, now_ms: int) -> ObeyedControls:
        """What is in force at *now_ms* of *controls*, as they are stored, after *before* was in force.

        *before*: of this process, or of the journal's last decision; None: there is none.
        """
        obeyed = {each.request.action: each for each in (() if before is None else before.granted) if _is_whole(each)}
        grants, refused = self._new_grants(controls, obeyed, now_ms)
        mode, mode_grant, why = self._mode_in_force(controls, obeyed.get(MODE), grants, now_ms)
        pauses, why_paused = _pauses_in_force(controls, before, grants, now_ms)
        drained, why_drained = _drained_in_force(controls, before, grants)
        resumes = [each.request.at_ms for each in grants if each.request.action == RESUME]
        resumed_ms = max([0 if before is None else before.resumed_ms, *resumes])
        for each in grants:
            obeyed[each.request.action] = replace(each, statements=())
        obeyed.pop(MODE, None)
        if mode_grant is not None:
            obeyed[MODE] = mode_grant
        if controls.resumed_ms > resumed_ms and not why_paused:
            refused.append("a resume is not approved, so the breaker and decisions.paused stay as they were")
        in_force = replace(controls, mode=mode, pauses=pauses, resumed_ms=resumed_ms, drained=drained)
        return ObeyedControls(
            controls=in_force,
            granted=tuple(obeyed[action] for action in sorted(obeyed)),
            not_approved=(*why, *why_paused, *why_drained, *refused),
        )

    def _new_grants(
        self, controls: OperatorControls, obeyed: dict[str, Grant], now_ms: int
    ) -> tuple[list[Grant], list[str]]:
        """The grants of *controls* that are valid and newer than those *obeyed*, the oldest first; and why others
        are refused, but for those that have been obeyed."""
        valid, refused = list[Grant](), list[str]()
        for each in sorted(controls.grants, key=lambda grant: grant.request.at_ms):
            last = obeyed.get(each.request.action)
            if last is not None and each.request.at_ms <= min(last.request.at_ms, now_ms):
                if each.request != last.request:
                    refused.append(f"{_name(each)} is older than the last one that was obeyed")
                continue
            why = self._flaw_of(each, now_ms)
            if why:
                refused.append(f"{_name(each)} is not obeyed: {why}")
            else:
                valid.append(each)
        return valid, refused

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
        subject = ProposalSubject(hash=hash_of(encode_request(request)), kind=ProposalKind.CONTROL)
        standing = standing_by(
            proposed, statements, self._policy, cluster=self._cluster, now_ms=now_ms, subject=subject
        )
        return "" if standing.state is ProposalState.APPROVED else "; ".join(unmet(standing))

    def _mode_in_force(
        self, controls: OperatorControls, last: Grant | None, grants: Sequence[Grant], now_ms: int
    ) -> tuple[Choice | None, Grant | None, list[str]]:
        """The mode, the grant or lowering that it is in force by, and why another one is not."""
        refused = list[str]()
        if last is not None and allows_more(last.request.values[0], self._mode):
            # Another process may have written the journal: what it says is believed where it is signed.
            why = self._flaw_of(last, last.request.at_ms)
            if why:
                refused.append(f"the mode {last.request.values[0]} that was in force is not believed: {why}")
                last = None
        limit = self._mode if last is None else last.request.values[0]
        requested = controls.mode_in_force(self._mode)
        for each in (grant for grant in grants if grant.request.action == MODE):
            last, limit = each, each.request.values[0]
        if allows_more(requested, limit):
            by = "the settings" if controls.mode is None else controls.mode.by
            why = f"mode {requested}, set by {by}, is not approved: {limit} stays in force"
            at_ms = 0 if last is None else last.request.at_ms
            return Choice(value=limit, reason=why, by=CONTROLLER, at_ms=at_ms), last, [*refused, why]
        if requested != limit:
            chosen_ms = 0 if controls.mode is None else min(controls.mode.at_ms, now_ms)
            at_ms = max(chosen_ms, 0 if last is None else last.request.at_ms)
            lowered = ControlRequest(cluster=self._cluster, action=MODE, values=(requested,), at_ms=at_ms)
            last = Grant(request=lowered)
        return controls.mode, last, refused


def _pauses_in_force(
    controls: OperatorControls, before: Controls | None, grants: Sequence[Grant], now_ms: int
) -> tuple[tuple[Pause, ...], list[str]]:
    """The pauses that stand, with those that were removed without a grant; and which these are."""
    standing = controls.pauses_at(now_ms)
    ended = {
        (value, each.request.at_ms) for each in grants if each.request.action == RESUME for value in each.request.values
    }

    def has_ended(pause: Pause) -> bool:
        return any(value == str(pause.at_ms) and pause.at_ms <= at_ms for value, at_ms in ended)

    removed = [
        each
        for each in (() if before is None else before.pauses)
        if each.in_force_at(now_ms) and each not in standing and not has_ended(each)
    ][:_MAX_REMEMBERED]
    return (*removed, *standing), [f"the pause of {each} was ended without approval: it stands" for each in removed]


def _drained_in_force(
    controls: OperatorControls, before: Controls | None, grants: Sequence[Grant]
) -> tuple[tuple[Drained, ...], list[str]]:
    """The drained brokers, with those that were released without a grant; and which these are."""
    drained = {each.broker for each in controls.drained}
    released = {value for each in grants if each.request.action == RELEASE for value in each.request.values}
    remaining = sorted({*(() if before is None else before.drained)} - drained - released)
    why = [f"{', '.join(remaining)}: released without approval, so still drained"] if remaining else []
    since_ms = 0 if before is None else before.drained_since_ms
    again = (Drained(broker=name, by=CONTROLLER, at_ms=since_ms) for name in remaining)
    return tuple(sorted((*controls.drained, *again), key=lambda each: each.broker)), why


def _is_whole(grant: Grant) -> bool:
    """Whether *grant* says what it sets, where it is about the mode."""
    values = grant.request.values
    return grant.request.action != MODE or (len(values) == 1 and values[0] in _RANKS)


def _name(grant: Grant) -> str:
    request = grant.request
    return " ".join((request.action, *request.values))[:200]
