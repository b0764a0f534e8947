"""An executor for the modelled cluster: command events in, results out.

The smallest one that keeps the contract: it fences off lower epochs, and it checks the cluster before it
changes it, so that a repeated event is executed once.
"""

from controller.model.decision import Command
from controller.model.records import CommandResult
from controller.simulator.cluster import ModelledCluster
from controller.simulator.encode import KeyValue
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
