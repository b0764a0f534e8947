"""The journal on a real Pulsar."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from itertools import islice
from types import ModuleType
from uuid import uuid4

import pytest

from controller.adapters.journal_evidence import of_commands
from controller.adapters.process.failpoints import VARIABLE
from controller.adapters.pulsar.admin import PulsarAdmin
from controller.adapters.pulsar.log import journal as pulsar_journal
from controller.adapters.pulsar.log.connection import LogConnection
from controller.adapters.pulsar.log.fenced import FencedPartition
from controller.adapters.pulsar.log.journal import PulsarJournal
from controller.adapters.pulsar.log.journal_reading import read_journal
from controller.adapters.pulsar.log.reader import LogRecord, PartitionReader, read_rest
from controller.adapters.pulsar.log.tail import PulsarTail
from controller.adapters.pulsar.log.topics import create_topics, log_admin
from controller.lab.pulsar_server import CLUSTER as CLUSTER_NAME
from controller.lab.pulsar_server import PulsarCluster
from controller.model.errors import AnotherClusterError, JournalError, LeadershipLostError, SettingsError
from controller.model.journal import JournalEntry
from controller.ports.journal import JournalHead
from controller.settings.pulsar_log import PulsarLogSettings
from controller.wire import journal_records
from controller.wire.commands import EpochEvent, parse_event
from tests.contracts.journal import NEXT, USAGE, JournalContract, append, head, hours, issued, lose, opened
from tests.integration.pulsar_log import own_topics
from tests.journal_entries import SPLIT, UNLOAD, entry
from tests.records import CLUSTER, T

pytestmark = pytest.mark.integration


class Place:
    """A journal in topics of its own."""

    module: ModuleType = pulsar_journal

    def __init__(self, settings: PulsarLogSettings, opened: ExitStack) -> None:
        self.settings, self._opened = settings, opened
        self.connection = opened.enter_context(closing(LogConnection(settings)))

    def journal(self) -> PulsarJournal:
        return self._opened.enter_context(closing(PulsarJournal(self.settings, cluster=CLUSTER)))

    def entries(self) -> list[JournalEntry]:
        return [*read_journal(self.connection, cluster=CLUSTER)] if self._is_there() else []

    def events(self) -> list[bytes]:
        name = self.settings.commands_topic
        return [
            record.value
            for partition in range(self.connection.partitions(name))
            for record in read_rest(self.connection, name, partition)
        ]

    def _is_there(self) -> bool:
        return self.connection.partitions(self.settings.journal_topic) > 0


@pytest.fixture
def place(pulsar: PulsarCluster) -> Iterator[Place]:
    with ExitStack() as opened:
        yield Place(own_topics(pulsar), opened)


class TestPulsarJournal(JournalContract):
    pass


def test_the_tail_has_the_newest_decisions_and_the_newest_epoch(place: Place) -> None:
    written = hours(place, 2)
    tail = PulsarTail(place.settings)
    assert tail.last_entry(CLUSTER) == written[-1]
    found = tail.journal_tail(CLUSTER, 3, b"")
    assert [decision.interval for decision in found.decisions] == [each.interval for each in written[:-4:-1]]
    assert found.epoch == 2
    assert [each.interval for each in tail.journal_tail(CLUSTER, 8, b'"command-5"').decisions] == [written[5].interval]


def test_the_end_of_the_commands_shows_what_the_journal_had(place: Place) -> None:
    journal = opened(place)
    journal.begin_epoch(3)
    append(journal, entry(T, UNLOAD), epoch=3)
    opened(place).begin_epoch(4)
    found = {(each.interval, each.epoch) for each in of_commands(PulsarTail(place.settings), CLUSTER)}
    assert found == {(None, 4), (T, 3)}


def test_an_entry_in_parts_counts_once_its_last_part_is_there(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_records, "_LARGEST_RECORD", 1_000)
    monkeypatch.setattr(journal_records, "_PART_CHARACTERS", 300)
    journal = opened(place)
    with pytest.raises(LeadershipLostError):
        append(journal, entry(T, UNLOAD, shedder=USAGE), before_commit=lose)
    append(journal, entry(T, SPLIT, shedder=USAGE))
    assert place.entries() == [entry(T, SPLIT, shedder=USAGE)]
    assert head(place).last == entry(T, SPLIT, shedder=USAGE)
    assert [each.interval for each in PulsarTail(place.settings).journal_tail(CLUSTER, 5, b"").decisions] == [T]


_LEADER = """
import sys
from controller.adapters.pulsar.log.fenced import FencedPartition
from controller.adapters.pulsar.log.journal import PulsarJournal
from controller.settings.pulsar_log import PulsarLogSettings
from tests.journal_entries import SPLIT, UNLOAD, entry
from tests.records import CLUSTER, PERIOD, T
journal = PulsarJournal(PulsarLogSettings.model_validate_json(sys.argv[1]), cluster=CLUSTER)
journal.open()
journal.begin_epoch(1)
journal.append(entry(T, UNLOAD, SPLIT), epoch=1, issued_at_ms=T + 1, before_commit=lambda: None)
"""


def die_at(name: str, place: Place) -> None:
    command = [sys.executable, "-c", _LEADER, place.settings.model_dump_json()]
    ended = subprocess.run(command, env={**os.environ, VARIABLE: name}, check=False, timeout=120)
    assert ended.returncode == -signal.SIGKILL


def test_a_leader_killed_before_its_entry_has_issued_nothing(place: Place) -> None:
    die_at("inside-transaction", place)
    assert head(place) == JournalHead(last=None, epoch=1)
    assert issued(place) == []


def test_the_commands_of_a_leader_killed_behind_its_entry_are_issued_by_the_next_under_their_own_epoch(
    place: Place,
) -> None:
    die_at("after-commit", place)
    assert issued(place) == []
    for _ in range(2):
        assert head(place) == JournalHead(last=entry(T, UNLOAD, SPLIT), epoch=1)
        events = [event for event in map(parse_event, place.events()) if not isinstance(event, EpochEvent)]
        assert [event.id for event in events] == [UNLOAD.id, SPLIT.id]
        assert {(event.epoch, event.time_ms) for event in events} == {(1, T + 1)}


def test_a_leader_that_dies_among_its_commands_leaves_the_rest_to_the_next(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, whole = opened(place), FencedPartition.append_all
    journal.begin_epoch(1)
    with monkeypatch.context() as patched:
        patched.setattr(FencedPartition, "append_all", lambda self, records: whole(self, [*records][:1]))
        append(journal, entry(T, UNLOAD, SPLIT))
    assert issued(place) == [UNLOAD.id]
    assert head(place).last == entry(T, UNLOAD, SPLIT)
    assert issued(place) == [UNLOAD.id, SPLIT.id]


def test_a_journal_that_is_not_read_to_its_end_is_an_error_and_no_shorter_journal(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, whole = opened(place), PartitionReader.rest
    append(journal, entry(T))
    append(journal, entry(NEXT, UNLOAD))

    def ends_early(reader: PartitionReader) -> Iterator[LogRecord]:
        yield from islice(whole(reader), 2)

    with monkeypatch.context() as patched:
        patched.setattr(PartitionReader, "rest", ends_early)
        with pytest.raises(JournalError, match="not read up to"):
            opened(place)
    assert head(place).last == entry(NEXT, UNLOAD)


def test_a_leader_whose_topics_move_between_brokers_goes_on(place: Place, pulsar: PulsarCluster) -> None:
    journal = opened(place)
    journal.begin_epoch(1)
    append(journal, entry(T, UNLOAD))
    admin = PulsarAdmin(pulsar.admin_urls, cluster=CLUSTER_NAME)
    for bundle in ("0x00000000_0x40000000", "0x40000000_0x80000000", "0x80000000_0xc0000000", "0xc0000000_0xffffffff"):
        admin.unload(f"{place.settings.namespace}/{bundle}")
    append(journal, entry(NEXT, SPLIT))
    assert issued(place) == [UNLOAD.id, SPLIT.id]
    assert head(place).last == entry(NEXT, SPLIT)


def test_the_journal_of_another_cluster_is_refused_and_its_leader_goes_on(place: Place) -> None:
    journal = opened(place)
    append(journal, entry(T))
    other = PulsarJournal(place.settings, cluster="other")
    with closing(other), pytest.raises(AnotherClusterError, match=f"about cluster '{CLUSTER}'"):
        other.open()
    append(journal, entry(NEXT))


def test_a_namespace_that_does_not_deduplicate_is_refused(pulsar: PulsarCluster) -> None:
    settings = own_topics(pulsar).model_copy(update={"namespace": f"public/{uuid4().hex[:8]}"})
    admin = log_admin(settings)
    admin.create_namespace(settings.namespace, {})
    with closing(LogConnection(settings)) as connection, pytest.raises(SettingsError, match="set-deduplication"):
        create_topics(connection)
    nobodys = PulsarJournal(settings.model_copy(update={"namespace": "nobody/trimtab"}), cluster=CLUSTER)
    with closing(nobodys), pytest.raises(SettingsError, match="no tenant nobody"):
        nobodys.open()
