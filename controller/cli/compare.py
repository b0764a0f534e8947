"""``trimtab compare``: strategies on the same simulated scenarios, with the same seeds; or on the same recordings."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from string import ascii_uppercase
from typing import Annotated, Final, NamedTuple, TypeAlias

import typer

from controller.adapters.long_work import long_work
from controller.cli.shared.console import console, json_option
from controller.cli.shared.layout import columns, print_fields, print_line, print_table
from controller.cli.shared.option_groups import ScenarioPulsarOption
from controller.cli.shared.output_file import require_writable, write_output
from controller.cli.simulate import INCIDENT_SUFFIX, SeedCount
from controller.cli.texts.figures import mean_text, print_legend
from controller.model.pulsar_version import PulsarVersion
from controller.offline.counterfactual.comparison import add_recording, compare_on_recording
from controller.offline.counterfactual.replay_source import open_source
from controller.offline.scenarios.compare import Comparison, compare
from controller.offline.scenarios.report.page import Report
from controller.offline.scenarios.shipped import scenario_path, strategy_options
from controller.settings.scenario import as_version, read_scenario
from controller.strategies.catalogue import SHEDDERS
from controller.wire.answers.simulate import CompareAnswer
from controller.wire.readable import compact, counted

#: A result at this probability or below counts as significant: it occurs by chance in 5 of 100 comparisons.
_SURE: Final = 0.05

_Scenarios: TypeAlias = Annotated[
    list[str],
    typer.Argument(
        metavar="SCENARIO|RECORDING...",
        help="Files (docs/simulate.md), or names that `trimtab simulate --list` prints.  They run without their cure."
        "  Or folders of recordings (`trimtab record`) or of logs, and incidents (`trimtab incident`).",
        show_default=False,
    ),
]
_Strategies: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="A,B,...",
        help=f"What to compare: {', '.join(SHEDDERS)}; one of these with a placement, as in ThresholdShedder+"
        "LeastResourceUsageWithWeight; or a file of broker.conf options that ends in .conf.",
        show_default=False,
    ),
]
_Html: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--html",
        metavar="FILE",
        dir_okay=False,
        help="Also write a report to a new file: one page that loads nothing, with the first seed's runs, or replays.",
        show_default=False,
    ),
]


def compare_strategies(
    scenarios: _Scenarios,
    strategies: _Strategies,
    seeds: SeedCount = 10,
    html: _Html = None,
    pulsar: ScenarioPulsarOption = None,
    as_json: Annotated[bool, json_option("answer.compare", each="scenario")] = False,
) -> None:
    """Run scenarios with several strategies, and print each figure with its interval, and who wins, and how surely.

    All strategies get the same demand: they are compared seed by seed. A recording is replayed once with each, as
    nothing in it is random; what really happened is shown beside them.

    Exit codes: 0 compared; 1 a recording cannot be read; 2 a file or an option is invalid.
    """
    names = list(dict.fromkeys(each.strip() for each in strategies.split(",") if each.strip()))
    if not 2 <= len(names) <= len(ascii_uppercase):
        why = f"give 2 to {len(ascii_uppercase)} different strategies, separated by commas"
        raise typer.BadParameter(why, param_hint="--strategies")
    options = {name: strategy_options(name) for name in names}
    if html is not None:
        require_writable(html, "--html")
    paths = [Path(each) if _is_recording(each) else scenario_path(each) for each in scenarios]
    described = {path: as_version(read_scenario(path), pulsar) for path in paths if not _is_recording(str(path))}
    report = Report()
    for number, path in enumerate(paths):
        scenario = described.get(path)
        if scenario is None:
            results = _on_recording(path, names, None if html is None else report, pulsar)
        else:
            with long_work(f"simulating {path.stem}, runs", seeds * len(options)) as done:
                compared = compare(scenario, options, seeds, done, None if html is None else report.take)
            report.add(path.stem, scenario, compared)
            results = _Results(path.stem, scenario.title, scenario.intervals, compared)
        if as_json:
            typer.echo(_answer(results).as_line())
            continue
        if number:
            console().print()
        _print(results)
    if html is not None:
        write_output(html, report.page().encode(), "--html")
        if not as_json:
            console().print()
            print_line(console(), f"report: {html}")


class _Results(NamedTuple):
    """What is printed of one scenario or recording."""

    name: str
    title: str
    intervals: int
    compared: Comparison
    notes: tuple[str, ...] = ()
    recorded: bool = False


def _is_recording(path: str) -> bool:
    return path.endswith(INCIDENT_SUFFIX) or (path != "" and Path(path).is_dir())


def _on_recording(
    path: Path, strategies: Sequence[str], report: Report | None, pulsar: PulsarVersion | None
) -> _Results:
    with open_source(path, None, pulsar=pulsar) as recording, long_work(f"replaying {path.stem}, intervals") as done:
        compared = compare_on_recording(recording, strategies, done)
    if report is not None:
        add_recording(report, path.stem, compared)
    return _Results(path.stem, compared.title, compared.intervals, compared.compared, compared.notes, recorded=True)


def _print(results: _Results) -> None:
    out, compared = console(), results.compared
    letters = dict(zip(compared.figures, ascii_uppercase, strict=False))
    print_line(out, f"{results.name}: {results.title}", style="bold")
    print_fields(out, [(letter, strategy) for strategy, letter in letters.items()])
    out.print()
    differ = {duel.figure for duel in compared.duels if duel.equal < len(compared.seeds)}
    first = next(iter(compared.figures.values()))
    rows = [(each, *(mean_text(of[each]) for of in compared.figures.values())) for each in first if each in differ]
    over = f"Means over {counted(len(compared.seeds), 'seed')}, with 95 % intervals"
    over = f"Over {counted(results.intervals, 'interval')}, one run each" if results.recorded else over
    if rows:
        columns_of = columns("figure", *letters.values(), numbers=tuple(letters.values()))
        print_table(out, columns_of, rows, title=f"{over}; smaller is better")
        print_legend(out, (figure for figure, *_ in rows))
        out.print()
    if rows and not results.recorded:
        _print_winners(compared, letters)
        out.print()
    same = ", ".join(f"{each} {compact(first[each].mean)}" for each in first if each not in differ)
    if same:
        print_line(out, f"The same in all runs: {same}")
    for note in results.notes:
        print_line(out, f"note: {note}")


def _print_winners(compared: Comparison, letters: Mapping[str, str]) -> None:
    beaten: dict[str, dict[str, list[str]]] = {}
    for duel in compared.duels:
        cells = beaten.setdefault(duel.figure, {letter: [] for letter in letters.values()})
        if duel.winner:
            loser = duel.second if duel.winner == duel.first else duel.first
            cells[letters[duel.winner]].append(f"{letters[loser]}{'*' if duel.probability <= _SURE else ''}")
    print_table(
        console(),
        columns("figure", *(f"{letter} beats" for letter in letters.values())),
        [(figure, *map(" ".join, cells.values())) for figure, cells in beaten.items() if any(cells.values())],
        title=f"Smaller value in more seeds; * significant, by chance in at most {100 * _SURE:.0f} of 100",
    )


def _answer(results: _Results) -> CompareAnswer:
    compared = results.compared
    return CompareAnswer.from_object(compared, scenario=results.name, title=results.title, intervals=results.intervals)
