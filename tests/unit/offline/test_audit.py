"""Audits of logs and recordings: they tell the same however they are read."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from controller.adapters.recordings.manifest import recorded_settings
from controller.adapters.recordings.record_log import RecordedTopic, StoredRecord
from controller.adapters.recordings.writing import RecordingWriter
from controller.audit.moves import MoveSums
from controller.log.factory import records_in
from controller.model.errors import SettingsError
from controller.offline.audit import AuditScope, LogPart, MoveAudit, audit, part_of_live_log
from controller.offline.counterfactual.replay_source import ReplaySource, open_source
from controller.offline.counterfactual.survey import ReplaySpan
from controller.offline.record import RecordRequest, record
from controller.settings.trimtab_toml import read_settings
from controller.wire.base import LONGEST_TEXT
from tests.modelled_log import played, settings_in
from tests.recordings import MemoryRecordLog
from tests.records import CLUSTER, PERIOD, T

pytestmark = pytest.mark.slow

CONF = """loadBalancerLoadSheddingStrategy=UniformLoadShedder
loadBalancerNamespaceBundleMaxMsgRate=6000
"""
_INTERVALS = 8


@pytest.fixture(scope="module")
def conf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The settings of a controller that has balanced a cluster for some intervals."""
    made = settings_in(tmp_path_factory.mktemp("controller"), broker_conf=CONF)
    played(made, _INTERVALS)
    return made


@pytest.fixture(scope="module")
def opened(conf: Path) -> ReplaySource:
    with open_source(conf.parent / "log", conf) as found:
        return replace(found, log=replace(found.log, records=kept(found)))


@pytest.fixture(scope="module")
def whole(opened: ReplaySource) -> MoveAudit:
    return audit(opened, AuditScope())


def kept(of: ReplaySource) -> MemoryRecordLog:
    """Its records in memory."""
    records = of.log.records
    topics: tuple[RecordedTopic, ...] = ("metrics", "results", "journal")
    return MemoryRecordLog({topic: list(records.read(topic, records.extents(topic))) for topic in topics})


def with_topics(of: ReplaySource, **topics: Sequence[StoredRecord]) -> ReplaySource:
    records = of.log.records
    assert isinstance(records, MemoryRecordLog)
    changed: Mapping[RecordedTopic, Sequence[StoredRecord]] = {**records.topics, **topics}  # type: ignore[dict-item]
    return replace(of, log=replace(of.log, records=MemoryRecordLog(changed)))


def journal(of: ReplaySource) -> list[StoredRecord]:
    records = of.log.records
    assert isinstance(records, MemoryRecordLog)
    return list(records.topics["journal"])


def added(sums: Sequence[MoveSums]) -> tuple[int, ...]:
    return tuple(
        sum(getattr(each, name) for each in sums)
        for name in ("moves", "arrived", "clients", "helped", "judged", "predictions", "undone_unknown", "shorter")
    )


def test_every_unload_of_the_journal_is_audited(opened: ReplaySource, whole: MoveAudit) -> None:
    assert whole.total.moves == len(whole.moves) > 3
    assert (whole.intervals, whole.decided, whole.first, whole.last) == (
        _INTERVALS, _INTERVALS, T, T + (_INTERVALS - 1) * PERIOD,
    )  # fmt: skip
    assert (whole.has_journal, whole.refused, whole.refused_entries, whole.without_memory) == (True, 0, 0, 0)
    assert whole.changed == {"others": 0, "broker_left": 0}
    assert whole.total.arrived > 0
    assert opened.log.cluster == whole.cluster == CLUSTER


def test_all_ways_of_summing_up_count_each_move_once(whole: MoveAudit) -> None:
    for sums in (whole.by_strategy, whole.by_namespace, whole.by_hour):
        assert added(list(sums.values())) == added([whole.total])
    assert set(whole.by_strategy) == {"UniformLoadShedder"}
    assert set(whole.by_hour) == {T}
    assert len(whole.by_namespace) > 1


@pytest.mark.parametrize("file_records", [5, 100_000])
def test_a_recording_tells_the_same_as_its_log_in_files_of_any_size(
    conf: Path, whole: MoveAudit, tmp_path: Path, file_records: int
) -> None:
    folder, settings = tmp_path / "recording", recorded_settings(read_settings(conf))
    writer = RecordingWriter(folder, file_records=file_records)
    record(records_in(conf.parent / "log"), folder, RecordRequest(), settings, CLUSTER, writer=writer)
    with open_source(folder, None) as found:
        assert audit(found, AuditScope()) == whole


@pytest.mark.parametrize("cut", [1, 3, 5])
def test_the_parts_of_a_time_add_up_to_the_whole(opened: ReplaySource, whole: MoveAudit, cut: int) -> None:
    at = T + cut * PERIOD
    spans = ReplaySpan(until=at - 1), ReplaySpan(since=at)
    parts = [audit(opened, AuditScope(span=span)) for span in spans]
    assert [move for part in parts for move in part.moves] == whole.moves
    assert added([part.total for part in parts]) == added([whole.total])
    assert sum(part.intervals for part in parts) == sum(part.decided for part in parts) == _INTERVALS


def test_bundles_and_namespaces_are_chosen(opened: ReplaySource, whole: MoveAudit) -> None:
    first = whole.moves[0]
    of_bundle = audit(opened, AuditScope(bundle=first.bundle))
    assert of_bundle.moves == [move for move in whole.moves if move.bundle == first.bundle]
    of_namespace = audit(opened, AuditScope(namespace=first.namespace))
    assert of_namespace.moves == [move for move in whole.moves if move.namespace == first.namespace]
    assert set(of_namespace.by_namespace) == {first.namespace}
    assert audit(opened, AuditScope(bundle="no/such/0x00000000_0xffffffff")).total.moves == 0


def test_the_end_of_a_live_log_is_enough(opened: ReplaySource, whole: MoveAudit) -> None:
    """What is read begins an hour before, by the time of the records."""
    live = part_of_live_log(opened, T + 4 * PERIOD, None)
    found = audit(live, AuditScope(span=ReplaySpan(since=T + 4 * PERIOD)))
    assert found.moves == [move for move in whole.moves if move.interval >= T + 4 * PERIOD]


def test_a_part_of_a_log_reads_that_part_alone(opened: ReplaySource) -> None:
    extents = opened.log.records.extents("metrics")
    half = {partition: part._replace(end=part.end // 2) for partition, part in extents.items()}
    part = LogPart(opened.log.records, {"metrics": half})
    assert part.extents("metrics") == half
    assert part.extents("journal") == {}
    assert part.since("metrics", 0) == {partition: each.first for partition, each in half.items()}
    assert part.since("metrics", 1 << 60) == {partition: each.end for partition, each in half.items()}
    assert len(list(part.read("metrics", half))) < len(list(opened.log.records.read("metrics", extents)))
    assert part.where


# ---- hostile and broken logs ----


def test_a_log_without_a_journal_has_changes_by_others_in_place_of_moves(
    opened: ReplaySource, whole: MoveAudit
) -> None:
    found = audit(with_topics(opened, journal=[]), AuditScope())
    assert (found.has_journal, found.total.moves) == (False, 0)
    came = sorted((move.came_at, move.bundle, move.came_to) for move in whole.moves if move.came_to)
    assert [(each.interval, each.bundle, each.destination) for each in found.changes] == came
    assert found.changed["others"] == len(came)


def test_records_that_are_none_of_a_journal_are_left_out_and_counted(opened: ReplaySource, whole: MoveAudit) -> None:
    told = journal(opened)
    rubbish = [b"", b"\x00", b"{}", b"[[[[", b'{"v":1,"type":"decision"}', b'{"v":99,"type":"epoch"}']
    rubbish.append(told[0].value[:-9])
    spoilt = [told[0]._replace(offset=number - 10, value=value) for number, value in enumerate(rubbish)]
    found = audit(with_topics(opened, journal=[*spoilt, *told]), AuditScope())
    assert (found.moves, found.refused_entries) == (whole.moves, len(rubbish))


def test_an_entry_that_is_there_twice_counts_once(opened: ReplaySource, whole: MoveAudit) -> None:
    twice = [each._replace(offset=2 * i + n) for i, each in enumerate(journal(opened)) for n in (0, 1)]
    assert audit(with_topics(opened, journal=twice), AuditScope()).moves == whole.moves


def test_decisions_without_their_memory_are_audited_by_what_they_say(opened: ReplaySource, whole: MoveAudit) -> None:
    """The first entry has the whole memory; without it, the others are changes of nothing."""
    told = [each for each in journal(opened) if b'"decision"' not in each.value[:60]]
    found = audit(with_topics(opened, journal=told), AuditScope())
    assert found.without_memory >= _INTERVALS - 1
    assert [move.id for move in found.moves] == [move.id for move in whole.moves]
    assert [move.outcome for move in found.moves] == [move.outcome for move in whole.moves]


def test_decisions_whose_load_is_missing_are_audited_as_far_as_they_can_be(
    opened: ReplaySource, whole: MoveAudit
) -> None:
    records = opened.log.records
    assert isinstance(records, MemoryRecordLog)
    some = [each for each in records.topics["metrics"] if f'"interval":{T + 2 * PERIOD}'.encode() not in each.value]
    found = audit(with_topics(opened, metrics=some), AuditScope())
    assert found.intervals == _INTERVALS - 1
    assert [move.id for move in found.moves] == [move.id for move in whole.moves]
    unseen = [move for move in found.moves if move.interval == T + 2 * PERIOD]
    assert unseen
    assert all(move.carried is None and move.source.before is None for move in unseen)


def test_what_a_journal_calls_strategies_is_printable_and_bounded(
    opened: ReplaySource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controller.offline.audit._MAX_SUMS", 1)
    odd = "\\u001b[31m" + "x" * 10_000
    named = [each._replace(value=each.value.replace(b'"UniformLoadShedder"', f'"{odd}"'.encode(), 1))
             for each in journal(opened)]  # fmt: skip
    found = audit(with_topics(opened, journal=named), AuditScope())
    first, *others = found.by_strategy
    assert first.isprintable()
    assert len(first) == LONGEST_TEXT
    assert others in ([], ["(others)"])
    assert list(found.by_namespace)[1:] == ["(others)"]
    for sums in (found.by_strategy, found.by_namespace):
        assert added(list(sums.values())) == added([found.total])


@pytest.mark.parametrize("span", [ReplaySpan(since=T + 100 * PERIOD), ReplaySpan(until=T - PERIOD)])
def test_a_span_without_intervals_is_refused(opened: ReplaySource, span: ReplaySpan) -> None:
    with pytest.raises(SettingsError, match="no closed interval"):
        audit(opened, AuditScope(span=span))


def test_a_log_without_load_is_refused(opened: ReplaySource) -> None:
    with pytest.raises(SettingsError, match="no closed interval"):
        audit(with_topics(opened, metrics=[]), AuditScope())
