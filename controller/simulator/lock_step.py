"""A modelled cluster and a real controller, one interval after the other: publish, wait for the decision, obey, answer.

They communicate only through the log, in Kafka or in a folder.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol, TypeAlias, TypeVar

from controller.adapters.network.deadline import Deadline
from controller.log.factory import log_system
from controller.model.decision import Command
from controller.model.errors import TrimtabError
from controller.model.journal import JournalEntry
from controller.model.records import CommandResult
from controller.settings.trimtab_toml import Settings
from controller.simulator.cluster import ModelledCluster
from controller.simulator.encode import KeyValue, json_records, namespace_record
from controller.wire.base import encode
from controller.wire.commands import EpochEvent, command_key, own_event, to_command
from controller.wire.results import Result


class ModelledExecutor:
    """Obeys the events of one command log on *cluster*."""

    def __init__(self, cluster: ModelledCluster) -> None:
        self._cluster = cluster
        self._epoch = 0

    def obey(self, event: bytes, *, now_ms: int) -> tuple[Command, CommandResult] | None:
        """Carry out *event* at *now_ms*, the cluster's time; None for an epoch, or another cluster's event."""
        parsed = own_event(event, self._cluster.name)
        if parsed is None:
            return None
        newest, self._epoch = self._epoch, max(self._epoch, parsed.epoch)
        if isinstance(parsed, EpochEvent):
            return None
        command = to_command(parsed)
        if parsed.epoch < newest:
            detail = f"epoch {parsed.epoch} is over: {newest} leads"
            return command, CommandResult(id=command.id, status="fenced", detail=detail)
        return command, self._cluster.apply(command, now_ms=now_ms)


def result_record(command: Command, result: CommandResult, *, now_ms: int) -> KeyValue:
    """*result* as a record of the result topic: done at once, at the first attempt."""
    record = Result.model_validate(
        {
            "cluster": command.cluster,
            "id": command.id,
            "status": result.status,
            "detail": result.detail,
            "owner_before": result.owner_before or None,
            "owner_after": result.owner_after or None,
            "started_at": now_ms,
            "finished_at": now_ms,
            "attempts": 1,
        },
        by_name=True,
    )
    return command_key(command), encode(record)


T = TypeVar("T")
#: A command and its result.
AnsweredCommand: TypeAlias = tuple[Command, CommandResult]

_POLL_SECONDS: Final = 0.02
#: Much longer than Spark takes to start on a slow machine.
PATIENCE_SECONDS: Final = 300.0


class Controller(Protocol):
    """A running controller; a threading.Thread is one."""

    def is_alive(self) -> bool:
        """False once it has ended, for whatever reason."""
        ...

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end."""
        ...


class LockStep:
    """The cluster's side of the exchange with the controller."""

    def __init__(self, cluster: ModelledCluster, settings: Settings) -> None:
        self._cluster, self._settings = cluster, settings
        self._log = log_system(settings)
        self._metrics = self._log.metrics()
        self._commands = self._log.commands()
        self._executor = ModelledExecutor(cluster)

    def play(self, interval: int, controller: Controller) -> tuple[JournalEntry, tuple[AnsweredCommand, ...]]:
        """Publish *interval*, wait for the decision and obey it: the decision, and what became of each command."""
        self._publish(interval)
        entry = _wait_for(partial(self._decision, interval), controller)
        obeyed: list[AnsweredCommand] = []
        while len(obeyed) < len(entry.decision.commands):
            events = _wait_for(lambda: self._commands.poll() or None, controller)
            answers = [self._executor.obey(event, now_ms=interval) for event in events]
            obeyed += [answer for answer in answers if answer is not None]
        self._metrics.results(result_record(*answer, now_ms=interval) for answer in obeyed)
        return entry, tuple(obeyed)

    def _publish(self, interval: int) -> None:
        cluster, metrics = self._cluster, self._metrics
        metrics.publish(namespace_record(cluster.name, state) for state in cluster.changed_namespaces())
        sweeps = list(cluster.sweeps(interval))
        metrics.publish(record for sweep in sweeps for record in json_records(sweep))
        metrics.tick(interval, {sweep.broker: sweep.sweep_id for sweep in sweeps})

    def _decision(self, interval: int) -> JournalEntry | None:
        return next((e for e in self._log.decisions() if e.interval == interval), None)


def _wait_for(ready: Callable[[], T | None], controller: Controller) -> T:
    """What *ready* says once it says something; TrimtabError when the controller ends before, or hangs."""
    deadline = Deadline.after(PATIENCE_SECONDS)
    while True:
        # Read before ready(), so that a decision made just before the end is not missed.
        alive = controller.is_alive()
        answer = ready()
        if answer is not None:
            return answer
        if not alive:
            raise TrimtabError("the controller ended before it decided: see its log")
        if deadline.passed:
            raise TrimtabError(f"the controller has not decided for {PATIENCE_SECONDS:g} s: see its log")
        time.sleep(_POLL_SECONDS)
