"""A recording that begins in the midst of a run keeps what was known before it."""

import json
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from shutil import copytree
from typing import TypeAlias

import pytest

from controller.adapters.recordings.manifest import Manifest, RecordingError, recorded_settings
from controller.adapters.recordings.reading import Recording
from controller.adapters.recordings.record_log import RECORDED_TOPICS, Extents, RecordedTopic, RecordLog, StoredRecord
from controller.log.factory import records_in
from controller.model.controls import Controls
from controller.model.errors import TrimtabError
from controller.offline.counterfactual.answer import what_would_have_happened
from controller.offline.counterfactual.replay_source import open_source
from controller.offline.counterfactual.start import known_before
from controller.offline.counterfactual.survey import ReplaySpan
from controller.offline.live_journal import JournalTally
from controller.offline.pseudonyms.anonymise import Anonymiser
from controller.offline.record import AnonymiserOf, KnownBefore, RecordRequest, record
from controller.offline.replay import LogReplay
from controller.settings.trimtab_toml import read_settings
from controller.simulator.cluster import ClusterShape
from tests.effort import tries
from tests.modelled_log import played, settings_in
from tests.recordings import MemoryRecordLog
from tests.records import CLUSTER, PERIOD, T

pytestmark = pytest.mark.slow

INTERVALS = 12
_CONF = """loadBalancerLoadSheddingStrategy=UniformLoadShedder
maxUnloadPercentage=0.5
loadBalancerNamespaceBundleMaxMsgRate=2000
loadBalancerSheddingGracePeriodMinutes=2
"""
_MORE = 'decisions = {mode = "active", seed = 5}\njournal.whole_every_intervals = 4'


@pytest.fixture(scope="module")
def conf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log with the journal of a controller that splits and moves bundles, is paused, and moves bundles again."""
    path = settings_in(tmp_path_factory.mktemp("live"), broker_conf=_CONF, more=_MORE)

    def controls(interval: int) -> Controls:
        return Controls(mode="active", paused=T + 2 * PERIOD < interval < T + 7 * PERIOD)

    entries = played(path, INTERVALS, controls=controls, shape=ClusterShape(bundles=24, topics=96))
    assert {command.action for entry in entries[:3] for command in entry.decision.commands} == {"split", "unload"}
    assert all(entry.decision.commands for entry in entries[7:9])
    return path


@pytest.fixture(scope="module")
def log(conf: Path) -> MemoryRecordLog:
    """The same log as one that keeps the time of each record: those of an interval come within its length."""
    folder = records_in(conf.parent / "log")
    times, topics = range(T - PERIOD, T + INTERVALS * PERIOD, PERIOD), dict[RecordedTopic, list[StoredRecord]]()
    for topic in RECORDED_TOPICS:
        starts = [0, *(folder.since(topic, time)[0] for time in times[1:])]
        held = folder.read(topic, folder.extents(topic))
        topics[topic] = [each._replace(timestamp_ms=times[bisect_right(starts, each.offset) - 1]) for each in held]
    return MemoryRecordLog(topics)


def cut(conf: Path, log: RecordLog, folder: Path, at: int, *, before: int | None = None, **more: object) -> Manifest:
    """A recording of what *log* has from the interval number *at* on."""
    settings = recorded_settings(read_settings(conf))
    known = partial(known_before, log, T + at * PERIOD, settings.intervals, CLUSTER, before=before)
    wanted = RecordRequest(from_ms=T + at * PERIOD, options=str(at))
    return record(log, folder, wanted, settings, CLUSTER, **{"known_before": known} | more)  # type: ignore[arg-type]


Copy: TypeAlias = Callable[[Path, int], Manifest]


@pytest.fixture(scope="module")
def copied(conf: Path, log: MemoryRecordLog, tmp_path_factory: pytest.TempPathFactory) -> Copy:
    """As ``cut`` of the whole log, which is recorded once for each beginning."""
    made: dict[int, tuple[Path, Manifest]] = {}

    def copy(folder: Path, at: int) -> Manifest:
        if at not in made:
            recorded = tmp_path_factory.mktemp("recorded") / "new"
            made[at] = recorded, cut(conf, log, recorded, at)
        recorded, manifest = made[at]
        copytree(recorded, folder)
        return manifest

    return copy


def replayed(folder: Path) -> JournalTally:
    recording = Recording(folder)
    settings = recording.manifest.settings
    policy = settings.policy(recording.manifest.cluster)
    return LogReplay(recording, settings, policy, recording.begin).run().comparison


#: Before, in and after the pause; and the last one.
@pytest.mark.parametrize("at", [1, 5, 8, 11, *(2, 3, 4, 6, 7, 9, 10)[: tries(plain=0, thorough=7)]])
def test_cut_at_any_interval_the_entries_from_there_on_come_out_byte_for_byte(
    copied: Copy, tmp_path: Path, at: int
) -> None:
    manifest = copied(tmp_path / "new", at)
    told = replayed(tmp_path / "new")
    assert (told.decided, told.compared, told.equal, told.first) == (*[INTERVALS - at] * 3, None)
    assert manifest.known_before is not None
    assert (manifest.known_before.intervals, manifest.known_before.undescribed) == (at, 0)


@pytest.mark.parametrize("at", [3, 7])
def test_a_recording_of_a_recording_that_begins_midway_knows_what_was_known_before_both(
    conf: Path, copied: Copy, tmp_path: Path, at: int
) -> None:
    copied(tmp_path / "one", 2)
    cut(conf, Recording(tmp_path / "one"), tmp_path / "two", at)
    told = replayed(tmp_path / "two")
    assert (told.equal, told.first) == (INTERVALS - at, None)


@pytest.mark.parametrize("since", [None, T + PERIOD])
def test_a_copy_of_such_a_recording_from_its_beginning_knows_the_same(
    conf: Path, copied: Copy, tmp_path: Path, since: int | None
) -> None:
    said = copied(tmp_path / "one", 5).known_before
    one, settings = Recording(tmp_path / "one"), recorded_settings(read_settings(conf))
    known = partial(known_before, one, since, settings.intervals, CLUSTER)
    again = record(one, tmp_path / "two", RecordRequest(from_ms=since), settings, CLUSTER, known_before=known)
    assert again.known_before == said is not None
    assert Recording(tmp_path / "two").begin == one.begin
    assert replayed(tmp_path / "two").equal == INTERVALS - 5


def test_what_was_known_before_a_longer_silence_than_asked_for_is_read_all_the_same(
    conf: Path, log: MemoryRecordLog, tmp_path: Path
) -> None:
    silent = range(T + 3 * PERIOD, T + 9 * PERIOD)
    kept = {topic: [each for each in of if each.timestamp_ms not in silent] for topic, of in log.topics.items()}
    manifest = cut(conf, MemoryRecordLog(kept), tmp_path / "new", 9, before=2)
    assert manifest.known_before is not None
    assert manifest.known_before.last_ms < silent.start
    assert manifest.topics["metrics"][0].first > 0


@pytest.mark.parametrize("at", [4, 8])
def test_what_if_makes_all_moves_of_such_a_recording_again(copied: Copy, tmp_path: Path, at: int) -> None:
    copied(tmp_path / "new", at)
    with open_source(tmp_path / "new", None) as opened:
        found = what_would_have_happened(opened, (), ReplaySpan()).reproduction
    assert found is not None
    assert found.reproduced == found.recorded > 0


def test_without_what_was_known_before_entries_differ(conf: Path, log: MemoryRecordLog, tmp_path: Path) -> None:
    cut(conf, log, tmp_path / "new", 7, known_before=None)
    assert replayed(tmp_path / "new").equal < INTERVALS - 7


def test_where_the_log_begins_later_nothing_is_kept(copied: Copy, tmp_path: Path) -> None:
    assert copied(tmp_path / "new", 0).known_before is None
    assert not (tmp_path / "new" / "begin.jsonl").exists()
    assert replayed(tmp_path / "new").equal == INTERVALS


def test_namespaces_whose_state_the_log_lost_are_counted(conf: Path, log: MemoryRecordLog, tmp_path: Path) -> None:
    kept = [each for each in log.topics["metrics"] if b'"namespace_state"' not in each.value]
    manifest = cut(conf, MemoryRecordLog({**log.topics, "metrics": kept}), tmp_path / "new", 7)
    namespaces = {json.loads(each.value)["namespace"] for each in log.topics["metrics"] if each not in kept}
    assert manifest.known_before is not None
    assert manifest.known_before.undescribed == len(namespaces) > 0


def test_no_more_intervals_are_read_than_asked_for(conf: Path, log: MemoryRecordLog, tmp_path: Path) -> None:
    known = cut(conf, log, tmp_path / "new", 7, before=3).known_before
    assert known is not None
    assert known.first_ms >= T + 3 * PERIOD
    assert known.intervals <= 4


class DyingLog(MemoryRecordLog):
    """Dies where its results are copied."""

    copies = False

    def size(self, topic: RecordedTopic, extents: Extents) -> int | None:
        self.copies = True  # it is asked when copying begins
        return super().size(topic, extents)

    def read(self, topic: RecordedTopic, extents: Extents) -> Iterator[StoredRecord]:
        if self.copies and topic == "results":
            raise KeyboardInterrupt
        return super().read(topic, extents)


def never() -> KnownBefore | None:
    raise AssertionError("it was read already")


def test_one_that_was_broken_off_goes_on_without_reading_that_again(
    conf: Path, log: MemoryRecordLog, tmp_path: Path
) -> None:
    with pytest.raises(KeyboardInterrupt):
        cut(conf, DyingLog(log.topics), tmp_path / "new", 7)
    cut(conf, log, tmp_path / "new", 7, known_before=never)
    assert replayed(tmp_path / "new").equal == INTERVALS - 7


def test_what_a_kill_left_before_the_recording_was_begun_is_replaced(
    conf: Path, log: MemoryRecordLog, tmp_path: Path
) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "begin.jsonl").write_text("of another recording")
    assert cut(conf, log, tmp_path / "new", 0).known_before is None
    assert not (tmp_path / "new" / "begin.jsonl").exists()


def test_what_a_kill_left_of_a_file_is_deleted_before_other_names_are_written(
    conf: Path, log: MemoryRecordLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as dying:
        dying.setattr(Path, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            cut(conf, log, tmp_path / "new", 7)
    left = [each.name for each in (tmp_path / "new").iterdir() if "begin" in each.name]
    assert len(left) == 1
    (tmp_path / "new" / ".of_a_user").touch()
    cut(conf, log, tmp_path / "new", 7, anonymiser_of=other_names(log, conf))
    found = {each.name for each in (tmp_path / "new").iterdir()}
    assert found == {"begin.jsonl", "manifest.json", ".of_a_user", *RECORDED_TOPICS}


def test_what_was_known_before_is_checked_like_every_other_file(copied: Copy, tmp_path: Path) -> None:
    copied(tmp_path / "new", 7)
    with (tmp_path / "new" / "begin.jsonl").open("ab") as file:
        file.write(b"{}\n")
    with pytest.raises(RecordingError, match=r"begin\.jsonl: has \d+ bytes and another SHA-256"):
        replayed(tmp_path / "new")


def test_lines_without_end_are_refused_before_each_takes_memory(
    copied: Copy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied(tmp_path / "new", 7)
    lines = len(Recording(tmp_path / "new").begin)
    monkeypatch.setattr("controller.adapters.recordings.manifest._MOST_KNOWN", lines - 1)
    with pytest.raises(RecordingError, match=rf"begin\.jsonl: has {lines} lines, allowed: {lines - 1}"):
        replayed(tmp_path / "new")


def other_names(log: RecordLog, conf: Path) -> AnonymiserOf:
    settings = recorded_settings(read_settings(conf))
    return partial(Anonymiser, log, settings=settings, cluster=CLUSTER, key=b"sixteen bytes or more")


def test_with_other_names_it_decides_the_same_and_no_name_is_left(
    conf: Path, log: MemoryRecordLog, copied: Copy, tmp_path: Path
) -> None:
    copied(tmp_path / "true", 7)
    cut(conf, log, tmp_path / "other", 7, anonymiser_of=other_names(log, conf))
    found = Recording(tmp_path / "other").begin
    assert len(found) == len(Recording(tmp_path / "true").begin) > 0
    for name in (b"tenant", b"ns-", b'"demo"'):
        assert any(name in each for each in Recording(tmp_path / "true").begin), name
        assert not any(name in each for each in found), name
    assert replayed(tmp_path / "other").commands > 0  # nothing moves of namespaces without a state


def test_with_other_names_it_goes_on_as_long_as_the_log_has_what_was_known(
    conf: Path, log: MemoryRecordLog, tmp_path: Path
) -> None:
    names = other_names(log, conf)
    with pytest.raises(KeyboardInterrupt):
        cut(conf, DyingLog(log.topics), tmp_path / "new", 7, anonymiser_of=names)
    later = {topic: [each for each in of if each.timestamp_ms >= T + 4 * PERIOD] for topic, of in log.topics.items()}
    with pytest.raises(TrimtabError, match="what was known before is gone"):
        cut(conf, MemoryRecordLog(later), tmp_path / "new", 7, anonymiser_of=names)
    assert cut(conf, log, tmp_path / "new", 7, anonymiser_of=names).anonymised
