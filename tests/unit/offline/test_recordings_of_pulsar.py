"""Recordings of a real Pulsar of three brokers under traffic: what its controller decided is decided again.

``skewed``: one broker has everything, and MessageRateDeviationShedder makes the cluster even.  ``drained``: `trimtab
apply` drains a broker, in waves.  They are the logs of tests/e2e/test_on_pulsar.py and test_drain_on_pulsar.py.
``changing`` (AvgShedder, a move that failed), ``restarted`` (UniformLoadShedder, its controller killed) and
``broker_restarted`` (a broker stopped and started again) are sessions of docs/what_if.md, under a load that changes all
the time; scripts/session records such ones.
"""

from functools import cache, partial
from pathlib import Path

import pytest

from controller.adapters.recordings.reading import Recording
from controller.offline.counterfactual.answer import Counterfactual, what_would_have_happened
from controller.offline.counterfactual.replay_source import open_source
from controller.offline.counterfactual.start import known_before
from controller.offline.counterfactual.survey import ReplaySpan
from controller.offline.record import RecordRequest, record
from controller.offline.replay import LogReplay

pytestmark = pytest.mark.slow

RECORDINGS = Path(__file__).parents[2] / "data" / "pulsar_recordings"
#: How many bundles were moved and split.
MOVES = {"skewed": 17, "drained": 24, "changing": 41, "restarted": 132, "broker_restarted": 79}


@cache
def with_the_recorded_strategy(name: str) -> Counterfactual:
    with open_source(RECORDINGS / name, None) as opened:
        return what_would_have_happened(opened, (), ReplaySpan())


@pytest.mark.parametrize("name", MOVES)
def test_what_if_with_the_recorded_strategy_reproduces_the_recorded_moves(name: str) -> None:
    found = with_the_recorded_strategy(name).reproduction
    assert found is not None
    assert found.recorded == MOVES[name]
    assert found.reproduced >= 0.95 * found.recorded, found.missing


def test_where_cpu_is_at_its_limit_throughout_it_says_that_figures_of_usage_say_little() -> None:
    said = "how CPU follows load is not known here"
    assert [note.startswith(said) for note in with_the_recorded_strategy("broker_restarted").notes] == [True]
    assert not any(note.startswith(said) for note in with_the_recorded_strategy("changing").notes)


@pytest.mark.parametrize("strategy", ["ThresholdShedder", "AvgShedder", "PeakShedder", "TransferShedder"])
def test_a_recording_of_one_strategy_is_replayed_with_any_other(strategy: str) -> None:
    """AvgShedder and TransferShedder are two of those that were recorded; each brings a placement of its own."""
    for name in MOVES:
        with open_source(RECORDINGS / name, None) as opened:
            assert type(opened.policy(strategy).policy.shedder).__name__ == strategy


@pytest.mark.parametrize("name", MOVES)
def test_a_replay_makes_each_entry_of_the_journal_again_byte_for_byte(name: str) -> None:
    recording = Recording(RECORDINGS / name)
    manifest = recording.manifest
    told = LogReplay(recording, manifest.settings, manifest.settings.policy(manifest.cluster)).run().comparison
    assert told.first is None
    assert told.equal == told.compared == told.decided > 0


@pytest.mark.parametrize(("name", "intervals", "moves"), [("changing", 22, 20), ("restarted", 23, 53)])
def test_a_recording_from_the_midst_of_it_on_comes_to_the_same(
    name: str, intervals: int, moves: int, tmp_path: Path
) -> None:
    whole = Recording(RECORDINGS / name)
    settings, cluster = whole.manifest.settings, whole.manifest.cluster
    since = whole.manifest.files[0].first_ms + 240_000
    known = partial(known_before, whole, since, settings.intervals, cluster)
    record(whole, tmp_path / "part", RecordRequest(from_ms=since), settings, cluster, known_before=known)
    part = Recording(tmp_path / "part")
    told = LogReplay(part, settings, settings.policy(cluster), part.begin).run().comparison
    assert (told.decided, told.compared, told.equal) == (intervals,) * 3
    with open_source(tmp_path / "part", None) as opened:
        found = what_would_have_happened(opened, (), ReplaySpan()).reproduction
    assert found is not None
    assert (found.recorded, found.reproduced) == (moves, moves)
