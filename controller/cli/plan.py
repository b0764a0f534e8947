"""``trimtab plan``: make a plan that a person checks and approves; nothing is moved."""

import re
import time
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from controller.adapters.long_work import long_work
from controller.adapters.outages import Part
from controller.adapters.recordings.reading import Recording
from controller.cli.shared.console import DEFAULT_CONF, LONGEST_PERIOD, Conf, console, json_option
from controller.cli.shared.output_file import require_writable, write_output
from controller.cli.shared.pulsar_option import PulsarOption
from controller.cli.shared.reachable import require
from controller.cli.shared.times import FORMS, time_of
from controller.cli.texts.planned import plan_answer, print_plan, print_rightsizing, rightsizing_answer
from controller.model.pulsar_version import PulsarVersion
from controller.offline.plans.planner import Asked, PlannedCluster, planned_cluster
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


_Load: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option(
        help="Plan for this load, as `trimtab decide` reads it; can be repeated.  No live cluster is asked.",
        exists=True,
        show_default="the live cluster of --conf",
    ),
]
_Recording: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        help="Plan for the cluster as this recording (`trimtab record`) ends, by the settings in it.  No live cluster"
        " is asked.",
        show_default=False,
    ),
]
_At: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help=f"With --recording: as of its last decision up to this time: {FORMS}.",
        show_default="the newest decision",
    ),
]
_Budget: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="N moves|N connections/min",
        help="So many moves at most; or so many reconnecting producers and consumers in a second (/s), minute (/min) or"
        " hour (/h).  A wave is issued at once: it has no more of them than that, nor than the rate allows until the"
        " next wave; a bundle that has more moves alone.  Can be given once for each.",
        show_default="no limit",
    ),
]
_To: TypeAlias = Annotated[
    float, typer.Option(min=1.0, max=100.0, help="Until the highest usage is so many times the mean usage.")
]
_Drain: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(metavar="BROKER", help="Move all bundles off this broker; can be repeated.", show_default=False),
]
_Join: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(metavar="BROKER", help="Fill this new broker from the others; can be repeated.", show_default=False),
]
_Move: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="BUNDLE=BROKER",
        help="Try this move, and no others but those named so; can be repeated.",
        show_default=False,
    ),
]
_By: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Say whether the plan can be carried out by then: 14:05 (UTC, of the next 24 hours), or"
        " 2025-01-31T14:05:00Z.",
        show_default=False,
    ),
]
_Zone: TypeAlias = Annotated[
    bool, typer.Option("--zone", help="With --rolling-restart: a failure domain at a time, not a broker.")
]
_Remove: TypeAlias = Annotated[
    int, typer.Option(min=0, max=10_000, help="Empty so many brokers, those whose bundles disturb the fewest clients.")
]
_Add: TypeAlias = Annotated[
    int, typer.Option(min=0, max=10_000, help="Say what so many more brokers, each like the average one, would change.")
]
_Headroom: TypeAlias = Annotated[
    float | None,
    typer.Option(
        min=0.0, max=99.0, help="Say how many brokers keep so many percent of each free.", show_default="30, with --add"
    ),
]
_Below: TypeAlias = Annotated[
    float,
    typer.Option(
        min=1.0, max=100.0, help="With --drain, --rolling-restart and --remove: no other broker goes above so many %."
    ),
]
_Own: TypeAlias = Annotated[
    list[OwnResource] | None,
    typer.Option(
        help="What brokers use of this resource stays when bundles leave, as the CPU of a host that does other work,"
        " too.  Bundles are then spread by message rate; can be repeated.",
        show_default="all follow the load, unless the brokers' load shows that a part does not",
    ),
]
_WaveMoves: TypeAlias = Annotated[
    int, typer.Option(min=1, max=100, help="Moves of one wave; half as many off and to any one broker.")
]
_Frontier: TypeAlias = Annotated[
    bool,
    typer.Option("--frontier", help="Also say how low other numbers of moves would bring the highest usage."),
]
_Output: TypeAlias = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Write the plan to this new file.", dir_okay=False, show_default=False),
]
_BrokerConf: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        help="With --load: the options, by Pulsar's names.",
        exists=True,
        dir_okay=False,
        show_default="Pulsar's defaults",
    ),
]
_Cluster: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="With --load: use the records of this cluster.", show_default="that of the first record that names one"
    ),
]
_Period: TypeAlias = Annotated[int, typer.Option(min=1, max=LONGEST_PERIOD, help="With --load: length of an interval.")]
_Intervals: TypeAlias = Annotated[
    int, typer.Option(min=0, max=10_000, help="Without --load: read so many intervals of the log, for averages.")
]


def plan(
    load: _Load = None,
    recording: _Recording = None,
    at: _At = None,
    budget: _Budget = None,
    to: _To = 1.05,
    drain: _Drain = None,
    join: _Join = None,
    move: _Move = None,
    rolling_restart: Annotated[bool, typer.Option(help="Restart every broker: empty one, then the next.")] = False,
    zone: _Zone = False,
    remove: _Remove = 0,
    headroom: _Headroom = None,
    add: _Add = 0,
    by: _By = None,
    peers_below: _Below = 100.0,
    own: _Own = None,
    wave_moves: _WaveMoves = 20,
    frontier: _Frontier = False,
    output: _Output = None,
    broker_conf: _BrokerConf = None,
    cluster: _Cluster = None,
    pulsar: PulsarOption = None,
    period_seconds: _Period = 60,
    intervals: _Intervals = 30,
    conf: Conf = DEFAULT_CONF,
    as_json: Annotated[bool, json_option("answer.{plan,rightsizing}")] = False,
) -> None:
    """Make a plan: moves in waves, what they do to each broker, and what is proved of them.  Nothing is moved.

    Without another kind, the plan spreads the load.

    Exit codes: 0 there is a plan; 1 it does not meet --by, or bundles stay on a broker that is to be empty, a move of
    --move is not possible, or there is no plan; 2 an option or the load is invalid.
    """
    asked = _asked(drain, join, move, rolling_restart, zone, remove)
    sizes, now_ms = headroom is not None or add > 0, time.time_ns() // 1_000_000
    _refuse_kinds(asked, output, sizes=sizes, frontier=frontier)
    _refuse_sources(load, recording, at, of_load=(broker_conf, cluster, pulsar))
    deadline_ms = None if by is None else _deadline(by, now_ms)
    asked = replace(asked, frontier=frontier, own=tuple(sorted({each.value.replace("-", " ") for each in own or []})))
    asked = _limited(asked, budget or [], to, peers_below / 100, wave_moves)
    if load:
        source = _loaded(load, broker_conf, cluster, period_seconds * 1000, pulsar)
    else:
        source = _live(conf, intervals) if recording is None else _recorded(recording, at, now_ms)
    if sizes:
        _tell_rightsizing(source, 0.3 if headroom is None else headroom / 100, add, asked.own, as_json=as_json)
    else:
        tell_plan(_planned(source, asked), output, conf, as_json=as_json, now_ms=now_ms, deadline_ms=deadline_ms)


def tell_plan(
    found: PlannedCluster,
    output: Path | None,
    conf: Path,
    *,
    as_json: bool,
    now_ms: int = 0,
    deadline_ms: int | None = None,
) -> None:
    """Write *found* to *output*, and print it; exit code 1 where it does not do all that it is to do.

    *conf* are the settings with which it is to be carried out.
    """
    # A plan of no moves is none to approve, and its file would be in the way of the next one.
    written = None if not found.plan.moves else output
    if written is not None:
        write_output(written, encode_plan(found.plan), "--output")
    elif output is not None:
        typer.echo(f"the plan has no moves, so {output} is not written", err=True)
    answer = plan_answer(found, file="" if written is None else str(written), now_ms=now_ms, deadline_ms=deadline_ms)
    if as_json:
        typer.echo(answer.as_line())
    else:
        print_plan(console(), answer, conf)
    if answer.in_time is False or found.stays or answer.never_issued:
        raise typer.Exit(_NOT_IN_TIME)


def _asked(
    drain: list[str] | None,
    join: list[str] | None,
    move: list[str] | None,
    rolling_restart: bool,
    zone: bool,
    remove: int,
) -> Asked:
    """The kind of plan; typer.BadParameter where more than one is given."""
    given = [each for each in (drain, join, move, rolling_restart, remove) if each]
    if len(given) > 1:
        raise typer.BadParameter(f"give one of {_KINDS}")
    if zone and not rolling_restart:
        raise typer.BadParameter("needs --rolling-restart", param_hint="--zone")
    if drain:
        return Asked(kind=DRAIN, brokers=tuple(drain), text=f"drain {', '.join(sorted(set(drain)))}"[:900])
    if join:
        return Asked(kind=JOIN, brokers=tuple(join), text=f"fill {', '.join(sorted(set(join)))}"[:900])
    if move:
        return Asked(named=tuple(_named(each) for each in move), text=f"move {', '.join(move)}"[:900])
    if rolling_restart:
        return Asked(kind=RESTART, by_zone=zone, text=f"restart every {'failure domain' if zone else 'broker'}")
    if remove:
        return Asked(kind=REMOVE, number=remove, text=f"remove {remove} brokers")
    return Asked(text="spread the load")


def _named(text: str) -> tuple[str, str]:
    """Bundle and broker; a namespace may have = in its name, a broker has none."""
    bundle, _, broker = text.strip().rpartition("=")
    if not bundle or not broker:
        raise typer.BadParameter(
            f"{text!r}: give the bundle and the broker, as acme/orders/0x00000000_0x40000000=broker-2:8080",
            param_hint="--move",
        )
    return bundle, broker


def _limited(asked: Asked, budget: list[str], to: float, ceiling: float, wave_moves: int) -> Asked:
    if not to >= 1:  # NaN
        raise typer.BadParameter("is no number", param_hint="--to")
    asked = replace(
        asked, to=to, ceiling=ceiling, wave_moves=wave_moves, wave_moves_per_broker=max(1, (wave_moves + 1) // 2)
    )
    if asked.kind == BALANCE and not asked.named:
        asked = replace(asked, text=f"{asked.text} to {to:g} times the mean")
    for each in budget:
        moves, rate = _MOVES.fullmatch(each.strip()), _RATE.fullmatch(each.strip())
        if moves is not None and asked.kind in (BALANCE, JOIN) and not asked.named:
            asked = replace(asked, max_moves=min(asked.max_moves, int(moves[1])))
        elif moves is not None and asked.named:
            raise typer.BadParameter(f"{each!r}: the moves are those of --move", param_hint="--budget")
        elif moves is not None:
            raise typer.BadParameter(f"{each!r}: emptying a broker takes as many moves as it has bundles")
        elif rate is not None and int(rate[1]) > 0:
            if asked.connections_per_second is not None:
                raise typer.BadParameter(f"{each!r}: give one rate of connections", param_hint="--budget")
            seconds = _SECONDS[rate[2]]
            asked = replace(asked, connections_per_second=int(rate[1]) / seconds, burst_seconds=float(seconds))
        else:
            raise typer.BadParameter(f"{each!r}: give '20 moves' or '500 connections/min'", param_hint="--budget")
        asked = replace(asked, text=f"{asked.text}, at most {each.strip()}")
    return asked


def _deadline(text: str, now_ms: int) -> int:
    found = time_of(text, now_ms=now_ms, of="--by")
    if found <= now_ms and ":" in text and "-" not in text:
        found += _DAY_MS
    if found <= now_ms:
        raise typer.BadParameter(f"{text} is {utc(found)}, which is past", param_hint="--by")
    return found


def _refuse_kinds(asked: Asked, output: Path | None, *, sizes: bool, frontier: bool) -> None:
    if sizes and (asked.kind != BALANCE or asked.named):
        raise typer.BadParameter(f"give one of {_KINDS}", param_hint="--headroom, --add")
    if sizes and output is not None:
        raise typer.BadParameter("makes no plan to write: leave out --output", param_hint="--headroom, --add")
    if frontier and (asked.kind != BALANCE or asked.named or sizes):
        raise typer.BadParameter(f"is of a plan that spreads the load: leave out {_KINDS}", param_hint="--frontier")
    if output is not None:
        require_writable(output, "--output")


def _refuse_sources(
    load: list[Path] | None, recording: Path | None, at: str | None, of_load: tuple[object, ...]
) -> None:
    if recording is not None and load:
        raise typer.BadParameter("give one of the two", param_hint="--recording, --load")
    if at is not None and recording is None:
        raise typer.BadParameter("needs --recording", param_hint="--at")
    if any(each is not None for each in of_load) and not load:
        why = "need --load: of a live cluster, --conf names them; a recording has its own"
        raise typer.BadParameter(why, param_hint="--broker-conf, --cluster, --pulsar")


def _loaded(
    load: list[Path], broker_conf: Path | None, cluster: str | None, period_ms: int, pulsar: PulsarVersion | None
) -> PlanSource:
    with long_work("reading the load"):
        return source_of_load(load, broker_conf, cluster=cluster, period_ms=period_ms, pulsar=pulsar)


def _recorded(recording: Path, at: str | None, now_ms: int) -> PlanSource:
    wanted = None if at is None else time_of(at, now_ms=now_ms, of="--at")
    return source_of_recording(Recording(recording), wanted)


def _live(conf: Path, before: int) -> PlanSource:
    settings = read_settings(conf)
    with long_work("reading the journal and the log"):
        require(settings, Part.LOG)
        return source_of_log(settings, before=before)


def _planned(source: PlanSource, asked: Asked) -> PlannedCluster:
    with long_work("making the plan"):
        return planned_cluster(source, asked)


def _tell_rightsizing(source: PlanSource, headroom: float, added: int, own: tuple[str, ...], *, as_json: bool) -> None:
    with long_work("making the plan"):
        found = rightsizing(source, headroom=headroom, added=added, own=own)
    answer = rightsizing_answer(source, found)
    if as_json:
        typer.echo(answer.as_line())
    else:
        print_rightsizing(console(), answer)
