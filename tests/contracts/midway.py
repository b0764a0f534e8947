"""What holds for a recording of any log that begins in the midst of a run."""

from functools import partial
from pathlib import Path

from controller.adapters.recordings.reading import Recording
from controller.adapters.recordings.record_log import RecordLog
from controller.log.ticks import MetricsLog
from controller.offline.counterfactual.start import known_before
from controller.offline.record import RecordRequest, record
from controller.offline.replay import LogReplay
from controller.simulator.cluster import ClusterShape, ModelledCluster
from controller.simulator.encode import json_records, namespace_record
from tests.recordings import SETTINGS
from tests.records import CLUSTER, PERIOD, T

_INTERVALS, _FROM = 6, 4


def write_intervals(log: MetricsLog) -> None:
    """Publish some intervals of a modelled cluster; the namespaces are described in the first one alone."""
    cluster = ModelledCluster(ClusterShape(brokers=3, bundles=12, topics=24), seed=1, name=CLUSTER)
    for interval in range(T, T + _INTERVALS * PERIOD, PERIOD):
        cluster.advance()
        sweeps = [*cluster.sweeps(interval)]
        log.publish(namespace_record(CLUSTER, state) for state in cluster.changed_namespaces())
        log.publish(each for sweep in sweeps for each in json_records(sweep))
        log.tick(interval, {sweep.broker: sweep.sweep_id for sweep in sweeps})


def knows_what_was_known_and_begins_behind_the_ticks(log: RecordLog, folder: Path) -> None:
    """Record what ``write_intervals`` wrote, from a later interval on, into *folder*; compare snapshots."""
    whole = LogReplay(log, SETTINGS, SETTINGS.policy(CLUSTER)).snapshots()
    since = T + _FROM * PERIOD
    known = partial(known_before, log, since, SETTINGS.intervals, CLUSTER)
    manifest = record(log, folder, RecordRequest(from_ms=since), SETTINGS, CLUSTER, known_before=known)
    assert manifest.known_before is not None
    assert (manifest.known_before.intervals, manifest.known_before.undescribed) == (_FROM, 0)
    recording = Recording(folder)
    cut = [*LogReplay(recording, SETTINGS, SETTINGS.policy(CLUSTER), recording.begin).snapshots()]
    for one, two in zip([*whole][_FROM:], cut, strict=True):
        assert (one.interval, one.names, one.roster) == (two.interval, two.names, two.roster)
        assert [*one.namespaces] == [*two.namespaces] != []
        assert (one.load == two.load).all()
        assert (one.long_term == two.long_term).all()
        assert (one.long_samples == two.long_samples).all()
