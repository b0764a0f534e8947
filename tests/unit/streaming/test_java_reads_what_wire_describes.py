"""The query's Java and its columns against controller.wire: what one side adds, the other has to know.

Names alone are compared here; tests/integration/test_rows_in_spark_and_python.py compares what both make of records.
"""

from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import BaseModel
from pydantic.alias_generators import to_snake

from controller.model.load import RESOURCE_FIELDS, RESOURCE_WORDS, RESOURCES
from controller.wire.metrics import BrokerLoadRecord, LocalBrokerDataRecord, TickRecord, TopicStats
from controller.wire.packed_rows import rows_from_columns
from controller.wire.sweep import BrokerSweep
from streaming import jvm
from streaming.jvm.wire_java import FILE, wire_java
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


def test_java_has_the_names_and_numbers_of_the_models() -> None:
    assert FILE.read_text(encoding="utf-8") == wire_java(), "python -m streaming.jvm.wire_java"


@pytest.mark.parametrize("model", MODELS)
def test_java_knows_every_field_of_a_record_that_it_reads(model: type[BaseModel]) -> None:
    assert {name for name in names(model) if f'"{name}"' not in JAVA} == set()


def test_the_names_of_a_brokers_resources_stand_in_the_same_order_everywhere() -> None:
    assert tuple(map(to_snake, RESOURCES)) == RESOURCE_FIELDS
    assert tuple(name.replace("_", " ") for name in RESOURCE_FIELDS) == RESOURCE_WORDS


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
