"""A file that describes a group of workers and the changes to it: the input of ``trimtab rebalance``.

TOML, or JSON of the same shape where the name ends in .json:

    protocol = "cooperative-2.6.3"            # eager, cooperative, or the latter with -2.6.3, -3.9 or -trimtab
    scheduled_rebalance_max_delay_ms = 300000
    rebalance_ms = 0                          # how long a rebalance lasts

    [connectors]                              # connector = number of its tasks
    orders = 4

    [[members]]                               # in the order in which they joined: the first one leads
    name = "worker-a"
    connectors = ["orders"]
    tasks = ["orders:0", "orders:1"]

    [[changes]]                               # each causes a rebalance
    after_ms = 60000                          # since the change before; default: when the group is stable
    join = ["worker-b"]
    leave = ["worker-a"]
    create = { payments = 2 }                 # new connectors, or another number of tasks
    delete = ["orders"]
    does_not_stop = ["worker-b"]              # does not stop what it is told to stop, once
    answer_lost = false                       # true: the leader's answer is lost, once
"""

import json
import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeInt,
    ValidationError,
)
from pydantic_core import ErrorDetails

from controller.model.errors import SettingsError
from controller.settings.problems import lines_of
from controller.settings.small_file import read_tables
from controller.strategies.common.worker_group import ConnectorsAndTasks, ConnectorTaskId

ProtocolName: TypeAlias = Literal["eager", "cooperative", "cooperative-2.6.3", "cooperative-3.9", "cooperative-trimtab"]

_TASK: Final = re.compile(r"(?P<connector>.+):(?P<task>\d{1,9})")


def _task(text: str) -> str:
    if not _TASK.fullmatch(text):
        raise ValueError("a task is connector:number, for example orders:0")
    return text


def _each_once(names: tuple[str, ...]) -> tuple[str, ...]:
    for place, name in enumerate(names):
        if name in names[:place]:
            raise ValueError(f"{name!r} is listed twice")
    return names


GivenName: TypeAlias = Annotated[str, Field(min_length=1)]
Names: TypeAlias = Annotated[tuple[GivenName, ...], Field(strict=False), AfterValidator(_each_once)]
Tasks: TypeAlias = Annotated[tuple[Annotated[str, AfterValidator(_task)], ...], Field(strict=False)]
TaskCount: TypeAlias = Annotated[int, Field(ge=0, le=100_000)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class MemberPart(_Part):
    """A member, and what it runs at the beginning."""

    name: GivenName
    connectors: Names = ()
    tasks: Tasks = ()

    def running(self) -> ConnectorsAndTasks:
        """The connectors and tasks that it runs."""
        matches = [match for match in map(_TASK.fullmatch, self.tasks) if match is not None]
        return ConnectorsAndTasks(
            connectors=self.connectors,
            tasks=tuple(ConnectorTaskId(match["connector"], int(match["task"])) for match in matches),
        )


class ChangePart(_Part):
    """Changes that happen to the group at the same time."""

    after_ms: NonNegativeInt | None = None
    join: Names = ()
    leave: Names = ()
    create: dict[GivenName, TaskCount] = Field(default_factory=dict)
    delete: Names = ()
    does_not_stop: Names = ()
    answer_lost: bool = False


class RebalanceGroup(_Part):
    """The whole file."""

    protocol: ProtocolName = "cooperative-2.6.3"
    scheduled_rebalance_max_delay_ms: Annotated[int, Field(ge=0, lt=2**31)] = 300_000
    rebalance_ms: Annotated[int, Field(ge=0, lt=2**31)] = 0
    connectors: dict[GivenName, TaskCount] = Field(default_factory=dict)
    members: Annotated[tuple[MemberPart, ...], Field(strict=False, min_length=1)]
    changes: Annotated[tuple[ChangePart, ...], Field(strict=False)] = ()


def read_rebalance_group(path: Path) -> RebalanceGroup:
    """The group in the file *path*, or SettingsError naming file, key and value."""
    try:
        text = read_tables(path).decode()
    except (OSError, UnicodeDecodeError) as error:
        why = "it is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else error.strerror
        raise SettingsError(f"{path}: cannot be read: {why}") from error
    is_json = path.suffix == ".json"
    try:
        values: Any = json.loads(text) if is_json else tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also for numbers too long or nesting too deep
        raise SettingsError(f"{path}: not {'JSON' if is_json else 'TOML'}: {error}") from error
    if not isinstance(values, dict) or "members" not in values:
        raise SettingsError(
            f"{path}: does not describe a group of workers, because it has no [[members]]: see docs/rebalance.md and"
            " conf/scenarios/rebalance.toml"
        )
    try:
        group = RebalanceGroup.model_validate(values)
    except ValidationError as error:
        problems = [_problem(details) for details in error.errors(include_url=False)]
        raise SettingsError(lines_of(path, problems)) from error
    flaw = _impossible(group)
    if flaw is not None:
        raise SettingsError(f"{path}: {flaw}")
    return group


def _impossible(group: RebalanceGroup) -> str | None:
    """The first contradiction in *group*, with its key and value; None if there is none."""
    present: set[str] = set()
    for i, member in enumerate(group.members):
        if member.name in present:
            return f"members.{i}.name = {member.name!r}: there is another member of that name"
        present.add(member.name)
    connectors = set(group.connectors)
    for i, change in enumerate(group.changes):
        for key, names, known, what in (
            ("leave", change.leave, present, "member"),
            ("delete", change.delete, connectors, "connector"),
        ):
            for name in names:
                if name not in known:
                    return f"changes.{i}.{key} = {name!r}: no such {what} then; there are: {_listed(known)}"
        for name in change.join:
            if name in present:
                return f"changes.{i}.join = {name!r}: is a member already"
        present = (present - set(change.leave)) | set(change.join)
        if not present:
            return f"changes.{i}.leave = {list(change.leave)}: nobody would be left"
        for name in change.does_not_stop:
            if name not in present:
                return f"changes.{i}.does_not_stop = {name!r}: no such member then; there are: {_listed(present)}"
        connectors = (connectors - set(change.delete)) | set(change.create)
    return None


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _problem(error: ErrorDetails) -> str:
    key = ".".join(str(part) for part in error["loc"] if part != "[key]")
    if error["type"] == "missing":
        return f"{key} is missing"
    if error["type"] == "extra_forbidden":
        return f"{key} = {error['input']!r}: unknown key"
    message = error["msg"].removeprefix("Value error, ")
    return f"{key} = {error['input']!r}: {message}" if key else f"{error['input']!r}: {message}"
