"""A modelled cluster with a controller that is asked to go on by an interval: time passes where somebody sleeps."""

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import Mock

from controller.adapters.approvals.in_force import approvals_of
from controller.adapters.controls_in_force import ControlsInForce
from controller.cli.controls import change
from controller.cli.shared.console import command_line
from controller.engine import take_over
from controller.log.elections import election_system
from controller.log.factory import log_system
from controller.model.controls import OperatorControls
from controller.model.decision import Command
from controller.model.errors import TrimtabError
from controller.model.journal import DecidedInterval
from controller.model.load import ClusterView
from controller.model.records import CommandResult
from controller.offline.plans.applying import PlanRun
from controller.offline.plans.progress import plan_progress
from controller.offline.plans.source import PlanSource, source_of_log
from controller.offline.plans.step_lease import Surroundings
from controller.planning.plans.plan import Plan
from controller.settings.policy import read_policy
from controller.settings.signing_key import controller_signing_key
from controller.settings.standing_controls import standing_controls
from controller.settings.trimtab_toml import Settings, read_settings
from controller.simulator.cluster import ClusterShape, ModelledCluster
from controller.simulator.encode import json_records, namespace_record
from controller.simulator.lock_step import result_record
from controller.wire.plan import hash_of
from tests.modelled_log import LogReader
from tests.records import CLUSTER, PERIOD, T

#: A broker.conf with which nothing moves unless a plan says so.
QUIET = "loadBalancerLoadSheddingStrategy=ThresholdShedder\nloadBalancerBrokerThresholdShedderPercentage=100\n"
SETTINGS = """decisions.mode = "active"
guardrails.freeze_intervals = 0
collector.state_every = 1
"""


class LiveCluster:
    """Its controller obeys the controls that are kept beside the election, as in production."""

    def __init__(
        self,
        conf: Path,
        shape: ClusterShape | None = None,
        reader: Callable[[Settings], LogReader] = LogReader,
    ) -> None:
        """*reader* reads the log of the settings in the file *conf*."""
        self.settings = read_settings(conf)
        self.cluster = ModelledCluster(shape or ClusterShape(bundles=24, topics=240), seed=1, name=CLUSTER)
        self.store = election_system(self.settings).controls()
        self.interval = T - PERIOD
        self.decided: list[DecidedInterval] = []
        #: Says whether the cluster obeys a command.
        self.obeys: Callable[[Command], bool] = lambda _: True
        #: Bundle -> where it goes instead, as if a lookup had been faster; its own broker: it comes back at once.
        self.diverted: dict[str, str] = {}
        #: Brokers that no collector reaches.
        self.silent: set[str] = set()
        #: Brokers that have left.
        self.left: set[str] = set()
        self.said: list[str] = []
        #: So many looks of `trimtab apply` are an interval.
        self.looks = 1
        #: Whether no controller runs.
        self.is_down = False
        #: Called before each interval.
        self.meanwhile: Callable[[], object] = lambda: None
        #: Holders whose process is gone: it changes nothing any more.
        self.gone: set[str] = set()
        self._states: dict[str, Any] = {}
        self._log = log_system(self.settings).metrics()
        self._reader = reader(self.settings)
        approvals = approvals_of(self.settings, election_system(self.settings).proposals())
        in_force = ControlsInForce(standing_controls(self.settings), self.store, lambda: self.interval, approvals)
        self._engine = take_over(
            policy=read_policy(self.settings),
            seed=self.settings.decisions.seed,
            journal=log_system(self.settings).journal(controller_signing_key(self.settings.approvals)),
            leadership=Mock(claim=lambda epoch: epoch + 1),
            controls=in_force.at,
            last_controls=in_force.go_on_from,
            now_ms=lambda: self.interval,
        )
        for _ in range(3):
            self.advance()

    def advance(self) -> None:
        """One interval passes."""
        self.meanwhile()
        self.interval += PERIOD
        self.cluster.advance()
        self._states |= {state.namespace: state for state in self.cluster.changed_namespaces()}
        self._log.publish(namespace_record(CLUSTER, state) for state in self._states.values())
        sweeps = [sweep for sweep in self.cluster.sweeps(self.interval) if sweep.broker not in self.left]
        swept = (sweep for sweep in sweeps if sweep.broker not in self.silent)
        self._log.publish(record for sweep in swept for record in json_records(sweep))
        self._log.tick(self.interval, {sweep.broker: sweep.sweep_id for sweep in sweeps})
        if self.is_down:
            return
        self._engine.decide(self._reader.closed(), self.decided.append)
        for command in self.decided[-1].entry.decision.commands:
            if self.obeys(command):
                to = self.diverted.get(command.bundle, command.destination)
                answer = (
                    CommandResult(id=command.id, status="done")
                    if to == command.source
                    else self.cluster.apply(replace(command, destination=to), now_ms=self.interval)
                )
                self._log.results([result_record(command, answer, now_ms=self.interval)])

    @property
    def commands(self) -> list[Command]:
        """All that was issued."""
        return [command for each in self.decided for command in each.entry.decision.commands]

    @property
    def checked_at(self) -> list[int]:
        """T of the load that the orders were checked against, of each decision that issued some."""
        issued = [each.entry for each in self.decided if each.entry.decision.commands]
        return [entry.controls.orders.checked_at for entry in issued if entry.controls.orders is not None]

    def source(self) -> PlanSource:
        return source_of_log(self.settings, before=2)

    @property
    def view(self) -> ClusterView:
        return self.source().view

    def bundles_on(self, broker: str) -> list[str]:
        view = self.view
        return [view.bundles.names[row] for row in view.bundles.of_broker(view.brokers.code_of[broker]).tolist()]

    def hand(self, bundle: str, source: str, to: str) -> None:
        """Pulsar gives *bundle* from *source* to *to*; the controllers hear nothing but the load."""
        command = Command(
            id="00000000-0000-0000-0000-000000000001",
            action="unload",
            cluster=CLUSTER,
            bundle=bundle,
            interval=self.interval,
            expires_at_ms=self.interval + 300_000,
            mode="active",
            source=source,
            why=self.decided[-1].entry.decision.verdicts[0],
            destination=to,
        )
        self.cluster.apply(command, now_ms=self.interval)

    def leave(self, broker: str, heir: str) -> None:
        """*broker* leaves, and Pulsar gives its bundles to *heir*."""
        for bundle in self.bundles_on(broker):
            self.hand(bundle, broker, heir)
        self.left.add(broker)

    def change(self, **changes: Any) -> OperatorControls:
        return change(self.store, lambda now: replace(now, **changes))

    def _changed(self, holder: str, how: Callable[[OperatorControls], OperatorControls]) -> OperatorControls:
        if holder in self.gone:
            raise TrimtabError("this process is gone")
        return change(self.store, how)

    @property
    def controls(self) -> OperatorControls:
        return self.store.read()[0]

    def run(self, plan: Plan, number: int = 0, *, holder: str = "this", tolerance: float = 1.0) -> PlanRun:
        """A run of *plan*, for which an interval passes when it has slept ``looks`` times."""
        slept = count(1)
        around = Surroundings(
            change=lambda how: self._changed(holder, how),
            source=self.source,
            progress=lambda sha256, since: plan_progress(self.settings, sha256, since),
            now_ms=lambda: self.interval,
            sleep=lambda _: None if next(slept) % self.looks else self.advance(),
            say=self.said.append,
            command=command_line,
            by="ada",
            holder=holder,
            reason="new kernels",
        )
        return PlanRun(plan=plan, sha256=hash_of(plan), number=number, around=around, tolerance=tolerance)
