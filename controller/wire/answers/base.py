"""Common parts of the answers: the base, a verdict, and a command with its outcome."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from controller.model.decision import Command, Verdict
from controller.model.pulsar_version import VersionInUse, VersionSource, version_text
from controller.wire.base import Number, harmless_json
from controller.wire.readable import utc
from controller.wire.results import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """How tables show a field: metadata of its type."""

    #: The column's heading; "": the field's name.
    heading: str = ""
    #: How a value is formatted: a function, or a format specification as for format().
    form: Callable[[Any], str] | str = ""
    #: Text that may be wrapped between words.
    prose: bool = False
    #: A number that identifies something, such as a time: it is left-aligned.
    is_text: bool = False


#: A time, epoch ms.
Moment: TypeAlias = Annotated[int, Shown(form=utc, is_text=True)]
#: The action of a command, and the brokers that it moves a bundle between.
ShownAction: TypeAlias = Annotated[Literal["unload", "split"], Shown(heading="do")]
SourceBroker: TypeAlias = Annotated[str, Shown(heading="from")]
DestinationBroker: TypeAlias = Annotated[str, Shown(heading="to")]
#: Text of several words.
Prose: TypeAlias = Annotated[str, Shown(prose=True)]


class JsonAnswer(BaseModel):
    """Base of what commands print with --json: an unknown field is an error, and keys are camelCase."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        from_attributes=True,
    )

    @classmethod
    def from_object(cls, source: object, /, **values: Any) -> Self:
        """The answer with the *values* fields, and for all others the attributes of *source* with their names.

        Objects among them become answers in the same way.
        """
        names = [name for name in cls.model_fields if name not in values and hasattr(source, name)]
        return cls.model_validate({name: getattr(source, name) for name in names} | values, by_name=True)

    def as_line(self) -> str:
        """The JSON object on one line, without fields that were not set."""
        return harmless_json(self.model_dump_json(by_alias=True, exclude_unset=True))


class PulsarVersionAnswer(JsonAnswer):
    """The version of Pulsar that an interval was decided by."""

    version: str
    source: VersionSource
    """Who said so: the settings, Pulsar's own leader, all brokers alike, the oldest of several, the last interval in
    which it was known; or nobody."""
    leader: str
    """Pulsar's own leader, if that is the source."""
    text: str
    """The same in words."""

    @classmethod
    def of(cls, used: VersionInUse | None) -> Self | None:
        """*used* as an answer; None if nothing depends on it."""
        if used is None:
            return None
        return cls.from_object(used, version=str(used.version), text=version_text(used))


class VerdictAnswer(JsonAnswer):
    """A finding about one subject, and its reason."""

    subject: str
    """A broker, a bundle, a command id, or "cluster"."""
    reason: str
    observed: Number | None = None
    limit: Number | None = None
    unit: str = ""
    """Of both numbers.  A "usage" is a fraction: 1 is all."""
    by: str = ""
    """The strategy, filter or guardrail that gives this verdict."""
    detail: str = ""

    @classmethod
    def of(cls, verdict: Verdict) -> Self:
        """All of *verdict*."""
        return cls.from_object(verdict)

    @classmethod
    def short(cls, verdict: Verdict) -> Self:
        """*verdict* without its empty fields."""
        return cls(**{key: value for key, value in asdict(verdict).items() if value not in (None, "")})


class CommandAnswer(JsonAnswer):
    """An issued command and its outcome. Its keys are in snake_case."""

    model_config = ConfigDict(alias_generator=None)

    id: str
    action: Literal["unload", "split"]
    cluster: str
    bundle: str
    interval: int
    """T, the interval of the decision, epoch ms."""
    expires_at_ms: int
    mode: Literal["active", "dry_run"]
    source: str
    """The broker that must still own the bundle."""
    why: VerdictAnswer
    destination: str
    """Of an unload; "": the brokers choose."""
    algorithm: str
    """Of a split."""
    boundaries: tuple[int, ...]
    """Of a split: where to cut; empty leaves it to the algorithm."""
    unload_after_split: bool
    result: Result | None
    """null: no result yet."""

    @classmethod
    def of(cls, command: Command, result: Result | None) -> Self:
        """*command* with its *result*."""
        # Made anew, so that all its fields count as given.
        result = None if result is None else Result.model_construct(**dict(result))
        return cls.from_object(command, result=result)
