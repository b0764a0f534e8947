"""The journal's disk runs full: nothing is half written, and with room on it the controller goes on by itself."""

from pathlib import Path

import pytest

from tests.faults.audit import Findings
from tests.faults.prove import prove_disk_full, site_on_small_disk

pytestmark = [pytest.mark.e2e, pytest.mark.extended]

RUNS = 2


def test_nothing_is_lost_or_done_twice_or_wrong_when_the_disk_of_the_journal_is_full(tmp_path: Path) -> None:
    with site_on_small_disk(tmp_path) as (site, disk):
        outcome = prove_disk_full(site, disk, RUNS)
        left_behind = [path.name for path in disk.folder.iterdir() if path.name.startswith(".")]
    assert outcome.findings == Findings()
    assert outcome.differences == []
    assert outcome.commands >= RUNS
    assert left_behind == []
