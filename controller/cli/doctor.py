"""``trimtab doctor``: check whether trimtab can balance the cluster, and say what to change."""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Final, NoReturn

import typer
from rich.console import Console

from controller.adapters.kafka.rights import rights
from controller.adapters.long_work import long_work
from controller.adapters.outages import outages
from controller.cli.shared.answers import show
from controller.cli.shared.console import DEFAULT_CONF, Conf, json_option
from controller.cli.shared.layout import Column, print_line, print_table
from controller.doctor.checks import judge
from controller.doctor.finding import listed
from controller.doctor.gather import gather
from controller.model.errors import SettingsError
from controller.settings.trimtab_toml import Settings, read_settings
from controller.wire.answers.doctor import DoctorAnswer, FindingAnswer
from controller.wire.readable import counted

_COLUMNS: Final = (
    Column(heading="", styles={"error": "bold red", "warning": "yellow", "ok": "green"}),
    Column(heading="finding"),
    Column(heading="where", prose=True),
    Column(heading="seen", prose=True),
    Column(heading="wanted", prose=True),
)


def doctor(
    conf: Conf = DEFAULT_CONF,
    strict: Annotated[bool, typer.Option("--strict", help="Treat warnings as errors.")] = False,
    as_json: Annotated[bool, json_option("answer.doctor")] = False,
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
    with long_work("waiting for the brokers, the log and the election"):
        findings = judge(gather(settings, away=outages(settings)))
    answers = [FindingAnswer.from_object(each, seen=each.observed, wanted=each.expected) for each in findings]
    answer = DoctorAnswer(healthy=is_healthy(answers, strict=strict), findings=answers)
    show_findings(answer, as_json=as_json)


def show_findings(answer: DoctorAnswer, *, as_json: bool) -> NoReturn:
    """Print *answer*, and end with its exit code."""
    show(answer, lambda out: _print(out, answer.findings), as_json=as_json)
    raise typer.Exit(0 if answer.healthy else 1)


def _print_grants(settings: Settings) -> None:
    if settings.log.kafka is None:
        raise SettingsError("--grants needs a log in Kafka: add a section [log.kafka]")
    for right in rights(
        settings.log.kafka,
        group=settings.executor.group,
        cluster=settings.cluster.name,
        election=settings.elects_on_log,
    ):
        typer.echo(f"kafka-acls.sh --bootstrap-server {settings.log.kafka.bootstrap} {right.command}")


def is_healthy(findings: Sequence[FindingAnswer], *, strict: bool) -> bool:
    """No errors; with *strict*, no warnings either."""
    return not any(each.severity == "error" or (strict and each.severity == "warning") for each in findings)


def _print(out: Console, findings: Sequence[FindingAnswer]) -> None:
    counts = Counter(finding.severity for finding in findings)
    rows = [(each.severity, each.code, listed(each.objects), each.seen, each.wanted) for each in findings]
    print_table(out, _COLUMNS, rows, head=2)
    out.print()
    # Below the table; a line with a command is not wrapped, so that it can be copied.
    for finding in findings:
        if finding.advice:
            print_line(out, f"{finding.code}, {listed(finding.objects)}:")
            if " --" in finding.advice:
                out.print(f"  {finding.advice}", markup=False, soft_wrap=True)
            else:
                print_line(out, finding.advice, first="  ", rest="  ")
    problems = f"{counted(counts['error'], 'error')}, {counted(counts['warning'], 'warning')}"
    out.print(f"{problems}, {counts['ok']} fine")
