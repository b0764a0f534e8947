"""One fault, several times, and what came of it."""

import logging
import math
import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.audit import Findings
from tests.faults.disk import Disk, small_disk
from tests.faults.faults import DISK_FULL, Around, Fault, journal_disk_full
from tests.faults.overload import FULL_REBALANCE, full_rebalance
from tests.faults.site import Site, folder_site

log = logging.getLogger("faults")


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A fault's runs together."""

    fault: str
    commands: int
    #: Seconds, a run each.
    recoveries: Sequence[float]
    findings: Findings
    #: Where the journal is not what follows from the log.
    differences: list[str] = field(default_factory=list)

    @property
    def wrong(self) -> int:
        return len(self.findings.wrong) + len(self.differences)

    @property
    def median(self) -> float:
        return statistics.median(self.recoveries)

    @property
    def p95(self) -> float:
        return p95(self.recoveries)


def p95(values: Sequence[float]) -> float:
    """The smallest of *values* that at least 95 % of them do not exceed."""
    return sorted(values)[math.ceil(0.95 * len(values)) - 1]


def prove(fault: Fault, site: Site, around: Around, runs: int, *, first: int = 0) -> Outcome:
    """Inflict *fault* so many times; what holds is looked at over all that ever happened at the *site*.

    *first*: the number of the first run, of which the moment of the fault depends.
    """
    before, recoveries = _issued(site), list[float]()
    for nth in range(first, first + runs):
        site.wait_for_standby()
        site.pile_up()
        recoveries.append(fault.inflict(site, around, nth))
        log.info("%s, run %d of %d: recovered after %.1f s", fault.name, nth + 1, first + runs, recoveries[-1])
        _work_on(site)
    return _outcome(fault.name, site, recoveries, before)


def prove_disk_full(site: Site, disk: Disk, runs: int) -> Outcome:
    """The same for the one fault that wants another site."""
    before, recoveries = _issued(site), []
    for _ in range(runs):
        site.pile_up()
        recoveries.append(journal_disk_full(site, disk))
        _work_on(site)
    return _outcome(DISK_FULL, site, recoveries, before)


def prove_full_rebalance(site: Site, runs: int) -> Outcome:
    """The same for every broker over its limit; recovery is the longest decision."""
    before = _issued(site)
    recoveries = [full_rebalance(site) for _ in range(runs)]
    return _outcome(FULL_REBALANCE, site, recoveries, before)


@contextmanager
def site_on_small_disk(folder: Path) -> Iterator[tuple[Site, Disk]]:
    """A site whose journal has a small disk of its own."""
    with small_disk(folder / "log" / "journal") as disk, folder_site(folder) as site:
        yield site, disk


def _work_on(site: Site) -> None:
    """One interval more than the fault needed: the checkpoint still serves whoever leads now."""
    site.come_to_rest()
    site.publish()
    site.come_to_rest()


def _issued(site: Site) -> int:
    return sum(len(each.entry.decision.commands) for each in site.log.decisions())


def _outcome(name: str, site: Site, recoveries: Sequence[float], before: int) -> Outcome:
    return Outcome(
        fault=name,
        commands=_issued(site) - before,
        recoveries=recoveries,
        findings=site.audit(),
        differences=site.differences(),
    )
