"""A whole walk on a real Pulsar 5.0 where no process of trimtab knows a ZooKeeper: its log is an artefact.

Log, election, controls and proposals lie in Pulsar, and its brokers carry out the commands.
"""

from pathlib import Path
from typing import Final

import pytest

from controller.lab.pulsar_release import find_release
from controller.lab.pulsar_server import pulsar_cluster
from tests.faults.faults import FAULTS_ON_PULSAR
from tests.faults.site import pulsar_site
from tests.faults.walk import Walk, approvals

pytestmark = [pytest.mark.e2e, pytest.mark.extended]

LOG: Final = Path(__file__).parents[2] / "artifacts" / "walk" / "without-zookeeper.txt"


def test_leaders_change_people_approve_and_brokers_move_what_was_planned(tmp_path: Path) -> None:
    faults = [fault for fault in FAULTS_ON_PULSAR if fault.name in ("kill", "hang")]
    with (
        pulsar_cluster(tmp_path / "pulsar", release=find_release("5.0")) as pulsar,
        pulsar_site(
            tmp_path / "site", pulsar, pulsar, elects_on_log=True, sections=approvals(), real_time=True
        ) as site,
    ):
        Walk(site, pulsar, LOG).all_of_it(faults)
