"""Recordings of a real Pulsar of three brokers under traffic: what its controller decided is decided again.

``skewed``: one broker has everything, and MessageRateDeviationShedder makes the cluster even.  ``drained``: `trimtab
apply` drains a broker, in waves.  They are the logs of tests/e2e/test_on_pulsar.py and test_drain_on_pulsar.py.
"""

from pathlib import Path

import pytest

from controller.adapters.recordings.reading import Recording
from controller.offline.counterfactual.answer import what_would_have_happened
from controller.offline.counterfactual.opened import opened_recording
from controller.offline.counterfactual.survey import ReplaySpan
from controller.offline.replay import LogReplay

RECORDINGS = Path(__file__).parents[2] / "data" / "pulsar_recordings"
#: How many bundles were moved.
MOVES = {"skewed": 17, "drained": 24}


@pytest.mark.parametrize("name", MOVES)
def test_what_if_with_the_recorded_strategy_reproduces_the_recorded_moves(name: str) -> None:
    with opened_recording(RECORDINGS / name, None) as opened:
        found = what_would_have_happened(opened, (), ReplaySpan()).reproduction
    assert found is not None
    assert found.recorded == MOVES[name]
    assert found.reproduced >= 0.95 * found.recorded, found.missing


@pytest.mark.parametrize("name", MOVES)
def test_a_replay_makes_each_entry_of_the_journal_again_byte_for_byte(name: str) -> None:
    recording = Recording(RECORDINGS / name)
    manifest = recording.manifest
    told = LogReplay(recording, manifest.settings, manifest.settings.policy(manifest.cluster)).run().comparison
    assert told.first is None
    assert told.equal == told.compared == told.decided > 0
