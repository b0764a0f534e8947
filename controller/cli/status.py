"""``trimtab status``: print what the controller did last; for a bundle, its owner and the last decision about it."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from controller.adapters.pulsar.access import pulsar_admin
from controller.cli.common import DEFAULT_CONF, Conf
from controller.model.decision import Command
from controller.model.names import parse_bundle
from controller.settings.trimtab_toml import Settings, read_settings
from controller.status.bundle import last_decision, live_bundle
from controller.status.cluster import ClusterStatus, cluster_status
from controller.status.guardrails import guardrail_fields, guardrail_rows
from controller.status.told import bundle_fields, bundle_lines, does, json_of, utc
from controller.wire.results import Result

_ANSWER_SECONDS = 10.0


def status(
    bundle: Annotated[
        str | None,
        typer.Argument(help="Show only this bundle: tenant/namespace/0x00000000_0x40000000.", show_default=False),
    ] = None,
    conf: Conf = DEFAULT_CONF,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Print the leader, the last decision and the results of its commands; or a bundle's owner and last decision."""
    settings = read_settings(conf)
    if bundle is None:
        found = _asked(settings)
        typer.echo(json.dumps(_fields(found)) if as_json else "\n".join(_lines(found)))
        return
    parse_bundle(bundle)
    admin = None if settings.pulsar is None else pulsar_admin(settings, answer_seconds=_ANSWER_SECONDS)
    live = None if admin is None else live_bundle(admin, bundle)
    decision = last_decision(settings, bundle, "" if live is None else live.owner)
    if as_json:
        typer.echo(json.dumps(bundle_fields(bundle, live, decision)))
    else:
        typer.echo("\n".join(bundle_lines(bundle, live, decision)))


def _asked(settings: Settings) -> ClusterStatus:
    admin = None if settings.pulsar is None else pulsar_admin(settings, answer_seconds=_ANSWER_SECONDS)
    return cluster_status(settings, admin)


def _fields(found: ClusterStatus) -> dict[str, Any]:
    last = found.last
    return {
        "cluster": found.cluster,
        "epoch": found.epoch,
        "ticked": found.ticked,
        "last": None
        if last is None
        else {
            "interval": last.interval,
            "summary": last.decision.summary,
            "mode": last.controls.mode,
            "paused": last.controls.paused,
            "stale": last.controls.stale,
            "samples": last.memory.samples,
        },
        "inFlight": {key: asdict(flight) for key, flight in found.in_flight.items()},
        "commands": [json_of(command, result) for command, result in found.commands],
        "judged": found.judged,
        "reasons": dict(found.reasons),
        "imbalance": None if found.imbalance is None else asdict(found.imbalance),
        "silent": dict(found.silent),
        "guardrails": guardrail_fields(found.guardrails),
    }


def _lines(found: ClusterStatus) -> list[str]:
    now = datetime.now(UTC).timestamp() * 1000
    rows: dict[str, str] = {
        "cluster": found.cluster,
        "epoch": str(found.epoch) if found.epoch else "none: no controller has led yet",
    }
    last = found.last
    if last is None:
        rows["decided"] = "nothing yet"
    else:
        controls = last.controls
        notes = [note for note, on in (("paused", controls.paused), ("stale", controls.stale)) if on]
        how = ", ".join([controls.mode, *notes])
        rows["decided"] = f"{utc(last.interval)}, {_age(now, last.interval)}, {how}: {last.decision.summary}"
    rows |= guardrail_rows(found.guardrails)
    rows["ticked"] = "never" if found.ticked is None else f"{utc(found.ticked)}, {_age(now, found.ticked)}"
    if found.imbalance is not None:
        even = found.imbalance
        rows["imbalance"] = (
            f"max/mean of {even.brokers} brokers {even.msg_rate:.2f} by messages, {even.msg_throughput:.2f} by bytes;"
            f" busiest {even.busiest}"
        )
    for broker, why in found.silent.items():
        rows[f"silent {broker}"] = why
    if found.judged is not None:
        rows["reasons"] = f"{utc(found.judged)}: {_counts(found.reasons)}"
    rows["in flight"] = str(len(found.in_flight))
    lines = [f"{key:<10} {value}" for key, value in rows.items()]
    lines += [_of_command(command, result) for command, result in found.commands]
    return lines


def _of_command(command: Command, result: Result | None) -> str:
    became = "no result yet" if result is None else f"{result.status} {result.detail}".rstrip()
    return f"  {utc(command.interval)}  {command.action} {command.bundle}  {does(command)}: {became}"


def _counts(reasons: Mapping[str, int]) -> str:
    return ", ".join(f"{reason} {count}" for reason, count in reasons.items()) or "none"


def _age(now_ms: float, then_ms: int) -> str:
    return f"{(now_ms - then_ms) / 1000:.0f} s ago"
