"""A replay without Spark comes to the journal of the live run, byte for byte, or says where it does not."""

import json
from pathlib import Path

import pytest

from controller.adapters.recordings.manifest import recorded_settings
from controller.adapters.recordings.reading import Recording
from controller.adapters.recordings.record_log import RECORDED_TOPICS, RecordedTopic, RecordLog, StoredRecord
from controller.log.factory import records_in
from controller.log.port import INTERVAL
from controller.model.balancing import Balancing
from controller.model.controls import Controls, OrderedMove, Orders
from controller.model.errors import JournalError, TrimtabError
from controller.offline.live_journal import difference
from controller.offline.record import RecordRequest, record
from controller.offline.replay import LogReplay, Replayed
from controller.settings.policy import read_policy
from controller.settings.trimtab_toml import read_settings
from tests.modelled_log import played, settings_in
from tests.recordings import MemoryRecordLog
from tests.records import CLUSTER, PERIOD, T

pytestmark = pytest.mark.slow

_EAGER = "loadBalancerLoadSheddingStrategy=UniformLoadShedder\nmaxUnloadPercentage=0.5\n"
_MORE = 'decisions = {mode = "active", seed = 5}\njournal.whole_every_intervals = 4'


@pytest.fixture(scope="module")
def conf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of twelve intervals, paused in one of them, with the journal of the controller that wrote it."""
    path = settings_in(tmp_path_factory.mktemp("live"), broker_conf=_EAGER, more=_MORE)

    def controls(interval: int) -> Controls:
        return Controls(mode="active", paused=interval == T + 5 * PERIOD, by="me" if interval > T + 3 * PERIOD else "")

    entries = played(path, 12, controls=controls)
    assert any(entry.decision.commands for entry in entries)
    return path


def log_of(conf: Path) -> RecordLog:
    return records_in(conf.parent / "log")


def replayed(conf: Path, log: RecordLog) -> Replayed:
    settings = read_settings(conf)
    return LogReplay(log, recorded_settings(settings), read_policy(settings)).run()


def in_memory(conf: Path) -> dict[RecordedTopic, list[StoredRecord]]:
    """All records; of the journal the entries alone."""
    log = log_of(conf)
    topics = {topic: [*log.read(topic, log.extents(topic))] for topic in RECORDED_TOPICS}
    return topics | {"journal": [each for each in topics["journal"] if INTERVAL in dict(each.headers)]}


def test_a_log_in_a_folder(conf: Path) -> None:
    told = replayed(conf, log_of(conf)).comparison
    assert (told.decided, told.compared, told.equal, told.first) == (12, 12, 12, None)
    assert told.commands > 0


def test_a_recording_of_it_with_the_settings_that_it_carries(conf: Path, tmp_path: Path) -> None:
    record(log_of(conf), tmp_path / "new", RecordRequest(), recorded_settings(read_settings(conf)), CLUSTER)
    recording = Recording(tmp_path / "new")
    settings = recording.manifest.settings
    told = LogReplay(recording, settings, settings.policy(recording.manifest.cluster)).run().comparison
    assert (told.decided, told.equal, told.first) == (12, 12, None)


def test_an_entry_that_differs_is_told_with_its_field(conf: Path) -> None:
    topics = in_memory(conf)
    seventh = topics["journal"][6]
    topics["journal"][6] = seventh._replace(value=seventh.value.replace(b'"summary":"', b'"summary":"other '))
    told = replayed(conf, MemoryRecordLog(topics)).comparison
    assert told.equal == 11
    assert told.first is not None
    assert told.first.interval == T + 6 * PERIOD
    assert told.first.what.startswith("summary: live other ")


def test_other_settings_are_found_out(conf: Path) -> None:
    settings = recorded_settings(read_settings(conf))
    other = settings.model_copy(update={"decisions": settings.decisions.model_copy(update={"split": False, "seed": 6})})
    told = LogReplay(log_of(conf), other, other.policy(CLUSTER)).run().comparison
    assert told.equal < 12
    assert told.first is not None
    assert told.first.interval == T


def test_intervals_too_old_to_act_on_have_no_entry_and_are_decided_all_the_same(tmp_path: Path) -> None:
    path = settings_in(tmp_path, more=_MORE)
    stale = Controls(mode="active", stale=True)
    played(path, 8, controls=lambda interval: stale if interval < T + 5 * PERIOD else Controls(mode="active"))
    topics = in_memory(path)
    assert len(topics["journal"]) == 8  # each batch has one interval here, so all are journalled
    whole = replayed(path, MemoryRecordLog(topics)).comparison
    assert (whole.decided, whole.equal) == (8, 8)


def test_a_plan_that_was_applied_is_obeyed_again(tmp_path: Path) -> None:
    source, destination = "broker-0:8080", "broker-1:8080"
    move = OrderedMove(bundle="tenant/ns/0x00000000_0x80000000", source=source, destination=destination)
    orders = Orders(
        plan="0" * 64,
        step=1,
        wave=1,
        waves=1,
        moves=(move,),
        checked_at=T,
        expires_at_ms=T + 9 * PERIOD,
        holder="h",
        by="me",
    )
    path = settings_in(tmp_path, more=_MORE)
    played(path, 5, controls=lambda interval: Controls(mode="active", orders=orders if interval > T + PERIOD else None))
    told = replayed(path, log_of(path)).comparison
    assert (told.decided, told.equal, told.first) == (5, 5, None)


OFF = Balancing(enabled=True, shedding=False, splitting=False)
ALL_OFF = dict.fromkeys([f"broker-{number}:8080" for number in range(1, 7)], OFF)


def switched(interval: int) -> dict[str, Balancing | None]:
    """One broker sheds in the fourth and fifth interval; in the seventh and eighth another does not say."""
    number = (interval - T) // PERIOD
    if number in (3, 5):
        return {"broker-4:8080": OFF._replace(shedding=number == 3)}
    if number in (6, 8):
        return {"broker-2:8080": None if number == 6 else OFF}
    return {**ALL_OFF} if number == 0 else {}


def test_the_switches_of_brokers_lie_in_the_log_so_a_replay_waits_for_them_as_the_live_run_did(tmp_path: Path) -> None:
    path = settings_in(tmp_path, broker_conf=_EAGER, more=f"{_MORE}\nguardrails.brokers_balance_unknown_intervals = 0")
    path.write_text(path.read_text().replace('brokers_balance_unknown = "ignore"', 'brokers_balance_unknown = "hold"'))
    entries = played(path, 11, balancing=switched)
    words = (": BrokersBalance, ", ": BrokersBalanceUnknown, ")
    waits = [next((word for word in words if word in entry.decision.summary), "") for entry in entries]
    balance, unknown = words
    assert waits == ["", "", "", balance, balance, "", unknown, unknown, "", "", ""], entries[0].memory.balancing
    told = replayed(path, log_of(path)).comparison
    assert (told.decided, told.equal, told.first) == (11, 11, None)

    record(log_of(path), tmp_path / "new", RecordRequest(), recorded_settings(read_settings(path)), CLUSTER)
    recording = Recording(tmp_path / "new")
    settings = recording.manifest.settings
    again = LogReplay(recording, settings, settings.policy(CLUSTER)).run().comparison
    assert (again.decided, again.equal, again.first) == (11, 11, None)


def test_an_entry_that_is_missing_in_the_midst_is_told(conf: Path) -> None:
    topics = in_memory(conf)
    del topics["journal"][6]
    told = replayed(conf, MemoryRecordLog(topics)).comparison
    assert told.first is not None
    assert (told.first.interval, told.first.what) == (T + 6 * PERIOD, "the live run did not journal this interval")


def test_an_interval_that_the_log_has_lost_is_told(conf: Path) -> None:
    topics = in_memory(conf)
    lost = b'"interval":%d' % (T + 6 * PERIOD)
    for topic in ("metrics", "results"):
        topics[topic] = [each for each in topics[topic] if lost not in each.value]
    told = replayed(conf, MemoryRecordLog(topics)).comparison
    assert told.first is not None
    assert (told.first.interval, told.first.what) == (T + 6 * PERIOD, "the replay did not decide this interval")


def test_without_a_journal_the_settings_say_the_controls(conf: Path) -> None:
    told = replayed(conf, MemoryRecordLog(in_memory(conf) | {"journal": []}))
    assert (told.comparison.decided, told.comparison.compared, told.has_journal) == (12, 0, False)


def test_from_the_midst_of_a_run_it_begins_with_the_memory_of_the_entry_before(conf: Path) -> None:
    topics = in_memory(conf)
    kept = [
        each
        for each in topics["metrics"]
        if b"namespace_state" in each.value or each.offset > topics["metrics"][60].offset
    ]
    told = replayed(conf, MemoryRecordLog(topics | {"metrics": kept}))
    assert told.begins_midway
    assert 0 < told.comparison.compared < 12


def test_a_journal_that_begins_later_begins_at_its_first_whole_memory(conf: Path) -> None:
    topics = in_memory(conf)
    topics["journal"] = topics["journal"][2:]
    told = replayed(conf, MemoryRecordLog(topics))
    assert told.begins_midway
    # The fifth entry has the whole memory: what is behind it is compared, averages and all.
    assert (told.comparison.compared, told.comparison.equal) == (7, 7)


def test_records_that_cannot_be_used_are_counted_and_those_of_other_clusters_left_out(conf: Path) -> None:
    topics = in_memory(conf)
    last = topics["metrics"][-1]
    odd = [b"", b"\x00", b"{", b'{"v":1,"cluster":"other","type":"tick"}', b'{"v":1,"type":"tick","cluster":"demo"}']
    more = [last._replace(offset=last.offset + 1 + i, value=value) for i, value in enumerate(odd)]
    told = replayed(conf, MemoryRecordLog(topics | {"metrics": [*topics["metrics"], *more]}))
    assert (told.refused, told.comparison.equal) == (4, 12)


@pytest.mark.parametrize(
    "value", [b"", b"[]", b'{"type":"decision","cluster":"demo"}', b'{"type":"part","cluster":"demo"}']
)
def test_a_journal_that_makes_no_sense_is_named_with_its_offset(conf: Path, value: bytes) -> None:
    topics = in_memory(conf)
    topics["journal"][3] = topics["journal"][3]._replace(value=value)
    with pytest.raises(JournalError, match=f"journal, offset {topics['journal'][3].offset}"):
        replayed(conf, MemoryRecordLog(topics))


def test_a_log_without_ticks_says_so(conf: Path) -> None:
    topics = in_memory(conf)
    topics["metrics"] = [each for each in topics["metrics"] if b'"tick"' not in each.value]
    with pytest.raises(TrimtabError, match="closes no interval"):
        replayed(conf, MemoryRecordLog(topics))


def test_where_entries_differ() -> None:
    left = {"a": 1, "b": {"c": [1, 2, {"d": 3}]}, "e": 0}
    for change, said in (
        ({"b": {"c": [1, 2, {"d": 4}]}}, "b.c.2.d: live 3, replayed 4"),
        ({"b": {"c": [1, 2]}}, "b.c: live 3 of them, replayed 2 of them"),
        ({"f": None}, "f: live None, replayed None"),
        ({"a": "x" * 999}, f"a: live 1, replayed {'x' * 120}..."),
        ({}, "its text: live"),
    ):
        assert difference(json.dumps(left).encode(), json.dumps(left | change).encode()).startswith(said)
