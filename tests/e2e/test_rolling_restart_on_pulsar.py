"""Three real brokers are restarted by `trimtab apply --hook`, one after the other, under traffic, as a plan says.

The command is killed once on the way, in a hook, and started again (tests/rolling_restart).
"""

from pathlib import Path

import pytest

from controller.lab.pulsar_release import PulsarRelease
from tests.rolling_restart.__main__ import EXTENSIBLE, restart_all

pytestmark = [pytest.mark.e2e, pytest.mark.extended]


def test_every_bundle_moves_as_often_as_planned_and_no_message_is_lost(
    tmp_path: Path, pulsar_release: PulsarRelease
) -> None:
    assert restart_all(EXTENSIBLE, pulsar_release, tmp_path, hook=True)
