"""The manifest of a recording: what it holds, each file's SHA-256, and the settings that its decisions depend on."""

import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field, model_validator

from controller.adapters.recordings.record_log import RecordedTopic
from controller.aggregate.shard.fold import FoldOptions
from controller.aggregate.waiting.limits import WaitLimits
from controller.cycle import Policy
from controller.model.errors import SettingsError, TrimtabError, WireError
from controller.model.pulsar_version import PulsarVersion
from controller.settings.approvals import ApprovalSettings
from controller.settings.broker_conf import read_broker_conf
from controller.settings.guardrails import GuardrailSettings
from controller.settings.known_options import options_table
from controller.settings.policy import known_keys, policy_of, versioned_policy, with_approvals
from controller.settings.pulsar_version import PulsarSetting, pinned
from controller.settings.strategy_kinds import STRATEGY_KINDS
from controller.settings.trimtab_toml import DecisionSettings, IntervalSettings, Settings
from controller.strategies.catalogue import is_python_name
from controller.wire.base import Count, Items, Millis, Name, Record, bad_value, encode, read_object, validate


class RecordingError(TrimtabError):
    """A recording is incomplete, damaged or of another format; the text names the file."""


MANIFEST: Final = "manifest.json"
#: What was known when a recording begins: a record of metrics on each line.
BEGIN: Final = "begin.jsonl"
#: The version of the format.
FORMAT_VERSION: Final = 4
#: Bytes of a manifest at most: that of ten thousand files has 5 MB.
_LARGEST_MANIFEST: Final = 32 << 20
#: Files of a recording at most.
MOST_FILES: Final = 50_000
#: Bytes of one file at most, packed and unpacked.  Files are written with an eighth of that.
LARGEST_FILE: Final = 512 << 20
#: Records of one file at most.
MOST_RECORDS: Final = 1 << 20
#: Lines of begin.jsonl at most: each record has more than 128 bytes, and in memory an empty line takes 40.
_MOST_KNOWN: Final = LARGEST_FILE >> 7
_PATH: Final = r"^(metrics|results|commands|journal)/[0-9]{6}\.parquet$"
#: So many partitions of a topic at most.
_MOST_PARTITIONS: Final = 10_000

_Sha256: TypeAlias = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
_Partition: TypeAlias = Annotated[int, Field(ge=0, lt=1 << 31)]


class RecordedExtent(Record):
    """What a recording, or a file of it, holds of one partition."""

    partition: _Partition
    first: Count
    """The first offset."""
    end: Count
    """The offset behind the last one."""
    records: Count
    """How many there are; offsets of transactions' marks have none."""

    @model_validator(mode="after")
    def _holds_no_more_than_its_offsets(self) -> Self:
        if self.end < self.first or self.records > self.end - self.first:
            raise bad_value(f"{self.records} records at the offsets from {self.first} to {self.end}")
        return self


_Extents: TypeAlias = Annotated[Items[RecordedExtent], Field(max_length=_MOST_PARTITIONS)]


class RecordingFile(Record):
    """One file of a recording."""

    path: Annotated[str, Field(pattern=_PATH)]
    """Below the recording's folder."""
    records: Annotated[int, Field(ge=1, le=MOST_RECORDS)]
    bytes: Annotated[int, Field(ge=1, le=LARGEST_FILE)]
    """Its size."""
    unpacked_bytes: Annotated[int, Field(ge=0, le=LARGEST_FILE)]
    """Of the keys, values and headers in it."""
    sha256: _Sha256
    """Of the file, in hex."""
    first_ms: Millis
    """The earliest time of a record in it."""
    last_ms: Millis
    """The latest time of a record in it."""
    partitions: _Extents

    @property
    def topic(self) -> RecordedTopic:
        """The topic that it is a part of."""
        topic: RecordedTopic = self.path.partition("/")[0]  # type: ignore[assignment]  # the pattern allows no other
        return topic

    @model_validator(mode="after")
    def _counts_its_records_once(self) -> Self:
        if sum(each.records for each in self.partitions) != self.records:
            raise bad_value(f"{self.path}: its partitions do not have {self.records} records in all")
        return self


class KnownBeginning(Record):
    """What was known when a recording begins that begins in the midst of a log."""

    bytes: Annotated[int, Field(ge=0, le=LARGEST_FILE)]
    """Size of begin.jsonl."""
    sha256: _Sha256
    """Of begin.jsonl, in hex."""
    intervals: Count
    """So many intervals before the recording were read for it."""
    first_ms: Millis
    """T of the first of them."""
    last_ms: Millis
    """T of the last of them: the recording begins with the next one."""
    undescribed: Count
    """Namespaces whose bundles were listed, but whose state was not in the log."""


def _as_recorded(value: object) -> object:
    """A recording without the key was made without the rule."""
    return {"move_fatal": True, **value} if isinstance(value, dict) else value


class RecordedApprovals(Record):
    """What [approvals] says of decisions in mode approve; a recording names no person and no key."""

    decision_minutes: Count = ApprovalSettings().decision_minutes
    free_moves: Count = 0
    free_connections: Count = 0


_AS_BY_DEFAULT: Final = RecordedApprovals()


class RecordedSettings(Record):
    """The settings that decisions depend on."""

    intervals: IntervalSettings
    decisions: DecisionSettings
    guardrails: Annotated[GuardrailSettings, BeforeValidator(_as_recorded)]
    whole_every_intervals: Annotated[int, Field(ge=1)]
    """[journal] whole_every_intervals."""
    broker_conf: dict[str, str]
    """Those options of broker.conf that trimtab reads, as they were in force."""
    approvals: Annotated[RecordedApprovals, Field(exclude_if=_AS_BY_DEFAULT.__eq__)] = _AS_BY_DEFAULT
    """Left out where it is as by default."""
    pulsar: PulsarSetting | None = None
    """[cluster] pulsar; none: made by a release that decided as Pulsar 4.0, whatever the brokers ran."""

    def as_version(self, pulsar: PulsarVersion | None) -> Self:
        """These settings with *pulsar* in place of the recorded version; None: as they are."""
        return self if pulsar is None else self.model_copy(update={"pulsar": str(pulsar)})

    def policy(self, cluster: str) -> Policy:
        """The policy that they name.  SettingsError where this trimtab does not have it.

        A recording may come from anywhere, so it names no class of Python: that would be imported.
        """
        for kind in STRATEGY_KINDS:
            name = self.broker_conf.get(kind.key, "")
            if is_python_name(name):
                raise SettingsError(
                    f"the recording was made with {kind.key}={name}, a class that is not part of "
                    f"trimtab: pass the settings that name it with --conf"
                )
        return self.policy_with(self.broker_conf, cluster)

    def policy_with(self, broker_conf: Mapping[str, str], cluster: str) -> Policy:
        """The policy with other options of broker.conf, which a person names.  SettingsError where there is none."""
        parts = broker_conf, self.decisions, self.guardrails, self.intervals.warm_up_samples, cluster
        period_ms = self.intervals.period_ms
        if self.pulsar is None:
            policy = policy_of(*parts, period_ms)
        else:
            policy = versioned_policy(*parts, period_ms, pulsar=pinned(self.pulsar))
        return with_approvals(policy, ApprovalSettings(**self.approvals.model_dump()))

    def fold_options(self, policy: Policy, *, shards: int = 1) -> FoldOptions:
        """The options of a fold in so many *shards* that closes all that a batch allows, as one of a whole log does."""
        intervals = self.intervals
        return FoldOptions(
            bundle_ttl_ms=intervals.bundle_ttl_intervals * intervals.period_ms,
            detail=policy.detail_limits(intervals.detail_share),
            waiting=WaitLimits(intervals=intervals.waiting_intervals, size=(intervals.waiting_mbytes << 20) // shards),
            state_ttl=intervals.state_ttl_intervals,
        )


class Manifest(Record):
    """What lies in a recording."""

    format: Literal["trimtab-recording"] = "trimtab-recording"
    version: Literal[4] = FORMAT_VERSION
    cluster: Name
    """The Pulsar cluster's name."""
    made_by: str = ""
    """The version of trimtab that wrote it."""
    anonymised: bool = False
    """Whether names were replaced."""
    from_ms: Millis | None = None
    """The time from which records were asked for; none: from the first one on."""
    to_ms: Millis | None = None
    """The time up to which they were asked for; none: up to the end there was."""
    settings: RecordedSettings
    known_before: KnownBeginning | None = None
    """What was known when it begins; none: it begins with the log, or nobody asked."""
    topics: dict[RecordedTopic, _Extents]
    """What was copied of each topic, by partition."""
    files: Annotated[Items[RecordingFile], Field(max_length=MOST_FILES)]
    """In the order in which they were written."""

    @model_validator(mode="after")
    def _names_each_file_once(self) -> Self:
        if len({file.path for file in self.files}) < len(self.files):
            raise bad_value("files lists a path twice")
        return self

    def of_topic(self, topic: RecordedTopic) -> Iterator[RecordingFile]:
        """The files of *topic*, in the order of their names."""
        yield from sorted((file for file in self.files if file.topic == topic), key=lambda file: file.path)


def recorded_settings(settings: Settings) -> RecordedSettings:
    """What decisions depend on in *settings*, and in the broker.conf that they name.

    The namespaces that trimtab itself lives in are among those that are excluded, as for the live run.
    """
    excluded = tuple(dict.fromkeys([*settings.decisions.excluded, *sorted(settings.log.own_namespaces)]))
    conf = read_broker_conf(Path(settings.cluster.broker_conf), os.environ)
    # Of the other hundreds of keys some hold passwords.
    known = known_keys(conf)
    return RecordedSettings(
        intervals=settings.intervals,
        decisions=DecisionSettings.model_validate(settings.decisions.model_dump() | {"excluded": excluded}),
        guardrails=settings.guardrails,
        whole_every_intervals=settings.journal.whole_every_intervals,
        broker_conf={key: conf[key] for key in sorted(conf) if key in known},
        approvals=RecordedApprovals.model_validate(settings.approvals, from_attributes=True),
        pulsar=settings.cluster.pulsar,
    )


def differences(ours: RecordedSettings, other: RecordedSettings) -> list[str]:
    """What *other* has in place of *ours*, as "guardrails.in_flight = 100, not 200"; those of broker.conf come last."""
    mine, theirs = _by_key(ours), _by_key(other)
    defaults = {f"broker_conf.{row.key}": row.default for row in options_table() if row.file == "broker.conf"}
    changed = list[tuple[str, object, object]]()
    for key in sorted(mine.keys() | theirs.keys(), key=lambda key: (key.startswith("broker_conf."), key)):
        before, now = (values.get(key, defaults.get(key, "")) for values in (mine, theirs))
        if before != now:
            changed.append((key, now, before))
    return [f"{key} = {json.dumps(now)}, not {json.dumps(before)}" for key, now, before in changed]


def _by_key(settings: RecordedSettings) -> dict[str, Any]:
    return dict(_values(settings.model_dump(mode="json")))


def _values(section: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in section.items():
        if isinstance(value, dict):
            yield from _values(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value


def read_manifest(folder: Path) -> Manifest:
    """The manifest of the recording in *folder*.  RecordingError where there is none, or none that can be read."""
    value = content_of(folder / MANIFEST, _LARGEST_MANIFEST)
    path = folder / MANIFEST
    try:
        fields = read_object(value)
        _refuse_other_formats(path, fields)
        return validate(Manifest, value)
    except WireError as error:
        raise RecordingError(f"{path}: {error.detail}") from error


def _refuse_other_formats(path: Path, fields: Mapping[str, object]) -> None:
    if fields.get("format") != "trimtab-recording":
        raise RecordingError(f"{path}: not a manifest of a recording: its format is {_printable(fields.get('format'))}")
    version = fields.get("version")
    if type(version) is not int or version != FORMAT_VERSION:
        raise RecordingError(
            f"{path}: the recording has format version {_printable(version)}, trimtab reads version {FORMAT_VERSION};"
            " scripts/convert in a checkout rewrites older versions"
        )


def lines_in(begin: bytes) -> tuple[bytes, ...]:
    """The records in the content of begin.jsonl.  RecordingError where it has more than anybody knew."""
    lines = begin.count(b"\n")
    if lines > _MOST_KNOWN:
        raise RecordingError(f"{BEGIN}: has {lines} lines, allowed: {_MOST_KNOWN}: it was changed")
    return tuple(line for line in begin.split(b"\n") if line)


def manifest_bytes(manifest: Manifest) -> bytes:
    """*manifest* as the content of its file."""
    return encode(manifest) + b"\n"


def content_of(path: Path, limit: int) -> bytes:
    """The content of the file *path*, which may have *limit* bytes.  RecordingError where it cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise RecordingError(f"{path}: cannot be read: {error.strerror}") from error
    about = os.fstat(descriptor)
    if not stat.S_ISREG(about.st_mode):
        os.close(descriptor)
        raise RecordingError(f"{path}: is not a regular file; a recording contains no links and no devices")
    with os.fdopen(descriptor, "rb") as file:
        if about.st_size > limit:
            raise RecordingError(f"{path}: has {about.st_size} bytes, allowed: {limit}")
        try:
            return file.read(limit)
        except OSError as error:
            raise RecordingError(f"{path}: cannot be read: {error.strerror}") from error


def _printable(value: object) -> str:
    return re.sub(r"[^ -~]", "?", repr(value)[:60])
