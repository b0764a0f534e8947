"""Opens a recording for a replay: its records, and the settings that it was made with."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from controller.adapters.recordings.incident_file import IncidentAbout, UnpackedIncident, unpacked_incident
from controller.adapters.recordings.manifest import RecordedSettings, recorded_settings
from controller.adapters.recordings.reading import Recording
from controller.adapters.recordings.record_log import RecordLog
from controller.log.factory import records_in
from controller.model.errors import SettingsError
from controller.model.pulsar_version import PulsarVersion
from controller.offline.counterfactual.reading import RecordedLoadLog
from controller.offline.counterfactual.replay import ReplayPolicy
from controller.offline.record_texts import begin_of
from controller.offline.recording import Recorded, cluster_of, refuse_other_clusters
from controller.offline.scenarios.shipped import strategy_options
from controller.settings.guardrails import GuardrailSettings
from controller.settings.pairs import with_requested
from controller.settings.pulsar_version import AUTO
from controller.settings.trimtab_toml import DecisionSettings, IntervalSettings, read_settings

#: Number of records at the beginning that are searched for the name of the cluster.
_LOOKED_AT: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySource:
    """See the module docstring."""

    log: RecordedLoadLog
    settings: RecordedSettings
    #: False: the settings that it was made with are not known, and *settings* are the defaults.
    known: bool
    #: Of an incident.
    about: IncidentAbout | None = None
    #: The version of Pulsar that strategies are tried as; None: that of the settings.
    pulsar: PulsarVersion | None = None

    @property
    def as_version(self) -> str:
        """The name of the recorded settings with the version in *pulsar*, as a strategy; "" where it is None."""
        return "" if self.pulsar is None else f"Pulsar {self.pulsar}"

    def policy(self, strategy: str = "", *, as_recorded: bool = False) -> ReplayPolicy:
        """The policy of the recorded settings; with *strategy*, its options in place of the recorded ones.

        Raises SettingsError where it cannot be used.
        """
        cluster, settings = self.log.cluster, self.settings
        if not as_recorded:
            settings = settings.as_version(self.pulsar)
        policy = settings.policy(cluster)
        if strategy and strategy != self.as_version:
            conf = with_requested(settings.broker_conf, strategy_options(strategy))
            try:
                policy = settings.policy_with(conf, cluster)
            except SettingsError as error:
                raise SettingsError(f"{strategy}: {error}") from error
        return ReplayPolicy(
            policy=policy,
            detail_share=settings.intervals.detail_share,
            seed=settings.decisions.seed,
            as_recorded=as_recorded,
        )


@contextmanager
def open_source(
    path: Path, conf: Path | None, *, period_seconds: int = 60, pulsar: PulsarVersion | None = None
) -> Iterator[ReplaySource]:
    """The recording or the log in the folder *path*, or the incident in the file *path*, for the length of the block.

    *conf*: the settings of its controller, in place of those in it.  *period_seconds*: of a log in a folder without
    *conf*.  *pulsar*: strategies are tried as this version of Pulsar.  Raises SettingsError and RecordingError.
    """
    if path.is_dir():
        yield replace(_in_folder(path, conf, period_seconds), pulsar=pulsar)
        return
    with unpacked_incident(path) as incident:
        source = source_of_incident(incident)
        if conf is not None:
            conf_settings = read_settings(conf)
            settings = recorded_settings(conf_settings)
            log = replace(source.log, cluster=conf_settings.cluster.name, settings=settings.intervals)
            source = replace(source, log=log, settings=settings)
        yield replace(source, pulsar=pulsar)


def source_of_incident(incident: UnpackedIncident) -> ReplaySource:
    """*incident* as a recording that is replayed."""
    recording = Recording(incident.recording)
    manifest = recording.manifest
    log = RecordedLoadLog(
        records=recording, cluster=manifest.cluster, settings=manifest.settings.intervals, begin=recording.begin
    )
    return ReplaySource(log=log, settings=manifest.settings, known=True, about=incident.about)


def _in_folder(folder: Path, conf: Path | None, period_seconds: int) -> ReplaySource:
    records = records_in(folder)
    if conf is not None:
        conf_settings = read_settings(conf)
        refuse_other_clusters(records, conf_settings.cluster.name)
        return _source_of(records, conf_settings.cluster.name, recorded_settings(conf_settings), known=True)
    if isinstance(records, Recording):
        manifest = records.manifest
        return _source_of(records, manifest.cluster, manifest.settings, known=True)
    defaults = RecordedSettings(
        intervals=IntervalSettings(
            period_seconds=period_seconds,
            stale_after_seconds=max(300, period_seconds),
            stalled_after_seconds=max(600, 2 * period_seconds),
        ),
        decisions=DecisionSettings(),
        guardrails=GuardrailSettings(brokers_balance_unknown="ignore"),
        whole_every_intervals=60,
        broker_conf={},
        pulsar=AUTO,
    )
    return _source_of(records, _cluster(records), defaults, known=False)


def _source_of(records: RecordLog, cluster: str, settings: RecordedSettings, *, known: bool) -> ReplaySource:
    begin = begin_of(records)
    log = RecordedLoadLog(records=records, cluster=cluster, settings=settings.intervals, begin=begin)
    return ReplaySource(log=log, settings=settings, known=known)


def _cluster(records: RecordLog) -> str:
    """The cluster that the first record names."""
    for number, stored in enumerate(records.read("metrics", records.extents("metrics"))):
        name = cluster_of(Recorded(Path(records.where), number, stored.value))
        if name is not None:
            return name
        if number > _LOOKED_AT:
            break
    raise SettingsError(f"{records.where}: no record names a cluster; give the settings of its controller with --conf")
