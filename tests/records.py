"""Small records as they would lie in a topic: plain dictionaries to be spoilt at will, and their bytes."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

from controller.model.errors import WireError
from controller.wire.dead_letter import DeadLetter, Source, dead_letter

SAMPLES = Path(__file__).parent / "samples"
CLUSTER = "demo"
PERIOD = 60_000
#: Some interval.
T = 1_735_689_600_000
LEFT, RIGHT = "tenant/ns/0x00000000_0x80000000", "tenant/ns/0x80000000_0xffffffff"

SIX: dict[str, Any] = {
    "msgRateIn": 10.5,
    "msgRateOut": 21.0,
    "msgThroughputIn": 1050.25,
    "msgThroughputOut": 2100.5,
    "producerCount": 1,
    "consumerCount": 2,
}
RATES = {name: SIX[name] for name in ("msgRateIn", "msgRateOut", "msgThroughputIn", "msgThroughputOut")}


def envelope(kind: str) -> dict[str, Any]:
    return {"v": 1, "type": kind, "cluster": CLUSTER}


def broker_sweep(broker: str = "broker-1:8080", **changed: Any) -> dict[str, Any]:
    resource = {"usage": 25.0, "limit": 100.0}
    return {
        **envelope("broker_sweep"),
        "broker": broker,
        "interval": T,
        "sweepId": f"{broker}@{T}",
        "chunk": 0,
        "chunks": 1,
        "lastUpdate": T - 500,
        **dict.fromkeys(("cpu", "memory", "directMemory", "bandwidthIn", "bandwidthOut"), resource),
        **RATES,
        "numTopics": 2,
        "numBundles": 1,
        "numProducers": 1,
        "numConsumers": 2,
        "bundleStats": [bundle_stats()],
        **changed,
    }


def bundle_stats(bundle: str = LEFT, topics: int = 2, **changed: Any) -> dict[str, Any]:
    return {
        "bundle": bundle,
        "totals": {**RATES, "producerCount": 1, "consumerCount": 2, "topics": topics},
        "topic": [f"persistent://tenant/ns/topic-{i}" for i in range(topics)],
        **{name: [value] * topics for name, value in SIX.items()},
        **changed,
    }


def topic_stats(**changed: Any) -> dict[str, Any]:
    topic = "persistent://tenant/ns/topic-0"
    return {**envelope("topic_stats"), "broker": "broker-1:8080", "bundle": LEFT, "topic": topic, **SIX, **changed}


def load_report(n: int = 1, **changed: Any) -> dict[str, Any]:
    """What broker *n* of a real cluster reported."""
    report: dict[str, Any] = json.loads((SAMPLES / f"load_report_{n}.json").read_text())
    return {**report, **changed}


def broker_load(**changed: Any) -> dict[str, Any]:
    return {**envelope("broker_load"), "report": load_report(), **changed}


def namespace_state(**changed: Any) -> dict[str, Any]:
    boundaries = ["0x00000000", "0x80000000", "0xffffffff"]
    return {
        **envelope("namespace_state"), "namespace": "tenant/ns", "version": 3, "boundaries": boundaries, **changed,
    }  # fmt: skip


def broker_state(**changed: Any) -> dict[str, Any]:
    return {
        **envelope("broker_state"), "broker": "broker-1:8080", "version": 0, "failureDomain": "rack-1",
        "capacity": {"bandwidthOut": 1e6}, **changed,
    }  # fmt: skip


def bundle_data(**changed: Any) -> dict[str, Any]:
    stored = json.loads((SAMPLES / "bundle_data.json").read_text())
    return {**envelope("bundle_data"), "bundle": LEFT, "bundleData": stored, **changed}


def tick(interval: int = T, **changed: Any) -> dict[str, Any]:
    roster = [{"broker": "broker-1:8080", "sweepId": f"broker-1:8080@{interval}"}]
    return {
        **envelope("tick"), "interval": interval, "partitions": {"metrics": 1, "results": 1}, "roster": roster,
        **changed,
    }  # fmt: skip


def result(**changed: Any) -> dict[str, Any]:
    return {
        **envelope("result"), "id": "c-1", "status": "done", "detail": "", "ownerBefore": "broker-1:8080",
        "ownerAfter": "broker-2:8080", "startedAt": T + 5, "finishedAt": T + 9, "attempts": 1, **changed,
    }  # fmt: skip


#: One good record of every type of the metrics topic.
METRICS = {
    record["type"]: record
    for record in (
        broker_sweep(),
        topic_stats(),
        broker_load(),
        namespace_state(),
        broker_state(),
        bundle_data(),
        tick(),
    )
}


def as_bytes(record: Any) -> bytes:
    return json.dumps(record).encode()


def without(record: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key != name}


def dead_letter_of(value: bytes, error: WireError, source: Source) -> DeadLetter:
    """The dead letter for *value*, refused with *error*."""
    return dead_letter(error, source, head=value, size=len(value), digest=sha256(value).hexdigest())
