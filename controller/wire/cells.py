"""The records of the topic ``election``: one history of small values, the cells, that many processes write.

Every process applies the same operations in the order of the topic, so all agree on what each of them changed.
"""

import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import Field

from controller.model.errors import StateError, WireError
from controller.wire.base import VERSION, Count, Items, Millis, NameOrEmpty, Record, model_for, read_object, validate

_LONGEST_KEY: Final = 300
_ID: Final = "^[0-9a-f]{32}$"
_MAX_ITEMS: Final = 1_000

Key: TypeAlias = Annotated[str, Field(min_length=1, max_length=_LONGEST_KEY)]
Id: TypeAlias = Annotated[str, Field(pattern=_ID)]


class _InStore(Record):
    v: Literal[1] = VERSION
    """The schema's version."""
    store: Id
    """The store that the record belongs to; a topic that was deleted and created again holds another one."""
    since: Count = 0
    """Where its writer would begin to read: the position of a mark or of the beginning.  A hint."""


class StoreBegin(_InStore):
    """The first record of the topic: an empty store.  Later ones have no effect."""

    type: Literal["begin"] = "begin"
    cluster: NameOrEmpty


class CellCondition(Record):
    """What has to hold for an operation to change anything."""

    key: Key
    version: Annotated[int, Field(ge=-2, lt=1 << 63)]
    """The cell's version; -1: there is no such cell; -2: there is one, of any version."""


class CellChange(Record):
    """A cell's new value."""

    key: Key
    value: str | None
    """In base64; None: the cell ends, and with it those that it owns."""
    owner: Annotated[str, Field(max_length=_LONGEST_KEY)] = ""
    """The cell with which this one ends; "": none."""


class CellOperation(_InStore):
    """All changes, if all conditions hold; else nothing."""

    type: Literal["operation"] = "operation"
    id: Id
    conditions: Annotated[Items[CellCondition], Field(max_length=_MAX_ITEMS)] = ()
    changes: Annotated[Items[CellChange], Field(max_length=_MAX_ITEMS)] = ()


class StoreMark(_InStore):
    """The place of which somebody is about to write a snapshot."""

    type: Literal["mark"] = "mark"
    id: Id


class StoredCell(Record):
    """A cell of a snapshot."""

    key: Key
    value: str
    version: Count
    created: Count
    changed_ms: Millis
    owner: str = ""


class SnapshotPart(_InStore):
    """A part of all cells as they were at a mark.  A snapshot counts once all of its parts are there."""

    type: Literal["part"] = "part"
    cluster: NameOrEmpty
    mark: Id
    part: Count
    parts: Annotated[int, Field(ge=1, le=_MAX_ITEMS)]
    ordinal: Count
    """How many operations came before the mark, from the beginning of the store."""
    digest: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    """Of these operations, one after the other."""
    cells: Items[StoredCell] = ()


StoreRecord: TypeAlias = StoreBegin | CellOperation | StoreMark | SnapshotPart
MODELS: Final[dict[str, type[StoreRecord]]] = {
    "begin": StoreBegin,
    "operation": CellOperation,
    "mark": StoreMark,
    "part": SnapshotPart,
}
_LATER: Final = frozenset({"unknown_version", "unknown_type"})


def parse_store_record(value: bytes, place: str, store: str = "") -> StoreRecord:
    """The record *value*, which lies at *place*.  *store*: the store that is read; "": not known yet.

    WireError: it is none, so nobody applies it.
    StateError: a later release wrote it into this store, so this one cannot know what it changed.
    """
    fields = read_object(value)
    try:
        return validate(model_for(fields, MODELS), value, fields)
    except WireError as error:
        if error.reason in _LATER and _names(fields, store):
            raise StateError(
                f"{place}: a later release of trimtab wrote this record ({error}): update this process"
            ) from error
        raise


def _names(fields: Mapping[str, Any], store: str) -> bool:
    """Whether *fields* are of the store *store*; "": of any.  Every release names it, as this one does."""
    named = fields.get("store")
    return named == store if store else isinstance(named, str) and re.fullmatch(_ID, named) is not None


def text_of(value: bytes) -> str:
    """*value* as it lies in a record."""
    return b64encode(value).decode()


def bytes_of(text: str) -> bytes:
    """What *text* of a record stands for.  ValueError."""
    return b64decode(text, validate=True)
