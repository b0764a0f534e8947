"""The query on a recording comes to the live run's journal, byte for byte, however its micro-batches are cut."""

from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from controller.adapters.recordings.manifest import recorded_settings
from controller.adapters.recordings.reading import Recording
from controller.log.factory import records_in
from controller.offline.counterfactual.start import known_before
from controller.offline.record import RecordRequest, record
from controller.offline.replay import LogReplay, Replay, batches
from controller.settings.trimtab_toml import read_settings
from streaming.recorded import replay_options, run_on_files, write_files
from tests.modelled_log import played, settings_in
from tests.records import CLUSTER, PERIOD, T

pytestmark = pytest.mark.integration

_EAGER = "loadBalancerLoadSheddingStrategy=UniformLoadShedder\nmaxUnloadPercentage=0.5\n"


@pytest.mark.parametrize("begins", [0, 3])
def test_the_journal_is_the_live_runs_also_from_the_midst_on(spark: SparkSession, tmp_path: Path, begins: int) -> None:
    conf = settings_in(tmp_path, broker_conf=_EAGER, more='decisions.mode = "active"\nintervals.shards = 3')
    played(conf, 6)
    settings = recorded_settings(read_settings(conf))
    log, since = records_in(tmp_path / "log"), T + begins * PERIOD
    known = partial(known_before, log, since, settings.intervals, CLUSTER)
    record(log, tmp_path / "rec", RecordRequest(from_ms=since), settings, CLUSTER, known_before=known)
    recording = Recording(tmp_path / "rec")
    policy = settings.policy(CLUSTER)
    replay = Replay(recording, settings, policy)
    again = LogReplay(recording, settings, policy, recording.begin)
    write_files(batches(again.records(), 20_000), tmp_path / "work" / "records")
    assert len([*(tmp_path / "work" / "records").iterdir()]) > 1
    run_on_files(spark, tmp_path / "work", replay_options(settings, policy), replay.decide)
    told = replay.ended(None).comparison
    assert (told.decided, told.compared, told.equal, told.first) == (*[6 - begins] * 3, None)
    assert told.commands > 0


def test_what_ends_a_decision_ends_the_replay(spark: SparkSession, tmp_path: Path) -> None:
    conf = settings_in(tmp_path)
    played(conf, 1)
    settings = recorded_settings(read_settings(conf))
    policy, log = settings.policy(CLUSTER), records_in(tmp_path / "log")

    def fail(_: object) -> None:
        raise ZeroDivisionError("on purpose")

    write_files(batches(LogReplay(log, settings, policy).records(), 1 << 20), tmp_path / "work" / "records")
    with pytest.raises(ZeroDivisionError, match="on purpose"):
        run_on_files(spark, tmp_path / "work", replay_options(settings, policy), fail)
