"""The query's schema against controller.wire: what it reads has the same name and type there.

Types are compared in Spark's words; no session is started.
"""

from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest
from pydantic import BaseModel
from pydantic.alias_generators import to_camel
from pyspark.sql.types import ArrayType, DataType, DoubleType, LongType, MapType, StringType, StructField, StructType

from controller.wire import results
from controller.wire.metrics import BrokerLoad, LocalBrokerData, Tick, TopicStats
from controller.wire.sweep import BrokerSweep, BundleStats
from streaming.schemas import COUNTS, RATES, RECORD, RESOURCES

#: What the query reads field by field, and a LocalBrokerData as brokers write it, without an envelope.
MODELS: dict[str, type[BaseModel]] = {
    "broker_sweep": BrokerSweep,
    "topic_stats": TopicStats,
    "broker_load": BrokerLoad,
    "tick": Tick,
    "bare LocalBrokerData": LocalBrokerData,
}
#: The parser's own column, and a field by which controller.wire knows a bare report before any model is chosen.
NOT_OF_A_MODEL = {"_corrupt_record", "loadReportType"}
#: Fields that reach the fold in the record's text: controller.wire reads ticks there.
READ_FROM_TEXT = {"tick": {"roster"}}

_SCALARS: Mapping[type, DataType] = {int: LongType(), float: DoubleType(), str: StringType()}


def spark_type(annotation: Any) -> DataType:
    """What Spark calls the JSON that a field of this *annotation* takes."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return spark_type(arguments[0])
    if origin is Literal:
        return _SCALARS[type(arguments[0])]
    if origin in (Union, UnionType):
        (some,) = (argument for argument in arguments if argument is not NoneType)
        return spark_type(some)
    if origin is tuple:
        return ArrayType(spark_type(arguments[0]))
    if origin is dict:
        return MapType(spark_type(arguments[0]), spark_type(arguments[1]))
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return struct(annotation)
    return _SCALARS[annotation]


def struct(model: type[BaseModel]) -> StructType:
    return StructType(
        [StructField(f.alias or to_camel(name), spark_type(f.annotation)) for name, f in model.model_fields.items()]
    )


def differences(query: DataType, wire: DataType, path: str) -> list[str]:
    """Where what the *query* reads is not what *wire* says; the query may read less."""
    match query, wire:
        case StructType(), StructType():
            known = {f.name: f.dataType for f in wire.fields}
            return [
                difference
                for f in query.fields
                if f.name not in NOT_OF_A_MODEL
                for difference in (
                    differences(f.dataType, known[f.name], f"{path}.{f.name}")
                    if f.name in known
                    else [f"{path}.{f.name}: unknown to controller.wire"]
                )
            ]
        case ArrayType(), ArrayType():
            return differences(query.elementType, wire.elementType, f"{path}[]")
        case MapType(), MapType():
            keys = differences(query.keyType, wire.keyType, f"{path} keys")
            return keys + differences(query.valueType, wire.valueType, f"{path} values")
    same = query == wire
    return [] if same else [f"{path}: {query.simpleString()} in the query, {wire.simpleString()} in controller.wire"]


def test_types_are_told_apart() -> None:
    good, bad = struct(TopicStats), StructType([StructField("msgRateIn", LongType()), StructField("x", LongType())])
    assert differences(good, good, "r") == []
    assert differences(bad, good, "r") == [
        "r.msgRateIn: bigint in the query, double in controller.wire",
        "r.x: unknown to controller.wire",
    ]
    listed = ArrayType(StructType([StructField("bundle", DoubleType())]))
    assert differences(listed, ArrayType(struct(BundleStats)), "r") == [
        "r[].bundle: double in the query, string in controller.wire"
    ]


@pytest.mark.parametrize("kind", MODELS)
def test_fields_of_a_record_have_the_same_type_in_the_query(kind: str) -> None:
    wire = struct(MODELS[kind])
    shared = {f.name for f in wire.fields} & {f.name for f in RECORD.fields}
    assert shared
    assert differences(StructType([f for f in RECORD.fields if f.name in shared]), wire, kind) == []


@pytest.mark.parametrize("kind", MODELS)
def test_the_query_reads_every_field_of_a_record(kind: str) -> None:
    named = {f.name for f in struct(MODELS[kind]).fields}
    assert named - {f.name for f in RECORD.fields} == READ_FROM_TEXT.get(kind, set())


@pytest.mark.parametrize(
    ("path", "model"), [("report", LocalBrokerData), ("bundleStats", BundleStats), ("bundleStats.totals", None)]
)
def test_the_query_reads_every_field_inside(path: str, model: type[BaseModel] | None) -> None:
    query: DataType = RECORD
    wire: DataType = StructType([*struct(BrokerSweep).fields, *struct(BrokerLoad).fields])
    for name in path.split("."):
        query, wire = inside(query, name), inside(wire, name)
    assert isinstance(query, StructType)
    assert isinstance(wire, StructType)
    assert model is None or wire == struct(model)
    assert set(wire.names) - set(query.names) == set()


def inside(kind: DataType, name: str) -> DataType:
    assert isinstance(kind, StructType)
    found = kind[name].dataType
    return found.elementType if isinstance(found, ArrayType) else found


def test_the_query_reads_nothing_that_no_record_has() -> None:
    models = [*MODELS.values(), *results.MODELS.values()]
    known = {f.name for model in models for f in struct(model).fields}
    assert {f.name for f in RECORD.fields} - NOT_OF_A_MODEL <= known


def test_names_that_the_query_spells_out_are_those_of_the_models() -> None:
    totals, own = struct(BundleStats)["totals"].dataType, struct(LocalBrokerData)
    assert isinstance(totals, StructType)
    assert set(RATES) <= set(totals.names)
    assert set(RESOURCES) <= set(own.names)
    assert {*RATES, *COUNTS} <= set(struct(TopicStats).names)
