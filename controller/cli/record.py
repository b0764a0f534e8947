"""``trimtab record``: copy a log into a folder of Parquet files, to be replayed."""

import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Final, NamedTuple, TypeAlias, get_args

import typer

from controller.adapters.long_work import long_work
from controller.adapters.outages import Part
from controller.adapters.recordings.manifest import Manifest, RecordedSettings, differences, recorded_settings
from controller.adapters.recordings.reading import Recording
from controller.adapters.recordings.record_log import RECORDED_TOPICS, Extent, RecordedTopic, RecordLog
from controller.cli.shared.answers import show
from controller.cli.shared.arguments import FORMS, span_of
from controller.cli.shared.console import DEFAULT_CONF, json_option
from controller.cli.shared.reachable import require
from controller.log.factory import log_system, records_in
from controller.model.errors import SettingsError
from controller.offline.counterfactual.start import known_before
from controller.offline.pseudonyms.anonymise import Anonymiser, fingerprint
from controller.offline.record import KnownBefore, RecordRequest, record
from controller.offline.record_texts import FOLDED_TOPICS
from controller.offline.recording import refuse_other_clusters
from controller.settings.small_file import open_to_read
from controller.settings.trimtab_toml import read_settings
from controller.wire.answers.recordings import KnownBeforeAnswer, RecordAnswer
from controller.wire.readable import counted, utc

_OFFSETS: Final = re.compile(r"(?P<topic>[a-z]+)/(?P<partition>\d{1,9})=(?P<first>\d{1,18}):(?P<end>\d{1,18})")
_OFFSETS_FORM: Final = "TOPIC/PARTITION=FIRST:END, for example metrics/0=1200:2400; END does not belong to it"
#: Of a key, at least and at most.
_KEY_BYTES: Final = 16
_LONGEST_KEY: Final = 4096
#: Maximum number of different settings that are listed.
_LISTED: Final = 5
_TOPICS: Final = ", ".join(RECORDED_TOPICS)

_Log: TypeAlias = Annotated[
    Path | None,
    typer.Argument(
        metavar="FOLDER",
        help="A recording, or a log in a folder.  Default: the log of --conf.",
        exists=True,
        file_okay=False,
        show_default=False,
    ),
]
ConfOfLog: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--conf", help="The settings of its controller.", show_default=f"those of a recording, else {DEFAULT_CONF}"
    ),
]
_Into: TypeAlias = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        metavar="DIR",
        help="The folder of the recording: a new one, or one whose recording was broken off.",
        file_okay=False,
        show_default=False,
    ),
]
_From: TypeAlias = Annotated[
    str | None, typer.Option("--from", help=f"From this time on: {FORMS}.", show_default=False)
]
_To: TypeAlias = Annotated[str | None, typer.Option("--to", help="Up to this time.", show_default=False)]
_Before: TypeAlias = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=1_000_000,
        help="With --from: also read this many intervals before it, for the averages and states at its start; 0: none.",
        show_default="all that the log has",
    ),
]
_Topics: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--topic", help=f"Only this topic; can be repeated: {_TOPICS}.", show_default="all of them"),
]
_Offsets: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(help=f"Only these offsets of a topic; can be repeated: {_OFFSETS_FORM}.", show_default=False),
]

Anonymise: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--anonymise",
        help="Replace tenants, namespaces, topics and hosts, and leave out commands, journal and all free texts.",
    ),
]
KeyFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        help=f"With --anonymise: derive the pseudonyms from this file of {_KEY_BYTES} or more secret, random bytes.",
        exists=True,
        dir_okay=False,
        show_default="a random key, which is not stored",
    ),
]


def record_log(
    output: _Into,
    log: _Log = None,
    conf: ConfOfLog = None,
    since: _From = None,
    until: _To = None,
    before: _Before = None,
    topic: _Topics = None,
    offsets: _Offsets = None,
    anonymise: Anonymise = False,
    key_file: KeyFile = None,
    as_json: Annotated[bool, json_option("answer.record")] = False,
) -> None:
    """Copy the metrics, results, commands and journal into a folder of Parquet files with a manifest.

    A recording is copied with its own settings, unless --conf names others.

    With --from it also stores what a controller knew then: the log is read from its beginning for that, or as --before
    says. To continue an interrupted recording, run the same command again.

    Exit codes: 0 the recording is complete; 1 it failed, or there is nothing to copy; 2 an option or the settings are
    invalid.
    """
    key = key_of(anonymise, key_file)
    source, recorded, cluster = log_to_copy(log, conf)
    request = _request_of(since, until, topic or (), offsets or (), f"{log or ''} {cluster}", before)
    known = partial(_known, source, request, recorded, cluster, before) if _can_begin_midway(request, before) else None
    if key is None:
        manifest = record(source, output, request, recorded, cluster, known_before=known)
    else:
        request = replace(
            request, options=f"--anonymise and other options or another key ({fingerprint(key, request.options)})"
        )
        other = partial(Anonymiser, source, settings=recorded, cluster=cluster, key=key)
        manifest = record(source, output, request, recorded, cluster, anonymiser_of=other, known_before=known)
    answer = _answer(output, manifest)
    show(answer, lambda _: typer.echo("\n".join(_lines(answer))), as_json=as_json)


def key_of(anonymise: bool, path: Path | None) -> bytes | None:
    """The key of --anonymise: that of --key-file in *path*, or a new one; None where names stay."""
    if not anonymise:
        if path is not None:
            raise typer.BadParameter("it needs --anonymise", param_hint="--key-file")
        return None
    if path is None:
        return os.urandom(2 * _KEY_BYTES)
    try:
        with open_to_read(path) as file:
            key = file.read(_LONGEST_KEY + 1)
    except OSError as error:
        raise SettingsError(f"--key-file {path}: {error.strerror}") from error
    if not _KEY_BYTES <= len(key) <= _LONGEST_KEY:
        raise SettingsError(f"{path}: a key has {_KEY_BYTES} to {_LONGEST_KEY} bytes: make one with openssl rand 32")
    return key


class LogToCopy(NamedTuple):
    """A log, and what its copy says of it."""

    records: RecordLog
    settings: RecordedSettings
    cluster: str


def log_to_copy(folder: Path | None, conf: Path | None) -> LogToCopy:
    """The log, or recording, in *folder*, or that of the settings *conf*; a recording has its own settings and cluster.

    Those of *conf* count where it is given, and stderr tells what is different from a recording's.  Raises
    SettingsError where the folder holds records of other clusters alone.
    """
    records = None if folder is None else records_in(folder)
    if conf is None and isinstance(records, Recording):
        return LogToCopy(records, records.manifest.settings, records.manifest.cluster)
    settings = read_settings(conf or DEFAULT_CONF)
    cluster, recorded = settings.cluster.name, recorded_settings(settings)
    if records is None:
        require(settings, Part.LOG)
        return LogToCopy(log_system(settings).records(), recorded, cluster)
    refuse_other_clusters(records, cluster)
    if isinstance(records, Recording):
        _tell_differences(conf, records.manifest, recorded, cluster)
    return LogToCopy(records, recorded, cluster)


def _tell_differences(conf: Path | None, recorded: Manifest, current: RecordedSettings, cluster: str) -> None:
    different = differences(recorded.settings, current)
    if cluster != recorded.cluster:
        different.insert(0, f"cluster.name = {json.dumps(cluster)}, not {json.dumps(recorded.cluster)}")
    if different:
        more = f", and {len(different) - _LISTED} more" if different[_LISTED:] else ""
        keys = ", ".join(different[:_LISTED])
        typer.echo(f"{conf} counts, not the recording's own settings; different are {keys}{more}", err=True)


def _can_begin_midway(request: RecordRequest, before: int | None) -> bool:
    """Whether what is *request* can be replayed, and so needs what was known before it."""
    needed = set(FOLDED_TOPICS.values())
    return before != 0 and needed <= set(request.topics) and not needed & request.offsets.keys()


def _known(
    log: RecordLog, request: RecordRequest, settings: RecordedSettings, cluster: str, before: int | None
) -> KnownBefore | None:
    """What was known when the recording begins; None where the log begins later."""
    with long_work("reading earlier intervals") as tell:
        return known_before(log, request.from_ms, settings.intervals, cluster, before=before, tell=tell)


def _request_of(
    since: str | None,
    until: str | None,
    topics: Sequence[str],
    offsets: Sequence[str],
    log: str,
    before: int | None,
) -> RecordRequest:
    from_ms, to_ms = span_of(since, until)
    if from_ms is not None and from_ms == to_ms:
        raise typer.BadParameter("it is not after --from", param_hint="--to")
    many = None if before is None else str(before)
    options = (("--from", since), ("--to", until), ("--before", many), *(("--topic", each) for each in topics))
    texts = [*(f"{name} {value}" for name, value in options if value), *(f"--offsets {each}" for each in offsets)]
    return RecordRequest(
        topics=tuple(dict.fromkeys(_topic(each, "--topic") for each in topics)) or RECORDED_TOPICS,
        from_ms=None if from_ms is None else max(0, from_ms),
        to_ms=None if to_ms is None else max(0, to_ms),
        offsets=_offsets(offsets),
        options=" ".join([log.strip(), *texts]),
    )


def _topic(text: str, option: str) -> RecordedTopic:
    for known in get_args(RecordedTopic):
        if known == text:
            name: RecordedTopic = known
            return name
    raise typer.BadParameter(f"{text!r} is not a topic: give one of {_TOPICS}", param_hint=option)


def _offsets(texts: Sequence[str]) -> dict[RecordedTopic, dict[int, Extent]]:
    extents: dict[RecordedTopic, dict[int, Extent]] = {}
    for text in texts:
        match = _OFFSETS.fullmatch(text)
        if match is None or int(match["first"]) >= int(match["end"]):
            raise typer.BadParameter(f"{text!r}: give {_OFFSETS_FORM}", param_hint="--offsets")
        of_topic = extents.setdefault(_topic(match["topic"], "--offsets"), {})
        if int(match["partition"]) in of_topic:
            raise typer.BadParameter(f"{text!r}: the partition is given twice", param_hint="--offsets")
        of_topic[int(match["partition"])] = Extent(int(match["first"]), int(match["end"]))
    return extents


def _lines(answer: RecordAnswer) -> Iterator[str]:
    parts = ", ".join(f"{number:,} {name}" for name, number in answer.records.items())
    yield f"{answer.folder}: records: {parts}; {answer.bytes / 1e6:,.1f} MB in {counted(answer.files, 'file')}"
    known = answer.known_before
    if known is not None:
        read = f"{counted(known.intervals, 'interval')} from {utc(known.first)} to {utc(known.last)}"
        yield f"what was known before is from {read}; averages of a controller that ran before that are not the same"
        if known.undescribed:
            yield (
                f"{counted(known.undescribed, 'namespace')} with bundles: the log before has no state of them, so"
                " nothing of them moves in a replay until the recording has one"
            )


def _answer(folder: Path, manifest: Manifest) -> RecordAnswer:
    known = manifest.known_before
    times = [(file.first_ms, file.last_ms) for file in manifest.files]
    return RecordAnswer(
        folder=str(folder),
        cluster=manifest.cluster,
        records={topic: sum(each.records for each in parts) for topic, parts in manifest.topics.items()},
        first_ms=min(first for first, _ in times),
        last_ms=max(last for _, last in times),
        files=len(manifest.files),
        bytes=sum(file.bytes for file in manifest.files) + (0 if known is None else known.bytes),
        known_before=None
        if known is None
        else KnownBeforeAnswer.from_object(known, first=known.first_ms, last=known.last_ms),
        unpacked_bytes=sum(file.unpacked_bytes for file in manifest.files),
    )
