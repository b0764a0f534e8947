"""The metrics of ``trimtab run``."""

import time
from collections import Counter as Counted
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Final, Literal, TypeAlias, get_args

from controller.adapters.metrics import ages
from controller.adapters.metrics.audits import AuditMetrics
from controller.adapters.metrics.declared import DELAY_SECONDS
from controller.adapters.metrics.process import ProcessMetrics, ProcessWork
from controller.adapters.metrics.traces import ROOT, BatchSpans, SpanFacts, ns
from controller.adapters.network.deadline import Clock
from controller.cycle.dry_run import in_flight
from controller.cycle.guardrails.budgets import Ledger
from controller.cycle.guardrails.listing import unconfirmed_brokers
from controller.cycle.guardrails.unreadable import unreadable_policies
from controller.cycle.limits import Limits
from controller.model.controls import MODES, Controls
from controller.model.decision import Command
from controller.model.journal import DecidedInterval
from controller.model.memory import STRATEGY_ROLES, Memory
from controller.strategies.catalogue import MEMORIES
from controller.wire.base import REASONS
from controller.wire.process import Role
from controller.wire.results import STATUSES

#: The steps of a micro-batch in the controller's own process.
STAGES: Final = ("query", "decide", "audit", "dead_letters", "prune")
#: What becomes of a summary.
SummaryOutcome: TypeAlias = Literal["written", "dropped", "failed"]
SUMMARY_OUTCOMES: Final[tuple[SummaryOutcome, ...]] = get_args(SummaryOutcome)
#: Spark's phases of a micro-batch; triggerExecution is all of it, addBatch the query and the sink.
_PHASES: Final = (
    "triggerExecution",
    "latestOffset",
    "getBatch",
    "queryPlanning",
    "walCommit",
    "addBatch",
    "commitOffsets",
    "commitBatch",
)
_ACTIONS: Final = ("unload", "split")
#: Ticks whose decision is not known yet are remembered up to this number; only catching up has more.
_MOST_TICKS: Final = 64
#: Pulsar's counters of what its own load manager did: the action, its name there, and their label ``metric``.
_PULSARS: Final = {
    "unload": ("pulsar_lb_unload_bundle_total", "bundleUnloading"),
    "split": ("pulsar_lb_bundles_split_total", "bundlesSplit"),
}
_MS: Final = 1000.0


class ControllerMetrics(ProcessMetrics):
    """The events that the supervisor, the sink and the dead letters report."""

    role: ClassVar[Role] = "controller"

    def __init__(self, clock: Clock = time.monotonic) -> None:
        super().__init__(clock)
        self._clock = clock
        self._spans = BatchSpans()
        #: The limits of the guardrails.
        self._limits = Limits()
        #: What this controller does while it leads; "": it does not.
        self._leads = ""
        #: That of the last decision, until its budgets are shown.
        self._memory: Memory | None = None
        #: Interval -> when its tick was seen, by the clock.
        self._ticks: dict[int, float] = {}
        self._newest_tick: int | None = None
        self._declare_leadership()
        self._declare_intervals()
        self._declare_batches()
        self._declare_summaries()
        self._declare_commands()
        self._declare_guardrails()
        #: What became of moves.
        self.audits = AuditMetrics(self)

    # ---- leadership ----

    def _declare_leadership(self) -> None:
        self._leader = self.gauge("trimtab_leader", "1 if this controller leads, else 0.")
        self._epoch = self.gauge("trimtab_epoch", "Number of this controller's last leadership; 0: it has never led.")

    def stands_by(self, prepare: Callable[[], None]) -> None:
        """Another controller leads; *prepare* is this one's rehearsal."""
        self.health.not_ready("another controller leads; this one prepares to take over")
        prepare()
        self.health.ready("stands by: another controller leads, this one is prepared to take over")

    def takes_over(self) -> None:
        """This controller was elected."""
        self.health.not_ready("this controller was elected and takes over")

    def leads(self, epoch: int, waits: str = "") -> None:
        """This controller leads and begins to read the log; *waits*: see ``JournalEntry.waits_for_brokers``."""
        self._leader.set(1)
        self.work = ProcessWork(leads=True)
        self._epoch.set(epoch)
        self._leads = f"leads: it reads the log, epoch {epoch}"
        self._tell_whether_it_waits(waits)

    def _tell_whether_it_waits(self, waits: str) -> None:
        if waits:
            self.health.not_ready(f"leads, and issues nothing: {waits}")
        elif self._leads:
            self.health.ready(self._leads)

    def leads_no_more(self) -> None:
        """This controller does not lead any more."""
        self._leader.set(0)
        self.work = ProcessWork()
        self._leads = ""
        self.health.not_ready("this controller does not lead; it waits for the election")

    # ---- intervals ----

    def _declare_intervals(self) -> None:
        self._last_interval = self.gauge(
            "trimtab_last_interval_timestamp_seconds", "T of the last interval that this process decided; 0: none."
        )
        self._delay = self.histogram(
            "trimtab_interval_delay_seconds",
            "From T, the start of an interval, to its decision, journalled with its commands.",
            buckets=DELAY_SECONDS,
        )
        self._from_tick = self.histogram(
            "trimtab_tick_to_decision_seconds",
            "From the time when this process saw the tick of an interval to its decision, journalled "
            "with its commands. Not with a log in a folder.",
        )
        self._brokers = self.gauge("trimtab_brokers", "Active brokers in the last decided interval.")
        self._bundles = self.gauge("trimtab_bundles", "Bundles with an owner in the last decided interval.")
        self._dropped = self.gauge(
            "trimtab_dropped_rows",
            "Rows dropped since the checkpoint was created, because too many rows waited for a tick.",
        )
        self._dropped_states = self.gauge(
            "trimtab_dropped_states",
            "States of namespaces and brokers dropped since the checkpoint was created, because "
            "together they were too long.",
        )

    def tick_came(self, interval: int | None) -> None:
        """*interval* is the newest that was ticked, epoch ms; may be called again and again."""
        if interval is None or interval == self._newest_tick:
            return
        self._newest_tick = interval
        self._ticks[interval] = self._clock()
        while len(self._ticks) > _MOST_TICKS:
            del self._ticks[min(self._ticks)]

    def decided(self, decided: DecidedInterval, now_ms: int) -> float | None:
        """*decided* has just been decided, and journalled if it says so; *now_ms* is the wall clock, epoch ms.

        Returns the seconds since its tick was seen; None where that is not known.
        """
        entry = decided.entry
        self._last_interval.set(entry.interval / _MS)
        self._dropped.set(decided.dropped_rows)
        self._dropped_states.set(decided.dropped_states)
        self._bundles.set(decided.bundles)
        self._brokers.set(len(entry.memory.roster.brokers))
        ticked = self._ticks.pop(entry.interval, None)
        for (action, status), count in Counted(decided.settled).items():
            self._results.labels(action, status).inc(count)
        self._tell_guardrails(entry.memory, entry.controls)
        policies, any_namespace = unreadable_policies(entry.decision)
        self._unreadable.set(policies)
        self._any_namespace.set(any_namespace)
        self._waits.set(bool(entry.waits_for_brokers))
        self._tell_whether_it_waits(entry.waits_for_brokers)
        if not decided.journalled:
            return None
        self._delay.observe(max(0.0, (now_ms - entry.interval) / _MS))
        facts: SpanFacts = {"trimtab.commands": len(entry.decision.commands)}
        self.traces.add(entry.interval, ROOT, ns(entry.interval), ns(now_ms), facts)
        self._spans.decided(entry.interval)
        self._tell_commands(entry.decision.commands)
        if ticked is None:
            return None
        seconds = self._clock() - ticked
        self._from_tick.observe(seconds)
        return seconds

    # ---- micro-batches ----

    def _declare_batches(self) -> None:
        self._stage = self.histogram(
            "trimtab_stage_seconds",
            "Time of a step of a micro-batch, in this process. `stage`: query (Spark reads, decodes and folds), decide"
            " (view, decision, journal), audit (of earlier moves), dead_letters, prune.",
            "stage",
        )
        for stage in STAGES:
            self._stage.labels(stage)
        self._batch = self.gauge(
            "trimtab_batch",
            "Number of the last finished micro-batch; this process checks ten times in "
            "`intervals.stalled_after_seconds`.",
        )
        self._batch_rows = self.gauge("trimtab_batch_rows", "Records that this micro-batch read.")
        self._batch_seconds = self.gauge(
            "trimtab_batch_seconds", "Time of this micro-batch by Spark's phases; `phase` has Spark's names.", "phase"
        )
        self._state_bytes = self.gauge("trimtab_state_bytes", "Memory of the query's state, as Spark reports it.")
        self._state_rows = self.gauge("trimtab_state_rows", "Rows of the query's state, one for each shard.")
        self._letters = self.counter("trimtab_dead_letters_total", "Dead letters that were stored.", "reason")
        for reason in REASONS:
            self._letters.labels(reason)

    def _declare_summaries(self) -> None:
        self._summaries = self.counter(
            "trimtab_summaries_total",
            "Summaries of intervals for the page. `outcome`: written, dropped (a newer interval arrived "
            "before it was written), failed (the log did not accept it). No decision depends on them.",
            "outcome",
        )
        for outcome in SUMMARY_OUTCOMES:
            self._summaries.labels(outcome)
        self._summary_bytes = self.gauge("trimtab_summary_bytes", "Length of the last summary; 0: none.")

    def summary_written(self, size: int) -> None:
        """A summary of *size* bytes is in the log."""
        self._summary_bytes.set(size)
        self.summary_ended("written")

    def summary_ended(self, outcome: SummaryOutcome) -> None:
        """What became of a summary."""
        self._summaries.labels(outcome).inc()

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Within the block the stage *name* runs, one of STAGES; a micro-batch has all of them, in this order."""
        if name == STAGES[0]:
            self._spans.begin()
        with self._spans.stage(name), self._stage.labels(name).time():
            yield
        if name == STAGES[-1]:
            self._spans.end(self.traces)

    def batch_finished(self, progress: Mapping[str, Any]) -> None:
        """*progress* is Spark's report on a micro-batch.  Supervisors look at one now and then, not at each."""
        self._batch.set(progress["batchId"])
        self._batch_rows.set(progress["numInputRows"] or 0)
        for phase in _PHASES:
            self._batch_seconds.labels(phase).set(progress["durationMs"].get(phase, 0) / _MS)
        self._state_bytes.set(sum(each["memoryUsedBytes"] for each in progress["stateOperators"]))
        self._state_rows.set(sum(each["numRowsTotal"] for each in progress["stateOperators"]))

    def dead_letters(self, reasons: Iterable[str]) -> None:
        """Dead letters were kept, one for each of *reasons*."""
        for reason, count in Counted(reasons).items():
            self._letters.labels(reason).inc(count)

    # ---- commands ----

    def _declare_commands(self) -> None:
        self._commands = self.counter(
            "trimtab_commands_total",
            "Commands issued. `reason` has Pulsar's names where Pulsar has the reason; `mode` is active or dry_run.",
            "action",
            "reason",
            "mode",
        )
        self._results = self.counter(
            "trimtab_results_total",
            "Commands that ended. `status`: the executor's (docs/executor.md), or lost if no result arrived.",
            "action",
            "status",
        )
        for action in _ACTIONS:
            for status in (*STATUSES, "lost"):
                self._results.labels(action, status)
        self._pulsars = {
            "unload": self.counter(
                _PULSARS["unload"][0],
                "Pulsar's name for: unloads issued in mode active. `metric` is bundleUnloading, as with Pulsar.",
                "metric",
            ).labels(_PULSARS["unload"][1]),
            "split": self.counter(
                _PULSARS["split"][0],
                "Pulsar's name for: splits issued in mode active. `metric` is bundlesSplit, as with Pulsar.",
                "metric",
            ).labels(_PULSARS["split"][1]),
        }

    def _tell_commands(self, commands: Iterable[Command]) -> None:
        kinds = Counted((command.action, str(command.why.reason), command.mode) for command in commands)
        for (action, reason, mode), count in kinds.items():
            self._commands.labels(action, reason, mode).inc(count)
            if mode == "active":
                self._pulsars[action].inc(count)

    # ---- guardrails ----

    def _declare_guardrails(self) -> None:
        self._mode = self.gauge("trimtab_mode", "1 for the mode of the last decision, else 0.", "mode")
        self._paused = self.gauge("trimtab_paused", "1 if the last decision was made while paused, else 0.")
        self._declare_ages()
        self._stale = self.gauge("trimtab_stale", "1 if the last interval was too old to act on, else 0.")
        self._unknown = self.gauge(
            "trimtab_controls_unknown",
            "1 if the operator's controls could not be read, so that no commands are issued. Else 0.",
        )
        self._maintenance = self.gauge(
            "trimtab_maintenance", "1 if maintenance windows forbade commands at the last decision, else 0."
        )
        self._in_flight = self.gauge("trimtab_in_flight", "Commands without a result; those of a dry run do not count.")
        self._resting = self.gauge("trimtab_failed_bundles", "Bundles whose last commands failed.")
        self._tripped = self.gauge("trimtab_breaker_tripped", "1 if the breaker stops all commands, else 0.")
        self._in_a_row = self.gauge("trimtab_breaker_failures_in_a_row", "Failed commands since the last success.")
        self._in_window = self.gauge("trimtab_breaker_failures_in_window", "Failed commands in the rolling window.")
        self._budget_remaining = self.gauge(
            "trimtab_budget_left",
            "Remaining budget: of the rolling window, and of commands in flight. `budget` is its key in"
            " [guardrails]; of a budget for each broker or namespace, the one with the smallest remainder. "
            "An unlimited budget"
            " has no series.",
            "budget",
        )
        self._limit = self.gauge("trimtab_budget_limit", "The budget's limit.", "budget")
        self._unreadable = self.gauge(
            "trimtab_unreadable_policies",
            "Isolation policies that could not be read at the last decision: bundles that they name "
            "stay where they are.",
        )
        self._any_namespace = self.gauge(
            "trimtab_unreadable_policy_of_any_namespace",
            "1 if one of them might name any namespace, so that hardly anything moves, else 0.",
        )
        self._declare_brokers()
        self._declare_memories()

    def _declare_brokers(self) -> None:
        """Guardrails that watch brokers."""
        self._balancing = self.gauge(
            "trimtab_brokers_balancing",
            "Brokers that shed or split bundles by themselves at the last decision. Must be 0 in mode "
            "active, which issues no commands otherwise.",
        )
        self._balancing_unknown = self.gauge(
            "trimtab_brokers_balancing_unknown",
            "Brokers of which it was unknown at the last decision whether they balance by themselves. Always 0 with"
            ' guardrails.brokers_balance_unknown = "ignore".',
        )
        self._waits = self.gauge(
            "trimtab_waits_for_brokers",
            "1 if the last decision issued nothing because brokers balance by themselves, or may do so. Else 0.",
        )
        self._unconfirmed = self.gauge(
            "trimtab_unconfirmed_brokers",
            "Brokers that do not list bundles that were moved to them: they get no more bundles, and "
            "count as brokers without data. `trimtab status` names them.",
        )
        self._fatal = self.gauge(
            "trimtab_fatal_bundles",
            "Bundles whose owners died one after the other, more often than chance explains: they are not moved."
            " `trimtab status` names them.",
        )
        self._unconfirmed_moves = self.gauge(
            "trimtab_unconfirmed_moves", "Bundles that these brokers should have listed by now."
        )
        self._unlisted = self.gauge(
            "trimtab_unlisted_bundles", "Moved bundles that their destinations do not list, for any reason."
        )

    def _declare_ages(self) -> None:
        first = "set in trimtab.toml: T of the first interval that this process decided so."
        self._mode_since = self.gauge(
            "trimtab_mode_since_timestamp_seconds",
            f"When the mode of the last decision was set, seconds since 1970; {first} Other modes: NaN.",
            "mode",
        )
        self._paused_since = self.gauge(
            "trimtab_paused_since_timestamp_seconds",
            "When the oldest pause in force that does not end by itself was set, seconds since 1970;"
            f" {first} NaN without one.",
        )
        self._drained = self.gauge("trimtab_drained_brokers", "Brokers that get no bundles until `trimtab release`.")
        self._excluded = self.gauge(
            "trimtab_excluded_names", "Bundles and namespaces that persons excluded, until `trimtab include`."
        )
        self._drained_since = self.gauge(
            "trimtab_drained_since_timestamp_seconds",
            "When the broker that has been drained for longest was drained, seconds since 1970; NaN without one.",
        )
        self._first_seen = ages.FirstSeen()

    def _tell_ages(self, interval: int, controls: Controls) -> None:
        starts = self._first_seen.since(interval, mode=controls.mode, paused=controls.paused and not controls.pauses)
        for mode in MODES:
            since = (controls.mode_since_ms or starts.mode) if mode == controls.mode else 0
            self._mode_since.labels(mode).set(ages.seconds(since))
        forever = [each.at_ms for each in controls.pauses if not each.until_ms]
        self._paused_since.set(ages.seconds(min(forever, default=starts.paused)))
        self._drained.set(len(controls.drained))
        self._excluded.set(len(controls.excluded))
        self._drained_since.set(ages.seconds(controls.drained_since_ms))

    def _declare_memories(self) -> None:
        """What memories of strategies show."""
        self._of_memory = {}
        for kind in MEMORIES.values():
            for name, meaning in kind.metric_meanings.items():
                family, label = _family_and_label(name)
                self._of_memory[family] = self.gauge(family, meaning, *([label] if label else []))
        self._of_own_strategy = self.gauge(
            "trimtab_strategy_metric",
            "Values that the memory of a strategy of your own shows (docs/write_your_own_strategy.md). `role`: shedder,"
            " placement, split or membership.",
            "role",
            "name",
        )

    def limit_by(self, limits: Limits) -> None:
        """The guardrails have these *limits*."""
        self._limits = limits

    def _tell_guardrails(self, memory: Memory, controls: Controls) -> None:
        for mode in MODES:
            self._mode.labels(mode).set(controls.mode == mode)
        self._paused.set(controls.paused)
        self._tell_ages(memory.last_interval or 0, controls)
        self._stale.set(controls.stale)
        self._unknown.set(bool(controls.unknown))
        self._maintenance.set(bool(controls.maintenance))
        self._in_flight.set(len(in_flight(memory, dry_run=False)))
        self._resting.set(len(memory.failed))
        self._balancing.set(memory.balancing.on)
        self._balancing_unknown.set(len(memory.balancing.unknown))
        self._tripped.set(memory.breaker.tripped_at is not None)
        self._in_a_row.set(memory.breaker.in_a_row)
        self._in_window.set(len(memory.failures))
        unconfirmed = unconfirmed_brokers(memory, self._limits)
        self._unconfirmed.set(len(unconfirmed))
        self._fatal.set(len(memory.deaths.fatal))
        self._unconfirmed_moves.set(sum(map(len, unconfirmed.values())))
        self._unlisted.set(sum(len(each.unlisted) for each in memory.destinations.values()))
        self._memory = memory
        self._tell_strategies(memory)

    def _tell_strategies(self, memory: Memory) -> None:
        self._of_own_strategy.clear()
        for role in STRATEGY_ROLES:
            for name, value in getattr(memory, role).metrics().items():
                family, label = _family_and_label(name)
                gauge = self._of_memory.get(family)
                if gauge is None:
                    self._of_own_strategy.labels(role, name).set(value)
                else:
                    (gauge.labels(label.partition("=")[2]) if label else gauge).set(value)

    def page(self) -> bytes:
        """See DeclaredMetrics.  Budgets are added up here, and not while an interval is decided."""
        memory, self._memory = self._memory, None
        if memory is not None:
            self._tell_budgets(memory)
        return super().page()

    def _tell_budgets(self, memory: Memory) -> None:
        for line, used in Ledger(
            self._limits, memory.issued.values(), in_flight(memory, dry_run=False).values()
        ).usage():
            if not line.key.startswith("interval."):
                self._budget_remaining.labels(line.key).set(line.limit - used)
                self._limit.labels(line.key).set(line.limit)


def _family_and_label(name: str) -> tuple[str, str]:
    """``family{label}`` or ``family{label=value}`` in two; the label is "" where there is none."""
    family, _, label = name.removesuffix("}").partition("{")
    return family, label
