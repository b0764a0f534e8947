"""The log on a real Pulsar: what stands on the port."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from itertools import islice
from pathlib import Path
from uuid import uuid4

import pytest

from controller.adapters.process.failpoints import VARIABLE
from controller.adapters.pulsar.admin import PulsarAdmin
from controller.adapters.pulsar.log.topics import log_admin
from controller.lab.pulsar_server import CLUSTER as CLUSTER_NAME
from controller.lab.pulsar_server import PulsarCluster
from controller.log.journal import LogJournal
from controller.log.pulsar.log import PulsarLog
from controller.log.pulsar.reading import PartitionReader
from controller.log.records import LogRecords
from controller.log.tail import LogTail
from controller.model.errors import JournalError, SettingsError
from controller.model.journal import JournalHead
from controller.settings.pulsar_log import PulsarLogSettings
from controller.wire.base import read_object
from controller.wire.commands import EpochEvent, parse_event
from tests.contracts.collectors import CollectorLogContract
from tests.contracts.inbox import InboxContract
from tests.contracts.journal import NEXT, JournalContract, append, head, issued, open_journal
from tests.contracts.log import CommandLogContract, DeadLetterLogContract, MetricsLogContract
from tests.contracts.midway import knows_what_was_known_and_begins_behind_the_ticks, write_intervals
from tests.integration.pulsar_log import PARTITIONS, own_topics
from tests.journal_entries import SPLIT, UNLOAD, entry
from tests.records import CLUSTER, T
from tests.unit.log import places

pytestmark = pytest.mark.integration


class Place(places.Place):
    """Topics of the test's own."""

    partitions = PARTITIONS

    def __init__(self, settings: PulsarLogSettings, opened: ExitStack) -> None:
        self.settings = settings
        super().__init__(lambda: opened.enter_context(closing(PulsarLog(settings, cluster=CLUSTER, claim_seconds=6.0))))

    def end(self) -> LogTail:
        return LogTail(self.connect, cluster=CLUSTER, endless=True)


@pytest.fixture
def place(pulsar: PulsarCluster) -> Iterator[Place]:
    with ExitStack() as opened:
        yield Place(own_topics(pulsar), opened)


@pytest.mark.any_pulsar
class TestJournal(JournalContract):
    pass


@pytest.mark.any_pulsar
class TestCollectorLog(CollectorLogContract):
    pass


@pytest.mark.any_pulsar
class TestMetricsLog(MetricsLogContract):
    pass


@pytest.mark.any_pulsar
class TestCommandLog(CommandLogContract):
    pass


@pytest.mark.any_pulsar
class TestDeadLetterLog(DeadLetterLogContract):
    pass


@pytest.mark.any_pulsar
class TestInbox(InboxContract):
    pass


@pytest.mark.any_pulsar
def test_a_recording_from_the_midst_of_a_run_knows_what_was_known(pulsar: PulsarCluster, tmp_path: Path) -> None:
    with ExitStack() as opened:
        there = Place(own_topics(pulsar, partitions=1), opened)
        write_intervals(there.metrics())
        knows_what_was_known_and_begins_behind_the_ticks(LogRecords(there.connect(), where="Pulsar"), tmp_path / "copy")


def test_a_leader_whose_topics_move_between_brokers_goes_on(place: Place, pulsar: PulsarCluster) -> None:
    journal = open_journal(place)
    journal.begin_epoch(1)
    append(journal, entry(T, UNLOAD))
    admin = PulsarAdmin(pulsar.admin_urls, cluster=CLUSTER_NAME)
    for bundle in ("0x00000000_0x40000000", "0x40000000_0x80000000", "0x80000000_0xc0000000", "0xc0000000_0xffffffff"):
        admin.unload(f"{place.settings.namespace}/{bundle}")
    append(journal, entry(NEXT, SPLIT))
    assert issued(place) == [UNLOAD.id, SPLIT.id]
    assert head(place).last == entry(NEXT, SPLIT)
    assert place.end().last_entry() == entry(NEXT, SPLIT)


_PROCESS = """
import sys
from controller.log.journal import LogJournal
from controller.log.pulsar.log import PulsarLog
from controller.log.ticks import CollectorLog
from controller.settings.pulsar_log import PulsarLogSettings
from tests.journal_entries import SPLIT, UNLOAD, entry
from tests.records import CLUSTER, T
log = PulsarLog(PulsarLogSettings.model_validate_json(sys.argv[1]), cluster=CLUSTER)
"""
_LEADER = """
journal = LogJournal(log, cluster=CLUSTER)
journal.open()
journal.begin_epoch(1)
journal.append(entry(T, UNLOAD, SPLIT), epoch=1, issued_at_ms=T + 1, before_commit=lambda: None)
"""
_COLLECTOR = """
collector = CollectorLog(log, cluster=CLUSTER)
collector.lead(0)
collector.tick(T, {"a:8080": "sweep"})
"""


def die_at(name: str, place: Place, process: str = _LEADER) -> None:
    command = [sys.executable, "-c", _PROCESS + process, place.settings.model_dump_json()]
    ended = subprocess.run(command, env={**os.environ, VARIABLE: name}, check=False, timeout=120)
    assert ended.returncode == -signal.SIGKILL


def test_a_leader_killed_before_its_entry_has_issued_nothing(place: Place) -> None:
    die_at("inside-transaction", place)
    assert head(place) == JournalHead(last=None, epoch=1)
    assert issued(place) == []


def test_the_commands_of_a_leader_killed_behind_its_entry_are_issued_by_the_next_under_their_own_epoch(
    place: Place,
) -> None:
    die_at("before-follow:2", place)
    assert issued(place) == []
    for _ in range(2):
        assert head(place) == JournalHead(last=entry(T, UNLOAD, SPLIT), epoch=1)
        events = [event for event in map(parse_event, place.events()) if not isinstance(event, EpochEvent)]
        assert [event.id for event in events] == [UNLOAD.id, SPLIT.id]
        assert {(event.epoch, event.time_ms) for event in events} == {(1, T + 1)}


def test_a_tick_that_a_killed_collector_did_not_write_is_written_by_the_next_one(place: Place) -> None:
    die_at("before-follow", place, _COLLECTOR)
    assert place.records("results", 0) == []
    for _ in range(2):
        place.log().lead(0)
        for topic in ("metrics", "results"):
            for partition in range(PARTITIONS):
                assert [read_object(value)["interval"] for value in place.records(topic, partition)] == [T]
    [first] = place.records("metrics", 0)
    assert read_object(first)["roster"] == [{"broker": "a:8080", "sweepId": "sweep"}]


def test_a_journal_that_is_not_read_to_its_end_is_an_error_and_no_shorter_journal(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, whole = open_journal(place), PartitionReader.messages
    append(journal, entry(T))
    append(journal, entry(NEXT, UNLOAD))
    with monkeypatch.context() as patched:
        patched.setattr(PartitionReader, "messages", lambda reader: islice(whole(reader), 2))
        with pytest.raises(JournalError, match="reading did not reach"):
            open_journal(place)
    assert head(place).last == entry(NEXT, UNLOAD)


def test_a_namespace_that_does_not_deduplicate_is_refused(pulsar: PulsarCluster) -> None:
    settings = own_topics(pulsar).model_copy(update={"namespace": f"public/{uuid4().hex[:8]}"})
    with closing(log_admin(settings)) as admin:
        admin.create_namespace(settings.namespace, {})
    nobodys = settings.model_copy(update={"namespace": "nobody/trimtab"})
    for there, problem in ((settings, "set-deduplication"), (nobodys, "tenant nobody does not exist")):
        journal = LogJournal(PulsarLog(there, cluster=CLUSTER), cluster=CLUSTER)
        with closing(journal), pytest.raises(SettingsError, match=problem):
            journal.open()
