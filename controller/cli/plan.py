"""``trimtab plan``: make a plan that a person checks and approves; nothing is moved."""

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from controller.adapters.long_work import long_work
from controller.adapters.outages import Part
from controller.adapters.recordings.reading import Recording
from controller.cli.shared.answers import show
from controller.cli.shared.arguments import now_ms, time_of
from controller.cli.shared.console import DEFAULT_CONF, Conf, json_option
from controller.cli.shared.option_groups import LoadSource, grouped
from controller.cli.shared.output_file import require_writable, write_output
from controller.cli.shared.reachable import require
from controller.cli.texts.planned import print_plan, print_rightsizing, rightsizing_answer
from controller.offline.plans.answer import plan_answer
from controller.offline.plans.planner import PlannedCluster, PlanRequest, planned_cluster
from controller.offline.plans.rightsizing import rightsizing
from controller.offline.plans.source import PlanSource, source_of_load, source_of_log, source_of_recording
from controller.planning.plans.plan import BALANCE, DRAIN, JOIN, REMOVE, RESTART
from controller.settings.trimtab_toml import read_settings
from controller.wire.plan import encode_plan
from controller.wire.readable import utc

_NOT_IN_TIME: Final = 1
_DAY_MS: Final = 86_400_000
_MOVES: Final = re.compile(r"(\d{1,6}) ?moves?")
_RATE: Final = re.compile(r"(\d{1,9}) ?connections/(s|min|h)")
_SECONDS: Final = {"s": 1, "min": 60, "h": 3600}
_KINDS: Final = "--drain, --join, --move, --rolling-restart, --remove, or --headroom with --add"


class OwnResource(StrEnum):
    """Resources of ``--own``, by the words of from_view.FOLLOWING."""

    CPU = "cpu"
    BANDWIDTH_IN = "bandwidth-in"
    BANDWIDTH_OUT = "bandwidth-out"


@dataclass(frozen=True, kw_only=True)
class PlanKindOptions:
    """What a plan is for; without any of these it spreads the load."""

    drain: Annotated[
        list[str] | None,
        typer.Option(metavar="BROKER", help="Move all bundles off this broker; can be repeated.", show_default=False),
    ] = None
    join: Annotated[
        list[str] | None,
        typer.Option(
            metavar="BROKER", help="Fill this new broker from the others; can be repeated.", show_default=False
        ),
    ] = None
    move: Annotated[
        list[str] | None,
        typer.Option(
            metavar="BUNDLE=BROKER",
            help="Try this move, and only moves named this way; can be repeated.",
            show_default=False,
        ),
    ] = None
    rolling_restart: Annotated[bool, typer.Option(help="Restart every broker: empty one, then the next.")] = False
    zone: Annotated[
        bool, typer.Option("--zone", help="With --rolling-restart: a failure domain at a time, not a broker.")
    ] = False
    remove: Annotated[
        int,
        typer.Option(min=0, max=10_000, help="Empty this many brokers, chosen to disturb the fewest clients."),
    ] = 0

    def request(self) -> PlanRequest:
        """The plan that is asked for; typer.BadParameter where more than one kind is given."""
        if sum(map(bool, (self.drain, self.join, self.move, self.rolling_restart, self.remove))) > 1:
            raise typer.BadParameter(f"give one of {_KINDS}")
        if self.zone and not self.rolling_restart:
            raise typer.BadParameter("needs --rolling-restart", param_hint="--zone")
        if self.drain:
            return PlanRequest(kind=DRAIN, brokers=tuple(self.drain), text=f"drain {_listed(self.drain)}"[:900])
        if self.join:
            return PlanRequest(kind=JOIN, brokers=tuple(self.join), text=f"fill {_listed(self.join)}"[:900])
        if self.move:
            return PlanRequest(named=tuple(map(_named, self.move)), text=f"move {', '.join(self.move)}"[:900])
        if self.rolling_restart:
            each = "failure domain" if self.zone else "broker"
            return PlanRequest(kind=RESTART, by_zone=self.zone, text=f"restart every {each}")
        if self.remove:
            return PlanRequest(kind=REMOVE, number=self.remove, text=f"remove {self.remove} brokers")
        return PlanRequest(text="spread the load")


@dataclass(frozen=True, kw_only=True)
class PlanLimitOptions:
    """How far a plan may go, and how it counts load."""

    budget: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N moves|N connections/min",
            help="The maximum number of moves; or of producers and consumers that reconnect in a second (/s), minute"
            " (/min) or hour (/h).  A wave is issued at once: its clients exceed neither that number, nor what the rate"
            " allows until the next wave; a bundle that has more moves alone.  Each form can be given once.",
            show_default="no limit",
        ),
    ] = None
    to: Annotated[
        float, typer.Option(min=1.0, max=100.0, help="Stop once the highest usage is this many times the mean usage.")
    ] = 1.05
    peers_below: Annotated[
        float,
        typer.Option(
            min=1.0,
            max=100.0,
            help="With --drain, --rolling-restart and --remove: no other broker goes above this usage, in %.",
        ),
    ] = 100.0
    own: Annotated[
        list[OwnResource] | None,
        typer.Option(
            help="Usage of this resource stays with the brokers when bundles leave, such as the CPU of a host that also"
            " does other work.  Bundles are then spread by message rate; can be repeated.",
            show_default="all follow the load, unless the brokers' load shows that a part does not",
        ),
    ] = None
    wave_moves: Annotated[
        int, typer.Option(min=1, max=100, help="Maximum moves of one wave; half as many off, or to, any one broker.")
    ] = 20
    frontier: Annotated[
        bool,
        typer.Option("--frontier", help="Also show how low other numbers of moves would bring the highest usage."),
    ] = False

    @property
    def own_names(self) -> tuple[str, ...]:
        """The resources of --own, by the words of a plan."""
        return tuple(sorted({each.value.replace("-", " ") for each in self.own or []}))

    def of(self, request: PlanRequest) -> PlanRequest:
        """*request* within these limits."""
        if not self.to >= 1:  # NaN
            raise typer.BadParameter("is not a number", param_hint="--to")
        request = replace(
            request,
            frontier=self.frontier,
            own=self.own_names,
            to=self.to,
            ceiling=self.peers_below / 100,
            wave_moves=self.wave_moves,
            wave_moves_per_broker=max(1, (self.wave_moves + 1) // 2),
        )
        if request.kind == BALANCE and not request.named:
            request = replace(request, text=f"{request.text} to {self.to:g} times the mean")
        for each in self.budget or []:
            request = _budgeted(request, each.strip())
        return request


@dataclass(frozen=True, kw_only=True)
class RightsizingOptions:
    """How many brokers the cluster needs, in place of a plan."""

    headroom: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=99.0,
            help="Show how many brokers keep this many percent of each free.",
            show_default="30, with --add",
        ),
    ] = None
    add: Annotated[
        int,
        typer.Option(min=0, max=10_000, help="Show what this many more brokers, each an average one, would change."),
    ] = 0

    @property
    def is_requested(self) -> bool:
        """Whether this is asked for."""
        return self.headroom is not None or self.add > 0


@grouped
def plan(
    source: LoadSource,
    kind: PlanKindOptions,
    limits: PlanLimitOptions,
    sizes: RightsizingOptions,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Check whether the plan can be carried out by this time: 14:05 (UTC, of the next 24 hours), or"
            " 2025-01-31T14:05:00Z.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write the plan to this new file.", dir_okay=False, show_default=False),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            help="With --load: use the records of this cluster.",
            show_default="that of the first record that names one",
        ),
    ] = None,
    conf: Conf = DEFAULT_CONF,
    as_json: Annotated[bool, json_option("answer.{plan,rightsizing}")] = False,
) -> None:
    """Make a plan: moves in waves, what they do to each broker, and what is proved about them.  Nothing is moved.

    Without another kind, the plan spreads the load.

    Exit codes: 0 there is a plan; 1 it does not meet --by, or bundles stay on a broker that should be empty, a move of
    --move is not possible, or there is no plan; 2 an option or the load is invalid.
    """
    request, now = kind.request(), now_ms()
    _refuse_kinds(request, output, sizes=sizes.is_requested, frontier=limits.frontier)
    source.refuse_misfits(of_load={"--cluster": cluster})
    if source.at is not None and source.recording is None:
        raise typer.BadParameter("needs --recording", param_hint="--at")
    deadline_ms = None if by is None else _deadline(by, now)
    request = limits.of(request)
    loaded = _loaded(source, cluster, conf, now)
    if sizes.is_requested:
        headroom = 0.3 if sizes.headroom is None else sizes.headroom / 100
        _tell_rightsizing(loaded, headroom, sizes.add, request.own, as_json=as_json)
    else:
        tell_plan(_planned(loaded, request), output, conf, as_json=as_json, now_ms=now, deadline_ms=deadline_ms)


def tell_plan(
    planned: PlannedCluster,
    output: Path | None,
    conf: Path,
    *,
    as_json: bool,
    now_ms: int = 0,
    deadline_ms: int | None = None,
) -> None:
    """Write *planned* to *output*, and print it; exit code 1 where it does not do all that it is to do.

    *conf* are the settings with which it is to be carried out.
    """
    # A plan of no moves is none to approve, and its file would be in the way of the next one.
    written = None if not planned.plan.moves else output
    if written is not None:
        write_output(written, encode_plan(planned.plan), "--output")
    elif output is not None:
        typer.echo("; ".join(("the plan has no moves, so it is not written", *planned.notes)), err=True)
    answer = plan_answer(planned, file="" if written is None else str(written), now_ms=now_ms, deadline_ms=deadline_ms)
    show(answer, lambda out: print_plan(out, answer, conf), as_json=as_json)
    if answer.in_time is False or planned.stays or answer.never_issued:
        raise typer.Exit(_NOT_IN_TIME)


def _listed(brokers: list[str]) -> str:
    return ", ".join(sorted(set(brokers)))


def _named(text: str) -> tuple[str, str]:
    """Bundle and broker; a namespace may have = in its name, a broker has none."""
    bundle, _, broker = text.strip().rpartition("=")
    if not bundle or not broker:
        raise typer.BadParameter(
            f"{text!r}: give the bundle and the broker, as acme/orders/0x00000000_0x40000000=broker-2:8080",
            param_hint="--move",
        )
    return bundle, broker


def _budgeted(request: PlanRequest, budget: str) -> PlanRequest:
    """*request* within the *budget* of one --budget."""
    moves, rate = _MOVES.fullmatch(budget), _RATE.fullmatch(budget)
    if moves is not None and request.kind in (BALANCE, JOIN) and not request.named:
        request = replace(request, max_moves=min(request.max_moves, int(moves[1])))
    elif moves is not None and request.named:
        raise typer.BadParameter(f"{budget!r}: the moves are those of --move", param_hint="--budget")
    elif moves is not None:
        raise typer.BadParameter(f"{budget!r}: emptying a broker takes as many moves as it has bundles")
    elif rate is not None and int(rate[1]) > 0:
        if request.connections_per_second is not None:
            raise typer.BadParameter(f"{budget!r}: give one rate of connections", param_hint="--budget")
        seconds = _SECONDS[rate[2]]
        request = replace(request, connections_per_second=int(rate[1]) / seconds, burst_seconds=float(seconds))
    else:
        raise typer.BadParameter(f"{budget!r}: give '20 moves' or '500 connections/min'", param_hint="--budget")
    return replace(request, text=f"{request.text}, at most {budget}")


def _deadline(text: str, now_ms: int) -> int:
    deadline_ms = time_of(text, now_ms=now_ms, of="--by")
    if deadline_ms <= now_ms and ":" in text and "-" not in text:
        deadline_ms += _DAY_MS
    if deadline_ms <= now_ms:
        raise typer.BadParameter(f"{text} is {utc(deadline_ms)}, which is in the past", param_hint="--by")
    return deadline_ms


def _refuse_kinds(request: PlanRequest, output: Path | None, *, sizes: bool, frontier: bool) -> None:
    if sizes and (request.kind != BALANCE or request.named):
        raise typer.BadParameter(f"give one of {_KINDS}", param_hint="--headroom, --add")
    if sizes and output is not None:
        raise typer.BadParameter("does not make a plan: leave out --output", param_hint="--headroom, --add")
    if frontier and (request.kind != BALANCE or request.named or sizes):
        raise typer.BadParameter(f"is of a plan that spreads the load: leave out {_KINDS}", param_hint="--frontier")
    if output is not None:
        require_writable(output, "--output")


def _loaded(source: LoadSource, cluster: str | None, conf: Path, now: int) -> PlanSource:
    if source.load:
        period_ms = source.period_seconds * 1000
        with long_work("reading the load"):
            return source_of_load(
                source.load, source.broker_conf, cluster=cluster, period_ms=period_ms, pulsar=source.pulsar
            )
    if source.recording is not None:
        at_ms = None if source.at is None else time_of(source.at, now_ms=now, of="--at")
        return source_of_recording(Recording(source.recording), at_ms)
    settings = read_settings(conf)
    with long_work("reading the journal and the log"):
        require(settings, Part.LOG)
        return source_of_log(settings, before=source.intervals)


def _planned(source: PlanSource, request: PlanRequest) -> PlannedCluster:
    with long_work("making the plan"):
        return planned_cluster(source, request)


def _tell_rightsizing(source: PlanSource, headroom: float, added: int, own: tuple[str, ...], *, as_json: bool) -> None:
    with long_work("making the plan"):
        result = rightsizing(source, headroom=headroom, added=added, own=own)
    answer = rightsizing_answer(source, result)
    show(answer, lambda out: print_rightsizing(out, answer), as_json=as_json)
