"""``scripts/measure``: print what was measured, a line of JSON each."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from controller.adapters.disk.scratch import scratch_folder
from controller.adapters.process import signals
from controller.cli.shared import failures
from controller.cli.shared.plain_help import PlainGroup
from controller.model.errors import TrimtabError
from tests.measure.balance import SIZES
from tests.measure.balance import balance as balanced
from tests.measure.frontier import frontier as points_of
from tests.measure.signatures import signature_costs
from tests.measure.sweeps import INPUTS, picture
from tests.measure.sweeps import front as front_of
from tests.measure.sweeps import sweep as swept
from tests.measure.tails import keep, measured, measured_before, nimbleness, tails

#: HiGHS searches this long for a plan of half the moves, for each cluster and strategy.
_EXACT_SECONDS: Final = 60.0
#: Of trimtabPeakShedderMoveCost.
_PRICES: Final = (0.0, 5.0, 10.0, 20.0, 50.0)

app = typer.Typer(
    cls=PlainGroup,
    help="Measure the figures behind the docs, and print a line of JSON for each.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.command()
def balance(
    seeds: Annotated[
        int,
        typer.Option(min=1, max=100, help=f"Clusters of each of {len(SIZES)} sizes, and of each kind of capacities."),
    ] = 4,
    exact: Annotated[
        bool, typer.Option("--exact", help="HiGHS also looks for plans of half the moves, up to a minute each.")
    ] = False,
) -> None:
    """Measure how even strategies make seeded clusters, and how many moves they take."""
    _print(balanced(seeds, exact_seconds=_EXACT_SECONDS if exact else 0.0))


@app.command()
def signatures(
    commands: Annotated[int, typer.Option(min=1, max=10_000, help="Commands in the interval.")] = 100,
) -> None:
    """Measure what it costs to sign the commands of an interval, and to check them."""
    _print([signature_costs(commands)])


@app.command()
def frontier(
    brokers: Annotated[int, typer.Option(min=2, max=1000, help="Brokers in the cluster.")] = 6,
    bundles: Annotated[int, typer.Option(min=4, max=100_000, help="Bundles; at least two for each broker.")] = 60,
    moves: Annotated[int, typer.Option(min=0, max=1000, help="Make plans of 0 up to this many moves.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the cluster.")] = 1,
    uneven: Annotated[bool, typer.Option("--uneven", help="Every second broker has twice the capacity.")] = False,
    exact: Annotated[
        bool, typer.Option("--exact", help="Also find the best plans, by HiGHS: small clusters only.")
    ] = False,
) -> None:
    """Measure how even one cluster can be, by the number of moves."""
    if brokers > bundles // 2:
        raise typer.BadParameter(f"{brokers} brokers need {2 * brokers} bundles or more", param_hint="--brokers")
    _print(points_of(brokers, bundles, moves, seed=seed, uneven=uneven, exact=exact))


@app.command("moves")
def stalls(
    unloads: Annotated[int, typer.Option(min=1, max=10_000, help="Unloads of each kind.")] = 60,
    topics: Annotated[
        int, typer.Option(min=2, max=1000, help="Topics, an even number; half of them are in the unloaded bundle.")
    ] = 10,
    each: Annotated[int, typer.Option(min=1, max=1000, help="Producers of each topic, and as many consumers.")] = 5,
    rate: Annotated[float, typer.Option(min=0.1, max=10_000, help="msg/s of each producer.")] = 20.0,
) -> None:
    """Measure how long clients of a real Pulsar stall when their bundle is unloaded."""
    from tests.measure.moves import Load, moves  # here, because the client of Pulsar is large

    if topics % 2:
        raise typer.BadParameter(f"{topics} topics cannot be halved between two bundles", param_hint="--topics")
    # Servers of our own must stop whenever this process is stopped.
    with scratch_folder("trimtab-measure-") as scratch, signals.interrupts(exit_code=signals.INTERRUPTED):
        _print(moves(unloads, Load(topics=topics, each=each, rate=rate), scratch))


@app.command("segments")
def scalable_topic(
    pairs: Annotated[int, typer.Option(min=1, max=100, help="Runs of each balancer, in turns.")] = 3,
    first: Annotated[
        int, typer.Option(min=0, max=100, help="The number of the first pair, which names its topic.")
    ] = 0,
    of: Annotated[
        list[str] | None, typer.Option(help="Only these balancers: AvgShedder, UniformLoadShedder, PeakShedder.")
    ] = None,
    settle: Annotated[float, typer.Option(min=1, max=3600, help="Seconds before it is measured.")] = 240.0,
    seconds: Annotated[float, typer.Option(min=1, max=3600, help="How long it is measured.")] = 60.0,
) -> None:
    """Measure how evenly brokers of a real Pulsar 5.0 share a scalable topic, by who balances."""
    from tests.measure.segments import BALANCERS, segment_runs  # here, because it starts servers

    chosen = [name for name in BALANCERS if of is None or name.rpartition(" ")[2] in of]
    if of is not None and len(chosen) != len(set(of)):
        raise typer.BadParameter(f"{', '.join(of)}: known are {', '.join(BALANCERS)}", param_hint="--of")
    with scratch_folder("trimtab-measure-") as scratch, signals.interrupts(exit_code=signals.INTERRUPTED):
        numbers = range(first, first + pairs)
        _print(segment_runs(numbers, scratch, chosen, settle_seconds=settle, measure_seconds=seconds))


@app.command("tails")
def spread(
    clusters: Annotated[int, typer.Option(min=1, max=100_000, help="Seeded clusters, those of seed 0 on.")] = 100,
    into: Annotated[
        Path | None, typer.Option(help="Keep a line for each cluster in this file, and measure only those not in it.")
    ] = None,
    exact: Annotated[float, typer.Option(min=0, max=3600, help="Seconds that HiGHS has for a small cluster.")] = 0.0,
    option: Annotated[
        list[str], typer.Option(metavar="NAME=VALUE", help="Of broker.conf; a file is for one set of options.")
    ] = [],  # noqa: B006 - typer
) -> None:
    """Measure how even PeakShedder makes many different clusters: the typical and the worst ones."""
    for each in option:
        if "=" not in each:
            raise typer.BadParameter(f"{each}: expected NAME=VALUE", param_hint="--option")
    found = measured_before(into)
    conf = dict(each.split("=", 1) for each in option)
    for seed in range(clusters):
        if seed not in found:
            found[seed] = measured(seed, conf, exact_seconds=exact)
            keep(found[seed], into)
    _print(tails([found[seed] for seed in range(clusters)]))


@app.command("nimbleness")
def nimble() -> None:
    """Measure how fast PeakShedder spreads the bundles of one broker over three."""
    _print(nimbleness())


@app.command()
def sweep(
    of: Annotated[str, typer.Argument(metavar="OF", help=f"What changes: {', '.join(INPUTS)}.")],
    steps: Annotated[int, typer.Option(min=2, max=1000, help="Values from 0 up.")] = 50,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Runs for each value.")] = 3,
    draw: Annotated[Path | None, typer.Option(help="Also draw the curves: an SVG.")] = None,
) -> None:
    """Measure what PeakShedder does as one input changes in small steps."""
    if of not in INPUTS:
        raise typer.BadParameter(f"{of}: not one of {', '.join(INPUTS)}", param_hint="OF")
    _refuse_elsewhere(draw)
    found = list(swept(of, steps, seeds, {}))
    _print(found)
    if draw is not None:
        charts = {"connections": "connections", "over_limit_percent": "time over limit, %", "balance": "balance"}
        curves = [(label, [(each.value, getattr(each, name)) for each in found]) for name, label in charts.items()]
        draw.write_text(picture(INPUTS[of].meaning, curves))


@app.command()
def front(
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Runs of each scenario and price.")] = 1,
    draw: Annotated[Path | None, typer.Option(help="Also draw the front: an SVG.")] = None,
) -> None:
    """Measure what PeakShedder does in the shipped scenarios, for five prices of a move."""
    _refuse_elsewhere(draw)
    found = list(front_of("trimtabPeakShedderMoveCost", _PRICES, seeds))
    _print(found)
    if draw is not None:
        curves = [
            ("time over limit, %", [(each.connections, each.over_limit_percent) for each in found]),
            ("balance", [(each.connections, each.balance) for each in found]),
        ]
        draw.write_text(picture("connections disturbed", curves))


def _refuse_elsewhere(picture_path: Path | None) -> None:
    """Before what takes long.  A picture goes to a file in a folder that exists."""
    if picture_path is not None and (picture_path.is_dir() or not picture_path.parent.is_dir()):
        raise typer.BadParameter(f"{picture_path} is a folder, or its folder does not exist", param_hint="--draw")


def _print(measured: Iterable[Any]) -> None:
    for one in measured:
        typer.echo(json.dumps(asdict(one)))


def main() -> None:
    """Measure what the command line names."""
    try:
        app(prog_name="scripts/measure")
    except (TrimtabError, OSError) as error:
        raise SystemExit(failures.exit_code_of(error)) from None


if __name__ == "__main__":
    main()
