"""The shapes of rows, states and snapshots in Spark."""

from pyspark.sql.types import (
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)


def _struct(**fields: object) -> StructType:
    return StructType([StructField(name, kind) for name, kind in fields.items()])  # type: ignore[arg-type]


_INT, _LONG, _STRING, _BYTES = IntegerType(), LongType(), StringType(), BinaryType()

#: A row for one shard, without where its record lies.  Several bundles can share it: ``bundles`` are their names, one a
#: line, and each binary column holds numbers of eight bytes, little-endian, of one bundle after another.
ROW = _struct(
    shard=_INT,
    #: The same as in controller.aggregate.columns.rows.Rows, from here
    kind=_INT,
    interval=_LONG,
    broker=_STRING,
    sweep=_STRING,
    chunk=_LONG,
    chunks=_LONG,
    last_update=_LONG,
    #: to here.
    bundles=_STRING,
    #: Whole numbers, STATS a bundle and its kinds of topics (controller.model.topic_kinds); null for kinds that have
    #: none.
    stats=_BYTES,
    #: TOPIC alone: topics of many records share a row.  ``stats`` has as many a topic, ``broker`` is many names, one a
    #: line, too, and here six whole numbers a topic say its record's offset, the lines of its broker and its bundle,
    #: and as in controller.aggregate.columns.rows.Rows.topic its hash, its place on the ring, and its segment's code.
    topics=_BYTES,
    #: NUMBERS of them; SWEEP and REPORT.
    numbers=_BYTES,
    #: Null where no bundle of the row has topics of detail: how many each has, and of each its place on the ring
    #: (whole numbers), four rates, and its code of controller.model.segment_code (whole numbers).
    detail_size=_BYTES,
    detail_position=_BYTES,
    detail_load=_BYTES,
    detail_segment=_BYTES,
)
#: A record as streaming.sources gives it.
RECORDS = _struct(source=_INT, partition=_INT, offset=_LONG, file=_STRING, append_time=_LONG, value=_BYTES)
RECORD = tuple(RECORDS.names)
#: A column that a source may have beside these: why the row stands for what was not unpacked, null for a record.
REFUSAL = "refusal"
#: The output of streaming.jvm for records: a ROW and the position of its record.  ``body``: the record, of a fact or
#: tick.
PLACED_ROW = StructType([*_struct(source=_INT, partition=_INT, offset=_LONG, file=_STRING, body=_STRING), *ROW])

#: One shard's state in the state store.
SHARD_STATE = _struct(state=_BYTES)
#: What a shard emits: a snapshot when an interval closes, or where refused records lie (controller.aggregate.places).
SHARD_OUTPUT = _struct(
    interval=_LONG,
    shard=_INT,
    shards=_INT,
    snapshot=_BYTES,
    source=_INT,
    partition=_INT,
    file=_STRING,
    first=_LONG,
    last=_LONG,
)
