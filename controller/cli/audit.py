"""``trimtab audit``: what became of every move: what it promised, what came of it, whether it was undone."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from controller.adapters.long_work import long_work
from controller.adapters.outages import Part
from controller.adapters.recordings.manifest import recorded_settings
from controller.cli.shared.answers import show
from controller.cli.shared.arguments import FORMS, bundle_of, span_of
from controller.cli.shared.console import DEFAULT_CONF, LONGEST_PERIOD, json_option
from controller.cli.shared.reachable import require
from controller.cli.texts.audit import answer_of, print_audit
from controller.log.factory import log_system
from controller.model.names import is_name
from controller.offline.audit import AuditScope, audit, part_of_live_log
from controller.offline.counterfactual.reading import RecordedLoadLog
from controller.offline.counterfactual.replay_source import ReplaySource, open_source
from controller.offline.counterfactual.survey import ReplaySpan
from controller.settings.trimtab_toml import read_settings

#: Of a live log, unless --from says otherwise: moves of the last hour are not known whole.
LIVE_SINCE: Final = "3h"

_Recording: TypeAlias = Annotated[
    Path | None,
    typer.Argument(
        metavar="[RECORDING]",
        help="A recording (`trimtab record`), the folder of a log, or an incident (`trimtab incident`).",
        show_default="the live log that the settings name",
    ),
]
_Since: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--from",
        help=f"Audit moves that were decided from this time on: {FORMS}.",
        show_default=f"all of a recording; {LIVE_SINCE} of a live log",
    ),
]
_Bundle: TypeAlias = Annotated[
    str | None,
    typer.Option(help="Only moves of this bundle: tenant/namespace/0x00000000_0x40000000.", show_default=False),
]
_Namespace: TypeAlias = Annotated[
    str | None, typer.Option(help="Only moves of this namespace: tenant/namespace.", show_default=False)
]
_Conf: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        help="The settings file of the controller.",
        exists=True,
        dir_okay=False,
        show_default=f"those of the recording; of a live log {DEFAULT_CONF}",
    ),
]


def audit_moves(
    recording: _Recording = None,
    since: _Since = None,
    until: Annotated[str | None, typer.Option("--to", help="Audit moves that were decided up to this time.")] = None,
    bundle: _Bundle = None,
    namespace: _Namespace = None,
    conf: _Conf = None,
    most: Annotated[int, typer.Option(min=0, max=10_000, help="List at most this many rows in each table.")] = 20,
    period_seconds: Annotated[
        int, typer.Option(min=1, max=LONGEST_PERIOD, help="Length of an interval, of a log in a folder without --conf.")
    ] = 60,
    as_json: Annotated[bool, json_option("answer.audit")] = False,
) -> None:
    """Print for every move what it promised, what it achieved, and whether it was undone; with sums.

    Each move: how full source and destination were to be and were two intervals later, what the bundle took along, how
    many clients had to reconnect, whether it was back within an hour, and whether fewer moves would have done.

    Exit codes: 0 printed; 1 the log or the recording cannot be read; 2 an option or the settings are invalid,
    or there is no interval to audit.
    """
    span = _span(since, until, live=recording is None)
    if namespace is not None and not (is_name(namespace) and namespace.count("/") in (1, 2)):
        raise typer.BadParameter(f"{namespace!r} is not a namespace: give tenant/namespace", param_hint="--namespace")
    named = "" if bundle is None else bundle_of(bundle, of="--bundle")
    scope = AuditScope(span=span, bundle=named, namespace=namespace or "")
    with _recording_of(recording, conf, period_seconds, span) as opened_log, long_work("auditing, records") as tell:
        answer = answer_of(audit(opened_log, scope, tell), is_known=opened_log.known)
    show(answer, lambda out: print_audit(out, answer, most), as_json=as_json)


@contextmanager
def _recording_of(
    path: Path | None, conf: Path | None, period_seconds: int, span: ReplaySpan
) -> Iterator[ReplaySource]:
    if path is not None:
        with open_source(path, conf, period_seconds=period_seconds) as opened_log:
            yield opened_log
        return
    settings = read_settings(conf or DEFAULT_CONF)
    with long_work("checking what the log contains"):
        require(settings, Part.LOG)
        log = RecordedLoadLog(
            records=log_system(settings).records(), cluster=settings.cluster.name, settings=settings.intervals
        )
        live = ReplaySource(log=log, settings=recorded_settings(settings), known=True)
        part = part_of_live_log(live, span.since or 0, span.until)
    yield part


def _span(since: str | None, until: str | None, *, live: bool) -> ReplaySpan:
    begin, end = span_of(since or (LIVE_SINCE if live else None), until)
    return ReplaySpan(since=begin, until=end)
