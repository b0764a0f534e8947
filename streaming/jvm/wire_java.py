"""``python -m streaming.jvm.wire_java``: write Wire.java, what the query's Java has in common with controller.wire."""

from collections.abc import Iterator, Sequence
from textwrap import fill
from typing import Any, Final, get_args, get_origin

from pydantic import BaseModel

from controller.aggregate.columns import rows
from controller.model import topic_kinds
from controller.model.load import RESOURCES
from controller.model.names import LONGEST_NAME
from controller.wire import base, metrics
from controller.wire.arrow_stream import COUNTS, RATES
from controller.wire.sweep import BrokerSweep
from streaming.jvm import SOURCES

FILE: Final = SOURCES / "Wire.java"
#: What Java reads field by field; of the other types it reads the field ``version`` alone.
_MODELS: Final = (
    BrokerSweep, metrics.TopicStats, metrics.BrokerLoadRecord, metrics.LocalBrokerDataRecord, metrics.TickRecord,
)  # fmt: skip
_INTS: Final = {
    "TICK": rows.TICK, "SWEEP": rows.SWEEP, "BUNDLE": rows.BUNDLE, "TOPIC": rows.TOPIC, "REPORT": rows.REPORT,
    "REPORT_BUNDLE": rows.REPORT_BUNDLE, "FACT": rows.FACT, "REFUSED": rows.REFUSED, "RESULTS": rows.RESULTS,
    "LOAD": len(rows.STATS) + 1, "TOPICS": rows.TOPICS, "KINDS": len(rows.STATS),
    "PERSISTENT": topic_kinds.PERSISTENT, "NON_PERSISTENT": topic_kinds.NON_PERSISTENT,
    "UNLISTED": topic_kinds.UNLISTED, "SEGMENTS": topic_kinds.SEGMENTS,
    "MAX_PARTITIONS": metrics.MAX_PARTITIONS, "MAX_BROKERS": metrics.MAX_BROKERS,
    "LONGEST_NAME": LONGEST_NAME, "MOST_DIGITS": base.MOST_DIGITS,
}  # fmt: skip
_LONGS: Final = {"MAX_COUNT": base.MAX_COUNT}
_DOUBLES: Final = {"MAX_RATE": base.MAX_RATE, "MAX_QUANTITY": base.MAX_QUANTITY}
_TEXTS: Final = {"ADDRESS": metrics.ADDRESS}
_INDENT: Final = " " * 8
_HEAD: Final = """\
package trimtab;

/** What records have in common with controller.wire; python -m streaming.jvm.wire_java writes this file. */
final class Wire {
"""


def wire_java() -> str:
    """The content of Wire.java."""
    plain, objects = _fields()
    lists = {"RATES": RATES, "COUNTS": COUNTS, "RESOURCES": RESOURCES, "PLAIN": plain, "OBJECTS": objects}
    lines = [
        *(f"int {name} = {number};" for name, number in _INTS.items()),
        *(f"long {name} = {number}L;" for name, number in _LONGS.items()),
        *(f"double {name} = {number!r};" for name, number in _DOUBLES.items()),
        *(f"String {name} = {_quoted(text)};" for name, text in _TEXTS.items()),
        *(f"String[] {name} = {{{_listed(names)}}};" for name, names in lists.items()),
    ]
    return _HEAD + "".join(f"    static final {line}\n" for line in lines) + "\n    private Wire() {\n    }\n}\n"


def _fields() -> tuple[Sequence[str], Sequence[str]]:
    """The names of the fields that Java reads: those with a plain value, and those with an object."""
    plain, objects = {"version"}, set[str]()
    for model in _MODELS:
        for name, has_object in _fields_of(model):
            (objects if has_object else plain).add(name)
    return sorted(plain), sorted(objects)


def _fields_of(model: type[BaseModel]) -> Iterator[tuple[str, bool]]:
    """Name on the wire, and whether its value is an object; without lists and mappings of objects, which Java sums."""
    for field in model.model_fields.values():
        inner = _model_in(field.annotation)
        if inner is None:
            yield str(field.alias), False
        elif not _is_many(field.annotation):
            yield str(field.alias), True
            yield from _fields_of(inner)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for each in get_args(annotation) if (model := _model_in(each)) is not None), None)


def _is_many(annotation: Any) -> bool:
    return get_origin(annotation) in (tuple, dict) or any(map(_is_many, get_args(annotation)))


def _listed(names: Sequence[str]) -> str:
    listed = ", ".join(map(_quoted, names))
    return (
        listed
        if len(listed) < 80
        else "\n" + fill(listed, 116, initial_indent=_INDENT, subsequent_indent=_INDENT) + "\n    "
    )


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\") + '"'


if __name__ == "__main__":
    FILE.write_text(wire_java(), encoding="utf-8")
