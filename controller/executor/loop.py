"""The executor: takes commands, carries out those that are allowed, and answers each command once.

For each batch: poll, refuse commands that are fenced, expired or repeated, carry out the others (namespaces in
parallel, commands of one namespace in order), publish the answers with the offset.  Right before an act the executor
records that the command starts.  So after the death of an executor each command has either not started, or is recorded
as started, and no executor starts it again.
"""

import json
import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from controller.adapters.metrics.executor import ExecutorMetrics
from controller.adapters.network.calls import Calls
from controller.adapters.network.deadline import Deadline
from controller.adapters.process.awake import seconds_awake_or_not
from controller.adapters.process.failpoints import failpoint
from controller.executor.attempt import Cluster, Outcome, carry_out
from controller.executor.judge import Answer, refusal
from controller.executor.pace import RateLimiter, StandstillWatch
from controller.log.inbox import AnswerRecord, Delivery, Inbox
from controller.log.port import PartitionTakenOverError, TakenOverError
from controller.model.decision import Command
from controller.model.errors import WireError
from controller.model.leadership import newer_epoch
from controller.settings.trimtab_toml import ExecutorSettings
from controller.wire.base import encode
from controller.wire.command_signatures import why_not_believed
from controller.wire.commands import CommandEvent, EpochEvent, command_key, own_event, to_command
from controller.wire.results import Result

log = logging.getLogger(__name__)

_POLL_SECONDS: Final = 0.5
#: Bytes of a command's id as JSON: all 64 of a batch must fit into the metadata of an offset in Kafka, 4 KB.
_LONGEST_COMMAND_ID: Final = 60
#: Share of the session timeout.  After a longer standstill the process starts none of the commands that it has polled.
_LIMIT_OF_STANDSTILL: Final = 0.5
_NOT_DONE: Final = frozenset({"failed", "unknown", "expired"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    partition: int
    command: Command
    epoch: int
    maybe_started: bool


class Executor:
    """Carries the commands of *inbox* out on *cluster*; *name* is the cluster's."""

    def __init__(
        self,
        inbox: Inbox,
        cluster: Cluster,
        settings: ExecutorSettings,
        *,
        name: str,
        give_up_seconds: float = 60.0,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        clock: Callable[[], float] = seconds_awake_or_not,
        sleep: Callable[[float], None] = time.sleep,
        rate_limiter: RateLimiter | None = None,
        metrics: ExecutorMetrics | None = None,
        own_namespaces: Collection[str] = frozenset(),
        controller_keys: Collection[bytes] = (),
    ) -> None:
        """Commands for *own_namespaces* are always refused; so are those that none of *controller_keys* has signed.

        Without *controller_keys* commands need no signature.
        """
        self._inbox, self._cluster, self._settings, self._name = inbox, cluster, settings, name
        self._give_up_seconds, self._now_ms, self._sleep = give_up_seconds, now_ms, sleep
        self._inbox_turn = threading.Lock()
        self._rate_limiter = rate_limiter or RateLimiter(settings.max_per_second)
        self._standstill = StandstillWatch(settings.session_timeout_seconds * _LIMIT_OF_STANDSTILL, clock=clock)
        self._calls = Calls(settings.max_concurrent)
        self._metrics = metrics or ExecutorMetrics()
        self._own_namespaces, self._controller_keys = own_namespaces, controller_keys
        #: A command of this batch reached no broker: the others do not wait for one.
        self._nobody_reached = threading.Event()
        #: Brokers for which a command of this batch ran into its timeout: the others do not wait for them again.
        self._slow_brokers = set[str]()

    def run(self, until: threading.Event) -> None:
        """Run until *until* is set.  TakenOverError: another executor has the commands now; start a new one."""
        try:
            while not until.is_set():
                if not self.step():
                    until.wait(_POLL_SECONDS / 5)
        finally:
            self._calls.close()

    def step(self) -> int:
        """Process one batch; returns its number of events."""
        self._metrics.health.beat()
        deliveries = self._inbox.poll(self._settings.batch, _POLL_SECONDS)
        self._metrics.assigned(self._inbox.assigned)
        if not deliveries:
            return 0
        # Read the epochs of the whole batch first: a command is refused even if the newer epoch comes after it.
        events = [(each.partition, event) for each in deliveries if (event := self._parse(each)) is not None]
        jobs, answers = self._triage(events)
        with self._standstill.watching():
            answers += self._carry_out(jobs)
        failpoint("before-answer")
        try:
            self._inbox.answer(answers)
        except PartitionTakenOverError as error:
            log.warning("%s: that one answers their commands; continuing with the other partitions", error)
        return len(deliveries)

    def _parse(self, delivery: Delivery) -> CommandEvent | None:
        """The delivered event, with its epoch recorded; None if it is of another cluster, or of no leader."""
        try:
            event = own_event(delivery.value, self._name)
        except WireError as error:
            self._reject_event(str(error))
            return None
        if event is None:
            return None
        size = len(json.dumps(event.id)) - len('""')
        if size > _LONGEST_COMMAND_ID:
            self._reject_event(f"its id takes {size} characters as JSON, at most {_LONGEST_COMMAND_ID} are allowed")
            return None
        memory = self._inbox.memory(delivery.partition)
        memory.epoch = newer_epoch(memory.epoch, event.epoch)
        if event.epoch > memory.epoch:
            self._reject_event(
                f"its epoch is {event.epoch}, the newest before it {memory.epoch}: there cannot have "
                f"been so many leaders; check who may write to the command topic"
            )
            return None
        return event

    def _reject_event(self, why: str) -> None:
        log.error("ignoring an invalid event of the command log: %s", why)
        self._metrics.passed_over("unreadable")

    def _triage(self, events: Sequence[tuple[int, CommandEvent]]) -> tuple[list[_Job], list[AnswerRecord]]:
        jobs, answers = [], []
        for partition, event in events:
            if isinstance(event, EpochEvent):
                continue
            memory, command = self._inbox.memory(partition), to_command(event)
            if command.id in memory.answered:
                # Its result is in the log already; a second one could contradict it.
                message = "ignoring repeated %s of %s"
                log.info(message, command.action, command.bundle, extra=_fields(command, event.epoch))
                self._metrics.passed_over("repeated")
                continue
            job = _Job(
                partition=partition, command=command, epoch=event.epoch, maybe_started=command.id in memory.started
            )
            if why := why_not_believed(event, self._controller_keys):
                answers.append(self._record(job, Outcome(answer=_not_believed(job, why)), self._now_ms()))
                if job.maybe_started:
                    memory.answered.add(command.id)
                # Else its id is not remembered: the controller's own command with this id may come after it.
                continue
            memory.answered.add(command.id)
            refused = None if job.maybe_started else self._refusal(job)
            if refused is None:
                jobs.append(job)
            else:
                answers.append(self._record(job, Outcome(answer=refused), self._now_ms()))
        return jobs, answers

    def _refusal(self, job: _Job) -> Answer | None:
        newest = self._inbox.memory(job.partition).epoch
        own = self._own_namespaces
        return refusal(job.command, epoch=job.epoch, newest_epoch=newest, now_ms=self._now_ms(), own_namespaces=own)

    def _carry_out(self, jobs: Sequence[_Job]) -> list[AnswerRecord]:
        of_namespace: dict[str, list[_Job]] = defaultdict(list)
        for job in jobs:
            of_namespace[command_key(job.command)].append(job)
        # Pulsar stores a destination under the range alone: two bundles of the same range would get each other's.
        turns: dict[str, threading.Lock] = defaultdict(threading.Lock)
        failed = threading.Event()
        self._nobody_reached.clear()
        self._slow_brokers.clear()
        work = {
            namespace: partial(self._in_order, [(job, turns[_range(job)]) for job in each], failed)
            for namespace, each in of_namespace.items()
        }
        # Waits for all, even after a failure: none may still run when this returns.
        calls = self._calls.together(work).values()
        return [record for call in calls for record in call.result()]

    def _in_order(self, jobs: Sequence[tuple[_Job, threading.Lock]], failed: threading.Event) -> list[AnswerRecord]:
        """Execute *jobs* one by one; stop once any of the batch has *failed*, since no answer would be published."""
        records = []
        for job, turn in jobs:
            with turn:
                if failed.is_set():
                    break
                try:
                    records.append(self._execute(job))
                except PartitionTakenOverError:
                    pass  # the executor that has the partition answers it
                except BaseException:
                    failed.set()
                    raise
        return records

    def _execute(self, job: _Job) -> AnswerRecord:
        # Commands that wait for silent brokers can make a batch longer than the limit of the health check.
        self._metrics.health.beat()
        blocked = self._blocked_by_slow_broker(job)
        if not (blocked or job.maybe_started or self._settings.dry_run or job.command.mode == "dry_run"):
            # Before its timeout starts, and before the cluster is observed.
            self._rate_limiter.wait()
        started = self._now_ms()
        # Check again: waiting for its turn took time.
        refused = self._refusal(job) or blocked
        if refused is not None and not job.maybe_started:
            return self._record(job, Outcome(answer=refused), started)
        deadline = Deadline.after(self._give_up_seconds)
        outcome = carry_out(
            job.command,
            self._cluster.within(self._give_up_seconds),
            may_act=lambda: self._may_act(job),
            may_wait=lambda: self._may_wait(job, deadline),
            maybe_started=job.maybe_started,
            dry_run=self._settings.dry_run,
            max_attempts=self._settings.attempts,
            # After the deadline every further attempt ends at once.
            sleep=lambda seconds: self._sleep(min(seconds, deadline.remaining)),
        )
        if outcome.nobody_reached:
            self._nobody_reached.set()
        if deadline.passed and outcome.answer.status in _NOT_DONE:
            self._slow_brokers |= {job.command.source, job.command.destination} - {""}
        return self._record(job, outcome, started)

    def _blocked_by_slow_broker(self, job: _Job) -> Answer | None:
        """The answer if an earlier command for the same broker ran into its timeout: that broker may hang."""
        slow = sorted(self._slow_brokers & {job.command.source, job.command.destination})
        if not slow:
            return None
        return Answer(status="expired", detail=f"not started: an earlier command for {slow[0]} timed out")

    def _may_act(self, job: _Job) -> Answer | None:
        """None: its start is recorded, act at once.  TakenOverError: another executor may have the commands."""
        with self._inbox_turn:
            refused = self._refusal_now(job)
            if refused is not None:
                return refused
            self._inbox.begin(job.partition, job.command.id)
            # The log may have taken long to store it: then the command may have expired, or be of an old epoch.
            refused = self._refusal_now(job)
        # begin checks who has the commands, which covers a standstill before it; this covers one after it.
        if not self._standstill.is_steady():
            raise TakenOverError("this process made no progress for longer than its session timeout")
        return refused

    def _refusal_now(self, job: _Job) -> Answer | None:
        """``_refusal`` by the newest epoch in the log, of a new leader or of `trimtab stop-all`."""
        memory = self._inbox.memory(job.partition)
        memory.epoch = newer_epoch(memory.epoch, self._inbox.newest_epoch(job.partition))
        return self._refusal(job)

    def _may_wait(self, job: _Job, deadline: Deadline) -> bool:
        """Whether *job* may wait until a broker can be reached."""
        late = self._now_ms() >= job.command.expires_at_ms
        return not (deadline.passed or late or self._nobody_reached.is_set())

    def _record(self, job: _Job, outcome: Outcome, started_ms: int) -> AnswerRecord:
        command, answer = job.command, outcome.answer
        fields = _fields(command, job.epoch)
        log.info("%s: %s", _subject(command), ", ".join(filter(None, (answer.status, answer.detail))), extra=fields)
        result = Result(
            cluster=command.cluster,
            id=command.id,
            status=answer.status,
            detail=answer.detail,
            owner_before=outcome.owner_before or None,
            owner_after=outcome.owner_after or None,
            started_at=started_ms,
            finished_at=max(started_ms, self._now_ms()),
            attempts=outcome.attempts,
        )
        self._metrics.answered(command, result)
        return AnswerRecord(job.partition, command_key(command), encode(result))


def _range(job: _Job) -> str:
    return job.command.bundle.rpartition("/")[2]


def _subject(command: Command) -> str:
    """What the command does to which bundle, as the beginning of a log line."""
    source = f" from {command.source}" if command.action == "unload" else ""
    destination = f" to {command.destination}" if command.destination else ""
    return f"{command.action} of {command.bundle}{source}{destination}"


def _fields(command: Command, epoch: int) -> dict[str, object]:
    """Fields of a log line in JSON."""
    return {"command": command.id, "bundle": command.bundle, "epoch": epoch}


def _not_believed(job: _Job, why: str) -> Answer:
    """The answer to a command that no controller signed.

    Whoever wrote it may also have stored that it was begun, so not even a lookup is made for it, which places a bundle.
    """
    if job.maybe_started:
        return Answer(status="unknown", detail=f"an executor ended during this command, and {why}")
    return Answer(status="refused", detail=why)
