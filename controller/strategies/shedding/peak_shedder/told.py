"""Puts a round of PeakShedder into verdicts and unloads."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from controller.model.decision import CLUSTER, Reason, Unload, Verdict
from controller.model.load import Bools, ClusterView, Floats
from controller.planning.certificate_text import describe_certificate
from controller.planning.from_view import MappedProblem
from controller.planning.problem import Certificate, PlannedMove
from controller.strategies.shedding.peak_shedder.memory import PeakHistory

BY: Final = "PeakShedder"
_MINUTE_MS: Final = 60_000
#: A limit above this share of the capacity is none that a broker can be below in comfort.
_FULL: Final = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class RoundTold:
    """Puts a plan into verdicts and unloads."""

    view: ClusterView
    found: MappedProblem
    goal: float
    #: (R,) above which a broker gives.
    begin: Floats
    #: (n, R) of the brokers, before the plan.
    load: Floats
    before: Floats
    after: Floats
    memory: PeakHistory
    #: Of the forecast of the next minute, as a share of the load.
    error: float
    #: Of this round and of those that go on with its plan; and whether its one move takes one of an earlier round back.
    plan: Sequence[PlannedMove]
    undoes: bool
    #: Whether times to come do not count, as the plan is urgent.
    urgent: bool
    #: Whether load is elsewhere at other hours, so that the goal is wider.
    varies: bool
    #: (n,) which brokers are above their limit and give nothing, as an urgent move relieved them after load jumped.
    relieved: Bools
    #: (n,) which brokers are not idle only because they came back within the last day.
    spared: Bools

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
        memory, later = self.memory, self.found.problem.resources[self.found.now :]
        proven, none = memory.proven, "not for urgent moves" if self.urgent else "nothing changes"
        detail = (
            f"forecast: load followed for {(memory.as_of_ms - memory.since_ms) / _MINUTE_MS:.0f} min; the next minute's"
            f" differs by this share; looked ahead: {', '.join(later) or none}; moves verified:"
            f" {proven.verified}, {proven.broken} broke their promise, {proven.undone} undone; their typical error:"
            f" {proven.error:.3g}{'; load is elsewhere at other hours: the goal is wider' if self.varies else ''}"
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
            column = int((share - self.begin).argmax())  # a broker gives where one resource is above its limit
            observed, limit = float(share[column]), float(self.begin[column])
            return replace(self._usage(row, Reason.OVERLOADED, detail), observed=observed, limit=limit)
        if self.before[row] > self.goal:
            return self._above_the_goal(row, detail)
        if self.spared[row] and not detail:
            detail = "it came back within the last day, so it is not filled: its clients were disturbed when it went"
        return self._usage(row, Reason.BALANCED, detail)

    def _above_the_goal(self, row: int, detail: str) -> Verdict:
        """Why a broker gives nothing although it is above the goal: what decides is from where on brokers give."""
        share = self.load[row] / self.found.problem.capacity[row]
        column = int(share.argmax())
        begin, name = float(self.begin[column]), self.found.problem.resources[column]
        if self.relieved[row]:
            why = "it was relieved after load jumped, which may go back: for a day it gives only if that is urgent"
            return replace(self._usage(row, Reason.COOL_DOWN, detail or why), limit=None)  # usage does not end it
        if self.before[row] <= begin <= _FULL:
            return replace(self._usage(row, Reason.BALANCED, detail), limit=begin)
        fit = self.found.fits.get(name)
        off = "" if fit is None else f" (the estimate of {name} is off by {fit.error:.1%})"
        why = f"what load explains of its usage is too uncertain{off}: a broker gives only above this limit"
        return replace(self._usage(row, Reason.BELOW_MINIMUM, detail or why), limit=begin)

    def keeps_hot(self, over: Bools) -> bool:
        """Whether a broker that is not *over* (n,) is above the goal, and would give only above its whole capacity."""
        full = (self.load / self.found.problem.capacity).argmax(axis=1)
        hot: Bools = ~over & ~self.relieved & (self.before > self.goal) & (self.begin[full] > _FULL)
        return bool(hot.any())

    def _usage(self, row: int, reason: Reason, detail: str) -> Verdict:
        return Verdict(
            subject=self.view.brokers.names[row],
            reason=reason,
            observed=float(self.before[row]),
            limit=self.goal,
            unit="usage",
            by=BY,
            detail=detail,
        )

    def _way(self, row: int) -> str:
        problem = self.found.problem
        fullest = int((self.load[row] / problem.capacity[row]).argmax())
        return f"by {problem.resources[fullest]}; the plan brings it to {self.after[row]:.3g}"

    def _why(self, move: PlannedMove) -> Verdict:
        """Why *move*: its broker is above the goal; or another one is, whose bundles have room by it."""
        source, to, names = move.source, move.destination, self.view.brokers.names
        if self.undoes:
            back = f"takes back a move of an earlier round, which made things worse; {self._way(source)}"
            worse = float(max(self.after[source], self.after[to]))
            return replace(self._usage(source, Reason.OVERLOADED, back), limit=worse)
        if self.before[source] > self.goal:
            return self._usage(source, Reason.OVERLOADED, self._way(source))
        giving = {each.source for each in self.plan if self.before[each.source] > self.goal}
        if not giving:
            return self._usage(source, Reason.BALANCED, f"completes a plan of earlier rounds; {self._way(source)}")
        here = {each.source for each in self.plan if each.destination == source} & giving
        about = to if to in giving else max(sorted(here or giving), key=lambda row: float(self.before[row]))
        if about == to:
            said = "gives bundles, and gets this one in exchange"
        elif here:
            said = f"gives bundles to {names[source]}, which this one leaves to make room"
        else:
            said = "gives bundles, and this one moves by the same plan"
        ends = f"{names[source]} goes from {self.before[source]:.3g} to {self.after[source]:.3g}"
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
