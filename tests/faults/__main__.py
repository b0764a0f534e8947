"""`scripts/faults`: every fault so many times on real parts; the results become the table in docs/faults.md."""

import argparse
import logging
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from controller.lab.servers import kafka_server, zookeeper_server
from tests.faults import report
from tests.faults.faults import DISK_FULL, FAULTS, Around, Fault
from tests.faults.overload import FULL_REBALANCE, overloaded_site
from tests.faults.prove import Outcome, p95, prove, prove_disk_full, prove_full_rebalance, site_on_small_disk
from tests.faults.second_broker import SecondBroker
from tests.faults.site import kafka_site

log = logging.getLogger("faults")

#: From the fault to the next decision, of 95 in 100 runs.
MOST_P95_SECONDS = 30.0
#: Where another process stands by; a disk that was full is met by one controller, which starts from nothing.
_TAKEN_OVER = frozenset(fault.name for fault in FAULTS) - {"backlog"}
_PAGE = Path(__file__).parents[2] / "docs" / "faults.md"


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 1 where something was lost, done twice or wrong, or where recovery took too long."""
    parser = argparse.ArgumentParser(prog="faults", description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="of each fault")
    names = [*(fault.name for fault in FAULTS), DISK_FULL, FULL_REBALANCE]
    parser.add_argument("--only", choices=names, nargs="+", default=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--kafka-away-seconds", type=float, default=60.0)
    parser.add_argument("--backlog-intervals", type=int, default=1_440)
    parser.add_argument("--page", type=Path, default=_PAGE, help="where the table is")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    logging.getLogger("kazoo").setLevel(logging.ERROR)
    failed = False
    with tempfile.TemporaryDirectory(prefix="trimtab-faults-", ignore_cleanup_errors=True) as folder:
        for outcome in _outcomes(Path(folder), options):
            slow = outcome.fault in _TAKEN_OVER and p95(outcome.recoveries) > MOST_P95_SECONDS
            failed |= slow or bool(outcome.findings or outcome.differences)
            log.info("%s", report.row(outcome))
            if slow:
                log.error("%s: recovery takes longer than %g s", outcome.fault, MOST_P95_SECONDS)
            for finding in (*outcome.findings.lost, *outcome.findings.twice, *outcome.findings.wrong):
                log.error("%s: %s", outcome.fault, finding)
            for difference in outcome.differences:
                log.error("%s: %s", outcome.fault, difference)
            report.write(options.page, [outcome])
    return int(failed)


def _outcomes(folder: Path, options: argparse.Namespace) -> Iterator[Outcome]:
    wanted: list[Fault] = [fault for fault in FAULTS if fault.name in options.only]
    if wanted:
        with (
            kafka_server(folder / "kafka") as kafka,
            zookeeper_server(folder / "zookeeper") as zookeeper,
            kafka_site(folder / "site", kafka, zookeeper) as site,
        ):
            second = SecondBroker(folder / "second", kafka)
            around = Around(
                kafka,
                zookeeper,
                second,
                kafka_away_seconds=options.kafka_away_seconds,
                backlog_intervals=options.backlog_intervals,
            )
            try:
                for fault in wanted:
                    yield prove(fault, site, around, options.runs)
            finally:
                second.stop()
    if DISK_FULL in options.only:
        with site_on_small_disk(folder / "disk") as (site, disk):
            yield prove_disk_full(site, disk, options.runs)
    if FULL_REBALANCE in options.only:
        with overloaded_site(folder / "overloaded") as site:
            yield prove_full_rebalance(site, options.runs)


if __name__ == "__main__":
    sys.exit(main())
