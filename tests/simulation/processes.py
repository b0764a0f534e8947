"""The processes of a site: each is the product's own code on stand-ins for its ports, wired as its command does."""

import time
from collections.abc import Callable
from contextlib import closing
from typing import Any, Final

from controller.adapters.approvals.background import at_once
from controller.adapters.approvals.in_force import Approvals, approvals_of
from controller.adapters.controls_in_force import ControlsInForce
from controller.adapters.election.controls import ControlStore
from controller.adapters.pulsar.admin import PulsarAdmin
from controller.aggregate.shard.fold import FoldOptions
from controller.aggregate.waiting.limits import WaitLimits
from controller.collector.cluster_state import ClusterState
from controller.collector.loop import BrokerAccess, Collector
from controller.collector.sweeper import Sweeper
from controller.cycle import Policy
from controller.engine import take_over
from controller.executor.loop import Executor
from controller.executor.pace import RateLimiter
from controller.log.journal import LogJournal
from controller.log.journal_evidence import content_of, of_checkpoint, of_commands
from controller.log.tail import LogTail
from controller.log.ticks import CollectorLog
from controller.model.errors import LeadershipLostError, TrimtabError
from controller.model.leadership import Leadership
from controller.model.lost_journal import Evidence
from controller.settings.capacity import CapacityOverrides
from controller.settings.standing_controls import standing_controls
from controller.settings.trimtab_toml import Settings
from controller.wire.chunks import FORMS
from streaming.sink import DecisionSink
from tests.simulation.brokers import Cluster, Pool, traced_target
from tests.simulation.election import Election
from tests.simulation.election_on_log import ElectionOnLog
from tests.simulation.logs import SimulatedLog, SimulatedServer, TracedInbox
from tests.simulation.loop import Process
from tests.simulation.query import Checkpoint, Decoder, Letters, Query
from tests.simulation.world import World

#: How often processes look for something to do, seconds: less often than in production, for the same effects.
_LOOK: Final = {"controller": 5.0, "collector": 5.0, "executor": 4.0}
_AGAIN: Final = 5.0


def fold_options(settings: Settings, policy: Policy, *, files: bool = False) -> FoldOptions:
    """What the fold needs to know; *files*: the log is a folder (streaming.assembly)."""
    intervals = settings.intervals
    return FoldOptions(
        bundle_ttl_ms=intervals.bundle_ttl_intervals * intervals.period_ms,
        detail=policy.detail_limits(intervals.detail_share),
        close_at_most=None if files else intervals.close_at_most,
        waiting=WaitLimits(intervals=intervals.waiting_intervals, size=1 << 24),
        state_ttl=intervals.state_ttl_intervals,
    )


def now_ms() -> int:
    """The wall clock of the process that runs."""
    return time.time_ns() // 1_000_000


class _LooksSeldom:
    """The event that tells a process to end: it never comes, and its wait is a little longer than asked for."""

    def __init__(self, world: World, seconds: float) -> None:
        self._world, self._seconds = world, seconds

    def is_set(self) -> bool:
        """See threading.Event."""
        return False

    def wait(self, _: float) -> bool:
        """See threading.Event."""
        self._world.sim.sleep(self._seconds * self._world.sim.random.uniform(0.8, 1.2))
        return False


class Site:
    """All processes of a site, and what they share."""

    def __init__(
        self,
        world: World,
        settings: Settings,
        policy: Policy,
        server: SimulatedServer,
        *,
        shards: int,
        elects_on_log: bool = False,
    ) -> None:
        self.world, self.settings, self.policy, self.server = world, settings, policy, server
        self.election: Election | ElectionOnLog = Election(world)
        if elects_on_log:
            self.election = ElectionOnLog(world, server, self.log, cluster=policy.cluster)
        self.checkpoint = Checkpoint(shards=shards)
        self.decoder = Decoder(policy.cluster, policy.period_ms)
        #: Topic, partition and position of records that nobody can use.
        self.poison = set[tuple[str, int, int]]()
        self.cluster = Cluster(world, brokers=4, namespaces=2, bundles=4)
        self.options = fold_options(settings, policy)
        #: How many commands people have given.
        self._commands = 0

    def log(self) -> SimulatedLog:
        """The log, as one more process opens it."""
        return SimulatedLog(self.server, now_ms)

    def admin(self, answer_seconds: float) -> PulsarAdmin:
        """The admin API."""
        urls = [f"http://{name}" for name in list(self.cluster.brokers)[:2]]
        pool: Any = Pool(self.cluster)
        return PulsarAdmin(
            urls, cluster=self.policy.cluster, read_seconds=answer_seconds, connect_seconds=2.0, pool=pool
        )

    def _approvals(self) -> Approvals | None:
        store = self.election.proposal_store()
        return approvals_of(self.settings, store, work=at_once)

    # ---- the controller: streaming.supervisor and streaming.assembly ----

    def controller(self, process: Process) -> None:
        """``trimtab run``."""
        leadership, store = self.election.leadership(), self.election.controls_store()
        try:
            while leadership.acquire(lambda: not process.alive):
                try:
                    self._lead(leadership, store)
                except LeadershipLostError:
                    if leadership.session_lost():
                        raise
        finally:
            leadership.release()

    def _lead(self, leadership: Leadership, store: ControlStore) -> None:
        sink = self._sink(leadership, store)
        leadership.check()
        query = Query(self.world, self.checkpoint, self.log(), self.decoder, self.policy, self.options)
        while True:
            if not query.batch(sink):
                self.world.sim.sleep(_LOOK["controller"] * self.world.sim.random.uniform(0.5, 1.5))
            if leadership.lost():
                raise LeadershipLostError("in doubt")

    def _sink(self, leadership: Leadership, store: ControlStore) -> DecisionSink:
        settings, cluster, files = self.settings, self.policy.cluster, self.checkpoint
        journal = LogJournal(self.log(), cluster=cluster, whole_every_ms=settings.whole_every_ms)

        def evidence() -> list[Evidence]:
            tail = LogTail(self.log, cluster=cluster, endless=True)
            known = of_commands(tail, cluster, election_epoch=store.epoch())
            return [*of_checkpoint("checkpoint", files.noted), *known]

        def note(interval: int) -> None:
            files.noted = content_of(interval)

        controls = ControlsInForce(standing_controls(settings), store, now_ms, self._approvals())
        engine = take_over(
            policy=self.policy,
            seed=settings.decisions.seed,
            journal=journal,
            leadership=leadership,
            controls=controls.at,
            last_controls=controls.go_on_from,
            now_ms=now_ms,
            checkpoint="checkpoint" if files.commits else None,
            evidence=evidence,
            accepted_ms=lambda: store.read()[0].loss_accepted_ms,
        )
        letters: Any = Letters(self.log(), self.decoder)
        kept = settings.journal.retention_days * 86_400_000
        return DecisionSink(
            engine, journal=journal, verdicts=None, letters=letters, now_ms=now_ms, retention_ms=kept, note=note
        )

    # ---- the executor: controller.cli.execute ----

    def executor(self, _: Process) -> None:
        """``trimtab execute``."""
        settings, admin, sleep = self.settings, self.admin(20.0), self.world.sim.sleep
        has_worked, target = False, traced_target(self.cluster)
        while True:
            try:
                inbox = TracedInbox(self.log(), group=settings.executor.group, cluster=self.policy.cluster)
                with closing(inbox):
                    executor = Executor(
                        inbox,
                        target(admin),
                        settings.executor,
                        name=self.policy.cluster,
                        give_up_seconds=settings.decisions.executor_timeout_seconds,
                        now_ms=admin.clocks.latest_ms,
                        sleep=sleep,
                        rate_limiter=RateLimiter(settings.executor.max_per_second, clock=time.monotonic, sleep=sleep),
                    )
                    has_worked = True
                    executor.run(_LooksSeldom(self.world, _LOOK["executor"]))  # type: ignore[arg-type]
            except TrimtabError:
                if not has_worked:
                    raise
                sleep(_AGAIN)

    # ---- the collector: controller.cli.collect ----

    def collector(self, _: Process) -> None:
        """``trimtab collect``."""
        settings, cluster, own = self.settings, self.policy.cluster, self.settings.collector
        admin, overrides = self.admin(own.timeout_seconds), CapacityOverrides()
        form, nothing = FORMS[settings.log.sweeps], _NoLoadData()
        sweeper = Sweeper(admin, overrides, nothing, form=form, timeout_seconds=own.timeout_seconds)
        state = ClusterState(admin, cluster, None, own.max_concurrent, 27.0)
        Collector(
            cluster=cluster,
            period_ms=self.policy.period_ms,
            settings=own,
            log=CollectorLog(self.log(), cluster=cluster),
            group=self.election.collectors(),
            brokers=BrokerAccess(sweeper, state, overrides, admin.clocks),
            clock=time.time,
        ).run(_LooksSeldom(self.world, _LOOK["collector"]))  # type: ignore[arg-type]

    # ---- people ----

    def person(self, act: Callable[[], object], name: str) -> None:
        """Somebody gives a command; tries again until it works."""
        what = getattr(act, "func", act).__name__
        self._commands += 1
        number = self._commands

        def run() -> None:
            self.world.note("commands", content=what, interval=number)
            for _ in range(5):
                try:
                    act()
                    self.world.note("commanded", content=what, interval=number)
                    return
                except TrimtabError:
                    self.world.sim.sleep(1.0)

        self.world.sim.spawn(Process(name), run)


class _NoLoadData:
    """These brokers run the modular load manager."""

    def of(self, _: str) -> None:
        """See LoadData."""

    def close(self) -> None:
        """See LoadData."""
