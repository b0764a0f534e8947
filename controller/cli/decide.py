"""``trimtab decide``: print what trimtab would do about recorded load, and why; no command is issued."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import typer
from rich.table import Table
from rich.text import Text

from controller.cli.common import console
from controller.cycle import Policy
from controller.model.decision import Command, Verdict
from controller.model.errors import SettingsError
from controller.offline.recorded_load import RecordedLoad, read_load
from controller.offline.what_if import WhatIf, what_would_be_done
from controller.settings.broker_conf import read_broker_conf, told
from controller.settings.guardrails import GuardrailSettings
from controller.settings.pairs import EXTENSIBLE, LOAD_MANAGER, PLACEMENT, SHEDDER
from controller.settings.policy import policy_of
from controller.settings.trimtab_toml import DecisionSettings
from controller.strategies.catalogue import PLACEMENTS, SHEDDERS, short_name

_MOVED: Final = 3

_Load: TypeAlias = Annotated[
    Path,
    typer.Option(
        help="A load report as a broker serves it, JSON lines of reports or sweeps, a folder of such files, or the"
        " folder of a log.  The last interval is decided.",
        exists=True,
        show_default=False,
    ),
]
_Strategy: TypeAlias = Annotated[
    str,
    typer.Option(
        help=f"The shedder: {', '.join(SHEDDERS)}; or the full name of Pulsar's class.",
        show_default=False,
    ),
]
_BrokerConf: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        help="The options, by Pulsar's names.  PULSAR_PREFIX_ variables override them.",
        exists=True,
        dir_okay=False,
        show_default="Pulsar's defaults",
    ),
]
_Placement: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help=f"The placement: {', '.join(PLACEMENTS)}.",
        show_default="that of --broker-conf, else the strategy's own, else Pulsar's default",
    ),
]
_Rounds: TypeAlias = Annotated[
    int,
    typer.Option(
        min=1,
        max=1000,
        help="Decide up to this many times on the same load, until something would move: some strategies wait for"
        " several intervals.",
    ),
]
_Cluster: TypeAlias = Annotated[
    str | None,
    typer.Option(help="Use the records of this cluster.", show_default="that of the first record that names one"),
]


def decide(
    load: _Load,
    strategy: _Strategy,
    broker_conf: _BrokerConf = None,
    placement: _Placement = None,
    split: Annotated[bool, typer.Option("--split", help="Also look for bundles to split.")] = False,
    rounds: _Rounds = 1,
    cluster: _Cluster = None,
    period_seconds: Annotated[int, typer.Option(min=1, help="Length of an interval.")] = 60,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the choice among equally good brokers.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Decide once on recorded load, and explain why.  Nothing is moved.

    The guardrails for a new or paused controller and for missing data do not apply.

    Exit codes: 0 nothing would be moved or split; 3 something would; 2 an option or the load is invalid.
    """
    policy = _policy(strategy, placement, broker_conf, split=split, period_ms=period_seconds * 1000)
    recorded = read_load(load, cluster=cluster, period_ms=period_seconds * 1000)
    answer = what_would_be_done(recorded.records, policy, seed=seed, rounds=rounds)
    notes = _notes(recorded, answer)
    if as_json:
        typer.echo(json.dumps(_as_json(recorded.cluster, policy, answer, notes), ensure_ascii=False))
    else:
        _print(answer, notes)
    if answer.decision.commands:
        raise typer.Exit(_MOVED)


def _policy(strategy: str, placement: str | None, broker_conf: Path | None, *, split: bool, period_ms: int) -> Policy:
    """The policy of the options.  What --strategy needs besides is the default of the other options."""
    file = broker_conf or Path(os.devnull)
    conf = read_broker_conf(file, os.environ)
    named = short_name(strategy)
    own: dict[str, str] = {}
    if named == "TransferShedder":
        own[LOAD_MANAGER] = EXTENSIBLE
    if named in PLACEMENTS:
        own[PLACEMENT] = named
    asked = {SHEDDER: strategy} | ({} if placement is None else {PLACEMENT: placement})
    decisions = DecisionSettings(mode="active", split=split)
    try:
        return policy_of(
            {**own, **{k: v for k, v in conf.items() if v}, **asked}, decisions, GuardrailSettings(), 1, "", period_ms
        )
    except SettingsError as error:
        where = (
            "--strategy, --placement" if broker_conf is None else f"--strategy, --placement, {told(file, os.environ)}"
        )
        raise SettingsError(f"{where}: {error}") from error


def _notes(recorded: RecordedLoad, answer: WhatIf) -> list[str]:
    """Notes on the load: brokers that are not counted, and records that are not used."""
    at = max(recorded.heard.values())
    silent = [
        f"{broker} is not counted: its last report is {(at - time_ms) / 60_000:.0f} min older than the newest"
        for broker, time_ms in sorted(recorded.heard.items())
        if broker not in answer.view.brokers.code_of
    ]
    return [*silent, *(f"not used: {refused}" for refused in recorded.refused)]


def _as_json(cluster: str, policy: Policy, answer: WhatIf, notes: Sequence[str]) -> dict[str, Any]:
    decision, brokers = answer.decision, answer.view.brokers
    return {
        "cluster": cluster,
        "interval": answer.view.as_of_ms,
        "strategy": type(policy.shedder).__name__,
        "placement": type(policy.placement).__name__,
        "round": answer.round,
        "brokers": len(brokers),
        "bundles": len(answer.view.bundles),
        "missing": list(answer.view.missing),
        "summary": decision.summary,
        "commands": [_command_json(command) for command in decision.commands],
        "verdicts": [_verdict_json(verdict) for verdict in decision.verdicts],
        "notes": list(notes),
    }


def _command_json(command: Command) -> dict[str, Any]:
    if command.action == "unload":
        details: Mapping[str, Any] = {"destination": command.destination}
    else:
        details = {
            "algorithm": command.algorithm,
            "boundaries": list(command.boundaries),
            "unloadAfterSplit": command.unload_after_split,
        }
    return {
        "action": command.action,
        "bundle": command.bundle,
        "broker": command.source,
        **details,
        "why": _verdict_json(command.why),
    }


def _verdict_json(verdict: Verdict) -> dict[str, Any]:
    return {key: value for key, value in asdict(verdict).items() if value not in (None, "")}


def _print(answer: WhatIf, notes: Sequence[str]) -> None:
    out, decision = console(), answer.decision
    if decision.commands:
        table = Table("do", "bundle", "from", "to, or cut at", "because", title="Would be done", title_justify="left")
        for one in decision.commands:
            how = one.destination or ", ".join(f"0x{cut:08x}" for cut in one.boundaries) or one.algorithm
            table.add_row(*map(Text, (one.action, one.bundle, one.source, how, str(one.why))))
        out.print(table)
    table = Table("what", "reason", "observed", "limit", "unit", "by", "", title="Verdicts", title_justify="left")
    for verdict in decision.verdicts:
        numbers = ("" if n is None else f"{n:.6g}" for n in (verdict.observed, verdict.limit))
        row = (verdict.subject, verdict.reason, *numbers, verdict.unit, verdict.by, verdict.detail)
        table.add_row(*map(Text, row))
    out.print(table)
    for note in notes:
        out.print(Text(note))
    rounds = f" (round {answer.round})" if answer.round > 1 else ""
    out.print(Text(f"{decision.summary}{rounds}"))
