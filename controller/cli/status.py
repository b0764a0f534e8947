"""``trimtab status``: print what the controller did last; for a bundle, its owner and the last decision about it."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Final

import typer

from controller.adapters.long_work import long_work
from controller.adapters.outages import Part
from controller.adapters.pulsar.access import pulsar_admin
from controller.adapters.pulsar.admin import PulsarAdmin
from controller.cli.shared.console import DEFAULT_CONF, Conf, command_line, console, json_option
from controller.cli.shared.layout import print_fields, print_line
from controller.cli.shared.reachable import require
from controller.cycle import version_text
from controller.model.decision import Command
from controller.model.errors import TrimtabError
from controller.model.names import parse_bundle
from controller.ports.leadership import Leader
from controller.settings.trimtab_toml import Settings, read_settings
from controller.status.bundle import last_decision, live_bundle
from controller.status.cluster import ClusterStatus, cluster_status
from controller.status.guardrails import guardrail_answer, guardrail_rows
from controller.status.texts import became, bundle_answer, bundle_rows, does
from controller.wire.answers.base import CommandAnswer, PulsarVersionAnswer
from controller.wire.answers.status import (
    ImbalanceAnswer,
    InFlightAnswer,
    LastDecisionAnswer,
    LeaderAnswer,
    StatusAnswer,
)
from controller.wire.readable import ago, counted, in_number, utc
from controller.wire.results import Result

_ANSWER_SECONDS: Final = 10.0
#: Exit code where there is no such bundle.
_NO_SUCH_BUNDLE: Final = 1
#: Width of the names in front of the values.
_LABEL: Final = 9


def status(
    bundle: Annotated[
        str | None,
        typer.Argument(help="Show only this bundle: tenant/namespace/0x00000000_0x40000000.", show_default=False),
    ] = None,
    conf: Conf = DEFAULT_CONF,
    as_json: Annotated[bool, json_option("answer.{status,status_bundle}")] = False,
) -> None:
    """Print the leader, the last decision and the results of its commands; or a bundle's owner and last decision.

    Exit codes: 0 printed, also where it names brokers or an election that did not answer; 1 the brokers have no such
    bundle, or the log did not answer, or, asked for a bundle, the brokers; 2 the settings are invalid.
    """
    settings = read_settings(conf)
    if bundle is None:
        _show_cluster(settings, conf, as_json=as_json)
        return
    try:
        parse_bundle(bundle)
    except TrimtabError as error:
        raise typer.BadParameter(str(error), param_hint="bundle") from error
    _show_bundle(settings, bundle, as_json=as_json)


@contextmanager
def _brokers(settings: Settings) -> Iterator[PulsarAdmin | None]:
    """Within the block trimtab waits for answers; yields the brokers' API, None where the settings name no broker.

    Raises TrimtabError where the log cannot be reached.
    """
    with long_work("waiting for answers of brokers, log and election"):
        require(settings, Part.LOG, useful=(Part.ELECTION, Part.BROKERS))
        yield None if settings.pulsar is None else pulsar_admin(settings, answer_seconds=_ANSWER_SECONDS)


def _show_cluster(settings: Settings, conf: Path, *, as_json: bool) -> None:
    with _brokers(settings) as admin:
        found = cluster_status(settings, admin)
    if as_json:
        typer.echo(_answer(found).as_line())
    else:
        _print(found, conf)


def _show_bundle(settings: Settings, bundle: str, *, as_json: bool) -> None:
    with _brokers(settings) as admin:
        live = None if admin is None else live_bundle(admin, bundle)
        decision = last_decision(settings, bundle, "" if live is None else live.owner)
    if as_json:
        typer.echo(bundle_answer(bundle, live, decision).as_line())
    else:
        print_fields(console(), bundle_rows(bundle, live, decision), label=_LABEL)
    if live is not None and live.missing:
        raise typer.Exit(_NO_SUCH_BUNDLE)


def _answer(found: ClusterStatus) -> StatusAnswer:
    last, leader = found.last, found.leader
    return StatusAnswer(
        cluster=found.cluster,
        epoch=found.epoch,
        leader=None if leader is None else LeaderAnswer(**leader._asdict()),
        leader_unknown=found.leader_unknown,
        ticked=found.ticked,
        last_unknown=found.last_unknown,
        last=None
        if last is None
        else LastDecisionAnswer(
            interval=last.interval,
            summary=last.decision.summary,
            mode=last.controls.mode,
            paused=last.controls.paused,
            stale=last.controls.stale,
            samples=last.memory.samples,
            pulsar=PulsarVersionAnswer.of(last.decision.pulsar),
        ),
        in_flight={key: InFlightAnswer(**asdict(flight)) for key, flight in found.in_flight.items()},
        commands=[CommandAnswer.of(command, result) for command, result in found.commands],
        judged=found.judged,
        reasons=dict(found.reasons),
        unreadable_policies=list(found.unreadable_policies),
        imbalance=None if found.imbalance is None else ImbalanceAnswer(**asdict(found.imbalance)),
        silent=dict(found.silent),
        guardrails=guardrail_answer(found.guardrails),
    )


def _print(found: ClusterStatus, conf: Path) -> None:
    now_ms = time.time() * 1000
    run, collect = (f"start `{command_line(name, conf=conf)}`" for name in ("run", "collect"))
    rows = [
        ("cluster", found.cluster),
        ("leader", f"unknown: {found.leader_unknown}" if found.leader_unknown else _leader(found.leader, now_ms, run)),
        ("epoch", str(found.epoch) if found.epoch else "none: no controller has led yet"),
        ("decided", _decided(found, now_ms, run, collect)),
        *_pulsar(found),
        *guardrail_rows(found.guardrails).items(),
        ("ticked", _ticked(found, now_ms, collect)),
    ]
    if found.imbalance is not None:
        even = found.imbalance
        rows.append(
            (
                "imbalance",
                f"the busiest of {counted(even.brokers, 'broker')} has {even.msg_rate:.2f} times the average by"
                f" messages ({even.busiest}), {even.msg_throughput:.2f} times by bytes",
            )
        )
    rows += [("silent", f"{broker}: {why}") for broker, why in found.silent.items()]
    if found.judged is not None:
        rows.append(("reasons", f"{utc(found.judged)}: {_counts(found.reasons)}"))
    rows += [("policies", why) for why in found.unreadable_policies]
    dry_run = sum(each.dry_run for each in found.in_flight.values())
    rows.append(("in flight", counted(len(found.in_flight) - dry_run, "command")))
    if dry_run:
        rows.append(("dry run", f"{counted(dry_run, 'command')} without an executor's answer; they move nothing"))
    out = console()
    print_fields(out, rows, label=_LABEL)
    for command, result in found.commands:
        print_line(out, _of_command(command, result), first="  ", rest="    ")


def _leader(leader: Leader | None, now_ms: float, run: str) -> str:
    if leader is None:
        return f"none: no controller runs; {run}"
    who = f"{leader.host}, process {leader.process}" if leader.host else "a process that does not say who it is"
    return f"{who}, since {utc(leader.since_ms)}, {ago(now_ms, leader.since_ms)}"


def _decided(found: ClusterStatus, now_ms: float, run: str, collect: str) -> str:
    last = found.last
    if found.last_unknown:
        return f"unknown: {found.last_unknown}"
    if last is None:
        if found.leader is None:
            return "nothing decided yet" + ("" if found.leader_unknown else f"; {run}")
        wait = collect if found.ticked is None else "a decision follows each interval that ends"
        return f"nothing decided yet; {wait}"
    controls = last.controls
    notes = [note for note, on in (("paused", controls.paused), ("stale", controls.stale)) if on]
    how = ", ".join([controls.mode, *notes])
    return f"{utc(last.interval)}, {ago(now_ms, last.interval)}, {how}: {in_number(last.decision.summary)}"


def _pulsar(found: ClusterStatus) -> list[tuple[str, str]]:
    used = None if found.last is None else found.last.decision.pulsar
    if used is None:
        return []
    advice = "set pulsar in [cluster], or run `trimtab collect`" if used.source == "nobody" else ""
    return [("pulsar", "; ".join(filter(None, [version_text(used), advice])))]


def _ticked(found: ClusterStatus, now_ms: float, collect: str) -> str:
    if found.ticked is None:
        return f"never: no interval has ended; {collect}"
    return f"{utc(found.ticked)}, {ago(now_ms, found.ticked)}"


def _of_command(command: Command, result: Result | None) -> str:
    action = f"{'dry run of ' if command.mode == 'dry_run' else ''}{command.action}"
    return f"{utc(command.interval)}  {action} {command.bundle}  {does(command)}: {became(result)}"


def _counts(reasons: Mapping[str, int]) -> str:
    return ", ".join(f"{reason} {count}" for reason, count in reasons.items()) or "none"
