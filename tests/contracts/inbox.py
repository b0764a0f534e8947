"""The contract of controller.log.inbox.Inbox."""

from typing import Protocol

from controller.adapters.network.deadline import Deadline
from controller.log.inbox import AnswerRecord, Delivery, Inbox
from controller.wire.commands import command_event
from tests.commands import T, unload
from tests.records import CLUSTER, as_bytes, result

#: All of one namespace, so they lie in one partition.
COMMANDS = [unload(f"tenant/ns/0x{nth}0000000_0x{nth + 1}0000000", cluster=CLUSTER) for nth in range(4)]
EVENTS = [command_event(command, 1, T) for command in COMMANDS]

_PATIENCE_SECONDS = 60.0


class InboxPlace(Protocol):
    """A command topic of the cluster CLUSTER, empty at first, as a test sees it."""

    def inbox(self) -> Inbox:
        """One more executor's; it is the only one, so a test closes the one before.  The fixture closes the last."""
        ...

    def issue(self, *events: bytes) -> None:
        """Append *events* to the command topic, all to one partition."""
        ...

    def begin_epoch(self, epoch: int) -> None:
        """Write the beginning of an epoch as a controller does that begins to lead."""
        ...

    def results(self) -> list[bytes]:
        """What lies in the result topic, in the order of its one partition."""
        ...


def take(inbox: Inbox, number: int, most: int = 16) -> list[Delivery]:
    """The next *number* events: the group of the executors may take a while to share out the partitions."""
    found: list[Delivery] = []
    deadline = Deadline.after(_PATIENCE_SECONDS)
    while len(found) < number and not deadline.passed:
        found += inbox.poll(min(most, number - len(found)), 1.0)
    return found


def nothing_comes(inbox: Inbox) -> bool:
    """Whether several takes find nothing."""
    return not any(inbox.poll(16, 0.2) for _ in range(3))


def answer(taken: Delivery, nth: int) -> AnswerRecord:
    """The result of the command *nth*, which is *taken*."""
    return AnswerRecord(taken.partition, "tenant/ns", as_bytes(result(id=COMMANDS[nth].id)))


class InboxContract:
    """Inherited by the tests of each implementation, which give the fixture ``place``."""

    def test_events_come_in_their_order_no_more_than_asked_for(self, place: InboxPlace) -> None:
        place.issue(*EVENTS)
        inbox = place.inbox()
        taken = take(inbox, 3, most=3)
        assert [each.value for each in taken] == EVENTS[:3]
        assert len({each.partition for each in taken}) == 1
        inbox.answer([answer(each, nth) for nth, each in enumerate(taken)])
        assert [each.value for each in take(inbox, 1)] == EVENTS[3:]

    def test_an_executor_that_gets_events_has_their_partitions(self, place: InboxPlace) -> None:
        place.issue(EVENTS[0])
        inbox = place.inbox()
        taken = take(inbox, 1)
        assert inbox.assigned is not None
        assert inbox.assigned >= len({each.partition for each in taken}) == 1

    def test_where_nothing_is_issued_nothing_comes(self, place: InboxPlace) -> None:
        place.issue(EVENTS[0])
        inbox = place.inbox()
        inbox.answer([answer(take(inbox, 1)[0], 0)])
        assert nothing_comes(inbox)
        place.issue(EVENTS[1])
        assert [each.value for each in take(inbox, 1)] == EVENTS[1:2]

    def test_answers_lie_in_the_result_topic_in_their_order(self, place: InboxPlace) -> None:
        place.issue(*EVENTS[:2])
        inbox = place.inbox()
        taken = take(inbox, 2)
        assert place.results() == []
        answers = [answer(each, nth) for nth, each in enumerate(taken)]
        inbox.answer(answers)
        assert place.results() == [each.value for each in answers]

    def test_what_was_taken_and_not_answered_comes_to_the_next_executor(self, place: InboxPlace) -> None:
        place.issue(*EVENTS[:2])
        first = place.inbox()
        assert len(take(first, 2)) == 2
        first.close()
        assert [each.value for each in take(place.inbox(), 2)] == EVENTS[:2]

    def test_what_was_answered_does_not_come_again_and_the_next_executor_knows_it(self, place: InboxPlace) -> None:
        place.issue(*EVENTS[:3])
        first = place.inbox()
        first.answer([answer(each, nth) for nth, each in enumerate(take(first, 2))])
        first.close()
        second = place.inbox()
        [taken] = take(second, 1)
        assert taken.value == EVENTS[2]
        assert set(second.memory(taken.partition).answered) == {COMMANDS[0].id, COMMANDS[1].id}

    def test_what_needs_no_answer_does_not_come_again_either(self, place: InboxPlace) -> None:
        place.issue(*EVENTS[:2])
        first = place.inbox()
        assert len(take(first, 1)) == 1
        first.answer([])
        first.close()
        assert [each.value for each in take(place.inbox(), 1)] == EVENTS[1:2]
        assert place.results() == []

    def test_what_was_begun_and_not_answered_is_known_to_the_next_executor(self, place: InboxPlace) -> None:
        place.issue(*EVENTS[:2])
        first = place.inbox()
        taken = take(first, 2)
        first.begin(taken[0].partition, COMMANDS[0].id)
        first.begin(taken[1].partition, COMMANDS[1].id)
        assert first.memory(taken[0].partition).started == {COMMANDS[0].id, COMMANDS[1].id}
        first.close()
        second = place.inbox()
        taken = take(second, 2)
        memory = second.memory(taken[0].partition)
        assert (memory.started, set(memory.answered)) == ({COMMANDS[0].id, COMMANDS[1].id}, set())

    def test_what_is_answered_is_not_begun_any_more(self, place: InboxPlace) -> None:
        place.issue(*EVENTS[:2])
        inbox = place.inbox()
        [taken] = take(inbox, 1)
        memory = inbox.memory(taken.partition)
        inbox.begin(taken.partition, COMMANDS[0].id)
        memory.answered.add(COMMANDS[0].id)
        inbox.answer([answer(taken, 0)])
        assert memory.started == set()
        inbox.close()
        second = place.inbox()
        [taken] = take(second, 1)
        assert second.memory(taken.partition).started == set()

    def test_the_highest_epoch_seen_is_known_to_the_next_executor(self, place: InboxPlace) -> None:
        place.issue(*EVENTS[:2])
        first = place.inbox()
        [taken] = take(first, 1)
        assert first.memory(taken.partition).epoch == 0
        first.memory(taken.partition).epoch = 7
        first.answer([answer(taken, 0)])
        first.close()
        second = place.inbox()
        [taken] = take(second, 1)
        assert second.memory(taken.partition).epoch == 7

    def test_an_epoch_beyond_the_events_taken_is_seen(self, place: InboxPlace) -> None:
        place.begin_epoch(3)
        place.issue(EVENTS[0])
        place.begin_epoch(4)
        inbox = place.inbox()
        taken = take(inbox, 1)[0]
        assert inbox.newest_epoch(taken.partition) == 4
