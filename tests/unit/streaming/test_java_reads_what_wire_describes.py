"""The query's Java and its columns against controller.wire: what one side adds, the other has to know.

Names alone are compared here; tests/integration/test_rows_in_spark_and_python.py compares what both make of records.
"""

import re
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import BaseModel
from pydantic.alias_generators import to_snake

from controller.aggregate.columns import rows
from controller.model import topic_kinds
from controller.model.load import RESOURCE_FIELDS, RESOURCE_WORDS, RESOURCES
from controller.model.names import LONGEST_NAME
from controller.wire import base, metrics
from controller.wire.metrics import BrokerLoadRecord, LocalBrokerDataRecord, TickRecord, TopicStats
from controller.wire.packed_rows import rows_from_columns
from controller.wire.sweep import BrokerSweep
from streaming import jvm
from streaming.schemas import ROW

#: What Java reads field by field; controller.wire alone reads the other types.
MODELS: list[type[BaseModel]] = [BrokerSweep, TopicStats, BrokerLoadRecord, LocalBrokerDataRecord, TickRecord]
JAVA = "\n".join(path.read_text(encoding="utf-8") for path in sorted(Path(jvm.__file__).parent.glob("*.java")))
#: Columns of the rows beside those that Java makes.
PLACED = {"source", "partition", "offset", "file", "body"}


def names(annotation: Any) -> set[str]:
    """The names of all fields in a record, as they stand in JSON."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        fields = annotation.model_fields.values()
        return {str(field.alias) for field in fields}.union(*(names(field.annotation) for field in fields))
    return set().union(*map(names, get_args(annotation)))


@pytest.mark.parametrize("model", MODELS)
def test_java_knows_every_field_of_a_record_that_it_reads(model: type[BaseModel]) -> None:
    assert {name for name in names(model) if f'"{name}"' not in JAVA} == set()


#: What both sides have a number of: where Java has it, and the number in Python.
NUMBERS: dict[str, float] = {
    "RecordRows.TICK": rows.TICK, "RecordRows.SWEEP": rows.SWEEP, "RecordRows.BUNDLE": rows.BUNDLE,
    "RecordRows.TOPIC": rows.TOPIC, "RecordRows.REPORT": rows.REPORT,
    "RecordRows.REPORT_BUNDLE": rows.REPORT_BUNDLE, "RecordRows.FACT": rows.FACT,
    "RecordRows.REFUSED": rows.REFUSED, "RecordRows.RESULTS": rows.RESULTS,
    "RecordRows.MAX_QUANTITY": base.MAX_QUANTITY, "RecordRows.MAX_PARTITIONS": metrics.MAX_PARTITIONS,
    "RecordRows.MAX_BROKERS": metrics.MAX_BROKERS, "Bundle.LOAD": len(rows.STATS) + 1, "Bundle.TOPICS": rows.TOPICS,
    "Bundle.KINDS": len(rows.STATS), "Bundle.PERSISTENT": topic_kinds.PERSISTENT,
    "Bundle.NON_PERSISTENT": topic_kinds.NON_PERSISTENT, "Bundle.UNLISTED": topic_kinds.UNLISTED,
    "Bundle.SEGMENTS": topic_kinds.SEGMENTS,
    "Bundle.MAX_RATE": base.MAX_RATE, "Bundle.MAX_COUNT": base.MAX_COUNT, "Fields.DIGITS": base.MOST_DIGITS,
    "Names.LONGEST": LONGEST_NAME,
}  # fmt: skip


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_that_both_sides_have_is_the_same_in_java(name: str) -> None:
    file, constant = name.split(".")
    java = (jvm.SOURCES / f"{file}.java").read_text(encoding="utf-8")
    (number,) = re.findall(rf"static final \w+ (?:.*, )?{constant} = ([-0-9.e]+)L?[,;]", java)
    assert float(number) == NUMBERS[name]


def test_the_names_of_a_brokers_resources_stand_in_the_same_order_everywhere() -> None:
    java = (jvm.SOURCES / "RecordRows.java").read_text(encoding="utf-8")
    (resources,) = re.findall(r"String\[\] RESOURCES = \{([^}]*)\};", java)
    assert tuple(re.findall(r'"(\w+)"', resources)) == RESOURCES
    assert tuple(map(to_snake, RESOURCES)) == RESOURCE_FIELDS
    assert tuple(name.replace("_", " ") for name in RESOURCE_FIELDS) == RESOURCE_WORDS


def test_the_host_in_an_address_is_found_by_the_same_expression() -> None:
    assert f'"{metrics.ADDRESS}"'.replace("\\", "\\\\") in JAVA


class Columns(dict[str, NDArray[Any]]):
    """Columns without rows; keeps the names of those that were read."""

    def __init__(self) -> None:
        super().__init__()
        self.read: set[str] = set()

    def __missing__(self, name: str) -> NDArray[Any]:
        self.read.add(name)
        return np.zeros(0, object)


def test_the_fold_reads_every_column_of_a_row_but_the_shard_and_no_other() -> None:
    columns = Columns()
    found = rows_from_columns(columns, cluster="lab", period_ms=60_000, files=True)
    assert len(found) == 0
    assert columns.read <= {*ROW.names, *PLACED}
    # Without rows there is nothing to look for in the last two.
    assert {*ROW.names, *PLACED} - columns.read == {"shard", "numbers", "body"}
