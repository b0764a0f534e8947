"""The metrics of ``trimtab execute``."""

from typing import ClassVar, Final

from controller.adapters.metrics.declared import DELAY_SECONDS
from controller.adapters.metrics.process import ProcessMetrics, ProcessWork
from controller.adapters.metrics.traces import SpanFacts, ns
from controller.model.decision import Command
from controller.wire.process import Role
from controller.wire.results import STATUSES, Result

_MS: Final = 1000.0
_ACTIONS: Final = ("unload", "split")
#: Why an event of the command log is passed over without an answer.
_PASSED_OVER: Final = ("repeated", "unreadable")


class ExecutorMetrics(ProcessMetrics):
    """The events that the executor's loop reports, from several threads."""

    role: ClassVar[Role] = "executor"

    def __init__(self) -> None:
        super().__init__()
        self._executions = self.counter(
            "trimtab_executions_total",
            "Commands executed or refused, by the status of the answer (docs/executor.md). Fenced and expired ones are"
            " refused.",
            "action",
            "status",
        )
        for action in _ACTIONS:
            for status in STATUSES:
                self._executions.labels(action, status)
        self._passed_over = self.counter(
            "trimtab_passed_over_total",
            "Events of the command log without an answer. `why`: repeated (its result is in the log already),"
            " unreadable.",
            "why",
        )
        for why in _PASSED_OVER:
            self._passed_over.labels(why)
        self._attempts = self.counter("trimtab_attempts_total", "Calls to Pulsar that unload or split.", "action")
        self._seconds = self.histogram(
            "trimtab_execution_seconds", "Time from the start of a command until it was verified.", "action"
        )
        self._delay = self.histogram(
            "trimtab_execution_delay_seconds",
            "From T of a command's interval to the end of its execution; only for commands that were started.",
            buckets=DELAY_SECONDS,
        )
        self._partitions = self.gauge(
            "trimtab_executor_partitions",
            "Partitions of the command topic that this executor has now; with a log in Pulsar, as the "
            "brokers reported at most ten seconds ago.",
        )
        self._restarts = self.counter(
            "trimtab_executor_restarts_total",
            "How often the executor restarted its work because the log was unavailable or another executor took over.",
        )

    def assigned(self, partitions: int | None) -> None:
        """This executor has so many partitions of the command topic; None: the group has not assigned them yet."""
        self._partitions.set(partitions or 0)
        self.work = ProcessWork(partitions=partitions)
        if partitions is None:
            self.health.not_ready("waits until the group of executors assigns it partitions of the command topic")
        elif partitions:
            self.health.ready(f"executes: {partitions} partitions of the command topic are assigned to it")
        else:
            self.health.ready("stands by: other executors have all partitions of the command topic")

    def answered(self, command: Command, result: Result) -> None:
        """*command* got *result*."""
        self._executions.labels(command.action, result.status).inc()
        if result.attempts:
            self._attempts.labels(command.action).inc(result.attempts)
            self._seconds.labels(command.action).observe((result.finished_at - result.started_at) / _MS)
            self._delay.observe(max(0.0, (result.finished_at - command.interval) / _MS))
        facts: SpanFacts = {
            "trimtab.command": command.id,
            "trimtab.bundle": command.bundle,
            "trimtab.status": result.status,
            "trimtab.attempts": result.attempts,
        }
        times = ns(result.started_at), ns(result.finished_at)
        self.traces.add(
            command.interval, command.action, *times, facts, key=command.id, failed=result.status == "failed"
        )

    def passed_over(self, why: str) -> None:
        """An event of the command log got no answer: "repeated" or "unreadable"."""
        self._passed_over.labels(why).inc()

    def restarts(self) -> None:
        """The executor ended, because the log was unavailable or another took over, and begins anew."""
        self._restarts.inc()
        self._partitions.set(0)
        self.work = ProcessWork()
        self.health.not_ready("it is restarting; its log says why")
