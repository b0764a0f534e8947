"""Groups of Kafka Connect workers, from how vectors and tests write them."""

from collections.abc import Mapping, Sequence
from typing import Any

from controller.strategies.common.worker_group import ConnectorsAndTasks, ConnectorTaskId


def task(text: str) -> ConnectorTaskId:
    """``connector:number``."""
    connector, _, number = text.rpartition(":")
    return ConnectorTaskId(connector, int(number))


def work(connectors: Sequence[str] = (), tasks: Sequence[str] = ()) -> ConnectorsAndTasks:
    """Connectors by name, tasks as ``connector:number``."""
    return ConnectorsAndTasks(connectors=tuple(connectors), tasks=tuple(map(task, tasks)))


def work_of_members(members: Mapping[str, Mapping[str, Any]]) -> dict[str, ConnectorsAndTasks]:
    """Member -> what it holds, from {"connectors": [...], "tasks": [...]}."""
    return {name: work(one["connectors"], one["tasks"]) for name, one in members.items()}


def as_json(one: ConnectorsAndTasks) -> dict[str, list[str]]:
    """The other way round."""
    return {"connectors": list(one.connectors), "tasks": list(map(str, one.tasks))}
