"""``trimtab ticks``: turn a recording without ticks into a log that can be replayed."""

from pathlib import Path
from typing import Annotated, Final

import typer

from controller.cli.shared.answers import show
from controller.cli.shared.console import LONGEST_PERIOD, json_option
from controller.model.errors import SettingsError, TrimtabError
from controller.offline.recording import write_ticks
from controller.settings.log import LogInFolder
from controller.settings.trimtab_toml import IntervalSettings, Settings, read_settings
from controller.wire.answers.offline import TicksAnswer
from controller.wire.readable import counted

_PERIOD_SECONDS: Final = IntervalSettings().period_seconds


def ticks(
    recording: Annotated[
        Path | None,
        typer.Argument(
            metavar="FOLDER",
            help="Folder with files of JSON lines, or with load reports as brokers write them.  Default: the log folder"
            " of --conf.",
            exists=True,
            file_okay=False,
            show_default=False,
        ),
    ] = None,
    conf: Annotated[
        Path | None, typer.Option(help="Settings that give the folder, the cluster and the period.", show_default=False)
    ] = None,
    into: Annotated[
        Path | None, typer.Option(help="Folder of the new log.", show_default="FOLDER-ticked, beside FOLDER")
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(help="Use the records of this cluster.", show_default="that of --conf, else standalone"),
    ] = None,
    period_seconds: Annotated[
        int | None,
        typer.Option(min=1, max=LONGEST_PERIOD, help="Length of an interval.", show_default="that of --conf, else 60"),
    ] = None,
    as_json: Annotated[bool, json_option("answer.ticks")] = False,
) -> None:
    """Copy a recording, and add the ticks that a collector would have published."""
    settings = None if conf is None else read_settings(conf)
    source = (recording or _log_folder(settings)).resolve()
    target = into or source.with_name(f"{source.name}-ticked")
    seconds = period_seconds or (settings.intervals.period_seconds if settings else _PERIOD_SECONDS)
    try:
        count = write_ticks(
            source,
            target,
            cluster=cluster or (settings.cluster.name if settings else "standalone"),
            period_ms=seconds * 1000,
        )
    except OSError as error:
        raise TrimtabError(
            f"the new log cannot be written to {target}: {error.strerror}; choose another folder with --into"
        ) from error
    answer = TicksAnswer(ticks=count, folder=str(target))
    show(answer, lambda _: typer.echo(f"{counted(count, 'tick')} written to {target}"), as_json=as_json)


def _log_folder(settings: Settings | None) -> Path:
    if settings is None:
        raise typer.BadParameter("give the recording's folder, or --conf with a log in a folder", param_hint="FOLDER")
    if not isinstance(settings.log, LogInFolder):
        raise SettingsError(f"[log] kind is {settings.log.kind!r}: a recording is a folder; give it as FOLDER")
    return Path(settings.log.folder.path)
