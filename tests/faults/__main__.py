"""`scripts/faults`: every fault so many times on real parts; the results become the table in docs/faults.md."""

import logging
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import typer

from controller.lab.pulsar_release import USUAL, PulsarRelease, find_release
from controller.lab.pulsar_server import PulsarCluster, pulsar_cluster
from controller.lab.servers import ZooKeeperServer, kafka_server, zookeeper_server
from tests.faults import clocks, disks, links, network, report
from tests.faults.faults import DISK_FULL, FAULTS, FAULTS_ON_PULSAR, NOTHING_AROUND, Around, Fault
from tests.faults.kafka_brokers import SecondBroker
from tests.faults.keeping import Kept
from tests.faults.overload import FULL_REBALANCE, overloaded_site
from tests.faults.prove import Outcome, p95, prove, prove_disk_full, prove_full_rebalance, site_on_small_disk
from tests.faults.site import Site, kafka_site, pulsar_site
from tests.faults.stale import product_commit
from tests.faults.stale import stale as stale_rows

log = logging.getLogger("faults")

#: From the fault to the next decision, of 95 in 100 runs.
MOST_P95_SECONDS = 30.0
#: Where another process stands by; a disk that was full is met by one controller, which starts from nothing.
_TAKEN_OVER = frozenset(fault.name for fault in (*FAULTS, *FAULTS_ON_PULSAR)) - {"backlog"}
_PAGE = Path(__file__).parents[2] / "docs" / "faults.md"


_USUAL = tuple(fault.name for fault in FAULTS)
#: Each on a site of its own, with a modelled Pulsar and without an election in the log.
_ON_OTHER_SITES = (DISK_FULL, FULL_REBALANCE, *links.NAMES, *disks.NAMES, *clocks.NAMES)
_WITH_LOG_IN_PULSAR = tuple(fault.name for fault in FAULTS_ON_PULSAR)
_ALL = tuple(dict.fromkeys([*_USUAL, *_ON_OTHER_SITES, *_WITH_LOG_IN_PULSAR]))
#: Behind the name of a fault in the table.
_ON_PULSAR = ", log in Pulsar"
_ON_LOG = ", election in the log"

app = typer.Typer(add_completion=False)


@app.command(help=__doc__)
def main(
    more: Annotated[list[str] | None, typer.Argument(metavar="NAME", help="More faults after --only.")] = None,
    runs: Annotated[int, typer.Option(min=1, max=10_000, help="Of each fault.")] = 20,
    only: Annotated[list[str] | None, typer.Option(metavar="NAME", help=", ".join(_ALL))] = None,
    in_log: Annotated[Literal["kafka", "pulsar"], typer.Option("--log", help="Where the site has its log.")] = "kafka",
    election: Annotated[
        Literal["zookeeper", "log"], typer.Option(help="Where its election lies; log: no ZooKeeper is started.")
    ] = "zookeeper",
    pulsar: Annotated[
        str, typer.Option(metavar="VERSION", help="Real brokers of this release carry out the commands: 4.0, 5.0.")
    ] = "",
    kafka_away_seconds: Annotated[float, typer.Option()] = 60.0,
    backlog_intervals: Annotated[int, typer.Option()] = 1_440,
    page: Annotated[Path, typer.Option(exists=True, dir_okay=False, help="Where the table is.")] = _PAGE,
    keep: Annotated[
        Path | None,
        typer.Option(
            help="A file of outcomes: those in it count, only runs that are missing are made, and they are added."
        ),
    ] = None,
    stale: Annotated[bool, typer.Option("--stale", help="Only say which rows are of older code; 1: some are.")] = False,
) -> None:
    """Exits with 1 where something was lost, done twice or wrong, or where recovery took too long."""
    if stale:
        asked_for = {*(only or ()), *(more or ())}
        rows = report.rows(page.read_text(encoding="utf-8"))
        for name in sorted(asked_for - {row.name for row in rows}):
            raise typer.BadParameter(f"{name!r} has no row in {page}")
        found_stale = stale_rows([row for row in rows if not asked_for or row.name in asked_for])
        for line in found_stale:
            typer.echo(line)
        raise typer.Exit(int(bool(found_stale)))
    names = _possible(in_log, election, pulsar)
    wanted = [*(only or ()), *(more or ())] or [*names]
    for name in wanted:
        if name not in names:
            raise typer.BadParameter(f"{name!r} is none of the faults with these options: {', '.join(names)}")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    logging.getLogger("kazoo").setLevel(logging.ERROR)
    failed, commit = False, product_commit()
    with tempfile.TemporaryDirectory(prefix="trimtab-faults-", ignore_cleanup_errors=True) as folder:
        away = _Away(kafka_seconds=kafka_away_seconds, backlog_intervals=backlog_intervals)
        brokers = find_release(pulsar) if pulsar else None
        kept = Kept(keep, commit)
        asked = _Asked(wanted, runs, brokers, kept, elects_on_log=election == "log")
        found = _outcomes_on_pulsar(Path(folder), asked) if in_log == "pulsar" else _outcomes(Path(folder), asked, away)
        for outcome in map(kept.add, found):
            slow = outcome.fault.partition(",")[0] in _TAKEN_OVER and p95(outcome.recoveries) > MOST_P95_SECONDS
            failed |= slow or bool(outcome.findings or outcome.differences)
            log.info("%s", report.row(outcome, commit))
            if slow:
                log.error("%s: recovery takes longer than %g s", outcome.fault, MOST_P95_SECONDS)
            for finding in (*outcome.findings.lost, *outcome.findings.twice, *outcome.findings.wrong):
                log.error("%s: %s", outcome.fault, finding)
            for difference in outcome.differences:
                log.error("%s: %s", outcome.fault, difference)
            report.write(page, [outcome], commit)
    raise typer.Exit(int(failed))


def _possible(in_log: str, election: str, pulsar: str) -> Sequence[str]:
    """The faults that there are with these options."""
    if in_log == "pulsar":
        return _WITH_LOG_IN_PULSAR
    if election == "log":
        return [name for name in _USUAL if name != "zookeeper-away"]
    return _USUAL if pulsar else (*_USUAL, *_ON_OTHER_SITES)


class _Away(NamedTuple):
    """How long what the faults take away stays away."""

    kafka_seconds: float
    backlog_intervals: int


@contextmanager
def _real(folder: Path, brokers: PulsarRelease | None) -> Iterator[PulsarCluster | None]:
    """A cluster of *brokers*, if there is to be one."""
    if brokers is None:
        yield None
        return
    with pulsar_cluster(folder, release=brokers) as pulsar:
        yield pulsar


class _Asked(NamedTuple):
    """What is to be run."""

    names: Sequence[str]
    #: Of each.
    runs: int
    #: Real brokers that carry out the commands.
    brokers: PulsarRelease | None
    kept: Kept
    elects_on_log: bool

    def outcomes(self, fault: Fault, site: Site, around: Around, where: str = "") -> Iterator[Outcome]:
        """Those of *fault* at *site* that are missing, under the name that its row has in the table."""
        where += _ON_LOG if self.elects_on_log else ""
        real = f", brokers of Pulsar {self.brokers.version}" if self.brokers else ""
        name = f"{fault.name}{where}{real}"
        for first, runs in self.kept.pieces(name, self.runs):
            yield replace(prove(fault, site, around, runs, first=first), fault=name)


def _outcomes(folder: Path, asked: _Asked, away: _Away) -> Iterator[Outcome]:
    names = asked.names
    wanted: list[Fault] = [fault for fault in FAULTS if fault.name in names]
    if wanted:
        with (
            kafka_server(folder / "kafka") as kafka,
            nullcontext(ZooKeeperServer(folder / "zookeeper"))
            if asked.elects_on_log
            else zookeeper_server(folder / "zookeeper") as zookeeper,
            _real(folder / "pulsar", asked.brokers) as real,
            kafka_site(folder / "site", [kafka], None if asked.elects_on_log else zookeeper, real) as site,
        ):
            second = SecondBroker(folder / "second", kafka)
            around = Around(
                kafka,
                zookeeper,
                second,
                kafka_away_seconds=away.kafka_seconds,
                backlog_intervals=away.backlog_intervals,
            )
            try:
                for fault in wanted:
                    yield from asked.outcomes(fault, site, around)
            finally:
                second.stop()
    if DISK_FULL in names:
        with site_on_small_disk(folder / "disk") as (site, disk):
            for _, runs in asked.kept.pieces(DISK_FULL, asked.runs):
                yield prove_disk_full(site, disk, runs)
    if FULL_REBALANCE in names:
        with overloaded_site(folder / "overloaded") as site:
            for _, runs in asked.kept.pieces(FULL_REBALANCE, asked.runs):
                yield prove_full_rebalance(site, runs)
    yield from _outcomes_of_the_machine(folder, asked)


def _outcomes_of_the_machine(folder: Path, asked: _Asked) -> Iterator[Outcome]:
    """Of the faults of links, disks and clocks, each kind on a site of its own."""
    names = asked.names
    if _are_possible(links.NAMES, names, network.why_none):
        with links.site_on_network(folder / "network") as (site, hosts):
            yield from _each(links.faults_of_links(hosts), asked, site)
    if _are_possible(disks.NAMES, names, disks.why_none):
        with disks.site_on_faulty_disks(folder / "disks") as (site, faulty):
            yield from _each(disks.faults_of_disks(faulty), asked, site)
    if _are_possible(clocks.NAMES, names, clocks.why_none):
        with clocks.site_with_clocks(folder / "clocks") as (site, wrong):
            yield from _each(clocks.faults_of_clocks(wrong), asked, site)


def _each(faults: Sequence[Fault], asked: _Asked, site: Site) -> Iterator[Outcome]:
    for fault in faults:
        if fault.name in asked.names:
            yield from asked.outcomes(fault, site, NOTHING_AROUND)


def _are_possible(faults: Sequence[str], names: Sequence[str], why_none: Callable[[], str]) -> bool:
    """Whether some of *faults* are to be caused, and this machine can; why it cannot is logged."""
    some = [name for name in names if name in faults]
    why = why_none() if some else ""
    if why:
        log.warning("left out: %s: %s", ", ".join(some), why)
    return bool(some) and not why


def _outcomes_on_pulsar(folder: Path, asked: _Asked) -> Iterator[Outcome]:
    wanted = [fault for fault in FAULTS_ON_PULSAR if fault.name in asked.names]
    with (
        pulsar_cluster(folder / "pulsar", release=asked.brokers or USUAL) as pulsar,
        pulsar_site(
            folder / "site", pulsar, pulsar if asked.brokers else None, elects_on_log=asked.elects_on_log
        ) as site,
    ):
        for fault in wanted:
            yield from asked.outcomes(fault, site, NOTHING_AROUND, _ON_PULSAR)


if __name__ == "__main__":
    app()
