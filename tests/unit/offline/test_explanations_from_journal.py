"""A journalled decision made again from the log: it is the same, and what the strategies answered is heard."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from controller.log.factory import recording
from controller.log.tail import ReadTopic
from controller.model.decision import Reason
from controller.model.errors import TrimtabError
from controller.model.journal import JournalEntry
from controller.offline.explanations.explanation import ExplainedDecision, explain
from controller.offline.explanations.sources import journalled_decision
from controller.offline.reconstruction import snapshot_at
from controller.settings.pairs import needed_by
from controller.settings.policy import read_policy
from controller.settings.trimtab_toml import Settings, read_settings
from controller.simulator.cluster import ClusterShape
from controller.strategies.catalogue import SHEDDERS
from controller.wire.base import encode, read_object
from controller.wire.metrics import Partitions, TickRecord, decode_metric
from tests.folders import file_of
from tests.modelled_log import played, settings_in
from tests.records import CLUSTER, PERIOD, T

pytestmark = pytest.mark.slow

_EAGER = """loadBalancerLoadSheddingStrategy={shedder}
minUnloadMessage=1
minUnloadMessageThroughput=1
maxUnloadPercentage=0.5
loadBalancerBundleUnloadMinThroughputThreshold=0
"""
_MANY = 1_000


def _told(conf: Path, interval: int) -> ExplainedDecision:
    return journalled_decision(read_settings(conf), interval, before=_MANY)


@pytest.mark.parametrize("shedder", sorted(SHEDDERS))
def test_made_again_every_decision_is_the_same_to_the_last_number(tmp_path: Path, shedder: str) -> None:
    others = "".join(f"{key}={value}\n" for key, value in needed_by(shedder).items())
    conf = settings_in(tmp_path, broker_conf=_EAGER.format(shedder=shedder) + others)
    entries = played(conf, 4, shape=ClusterShape(brokers=4, bundles=12, topics=60))
    for entry in entries:
        told = _told(conf, entry.interval)
        assert told.reproduced is True
        assert told.notes == ()
        assert told.examined is not None
        assert told.examined.decision.commands == entry.decision.commands
        assert told.examined.decision.verdicts == told.verdicts == entry.decision.verdicts
        assert told.examined.memory == entry.memory


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[JournalEntry]]:
    """A run in which UniformLoadShedder moves bundles."""
    conf = settings_in(tmp_path_factory.mktemp("run"), broker_conf=_EAGER.format(shedder="UniformLoadShedder"))
    return conf, played(conf, 6)


@pytest.fixture
def copied(run: tuple[Path, list[JournalEntry]], tmp_path: Path) -> tuple[Path, JournalEntry]:
    """A copy of it to be spoilt, and the last decision that moved bundles."""
    conf, entries = run
    shutil.copytree(conf.parent, tmp_path, dirs_exist_ok=True)
    return tmp_path / conf.name, next(entry for entry in reversed(entries) if entry.decision.commands)


def test_every_command_is_told_with_its_destination_among_the_brokers(run: tuple[Path, list[JournalEntry]]) -> None:
    conf, entries = run
    moved = 0
    for entry in entries:
        told = _told(conf, entry.interval)
        for command in entry.decision.commands:
            moved += 1
            answer = explain(told, command.bundle, "bundle")
            assert answer.chosen is True
            assert answer.where_to == command.destination
            assert answer.brokers is not None
            assert [each.broker for each in answer.brokers if each.answer == "chosen"] == [command.destination]
            assert [each.broker for each in answer.brokers if each.answer == "source"] == [command.source]
            assert [each.answer for each in answer.answers if each.answer == "no"] == []
    assert moved > 3


def test_every_bundle_that_stays_is_told_why_and_where_it_would_go(run: tuple[Path, list[JournalEntry]]) -> None:
    conf, entries = run
    told = _told(conf, entries[1].interval)
    assert told.examined is not None
    moved = {command.bundle for command in entries[1].decision.commands}
    for bundle in set(told.examined.view.bundles.names) - moved:
        answer = explain(told, bundle, "bundle")
        assert answer.chosen is False
        assert answer.commands == []
        assert "no" in {each.answer for each in answer.answers}
        assert answer.because
        assert answer.where_to


def test_without_the_load_the_records_alone_answer(copied: tuple[Path, JournalEntry]) -> None:
    conf, entry = copied
    shutil.rmtree(conf.parent / "log" / "metrics")
    told = _told(conf, entry.interval)
    assert (told.examined, told.reproduced, told.verdicts) == (None, None, entry.decision.verdicts)
    command = entry.decision.commands[0]
    answer = explain(told, command.bundle, "bundle")
    assert (answer.brokers, answer.chosen, answer.where_to) == (None, None, command.destination)
    assert "the log no longer has the load of this interval" in answer.notes[0]


def test_without_the_load_nothing_is_claimed_about_a_bundle_that_no_record_names(
    copied: tuple[Path, JournalEntry],
) -> None:
    conf, entry = copied
    shutil.rmtree(conf.parent / "log" / "metrics")
    answer = explain(_told(conf, entry.interval), "tenant/ns/0x00000000_0x00000001", "bundle")
    assert (answer.brokers, answer.commands, answer.where_to) == (None, [], "")
    assert "in_flight" not in {each.asked for each in answer.answers}
    assert answer.because.startswith("no verdict is about it")


def test_moves_after_a_broker_joined_are_told_with_the_rebalancer_that_chose_them(tmp_path: Path) -> None:
    options = "trimtabRebalanceOnMembershipChange=cooperative\ntrimtabRebalanceSpreadRounds=1\n"
    more = "guardrails.freeze_intervals = 0"
    conf = settings_in(tmp_path, broker_conf=_EAGER.format(shedder="ThresholdShedder") + options, more=more)
    *_, joined = played(conf, 4, joins=3)
    told = _told(conf, joined.interval)
    assert told.reproduced is True
    moves = [command for command in joined.decision.commands if command.why.reason is Reason.BROKER_JOINED]
    assert moves
    for command in moves:
        answer = explain(told, command.bundle, "bundle")
        assert (answer.chosen, answer.where_to) == (True, command.destination)
        assert command.why.by in {each.asked for each in answer.answers if each.answer == "yes"}


def test_verdicts_that_are_not_kept_are_made_again(copied: tuple[Path, JournalEntry]) -> None:
    conf, entry = copied
    shutil.rmtree(conf.parent / "checkpoint")
    told = _told(conf, entry.interval)
    assert (told.reproduced, told.verdicts, told.notes) == (True, entry.decision.verdicts, ())


def test_with_neither_load_nor_verdicts_the_summary_is_what_is_known(copied: tuple[Path, JournalEntry]) -> None:
    conf, entry = copied
    shutil.rmtree(conf.parent / "checkpoint")
    shutil.rmtree(conf.parent / "log" / "metrics")
    answer = explain(_told(conf, entry.interval), "broker-9:8080", "broker")
    assert answer.answers == []
    assert answer.because == f"not known, only the summary is stored: {entry.decision.summary}"
    assert len(answer.notes) == 2


def test_other_settings_than_then_are_noticed(copied: tuple[Path, JournalEntry]) -> None:
    conf, entry = copied
    (conf.parent / "broker.conf").write_text(_EAGER.format(shedder="OverloadShedder"), encoding="utf-8")
    told = _told(conf, entry.interval)
    assert told.reproduced is False
    assert "replaying the decision gives another result" in told.notes[0]
    assert told.verdicts == entry.decision.verdicts


def test_the_memory_of_a_pruned_journal_is_missed(copied: tuple[Path, JournalEntry]) -> None:
    conf, entry = copied
    kept = file_of(conf.parent / "log", entry.interval)
    for path in [*kept.parent.iterdir()]:
        if path < kept:
            path.unlink()
    told = _told(conf, entry.interval)
    assert told.examined is None
    assert "no longer has the memory" in told.notes[0]
    assert [command for command, _ in told.commands] == list(entry.decision.commands)


def test_the_newest_decision_and_the_last_up_to_a_time_are_found(run: tuple[Path, list[JournalEntry]]) -> None:
    conf, entries = run
    assert journalled_decision(read_settings(conf), None, before=0).interval == entries[-1].interval
    assert _told(conf, entries[2].interval + PERIOD - 1).interval == entries[2].interval
    with pytest.raises(TrimtabError, match="no decision about cluster 'demo' at or before 2024-12-31T23:59:59Z"):
        _told(conf, T - 1)


class TwoPartitions:
    """The tail of a log whose records are dealt to two partitions, the second of which is ticked later."""

    endless, where = True, "nowhere"

    def __init__(self, folder: Path) -> None:
        self._tail = recording(folder)

    def backwards(self, topic: ReadTopic, wanted: tuple[bytes, ...]) -> Iterator[bytes]:
        return reversed([value for value in self._forwards(topic) if any(text in value for text in wanted)])

    def _forwards(self, topic: ReadTopic) -> Iterator[bytes]:
        held: list[bytes] = []
        for number, value in enumerate(reversed(list(self._tail.backwards(topic, (b"",))))):
            fields = read_object(value)
            if fields["type"] == "tick":
                tick = decode_metric(value, cluster=CLUSTER, period_ms=PERIOD)
                both = tick.model_copy(update={"partitions": tick.partitions.model_copy(update={topic: 2})})  # type: ignore[union-attr]
                yield encode(both)
                # What the second partition took after the first was ticked belongs to the interval, too.
                yield from held
                yield encode(both.model_copy(update={"roster": None}))
                held = []
            elif number % 2:
                held.append(value)
            else:
                yield value


def _settings(conf: Path) -> Settings:
    return read_settings(conf)


def test_a_log_with_several_partitions_is_closed_where_the_last_one_was_ticked(
    run: tuple[Path, list[JournalEntry]],
) -> None:
    conf, entries = run
    settings, policy = _settings(conf), read_policy(_settings(conf))
    folder = conf.parent / "log"
    for entry in entries:
        one = snapshot_at(recording(folder), settings, policy, entry.interval, before=_MANY)
        two = snapshot_at(TwoPartitions(folder), settings, policy, entry.interval, before=_MANY)  # type: ignore[arg-type]
        assert one is not None
        assert two is not None
        # Results of one interval have no order.
        assert sorted(one.results, key=str) == sorted(two.results, key=str)
        assert replace(two, results=one.results).to_blob() == one.to_blob()


def test_of_a_log_that_is_not_read_whole_the_load_is_the_same_and_averages_begin_later(
    run: tuple[Path, list[JournalEntry]],
) -> None:
    conf, entries = run
    settings, policy, last = _settings(conf), read_policy(_settings(conf)), entries[-1].interval
    whole = snapshot_at(recording(conf.parent / "log"), settings, policy, last, before=_MANY)
    part = snapshot_at(recording(conf.parent / "log"), settings, policy, last, before=1)
    assert whole is not None
    assert part is not None
    assert (part.names, part.roster) == (whole.names, whole.roster)
    assert part.load.tolist() == whole.load.tolist()
    assert part.short_samples.max() == 2 < whole.short_samples.max()


def test_the_load_of_an_interval_that_no_tick_ended_is_not_known(run: tuple[Path, list[JournalEntry]]) -> None:
    conf, entries = run
    settings = _settings(conf)
    tail = recording(conf.parent / "log")
    for interval in (entries[-1].interval + PERIOD, T - PERIOD, T + 1):
        assert snapshot_at(tail, settings, read_policy(settings), interval, before=_MANY) is None


def test_records_that_became_dead_letters_are_left_out(copied: tuple[Path, JournalEntry]) -> None:
    conf, entry = copied
    first = min((conf.parent / "log" / "metrics").glob("*.jsonl"))
    first.write_bytes(b'{"type": "tick"\n[]\n' + first.read_bytes())
    assert _told(conf, entry.interval).reproduced is True


def test_a_tick_of_a_clock_that_was_ahead_hides_no_interval_that_was_decided_after_it(tmp_path: Path) -> None:
    conf = settings_in(tmp_path)
    last = played(conf, 4)[-1].interval
    for topic in ("metrics", "results"):
        tick = TickRecord(cluster=CLUSTER, interval=T + 1000 * PERIOD, partitions=Partitions(metrics=1, results=1))
        (tmp_path / "log" / topic / f"{T + PERIOD:015d}-000999.jsonl").write_bytes(encode(tick) + b"\n")
    told = _told(conf, last)
    assert (told.reproduced, told.notes) == (True, ())
