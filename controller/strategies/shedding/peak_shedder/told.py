"""Puts a round of PeakShedder into verdicts and unloads."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from controller.model.decision import CLUSTER, Reason, Unload, Verdict
from controller.model.load import Bools, ClusterView, Floats
from controller.planning.certificate_text import describe_certificate
from controller.planning.from_view import MappedProblem, reported
from controller.planning.problem import Certificate, PlannedMove
from controller.strategies.shedding.peak_shedder.memory import PeakHistory

BY: Final = "PeakShedder"
#: A broker that gives only so many times the least gain above the goal does so because its estimate is uncertain.
_UNCERTAIN: Final = 2.0


@dataclass(frozen=True, slots=True, eq=False)
class RoundTold:
    """Puts a plan into verdicts and unloads."""

    view: ClusterView
    found: MappedProblem
    #: (n,) until which a broker gives, and (n, R) above which it does.
    goal: Floats
    begin: Floats
    #: As a share of the capacity.
    min_gain: float
    #: (n, R) of the brokers, before the plan.
    load: Floats
    before: Floats
    after: Floats
    memory: PeakHistory
    #: Of the forecast of the next minute, as a share of the load.
    error: float
    #: Of this round and of later ones.
    plan: Sequence[PlannedMove]
    #: Whether times to come do not count, as the plan is urgent.
    urgent: bool

    def cluster(self, certificate: Certificate, reason: Reason, later: str) -> Verdict:
        """The certificate of this round, and what following rounds are to do *later*."""
        # The bound of the certificate decides nothing, so it is no limit: it stands in the detail.
        return Verdict(
            subject=CLUSTER,
            reason=reason,
            observed=certificate.reached,
            unit="usage",
            by=BY,
            detail=describe_certificate(certificate, self.found.problem.resources) + later + self._errors(),
        )

    def forecast(self, reason: Reason) -> Verdict:
        """How the load was followed and looked ahead, and how well moves kept their promises so far."""
        later = self.found.problem.resources[self.found.now :]
        proven, none = self.memory.proven, "not for urgent moves" if self.urgent else "nothing changes"
        detail = (
            f"forecast: the next minute's load differs by this share; looked ahead: {', '.join(later) or none}; moves"
            f" verified: {proven.verified}, {proven.broken} broke their promise; their typical error:"
            f" {proven.error:.3g}"
        )
        return Verdict(subject=CLUSTER, reason=reason, observed=self.error, unit="of the load", by=BY, detail=detail)

    def _errors(self) -> str:
        """How well what bundles take of each reported resource is known."""
        names = self.found.problem.resources[: self.found.now]
        told = [f"{name} {fit.error:.1%}" for name, fit in self.found.fits.items() if name in names]
        return f"; brokers' usage is explained by load with an error of: {', '.join(told)}" if told else ""

    def broker(self, row: int, *, over: bool) -> Verdict:
        """How full a broker is, in its fullest resource, and how full it will be."""
        detail = self._way(row) if over or self.after[row] != self.before[row] else ""
        if over:
            share = self.load[row] / self.found.problem.capacity[row]
            column = int((share - self.begin[row]).argmax())  # a broker gives where one resource is above its limit
            observed, limit = float(share[column]), float(self.begin[row, column])
            return replace(self._usage(row, Reason.OVERLOADED, detail), observed=observed, limit=limit)
        if self.before[row] > self.goal[row]:
            return self._above_the_goal(row, detail)
        return self._usage(row, Reason.BALANCED, detail)

    def _above_the_goal(self, row: int, detail: str) -> Verdict:
        """Why a broker gives nothing although it is above the goal: what decides is from where on brokers give."""
        share = self._counted()[row]
        column = int(share.argmax())
        usage, begin, name = float(share[column]), float(self.begin[row, column]), self.found.problem.resources[column]
        if usage > begin:
            why = "it has just come: what it uses in its first interval is no measure"
            return replace(self._usage(row, Reason.BALANCED, detail or why), limit=None)
        if not self._uncertain()[row]:
            return replace(self._usage(row, Reason.BALANCED, detail), observed=usage, limit=begin)
        fit = self.found.fits.get(name)
        off = "" if fit is None else f" (the estimate of {name} is off by {fit.error:.1%})"
        why = f"what load explains of its usage is too uncertain{off}: a broker gives only above this limit"
        return replace(self._usage(row, Reason.BELOW_MINIMUM, detail or why), observed=usage, limit=begin)

    def _counted(self) -> Floats:
        """(n, R) the utilisations that decide: of now no more than what the broker itself reports."""
        share = self.load / self.found.problem.capacity
        now = slice(0, self.found.now)
        share[:, now] = np.minimum(share[:, now], reported(self.view, self.found))
        return share

    def keeps_hot(self, over: Bools) -> bool:
        """Whether a broker that is not *over* (n,) keeps a usage that would have it give, were it not uncertain."""
        hot: Bools = ~over & self._uncertain()
        return bool(hot.any())

    def _uncertain(self) -> Bools:
        """(n,) which brokers are above the goal by more than the least gain, and give only far above it."""
        full = (self.load / self.found.problem.capacity).argmax(axis=1)
        margin = self.begin[np.arange(len(full)), full] - self.goal
        far: Bools = (margin > _UNCERTAIN * self.min_gain) & (full < self.found.now)
        return far & (self.before > self.goal + self.min_gain)

    def _usage(self, row: int, reason: Reason, detail: str) -> Verdict:
        return Verdict(
            subject=self.view.brokers.names[row],
            reason=reason,
            observed=float(self.before[row]),
            limit=float(self.goal[row]),
            unit="usage",
            by=BY,
            detail=detail,
        )

    def _way(self, row: int) -> str:
        problem = self.found.problem
        fullest = int((self.load[row] / problem.capacity[row]).argmax())
        return f"by {problem.resources[fullest]}; the plan brings it to {100 * self.after[row]:.3g} %"

    def _why(self, move: PlannedMove) -> Verdict:
        """Why *move*: its broker is above the goal; or another one is, whose bundles have room by it."""
        source, to, names = move.source, move.destination, self.view.brokers.names
        if self.before[source] > self.goal[source]:
            return self._usage(source, Reason.OVERLOADED, self._way(source))
        giving = {each.source for each in self.plan if self.before[each.source] > self.goal[each.source]}
        here = {each.source for each in self.plan if each.destination == source} & giving
        about = to if to in giving else max(sorted(here or giving or {source}), key=lambda row: float(self.before[row]))
        if about == to:
            said = "gives bundles, and gets this one in exchange"
        elif here:
            said = f"gives bundles to {names[source]}, which this one leaves to make room"
        else:
            said = "gives bundles, and this one moves by the same plan"
        ends = f"{names[source]} goes from {100 * self.before[source]:.3g} to {100 * self.after[source]:.3g} %"
        return self._usage(about, Reason.OVERLOADED, f"{said}; {self._way(about)}; {ends}")

    def unload(self, move: PlannedMove) -> Unload:
        """The unload of a move, which goes where it is planned to go or stays."""
        names = self.view.brokers.names
        return Unload(
            bundle=self.view.bundles.names[int(self.found.rows[move.bundle])],
            source=names[move.source],
            why=self._why(move),
            destination=names[move.destination],
            final=True,
            in_order=True,
        )
