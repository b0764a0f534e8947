"""The cluster that a plan is made for: from load reports, from a recording, or from a live cluster's log."""

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np

from controller.adapters.recordings.reading import Recording
from controller.cycle import Policy, forget_dry_run, policy_for, view_of
from controller.cycle.guardrails.undescribed import undescribed
from controller.cycle.limits import Limits
from controller.cycle.ordered import with_controls
from controller.cycle.protected import ProtectedBundles
from controller.log.factory import log_system
from controller.log.recent import last_tick
from controller.model.decision import Reason
from controller.model.errors import TrimtabError
from controller.model.load import RATE_IN, RATE_OUT, Bools, ClusterView, Floats
from controller.model.memory import Memory
from controller.model.names import is_system_owned
from controller.model.pulsar_version import PulsarVersion
from controller.model.reasons import ReasonClass
from controller.model.some_of import some_of
from controller.offline.decide import decide_on_load, recorded_policy
from controller.offline.decided_again import decided_again
from controller.offline.reconstruction import snapshot_at
from controller.offline.recorded_load import notes_on, read_load
from controller.planning.from_view import FOLLOWING, MappedProblem, map_problem
from controller.planning.plans.plan import BALANCE, JOIN, PlanKind
from controller.planning.sequence import Allowed, Closing
from controller.planning.shares import Fit
from controller.settings.broker_conf import build, read_broker_conf
from controller.settings.guardrails import maintenance_of
from controller.settings.maintenance import Maintenance
from controller.settings.pairs import for_version
from controller.settings.policy import read_policy
from controller.settings.trimtab_toml import Settings
from controller.status.reasons import MEANINGS
from controller.strategies.common.movable import broker_own
from controller.strategies.protocols import Filter
from controller.strategies.shedding.peak_shedder import PeakShedder
from controller.strategies.shedding.peak_shedder.destinations import Destinations

#: The shedder whose options say what counts as load.
_SHEDDER = "PeakShedder"
_NO_FITS: Final[Mapping[str, Fit]] = {}
#: More than any broker carries.
_MAX_VALUE = 1e15
#: So many times the cluster's message rate fill no broker, however few there are.
_NO_LIMIT: Final = 1e6
#: Maximum number of brokers without a report that are named.
_MAX_NAMED = 5


@dataclass(frozen=True, kw_only=True, eq=False)
class PlanSource:
    """A cluster as of one interval, with the rules for what may move, and where."""

    cluster: str
    period_ms: int
    view: ClusterView
    #: That of the controllers, or of the options.
    policy: Policy
    #: What the controllers remember: commands in flight, failures.
    memory: Memory
    #: Says what counts as load; its other options are not used.
    shedder: PeakShedder
    notes: tuple[str, ...] = ()
    #: The maintenance windows in which the controllers issue nothing.
    maintenance: Maintenance = field(default_factory=Maintenance)

    def require_every_broker(self, what: str) -> None:
        """TrimtabError where a broker of the roster has no complete report, which *what* cannot do without."""
        if self.view.missing:
            raise TrimtabError(
                f"no complete report in this interval from {self._missing}, and {what} needs those of all brokers in"
                " the roster: wait for the next interval, and see `trimtab doctor` if it stays so; with --load, give"
                " the missing report as well"
            )

    @property
    def note_on_missing(self) -> tuple[str, ...]:
        """That brokers of the roster are not counted; nothing where all are."""
        if not self.view.missing:
            return ()
        return (
            f"no complete report in this interval from {self._missing}: not counted, and nothing moves off a broker"
            " without a report, or to it",
        )

    @property
    def _missing(self) -> str:
        return some_of(self.view.missing, _MAX_NAMED)

    def problem(
        self,
        kind: PlanKind,
        own: Collection[str],
        *,
        recently_unloaded_too: bool = True,
        fits: Mapping[str, Fit] = _NO_FITS,
        by_rate: bool = True,
    ) -> MappedProblem:
        """The problem of a plan of this *kind*; *recently_unloaded_too*: bundles in their grace period may move, too.

        A balance counts as the controllers' shedder does.  All other kinds need room for bundles: they let the
        resources that may follow the load do so, but those that are the brokers' *own*.  *fits*: how resources follow
        the load, where that is known already.

        Resources that are the brokers' *own* say nothing about bundles.  So these are spread by message rate (unless
        *by_rate* is False), and where brokers are to be filled or evened out, no broker counts as full by its own use.
        """
        stays = self.guarded if recently_unloaded_too else self.guarded | self.view.recently_unloaded
        following = () if kind == BALANCE else [name for name in FOLLOWING if name not in own]
        counted = self.shedder.counted
        if own and kind in (BALANCE, JOIN):
            weights = {name: 0.0 if name in own else weight for name, weight in counted.weights.items()}
            counted = replace(counted, weights=weights, rate_share=1.0)
        elif own and by_rate:
            counted = replace(counted, rate_share=_NO_LIMIT)
        return map_problem(self.view, stays, counted, following=following, fits=fits)

    @cached_property
    def guarded(self) -> Bools:
        """(bundles,) that must not move: Pulsar's own, excluded, in flight, after a failure, of unknown namespaces."""
        return self._protected.mask | broker_own(self.view)

    @cached_property
    def _protected(self) -> ProtectedBundles:
        return ProtectedBundles.of(self.view, self.memory, self.policy)

    @cached_property
    def undescribed(self) -> Bools:
        """(bundles,) that stay because nothing describes their namespace; Pulsar's own namespaces aside."""
        names = np.array([not is_system_owned(name) for name in self.view.bundles.namespaces], np.bool_)
        unknown = undescribed(self.view, self.policy.limits)
        return unknown & names[self.view.bundles.namespace] if len(unknown) else unknown

    def why_guarded(self, row: int) -> str:
        """Why the bundle at *row* of the view, which is guarded, must not move."""
        verdict = self._protected.verdict(self.view.bundles.names[row])
        if verdict is None:
            return "it serves its broker alone"
        meaning = MEANINGS[verdict.reason]
        # A setting that keeps it says enough by its name.
        by_a_setting = meaning.kind is ReasonClass.CONFIGURATION
        return f"{verdict.reason} ({verdict.by})" if by_a_setting else f"{verdict.reason}: {meaning.text}"

    def stays_by_a_setting(self, row: int) -> bool:
        """Whether the bundle at *row* of the view serves its broker alone, is Pulsar's own, or is excluded."""
        verdict = self._protected.verdict(self.view.bundles.names[row])
        if verdict is None:
            return bool(self.guarded[row])
        return verdict.reason in (Reason.EXCLUDED, Reason.SYSTEM_NAMESPACE)

    @cached_property
    def own(self) -> Bools:
        """(bundles,) that hold trimtab's own topics.  trimtab does not move them: it would be cut off meanwhile."""
        names = [name in self.policy.own_namespaces for name in self.view.bundles.namespaces]
        return np.array(names, np.bool_)[self.view.bundles.namespace] if len(self.view.bundles) else self.guarded

    def closing(
        self, mapped: MappedProblem, *, without: Sequence[Filter] = (), must_leave: bool = True
    ) -> Closing | None:
        """Where the filters, but those of *without*, let the bundles of *mapped* go, when brokers are closed.

        *must_leave*: a person says which bundles leave, so filters limit only where they go.  False: trimtab chooses
        them, as a shedder does, and filters may keep bundles where they are.  None: there are no filters.
        """
        filters = tuple(each for each in self.policy.filters if each not in without)
        if not filters:
            return None
        return Destinations(view=self.view, rows=mapped.rows, filters=filters, must_leave=must_leave).closing

    def allowed(
        self, mapped: MappedProblem, *, without: Sequence[Filter] = (), must_leave: bool = False
    ) -> Allowed | None:
        """``closing`` where no broker is closed."""
        closing = self.closing(mapped, without=without, must_leave=must_leave)
        return None if closing is None else closing((), None)

    def msg_rate(self, mapped: MappedProblem) -> Floats:
        """(m,) messages/s in and out of the bundles of *mapped*, by short-term averages."""
        short = self.view.bundles.short_term[mapped.rows]
        rate: Floats = np.nan_to_num(short[:, RATE_IN] + short[:, RATE_OUT], nan=0.0, posinf=_MAX_VALUE).clip(
            0.0, _MAX_VALUE
        )
        return rate


def source_of_load(
    load: Sequence[Path],
    broker_conf: Path | None,
    *,
    cluster: str | None,
    period_ms: int,
    pulsar: PulsarVersion | None = None,
) -> PlanSource:
    """The cluster at the end of *load*, as ``trimtab decide`` reads it.  No guardrails of a controller apply."""
    policy = recorded_policy(_SHEDDER, None, broker_conf, split=False, period_ms=period_ms, pulsar=pulsar)
    policy = replace(policy, limits=Limits())
    recorded = read_load(load, cluster=cluster, period_ms=period_ms)
    policy = policy_for([recorded.last], policy.initial_memory(0), policy)
    decided = decide_on_load(recorded.last, policy)
    shedder = policy.shedder
    if not isinstance(shedder, PeakShedder):
        raise TrimtabError(f"{_SHEDDER} is not {type(shedder).__name__}")
    return PlanSource(
        cluster=recorded.cluster,
        period_ms=recorded.period_ms,
        view=decided.view,
        policy=policy,
        memory=policy.initial_memory(0),
        shedder=shedder,
        notes=tuple(notes_on(recorded, {*decided.view.brokers.names, *decided.view.outdated})),
    )


def source_of_recording(recording: Recording, interval: int | None) -> PlanSource:
    """The cluster as *recording* ends, or as of its last decision that is not after *interval*, epoch ms.

    With its settings, and what its controllers remembered.  TrimtabError where there is no such decision.
    """
    again = decided_again(recording, interval)
    made_of = again.interval
    memory = forget_dry_run(made_of.remembered)
    policy = with_controls(policy_for(made_of.snapshots, memory, again.policy), made_of.controls)
    return PlanSource(
        cluster=policy.cluster,
        period_ms=policy.period_ms,
        view=view_of(made_of.snapshots, memory, policy),
        policy=policy,
        memory=memory,
        shedder=build(PeakShedder, for_version(recording.manifest.settings.broker_conf, policy.pulsar)),
        maintenance=maintenance_of(recording.manifest.settings.guardrails),
    )


def source_of_log(settings: Settings, *, before: int) -> PlanSource:
    """The live cluster of *settings*, at the newest interval that ended; *before*: intervals read for averages.

    TrimtabError where the log has no interval, or cannot be read.
    """
    policy, tail = read_policy(settings), log_system(settings).tail()
    interval = last_tick(settings)
    if interval is None:
        raise TrimtabError(
            "the log has no interval yet: start `trimtab collect`, or give `trimtab plan` recorded load with --load"
        )
    # Policies of namespaces are written again every few intervals: those of all have to be among what is read.
    before = max(before, 2 * settings.collector.state_every)
    snapshot = snapshot_at(tail, settings, policy, interval, before=before)
    if snapshot is None:
        raise TrimtabError(f"the log does not hold the load of interval {interval}: wait for the next one")
    last = tail.last_entry()
    memory = policy.initial_memory(settings.decisions.seed) if last is None else forget_dry_run(last.memory)
    policy = policy_for([snapshot], memory, policy)
    if last is not None:
        policy = with_controls(policy, last.controls)
    conf = read_broker_conf(Path(settings.cluster.broker_conf), os.environ)
    return PlanSource(
        cluster=settings.cluster.name,
        period_ms=settings.intervals.period_ms,
        view=view_of([snapshot], memory, policy),
        policy=policy,
        memory=memory,
        shedder=build(PeakShedder, for_version(conf, policy.pulsar)),
        maintenance=maintenance_of(settings.guardrails),
    )
