from collections.abc import Iterator
from pathlib import Path

import pytest

from controller.log.records import LogRecords
from tests.contracts.collectors import CollectorLogContract
from tests.contracts.inbox import InboxContract
from tests.contracts.journal import JournalContract
from tests.contracts.log import CommandLogContract, DeadLetterLogContract, MetricsLogContract
from tests.contracts.midway import knows_what_was_known_and_begins_behind_the_ticks, write_intervals
from tests.unit.log.places import FolderPlace, Place


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    made = FolderPlace(tmp_path / "log", monkeypatch)
    yield made
    made.close()


class TestJournal(JournalContract):
    pass


class TestCollectorLog(CollectorLogContract):
    pass


class TestMetricsLog(MetricsLogContract):
    pass


class TestCommandLog(CommandLogContract):
    pass


class TestDeadLetterLog(DeadLetterLogContract):
    pass


class TestInbox(InboxContract):
    pass


def test_a_recording_from_the_midst_of_a_run_knows_what_was_known(place: Place, tmp_path: Path) -> None:
    write_intervals(place.metrics())
    knows_what_was_known_and_begins_behind_the_ticks(LogRecords(place.connect(), where="folder"), tmp_path / "copy")
