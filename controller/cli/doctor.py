"""``trimtab doctor``: check whether trimtab can balance the cluster, and say what to change."""

import json
from collections import Counter
from dataclasses import asdict
from typing import Annotated, Final

import typer
from rich.table import Table
from rich.text import Text

from controller.adapters.kafka.rights import rights
from controller.cli.common import DEFAULT_CONF, Conf, console
from controller.doctor.checks import judge
from controller.doctor.finding import Finding, listed
from controller.doctor.gather import gather
from controller.model.errors import SettingsError
from controller.settings.trimtab_toml import Settings, read_settings

_STYLES: Final = {"error": "bold red", "warning": "yellow", "ok": "green"}


def doctor(
    conf: Conf = DEFAULT_CONF,
    strict: Annotated[bool, typer.Option("--strict", help="Treat warnings as errors.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    grants: Annotated[
        bool,
        typer.Option("--grants", help="Only print the kafka-acls.sh commands that grant the rights trimtab needs."),
    ] = False,
) -> None:
    """Check the cluster, the log and the election before trimtab acts.  Exit code 1: something is wrong."""
    settings = read_settings(conf)
    if grants:
        _print_grants(settings)
        return
    findings = judge(gather(settings))
    counts: Counter[str] = Counter(finding.severity for finding in findings)
    sick = counts["error"] > 0 or (strict and counts["warning"] > 0)
    if as_json:
        typer.echo(json.dumps({"healthy": not sick, "findings": [asdict(each) for each in findings]}))
    else:
        _print(findings, counts)
    raise typer.Exit(1 if sick else 0)


def _print_grants(settings: Settings) -> None:
    if settings.log.kafka is None:
        raise SettingsError("--grants needs a log in Kafka: add a section [log.kafka]")
    for right in rights(settings.log.kafka, group=settings.executor.group, cluster=settings.cluster.name):
        typer.echo(f"kafka-acls.sh --bootstrap-server {settings.log.kafka.bootstrap} {right.command}")


def _print(findings: list[Finding], counts: Counter[str]) -> None:
    out = console()
    table = Table("", "finding", "where", "seen", "wanted", expand=True)
    for finding in findings:
        table.add_row(
            Text(finding.severity, style=_STYLES[finding.severity]),
            Text(finding.code),
            Text(listed(finding.objects), overflow="fold"),
            Text(finding.seen, overflow="fold"),
            Text(finding.wanted, overflow="fold"),
        )
    out.print(table)
    # Below the table, because a command that a column wraps cannot be copied.
    for finding in findings:
        if finding.advice:
            out.print(Text(f"{finding.code}, {listed(finding.objects)}:\n  {finding.advice}"), soft_wrap=True)
    out.print(f"{counts['error']} errors, {counts['warning']} warnings, {counts['ok']} fine")
