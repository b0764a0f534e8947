"""Which records are taken in, and why others are refused, stays what it is, whatever stands in any one of their fields.

Who writes records finds with a new release what the one before said.  The numbers are tests.small_worlds.digits of all
outcomes: for each field, what each of many values leads to.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from controller.model.errors import PlanRefusedError, TrimtabError, WireError
from controller.planning.plans.plan_steps import PlanLimits, named_step
from controller.planning.problem import PlannedMove
from controller.wire import commands, controls, plan, results
from controller.wire.metrics import decode_metric
from controller.wire.rows import Located, rows_from_records
from tests import records
from tests.balance_problems import problem
from tests.journal_entries import SPLIT, UNLOAD
from tests.plans import plan_of
from tests.pure_controller import DETAIL, checksum
from tests.small_worlds import digits, numbers_in

VALUES: Final[tuple[Any, ...]] = (
    None, True, "", "a" * 1025, "tenant/ns/0x00000000_0x80000000", 0, -1, 0.5, 10_001, 1e12 + 1,
    (1 << 63) - 1, 1 << 63, [], {}, ["x", "x"],
)  # fmt: skip
#: Of what is long.
FEW: Final[tuple[Any, ...]] = (None, "x", -1, 1 << 63, {})


def spoilt(record: Any, depth: int = 3, values: Sequence[Any] = VALUES) -> Iterator[Any]:
    """*record* with one field left out, or with another value, at a time; of a list, its first and its last."""
    if not depth or not isinstance(record, dict | list) or not record:
        return
    keys = list(record) if isinstance(record, dict) else sorted({0, len(record) - 1})
    for key in keys:
        items = dict(record) if isinstance(record, dict) else dict(enumerate(record))

        def with_value(value: Any, items: dict[Any, Any] = items, key: Any = key) -> Any:
            changed = items | {key: value}
            return changed if isinstance(record, dict) else list(changed.values())

        left = {name: value for name, value in items.items() if name != key}
        yield left if isinstance(record, dict) else list(left.values())
        yield from map(with_value, values)
        yield from map(with_value, spoilt(record[key], depth - 1, values))


def outcomes(record: Any, read: Callable[[bytes], Any]) -> int:
    values = FEW if len(json.dumps(record)) > 600 else VALUES
    return digits([outcome(json.dumps(each).encode(), read) for each in (record, *spoilt(record, values=values))])


def outcome(value: bytes, read: Callable[[bytes], Any]) -> Any:
    try:
        return read(value)
    except WireError as error:
        return error.reason, numbers_in(error.detail)
    except TrimtabError as error:
        return type(error).__name__


def metric(value: bytes) -> Any:
    record = decode_metric(value, cluster=records.CLUSTER, period_ms=records.PERIOD, append_time_ms=records.T)
    if record is None:
        return None
    return checksum(rows_from_records([Located(source=0, partition=0, offset=1, record=record)], DETAIL))


def command(value: bytes) -> Any:
    return commands.parse_event(value).model_dump_json()


def few_bundles() -> Any:
    """A report of a real broker, with one bundle."""
    report = records.load_report()
    return report | {"lastStats": dict([*report["lastStats"].items()][:1])}


def result(value: bytes) -> Any:
    return results.decode_result(value, cluster=records.CLUSTER, period_ms=records.PERIOD)


def plan_file(value: bytes) -> Any:
    """What *value*, the contents of a plan, is read as; its hash is the right one."""
    file = json.dumps({"sha256": "", "plan": json.loads(value)}).encode()
    try:
        plan.parse_plan(file)
    except PlanRefusedError as error:
        found = re.search(r"its hash is (\w+)", str(error))
        if found is None:
            return str(error).partition(":")[0]
        file = file.replace(b'"sha256": ""', f'"sha256": "{found[1]}"'.encode(), 1)
        return plan.hash_of(plan.parse_plan(file)[0])
    return ""


def a_plan() -> Any:
    one = problem([[10.0, 10.0]] * 2, [(0, [3.0, 1.0]), (0, [2.0, 1.0]), (1, [1.0, 1.0])])
    step = named_step(one, [PlannedMove(0, 0, 1)], PlanLimits())
    return json.loads(plan.encode_plan(plan_of(one, [step], "balance")))["plan"]


CHOICE: Final = {"value": "paused", "reason": "upgrade", "by": "ada", "atMs": records.T}
CONTROLS: Final = {
    "v": 1, "type": "controls", "mode": {**CHOICE, "value": "active"}, "pause": CHOICE, "resumedMs": 7,
    "drained": [{"broker": "broker-1:8080", "by": "ada", "atMs": 5}],
    "orders": {
        "plan": "0" * 64, "step": 1, "wave": 1, "waves": 2, "checkedAt": records.T, "expiresAtMs": records.T,
        "moves": [{"bundle": records.LEFT, "source": "broker-1:8080", "destination": "broker-2:8080"}],
        "holder": "h", "by": "ada", "heldBack": True,
    },
}  # fmt: skip

#: What is written -> how it is read.
WRITTEN: Final[dict[str, tuple[Any, Callable[[bytes], Any]]]] = {
    **{kind: (record, metric) for kind, record in records.METRICS.items() if kind != "broker_load"},
    "bare report": (few_bundles(), metric),
    "quota": (
        records.without(records.bundle_data(), "bundleData")
        | {"resourceQuota": {**records.RATES, "bandwidthIn": 1.0, "bandwidthOut": 2.0, "memory": 3.0, "dynamic": True}},
        metric,
    ),
    "result": (records.result(), result),
    "unload": (json.loads(commands.command_event(UNLOAD, 3, records.T)), command),
    "split": (json.loads(commands.command_event(SPLIT, 3, records.T)), command),
    "epoch": (json.loads(commands.epoch_event(records.CLUSTER, 3, records.T)), command),
    "controls": (CONTROLS, controls.parse_controls),
    "plan": (a_plan(), plan_file),
}


OUTCOMES: Final = {
    "broker_sweep": 18_268_954,
    "topic_stats": 58_848_336,
    "namespace_state": 99_380_688,
    "broker_state": 42_779_099,
    "bundle_data": 83_420_268,
    "tick": 64_583_304,
    "bare report": 21_858_747,
    "quota": 91_692_283,
    "result": 66_241_650,
    "unload": 29_360_849,
    "split": 65_564_960,
    "epoch": 12_982_159,
    "controls": 55_057_868,
    "plan": 81_593_082,
}


def test_the_same_fields_are_taken_in_and_others_are_refused_for_the_same_reason() -> None:
    assert {kind: outcomes(*written) for kind, written in WRITTEN.items()} == OUTCOMES
