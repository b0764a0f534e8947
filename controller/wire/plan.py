"""A plan as a file: JSON with everything that it was made from, and a hash over it that a person approves.

The hash is SHA-256 over the plan as JSON with sorted keys and without blanks, so it does not depend on how the file is
laid out.  What is read is never more than MAX_BYTES, and is checked before any of it is used.
"""

import hashlib
import json
from typing import Annotated, Final, Literal, TypeAlias

import numpy as np
from pydantic import ConfigDict, Field, ValidationError

from controller.model.errors import PlanRefusedError, WireError
from controller.model.load import Floats, Ints
from controller.planning.checking.plan_checker import plan_flaws
from controller.planning.objective import disturbance
from controller.planning.plans.plan import Plan, PlanStep
from controller.planning.plans.waves import WavePace
from controller.planning.problem import BalanceProblem, Certificate, PlannedMove
from controller.planning.shares import Fit
from controller.wire.base import (
    VERSION,
    AnyText,
    BundleText,
    Items,
    Millis,
    Name,
    NameOrEmpty,
    Record,
    read_object,
    reader,
    refuse_too_large,
    validate,
)
from controller.wire.controls import MAX_MOVES

#: A cluster of 10,000 brokers with 500,000 bundles comes to half of it.
MAX_BYTES: Final = 128 * 1024 * 1024
#: In memory each takes up to a hundred bytes.  A plan of that size has one in each eleven bytes.
_MOST_VALUES: Final = MAX_BYTES // 8
_MOST_BROKERS: Final = 10_000
_MOST_BUNDLES: Final = 1_000_000
_MOST_MOVES: Final = 100_000
_MOST_RESOURCES: Final = 16
#: So many flaws are told.
_MOST_NAMED: Final = 5

#: Load and capacity in the unit of the resource; seconds; a share.
Amount: TypeAlias = Annotated[float, Field(ge=0, le=1e18, allow_inf_nan=False)]
_Row: TypeAlias = Annotated[int, Field(ge=0, lt=_MOST_BUNDLES)]
_Amounts: TypeAlias = Annotated[Items[Amount], Field(max_length=_MOST_RESOURCES)]


class PlanPart(Record):
    """Base of the parts of a plan's file: an unknown field is an error, since it would not be part of the hash."""

    model_config = ConfigDict(extra="forbid")


class CertificateRecord(PlanPart):
    """What a step reaches, and a level that no step of as many moves can be below."""

    max_moves: Annotated[int, Field(ge=0, le=_MOST_MOVES)]
    before: Amount
    """The highest usage of any broker in any resource, a share of the capacity."""
    reached: Amount
    bound: Amount
    kind: Annotated[str, Field(max_length=20)]
    """Why no plan is below the bound: docs/objective.md."""
    resource: Annotated[int, Field(ge=-1, lt=_MOST_RESOURCES)]
    size: Amount


class FitRecord(PlanPart):
    """How the usage of a resource follows the load of a broker."""

    resource: Name
    factors: Annotated[Items[Amount], Field(min_length=3, max_length=3)]
    """Units of the resource for a message/s, a byte/s in and a byte/s out."""
    constant: Amount
    """What a broker uses without bundles."""


class StepRecord(PlanPart):
    """Waves that are carried out together.  Between two steps a person acts."""

    task: Literal["spread", "empty", "fill"]
    brokers: Annotated[Items[_Row], Field(max_length=_MOST_BROKERS)]
    """Rows of the brokers that are emptied, or filled."""
    waves: Annotated[
        Items[Annotated[Items[tuple[_Row, _Row, _Row]], Field(max_length=MAX_MOVES)]], Field(max_length=_MOST_MOVES)
    ]
    """Moves: rows of the bundle, of its owner, and of the broker that it goes to."""
    certificate: CertificateRecord
    stuck: Annotated[Items[_Row], Field(max_length=_MOST_BUNDLES)]
    """Rows of bundles that stay on a broker that is emptied."""


class PlanRecord(PlanPart):
    """Everything that a plan says.  All of it is part of the hash."""

    v: Literal[1] = VERSION
    type: Literal["plan"] = "plan"
    cluster: NameOrEmpty
    interval: Millis
    """T of the load that it was made for."""
    kind: Literal["balance", "drain", "join", "rolling_restart", "remove"]
    asked: Annotated[AnyText, Field(max_length=1000)]
    period_ms: Annotated[int, Field(ge=1, le=86_400_000)]
    """Length of the cluster's intervals."""
    wave_seconds: Amount
    """From one wave to the next, at least."""
    connections_per_second: Amount | None
    """Producers and consumers that may have to reconnect in a second; null: any number."""
    burst_seconds: Annotated[Amount | None, Field(exclude_if=lambda value: value is None)] = None
    """A wave has at most as many of them as the rate allows in so many seconds, and between two waves; a bundle with
    more moves alone.  Left out: as many as between two waves."""
    ceiling: Amount
    """Brokers that get bundles of emptied ones stay at or below this share of their capacity."""
    own: Annotated[Items[Name], Field(max_length=_MOST_RESOURCES, exclude_if=lambda value: not value)] = ()
    """Resources whose usage stays with the brokers when bundles leave."""
    fits: Annotated[Items[FitRecord], Field(max_length=_MOST_RESOURCES, exclude_if=lambda value: not value)] = ()
    """How resources that brokers report follow the load.  Left out by earlier releases: estimated anew."""
    resources: Annotated[Items[Name], Field(max_length=_MOST_RESOURCES)]
    brokers: Annotated[Items[Name], Field(max_length=_MOST_BROKERS)]
    capacity: Annotated[Items[_Amounts], Field(max_length=_MOST_BROKERS)]
    """For each broker, what it can carry of each resource."""
    fixed: Annotated[Items[_Amounts], Field(max_length=_MOST_BROKERS)]
    """For each broker, the load that no move changes."""
    bundles: Annotated[Items[BundleText], Field(max_length=_MOST_BUNDLES)]
    """The bundles that may move."""
    size: Annotated[Items[_Amounts], Field(max_length=_MOST_BUNDLES)]
    """For each bundle, what it takes of each resource."""
    owner: Annotated[Items[_Row], Field(max_length=_MOST_BUNDLES)]
    """For each bundle, the row of its broker."""
    connections: Annotated[Items[Amount], Field(max_length=_MOST_BUNDLES)]
    """For each bundle, its producers and consumers."""
    msg_rate: Annotated[Items[Amount], Field(max_length=_MOST_BUNDLES)]
    """For each bundle, messages/s in and out."""
    steps: Annotated[Items[StepRecord], Field(max_length=_MOST_BROKERS + 1)]


class PlanFile(PlanPart):
    """What ``trimtab plan`` writes: a plan and its hash."""

    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    """Of the plan as JSON with sorted keys and without blanks."""
    plan: PlanRecord


def hash_of(plan: Plan) -> str:
    """The hash that a person approves: any change of *plan* changes it."""
    return _hash_of(plan_record(plan))


def certificate_hash(plan: Plan) -> str:
    """SHA-256 over the certificates of *plan*'s steps, which an approval is bound to."""
    certificates = [_certificate_record(step.certificate).model_dump(mode="json") for step in plan.steps]
    encoded = json.dumps(certificates, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(encoded.encode()).hexdigest()


def encode_plan(plan: Plan) -> bytes:
    """The file of *plan*."""
    record = plan_record(plan)
    file = PlanFile(sha256=_hash_of(record), plan=record)
    return file.model_dump_json(by_alias=True).encode() + b"\n"


def parse_plan(value: bytes, file_name: str = "this") -> tuple[Plan, str]:
    """The verified plan in *value*, and its hash; PlanRefusedError where it is no plan, or says something untrue.

    *file_name* is how the error calls what is no plan.
    """
    try:
        file = _read(value)
    except WireError as error:
        raise PlanRefusedError(f"{file_name} is not a valid plan: {error}") from error
    actual = _hash_of(file.plan)
    if actual != file.sha256:
        raise PlanRefusedError(f"the plan was changed: its hash is {actual}, but the file says {file.sha256}")
    plan = _plan(file.plan)
    wrong = plan_flaws(plan)
    if wrong:
        more = f"; and {len(wrong) - _MOST_NAMED} more" if len(wrong) > _MOST_NAMED else ""
        raise PlanRefusedError(f"the checker refuses the plan: {'; '.join(wrong[:_MOST_NAMED])}{more}")
    return plan, actual


@reader
def _read(value: bytes) -> PlanFile:
    refuse_too_large(value, MAX_BYTES)
    values = value.count(b",")
    if values > _MOST_VALUES:
        raise WireError("too_large", f"{values} values, allowed: {_MOST_VALUES}")
    read_object(value)
    return validate(PlanFile, value)


def _hash_of(record: PlanRecord) -> str:
    encoded = json.dumps(record.model_dump(mode="json", by_alias=True), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(encoded.encode()).hexdigest()


def plan_record(plan: Plan) -> PlanRecord:
    """*plan* as it is written.  PlanRefusedError where no file may hold it."""
    try:
        return _plan_record(plan)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise PlanRefusedError(
            f"the plan exceeds what its file may contain: {where}: {first['msg']}, found {first['input']!r:.40}; a"
            " usage or a limit of a broker may be absurd (`trimtab doctor` names it), or the plan too large: plan for"
            " fewer brokers"
        ) from error


def _plan_record(plan: Plan) -> PlanRecord:
    problem = plan.problem
    return PlanRecord(
        cluster=plan.cluster,
        interval=plan.interval,
        kind=plan.kind,
        asked=plan.asked,
        period_ms=plan.period_ms,
        wave_seconds=plan.pace.wave_seconds,
        connections_per_second=plan.pace.connections_per_second,
        burst_seconds=plan.pace.burst_seconds,
        ceiling=plan.ceiling,
        own=plan.own,
        fits=tuple(FitRecord(resource=name, factors=fit.factors, constant=fit.constant) for name, fit in plan.fits),
        resources=problem.resources,
        brokers=plan.brokers,
        capacity=_rows(problem.capacity),
        fixed=_rows(problem.fixed),
        bundles=plan.bundles,
        size=_rows(problem.size),
        owner=tuple(problem.owner.tolist()),
        connections=tuple(problem.connections.tolist()),
        msg_rate=tuple(plan.msg_rate.tolist()),
        steps=tuple(map(_step_record, plan.steps)),
    )


def _rows(values: Floats) -> tuple[tuple[float, ...], ...]:
    return tuple(map(tuple, values.tolist()))


def _step_record(step: PlanStep) -> StepRecord:
    return StepRecord(
        task=step.task,
        brokers=step.brokers,
        waves=tuple(tuple((move.bundle, move.source, move.destination) for move in wave) for wave in step.waves),
        certificate=_certificate_record(step.certificate),
        stuck=step.stuck,
    )


def _certificate_record(certificate: Certificate) -> CertificateRecord:
    return CertificateRecord(
        max_moves=certificate.max_moves,
        before=certificate.before,
        reached=certificate.reached,
        bound=certificate.bound,
        kind=certificate.kind,
        resource=certificate.resource,
        size=certificate.size,
    )


def _plan(record: PlanRecord) -> Plan:
    n, m, width = len(record.brokers), len(record.bundles), len(record.resources)
    connections, msg_rate = _column(record.connections), _column(record.msg_rate)
    if connections.shape != msg_rate.shape:
        raise PlanRefusedError("the plan has connections and message rates of unequal length")
    owner: Ints = np.array(record.owner, np.int64)
    return Plan(
        cluster=record.cluster,
        interval=record.interval,
        kind=record.kind,
        asked=record.asked,
        period_ms=record.period_ms,
        pace=WavePace(
            wave_seconds=record.wave_seconds,
            connections_per_second=record.connections_per_second,
            burst_seconds=record.burst_seconds,
        ),
        ceiling=record.ceiling,
        own=record.own,
        fits=tuple((each.resource, Fit(each.factors, each.constant, 0.0)) for each in record.fits),
        brokers=record.brokers,
        bundles=record.bundles,
        problem=BalanceProblem(
            resources=record.resources,
            capacity=_table("capacity", record.capacity, n, width),
            fixed=_table("fixed", record.fixed, n, width),
            size=_table("size", record.size, m, width),
            owner=owner,
            connections=connections,
            disturbance=disturbance(connections, msg_rate),
        ),
        msg_rate=msg_rate,
        steps=tuple(map(_step, record.steps)),
    )


def _column(values: tuple[float, ...]) -> Floats:
    return np.array(values, np.float64)


def _table(name: str, values: tuple[tuple[float, ...], ...], rows: int, width: int) -> Floats:
    if len(values) != rows or any(len(row) != width for row in values):
        raise PlanRefusedError(f"the plan's {name} is not {rows} rows of {width} numbers")
    return np.array(values, np.float64).reshape(rows, width)


def _step(record: StepRecord) -> PlanStep:
    return PlanStep(
        task=record.task,
        brokers=record.brokers,
        waves=tuple(tuple(PlannedMove(*move) for move in wave) for wave in record.waves),
        certificate=Certificate(**dict(record.certificate)),
        stuck=record.stuck,
    )
