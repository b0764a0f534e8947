from pathlib import Path

from controller.log.records import LogRecords
from tests.contracts.collectors import CollectorLogContract
from tests.contracts.inbox import InboxContract
from tests.contracts.journal import JournalContract
from tests.contracts.log import CommandLogContract, DeadLetterLogContract, MetricsLogContract
from tests.contracts.midway import knows_what_was_known_and_begins_behind_the_ticks, write_intervals
from tests.unit.log.places import MemoryPlace, place

__all__ = ["place"]


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


def test_a_recording_from_the_midst_of_a_run_knows_what_was_known(tmp_path: Path) -> None:
    there = MemoryPlace(atomic=True, seed=1, partitions=1)
    write_intervals(there.metrics())
    knows_what_was_known_and_begins_behind_the_ticks(LogRecords(there.connect(), where="memory"), tmp_path / "copy")
