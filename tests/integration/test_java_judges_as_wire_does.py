"""Each rule of each record that Java reads is written once, in controller.wire: Java accepts and refuses the same."""

from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel
from pyspark.sql import SparkSession

from controller.aggregate.columns.rows import METRICS
from controller.model.errors import WireError
from controller.wire.metrics import BrokerLoadRecord, LocalBrokerDataRecord, TickRecord, TopicStats, decode_metric
from controller.wire.sweep import BrokerSweep
from streaming.decode import DecodeOptions, suspects
from tests.bounds import spoilt
from tests.folds import NO_DETAIL
from tests.records import CLUSTER, PERIOD, T, as_bytes, broker_load, broker_sweep, load_report, tick, topic_stats

pytestmark = pytest.mark.integration

_MAX_BYTES = 1 << 20
_OPTIONS = DecodeOptions(cluster=CLUSTER, period_ms=PERIOD, max_record_bytes=_MAX_BYTES, shards=2, detail=NO_DETAIL)
_SCHEMA = "source int, partition int, offset long, file string, append_time long, value binary"
#: What Java reads field by field, and a record with all of its fields.
MODELS: dict[str, tuple[type[BaseModel], dict[str, Any]]] = {
    "a sweep": (BrokerSweep, broker_sweep()),
    "a topic": (TopicStats, topic_stats()),
    "a load report": (BrokerLoadRecord, broker_load(broker="broker-1:8080")),
    "a bare load report": (LocalBrokerDataRecord, load_report()),
    "a tick": (TickRecord, tick()),
}


@dataclass(frozen=True)
class Judged:
    what: str
    value: bytes
    #: Refused by the query, and handed to controller.wire by it.
    refused: bool
    suspect: bool


@pytest.fixture(scope="module")
def judged(spark: SparkSession) -> dict[str, list[Judged]]:
    cases = [
        (name, one.what, as_bytes(one.record)) for name, (model, good) in MODELS.items() for one in spoilt(model, good)
    ]
    data = [(METRICS, 0, offset, "", T, value) for offset, (_, _, value) in enumerate(cases)]
    found = suspects(spark.createDataFrame(data, _SCHEMA).coalesce(1), _OPTIONS).select("offset", "refused").toPandas()
    refused = dict(zip(found["offset"].tolist(), found["refused"].tolist(), strict=True))
    by_name: dict[str, list[Judged]] = {name: [] for name in MODELS}
    for offset, (name, what, value) in enumerate(cases):
        by_name[name].append(Judged(what, value, refused.get(offset, False), offset in refused))
    return by_name


def wire_refuses(value: bytes) -> bool:
    try:
        decode_metric(value, cluster=CLUSTER, period_ms=PERIOD, append_time_ms=T, max_bytes=_MAX_BYTES)
    except WireError:
        return True
    return False


@pytest.mark.parametrize("name", MODELS)
def test_java_accepts_and_refuses_what_controller_wire_does(judged: dict[str, list[Judged]], name: str) -> None:
    """Of a tick Java reads only some fields; it hands every tick on, and controller.wire refuses it then."""
    others = []
    for one in judged[name]:
        wire = wire_refuses(one.value)
        if wire != one.refused and not (wire and one.suspect):
            others.append(f"{one.what}: controller.wire {'refuses' if wire else 'accepts'} it, Java does not")
    assert others == []


@pytest.mark.parametrize("name", MODELS)
def test_the_cases_are_many_and_of_both_kinds(judged: dict[str, list[Judged]], name: str) -> None:
    refused = sum(wire_refuses(one.value) for one in judged[name])
    assert 10 < refused < len(judged[name]) - 10
