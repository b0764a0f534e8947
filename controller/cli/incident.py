"""``trimtab incident``: the load, decisions and settings around a time, in one file that reproduces the decisions."""

from functools import partial
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer
from rich.console import Console

from controller.adapters.long_work import long_work
from controller.adapters.recordings.incident_file import unpacked_incident
from controller.cli.record import ConfOfLog, KeyFile, key_of, log_to_copy
from controller.cli.shared.answers import show
from controller.cli.shared.arguments import FORMS, now_ms, time_of
from controller.cli.shared.console import json_option
from controller.cli.shared.layout import print_fields
from controller.cli.shared.output_file import require_writable
from controller.model.errors import TrimtabError
from controller.offline.counterfactual.incident import CheckedIncident, IncidentSpan, check_incident, make_incident
from controller.offline.pseudonyms.anonymise import Anonymiser
from controller.wire.answers.what_if import IncidentAnswer
from controller.wire.readable import counted, utc

app = typer.Typer(
    help="Export everything that happened around a time to one file; its decisions can be replayed anywhere.",
    no_args_is_help=True,
)

_MINUTE_MS: Final = 60_000

_Log: TypeAlias = Annotated[
    Path | None,
    typer.Argument(
        metavar="FOLDER", help="A recording, or a log in a folder.  Default: the log of --conf.", show_default=False
    ),
]
_File: TypeAlias = Annotated[
    Path, typer.Argument(metavar="FILE", help="What `trimtab incident make` wrote.", show_default=False)
]


_Anonymise: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--anonymise",
        help="Replace tenants, namespaces, topics and hosts, and leave out all free texts; the journal is that of the"
        " decisions made again.",
    ),
]
_OTHERWISE: Final = (
    "with other names the decision of {} moves something else than in the log: a name decided between equal loads, a"
    " strategy of your own was left out, or settings changed; give a file without --anonymise to somebody you trust"
)


_SETTINGS_DIFFER: Final = (
    "if settings changed in that time, decisions before the change differ: make a file of the time since, or give the"
    " settings of then (--conf)"
)


class NotReproducedError(TrimtabError):
    """The decision that an incident is about comes out differently."""


@app.callback()
def incident() -> None:
    """Export the load, decisions and settings around a time to one file; its decisions can be replayed anywhere."""


@app.command()
def make(
    around: Annotated[str, typer.Option(help=f"The time that it is about: {FORMS}.", show_default=False)],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="A new file.", show_default=False)],
    log: _Log = None,
    minutes: Annotated[
        int, typer.Option(min=1, max=1440, help="Include this many minutes before and after that time.")
    ] = 15,
    before: Annotated[
        int,
        typer.Option(
            min=0, max=10_000, help="Read this many intervals before those for averages, if the log has them."
        ),
    ] = 120,
    conf: ConfOfLog = None,
    anonymise: _Anonymise = False,
    key_file: KeyFile = None,
    as_json: Annotated[bool, json_option("answer.incident")] = False,
) -> None:
    """Write one file with the load, the journal, the settings and the versions around a time; and check it.

    It only reads the log. Of a recording it takes the recording's own settings, unless --conf names others. The file
    holds names of tenants, namespaces, topics and brokers, if --anonymise does not replace them, and no passwords: of
    broker.conf only the options of strategies.

    Exit codes: 0 written, and replaying the decision gives the same result; 1 it failed, or the result
    differs; 2 an option or the settings are invalid.
    """
    key = key_of(anonymise, key_file)
    around_ms = time_of(around, now_ms=now_ms(), of="--around")
    span = IncidentSpan(
        around=max(0, around_ms),
        since=max(0, around_ms - minutes * _MINUTE_MS),
        until=max(0, around_ms + minutes * _MINUTE_MS),
        before=before,
    )
    require_writable(output, "--output")
    source, recorded, cluster = log_to_copy(log, conf)
    other = None if key is None else partial(Anonymiser, source, settings=recorded, cluster=cluster, key=key)
    with long_work("reading the log"):
        otherwise = make_incident(source, output, span, recorded, cluster, other)
    check_file(output, as_json=as_json, otherwise=otherwise)


@app.command()
def check(file: _File, as_json: Annotated[bool, json_option("answer.incident")] = False) -> None:
    """Replay the decisions of an incident, and say which have the same bytes as in its journal.

    Exit codes: 0 the decision that it is about is identical; 1 it is not, or the file is damaged.
    """
    check_file(file, as_json=as_json)


def check_file(path: Path, *, as_json: bool, otherwise: tuple[int, ...] = ()) -> None:
    """Replay the decisions of the incident *path*, and print what comes of them.

    NotReproducedError where the one that it is about differs, or is among *otherwise*.
    """
    with unpacked_incident(path) as incident, long_work("deciding again"):
        checked, about, size = check_incident(incident), incident.about, path.stat().st_size
    answer = IncidentAnswer.from_object(
        checked,
        file=str(path),
        bytes=size,
        around=about.around,
        decision=checked.around,
        same=len(checked.same),
        anonymised=about.anonymised,
        versions=about.versions,
        otherwise_than_logged=otherwise,
    )
    show(answer, lambda out: _print(out, answer), as_json=as_json)
    if not answer.reproduced:
        raise NotReproducedError(f"{path}: {_why_not(checked)}")
    if answer.decision in otherwise:
        raise NotReproducedError(f"{path}: {_OTHERWISE.format(utc(answer.decision or 0))}")


def _print(out: Console, answer: IncidentAnswer) -> None:
    decision = "none" if answer.decision is None else utc(answer.decision)
    again = f"{answer.same} identical, {len(answer.different)} different, {len(answer.unknown)} failed"
    fields = [
        ("file", f"{answer.file}, {answer.bytes / 1e6:,.1f} MB"),
        ("cluster", f"{answer.cluster}, names are {'replaced' if answer.anonymised else 'as they are'}"),
        ("about", f"the decision of {decision}"),
        ("replayed", again),
        *([("hint", _SETTINGS_DIFFER)] if answer.different else []),
        *([("with other names", _other_names(answer))] if answer.anonymised else []),
        ("versions", ", ".join(f"{name} {value}" for name, value in answer.versions.items() if value)),
    ]
    print_fields(out, fields)


def _other_names(answer: IncidentAnswer) -> str:
    if not answer.otherwise_than_logged:
        return "the decisions move the same as in the log, unless a warning was printed when the file was made"
    return f"{counted(len(answer.otherwise_than_logged), 'decision')} move something else than in the log"


def _why_not(checked: CheckedIncident) -> str:
    if checked.around is None:
        return "there is no decision up to that time: the journal has none, or --minutes is too small"
    if checked.around in checked.unknown:
        return (
            f"the decision of {utc(checked.around)} cannot be replayed: the memory that it began with is not in the"
            " journal"
        )
    n = counted(len(checked.different), "decision")
    return (
        f"{n} come out differently, that of {utc(checked.around)} too: read more of the log for averages (--before),"
        " and give the settings that were in force (--conf)"
    )
