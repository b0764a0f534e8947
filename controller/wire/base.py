"""The common parts of all records: envelope, number types, encoding, and errors for bad input.

Records are JSON objects with camelCase keys.  An unknown field is ignored, a missing one is not.
"""

import math
import re
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Annotated, Any, Final, Literal, ParamSpec, TypeAlias, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    PlainSerializer,
    ValidationError,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError, PydanticKnownError, from_json

from controller.model.errors import TrimtabError, WireError
from controller.model.names import FULL_LOWER, FULL_UPPER, LONGEST_NAME, NO_NAME_HAS, parse_bundle
from controller.wire.missing_fields import refuse_missing

#: Why a record is refused; the dead letter's ``reason``.
DeadLetterReason: TypeAlias = Literal[
    "not_json",
    "unknown_type",
    "unknown_version",
    "missing_field",
    "bad_value",
    "impossible_bundle",
    "misaligned_interval",
    "future_interval",
    "future_version",
    "too_large",
]
REASONS: Final[tuple[str, ...]] = get_args(DeadLetterReason)

#: The one schema version written and read.
VERSION: Final = 1
#: Maximum size of a record in bytes, unless the settings have another one.
MAX_RECORD_BYTES: Final = 8 * 1024 * 1024

#: Digits of a number at most, in a field of any name; streaming/jvm/Fields.java has the same.
MOST_DIGITS: Final = 1000
#: Characters of a text that people read at most, such as a result's detail or a dead letter's.
LONGEST_TEXT: Final = 4096
#: Bytes of a record whose missing fields are looked for before everything else.
_LARGE: Final = 1 << 16

#: As Python writes them.
_NOT_FINITE: Final = ("nan", "inf", "-inf")

K = TypeVar("K")
T = TypeVar("T")


#: Rust's expressions know no surrogates; the JSON parser refuses halves of pairs.
_NAME: Final = "[^" + NO_NAME_HAS.removesuffix(r"\ud800-\udfff") + "]"
#: Of a broker, a sweep, a namespace, a group, a command; streaming/jvm/Names.java has the same rule.
Name: TypeAlias = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME, pattern=f"^{_NAME}+$")]
#: A name, or none: empty.
NameOrEmpty: TypeAlias = Annotated[str, Field(max_length=LONGEST_NAME, pattern=f"^{_NAME}*$")]
#: The full name of a topic.  Pulsar allows nearly anything in it, and here it is only hashed.
Topic: TypeAlias = Annotated[str, Field(min_length=1)]


class Record(BaseModel):
    """Base of everything on the wire: frozen, strict about types, camelCase outside."""

    model_config = ConfigDict(
        frozen=True,
        extra="ignore",
        strict=True,
        alias_generator=to_camel,
        validate_by_name=True,
    )


class Envelope(Record):
    """The head of every record of trimtab's own topics; each kind adds its ``type``."""

    v: Literal[1] = VERSION
    """The schema's version."""
    cluster: NameOrEmpty
    """The Pulsar cluster's name."""


R = TypeVar("R", bound=BaseModel)


class FirstFlaw(FailFast):
    """FailFast that can stand in a union."""

    __hash__ = object.__hash__


#: A tuple that stops at its first bad item: a million bad numbers are one error, not a million.
Items: TypeAlias = Annotated[tuple[T, ...], FirstFlaw()]
#: The same of a mapping.
Entries: TypeAlias = Annotated[dict[K, T], FirstFlaw()]

#: Far above any cluster, and it keeps sums exact in fixed point.
MAX_RATE: Final = 1e12
#: msg/s or bytes/s.
Rate: TypeAlias = Annotated[float, Field(ge=0, le=MAX_RATE, allow_inf_nan=False)]
#: No broker has more of anything, in any unit.  Pulsar reckons with usage in single precision, which ends at 3e38.
MAX_QUANTITY: Final = 1e15


def _reported(value: Any) -> Any:
    """A number that JSON can hold, within MAX_QUANTITY, or the text that Jackson writes for one that is none."""
    if value == "NaN":
        return math.nan
    if isinstance(value, float) and not math.isfinite(value):
        raise PydanticKnownError("finite_number")
    if isinstance(value, int | float) and abs(value) > MAX_QUANTITY:
        raise PydanticKnownError("less_than_equal", {"le": MAX_QUANTITY})
    return value


#: A usage or a limit in whatever unit its resource has.
Quantity: TypeAlias = Annotated[float, Field(ge=0, le=MAX_QUANTITY, allow_inf_nan=False)]
#: The same, but Pulsar reports limits it does not know as 0 or -1.
Limit: TypeAlias = Annotated[float, Field(ge=-MAX_QUANTITY, le=MAX_QUANTITY, allow_inf_nan=False)]
#: A usage as a JVM writes it: negative where it cannot be measured, "NaN" as text.
ReportedQuantity: TypeAlias = Annotated[
    float,
    BeforeValidator(_reported),
    WithJsonSchema(
        {"anyOf": [{"type": "number", "minimum": -MAX_QUANTITY, "maximum": MAX_QUANTITY}, {"const": "NaN"}]}
    ),
]
#: A number of ours that may also be none: JSON has no word for NaN and the infinities, so they are text there.
Number: TypeAlias = Annotated[
    float,
    BeforeValidator(lambda value: float(value) if value in _NOT_FINITE else value),
    PlainSerializer(lambda value: value if math.isfinite(value) else str(value)),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"enum": list(_NOT_FINITE)}]}),
]
#: How many, or how many bytes.
Count: TypeAlias = Annotated[int, Field(ge=0, lt=1 << 63)]
#: Milliseconds since the epoch.
Millis: TypeAlias = Annotated[int, Field(ge=0, lt=1 << 63)]
#: No broker has more bundles, topics, producers or consumers, so sums of them stay within 64 bits.
MAX_COUNT: Final = 10**12
#: How many bundles, topics, producers or consumers.
Tally: TypeAlias = Annotated[int, Field(ge=0, le=MAX_COUNT)]

_UNPRINTABLE: Final = re.compile(f"[{NO_NAME_HAS}]")
_UNPRINTABLE_IN_JSON: Final = re.compile("[\x7f-\x9f\u2028\u2029]")


def printable(text: str) -> str:
    """*text* on one line and of bounded length: control characters become blanks, what is too long is cut off."""
    shortened = text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 3] + "..."
    return _UNPRINTABLE.sub(" ", shortened)


def harmless_json(text: str) -> str:
    """*text*, which is JSON, with an escape for each character that would steer a terminal, or break a line.

    Behind ASCII's control characters JSON allows them all, and only in strings: so it says the same.
    """
    return _UNPRINTABLE_IN_JSON.sub(lambda value: f"\\u{ord(value[0]):04x}", text)


#: Text for people only; no program interprets it.
AnyText: TypeAlias = Annotated[str, AfterValidator(printable)]


def _bundle(name: str) -> str:
    try:
        parse_bundle(name)
    except TrimtabError as error:
        raise PydanticCustomError("impossible_bundle", "{why}", {"why": str(error)}) from error
    return name


#: A full bundle name, ``tenant/namespace/0xLLLLLLLL_0xUUUUUUUU``.
BundleText: TypeAlias = Annotated[
    str,
    AfterValidator(_bundle),
    WithJsonSchema(
        {
            "type": "string",
            "maxLength": LONGEST_NAME,
            "pattern": "^{0}+(/{0}+){{1,2}}/0x[0-9a-f]{{8}}_0x[0-9a-f]{{8}}$".format(_NAME.replace("^", "^/")),
        }
    ),
]


_HEX: Final = re.compile("0x[0-9a-f]{8}")


def _boundary(text: object) -> object:
    return int(text, 16) if isinstance(text, str) and _HEX.fullmatch(text) else text


#: A place on the hash ring: "0x%08x" outside, a number inside.
Boundary: TypeAlias = Annotated[
    int,
    BeforeValidator(_boundary),
    Field(ge=FULL_LOWER, le=FULL_UPPER),
    PlainSerializer(lambda boundary: f"0x{boundary:08x}", return_type=str),
    WithJsonSchema({"type": "string", "pattern": f"^{_HEX.pattern}$"}),
]


P = ParamSpec("P")


def reader(read: Callable[P, T]) -> Callable[P, T]:
    """Mark *read*, which reads a record that may hold anything: whatever it raises becomes a WireError.

    The error's detail is made printable, and cut: it may quote the record.
    """

    @wraps(read)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return read(*args, **kwargs)
        except WireError as error:
            raise WireError(error.reason, printable(error.detail)) from error
        except Exception as error:
            why = f"cannot be read: {type(error).__name__}: {error}"
            raise WireError("bad_value", printable(why)) from error

    return guarded


def encode(record: BaseModel) -> bytes:
    """*record* as compact JSON; the same record always gives the same bytes."""
    return record.model_dump_json(by_alias=True).encode()


def validate(model: type[R], value: bytes | str, fields: Mapping[str, Any] | None = None) -> R:
    """*value* as a *model*, or WireError naming the first thing wrong with it.

    *fields*: what ``read_object`` made of it, where that is known already.
    """
    if len(value) > _LARGE:
        refuse_missing(model, read_object(value) if fields is None else fields)
    try:
        return model.model_validate_json(value, by_alias=True, by_name=False)
    except ValidationError as error:
        raise wire_error(error) from error


def is_empty(value: object) -> bool:
    """Whether a field is left out of a record: it is newer than others, and has nothing to say."""
    return value is None or value is False or value == () or value == {}


def missing(field: str) -> PydanticCustomError:
    """What a validator raises for a field that is missing because of what other fields say."""
    return PydanticCustomError("missing_field", "{field} is missing", {"field": field})


def bad_value(why: str) -> PydanticCustomError:
    """What a validator raises for fields that contradict each other."""
    return PydanticCustomError("bad_value", "{why}", {"why": why})


def read_object(value: bytes | str) -> dict[str, Any]:
    """The JSON object that *value* is, its fields not looked at yet; WireError: not_json."""
    try:
        fields = from_json(value)
    except ValueError as error:
        raise WireError("not_json", str(error)) from error
    if not isinstance(fields, dict):
        raise WireError("not_json", f"expected an object, found {type(fields).__name__}")
    _refuse_long_numbers(value.encode() if isinstance(value, str) else value)
    return fields


#: Every character that a number may have -> 0, all others -> a blank.
_NUMBERS: Final = bytes(ord("0") if byte in b"0123456789+-.eE" else ord(" ") for byte in range(256))
_STRING: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_LONG_NUMBER: Final = re.compile(rb"[0-9+\-.eE]{%d,}" % (MOST_DIGITS + 1))


def _refuse_long_numbers(value: bytes) -> None:
    """Raise WireError for a number in *value*, which is JSON, that has too many digits.  O(bytes)."""
    if b"0" * (MOST_DIGITS + 1) not in value.translate(_NUMBERS):
        return
    for number in _LONG_NUMBER.findall(_STRING.sub(b'""', value)):
        digits = len(number.translate(None, b"+-.eE"))
        if digits > MOST_DIGITS:
            raise WireError("not_json", f"a number of {digits} digits, allowed: {MOST_DIGITS}")


def refuse_too_large(value: bytes, max_bytes: int) -> None:
    """Raise WireError when *value* is longer than *max_bytes*."""
    if len(value) > max_bytes:
        raise WireError("too_large", f"{len(value)} bytes, allowed: {max_bytes}")


def refuse_not_finite(value: bytes) -> None:
    """Raise WireError where *value* names NaN or an infinity, in a field that no model knows: JSON has neither."""
    if b"NaN" in value or b"Infinity" in value:
        try:
            from_json(value, allow_inf_nan=False)
        except ValueError as error:
            raise WireError("not_json", str(error)) from error


def is_foreign(fields: Mapping[str, Any], cluster: str) -> bool:
    """True for a record of another cluster: it is ignored, even if it has errors."""
    theirs = fields.get("cluster")
    return isinstance(theirs, str) and theirs != cluster


def model_for(fields: Mapping[str, Any], models: Mapping[str, type[R]]) -> type[R]:
    """The model for the ``v`` and ``type`` of *fields*, or WireError."""
    if "v" not in fields:
        raise WireError("missing_field", "v: Field required")
    version = fields["v"]
    if type(version) is not int or version != VERSION:  # nor True, nor 1.0
        raise WireError("unknown_version", f"v is {_excerpt(version)}, known: {VERSION}")
    return model_by_type(fields, models)


def model_by_type(fields: Mapping[str, Any], models: Mapping[str, type[R]]) -> type[R]:
    """The model for the ``type`` of *fields*, or WireError."""
    if "type" not in fields:
        raise WireError("missing_field", "type: Field required")
    kind = fields["type"]
    if not isinstance(kind, str) or kind not in models:
        raise WireError("unknown_type", f"type is {_excerpt(kind)}, known: {', '.join(models)}")
    return models[kind]


def check_interval(interval: int, *, period_ms: int, append_time_ms: int | None) -> None:
    """Raise WireError when *interval* is no multiple of the period, or lies over a period ahead.

    Ahead of the record's append time, where the log keeps one (Kafka: LogAppendTime).
    """
    if interval % period_ms:
        raise WireError("misaligned_interval", f"{interval} is not a multiple of {period_ms} ms")
    if append_time_ms is not None and interval > append_time_ms + period_ms:
        raise WireError("future_interval", f"{interval}, but the record was appended at {append_time_ms}")


def check_version(version: int, *, period_ms: int, append_time_ms: int | None) -> None:
    """Raise WireError when *version*, which may be a time, lies over a period ahead of the record's append time.

    The highest version wins, so one that is too high would win for ever.
    """
    if append_time_ms is not None and version > append_time_ms + period_ms:
        raise WireError("future_version", f"{version}, but the record was appended at {append_time_ms}")


def believed(last_update: int, *, period_ms: int, append_time_ms: int | None) -> int:
    """*last_update*, or 0 where it lies over a period ahead of the record's append time.

    The broker's load counts all the same: its clock may be wrong.  But a bundle that another broker claims as well is
    the other's, since the later claim wins.
    """
    return 0 if append_time_ms is not None and last_update > append_time_ms + period_ms else last_update


def wire_error(errors: ValidationError) -> WireError:
    """The first of *errors*."""
    error = errors.errors(include_url=False)[0]
    kind = error["type"]
    reason = "missing_field" if kind == "missing" else kind if kind in REASONS else "bad_value"
    path = ".".join(map(str, error["loc"]))
    suffix = "" if kind in {"missing", *REASONS} else f", found {_excerpt(error['input'])}"
    return WireError(reason, f"{path}: {error['msg']}{suffix}" if path else error["msg"])


def _excerpt(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
