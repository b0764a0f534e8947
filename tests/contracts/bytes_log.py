"""The contract of controller.log.port: what every log system keeps, whatever it is made of."""

import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Protocol

import pytest

from controller.adapters.network.deadline import Deadline
from controller.log.port import (
    OLDEST,
    Claims,
    Fenced,
    Log,
    LogRecord,
    LogTopic,
    Out,
    PartitionTakenOverError,
    Position,
    Scope,
    Start,
    TakenOverError,
)
from controller.model.errors import LeadershipLostError

JOURNAL = Scope(name="journal-test", decides=("journal", 0), owns=("commands",))
TICKS = Scope(name="ticks-test", decides=("ticks", 0), shares=("metrics", "results"))
GROUP = "executors-test"

_PATIENCE_SECONDS = 60.0


class BytesLogPlace(Protocol):
    """Topics of one cluster, empty at first, as a test sees them."""

    #: Of metrics, results and commands.
    partitions: int
    #: Whether appends are atomic: ``decide`` and ``follow`` are seen together.
    atomic: bool
    #: Whether keys are stored, and headers in every topic.
    keys: bool

    def log(self) -> Log:
        """The log as one more process opens it; the fixture closes it at the end."""
        ...


class GrowingLogPlace(BytesLogPlace, Protocol):
    """The same, where partitions can be added."""

    def add_partition(self, topic: LogTopic) -> None:
        """Give *topic* one partition more."""
        ...


def line(number: int, text: str = "") -> bytes:
    """A record that every system takes; *text* makes it longer."""
    return b'{"n":%d,"t":"%s"}' % (number, text.encode())


def metrics(*numbers: int, key: bytes = b"broker-1:8080") -> list[Out]:
    return [Out("metrics", line(number), key=key) for number in numbers]


def decision(number: int) -> Out:
    return Out("journal", line(number), headers={"epoch": b"%d" % number}, partition=0)


def commands(*numbers: int, partition: int | None = 0) -> list[Out]:
    return [Out("commands", line(number), key=b"tenant/ns", partition=partition) for number in numbers]


def tick(interval: int, partitions: int) -> tuple[list[Out], list[Out]]:
    """What decides, and what follows from it: the last one in partition 0 of the metrics."""
    results = [Out("results", line(interval, "tick"), partition=each) for each in range(partitions)]
    others = [Out("metrics", line(interval, "tick"), partition=each) for each in range(1, partitions)]
    return [Out("ticks", line(interval, "intent"), partition=0)], [
        *results,
        *others,
        Out("metrics", line(interval), partition=0),
    ]


def append(log: Log, *outs: Out) -> None:
    log.append(outs, within_seconds=_PATIENCE_SECONDS)


def rest(log: Log, topic: LogTopic, start: Start = OLDEST, partition: int | None = None) -> list[LogRecord]:
    with closing(log.read(topic, start, partition=partition)) as reader:
        return list(reader.read_to_end())


def values(records: Sequence[LogRecord]) -> list[bytes]:
    return [record.value for record in records]


def backwards(log: Log, topic: LogTopic, partition: int, about: int) -> list[bytes]:
    """All records of a partition, in order, read by windows from the end."""
    found: list[bytes] = []
    before: Position | None = None
    while window := log.read_backwards(topic, partition, before, about):
        found[:0] = values(window)
        before = window[0].position
    return found


@contextmanager
def open_fence(place: BytesLogPlace, scope: Scope = JOURNAL) -> Iterator[Fenced]:
    """*scope*, held by one more process, completed for whoever had nothing to follow."""
    with closing(place.log().fence(scope)) as fenced:
        yield fenced


def lose() -> None:
    raise LeadershipLostError("another leads")


class BytesLogContract:
    """Inherited by the tests of each system, which give the fixture ``place``."""

    def test_topics_are_created_with_their_partitions(self, place: BytesLogPlace) -> None:
        found = place.log().partitions("metrics", "results", "commands", "journal", writable=True)
        assert (found["metrics"], found["results"], found["commands"]) == (place.partitions,) * 3
        assert found["journal"] == 1

    def test_what_is_appended_is_read_in_the_order_of_its_key_with_its_key_and_headers(
        self, place: BytesLogPlace
    ) -> None:
        log = place.log()
        append(log, *metrics(1, 2))
        append(log, Out("metrics", line(3), key=b"broker-1:8080", headers={"content-type": b"json"}))
        append(log)
        found = rest(place.log(), "metrics")
        assert values(found) == [line(1), line(2), line(3)]
        assert len({record.partition for record in found}) == 1
        if place.keys:
            assert {record.key for record in found} == {b"broker-1:8080"}
            assert [dict(record.headers) for record in found] == [{}, {}, {"content-type": b"json"}]

    def test_positions_grow_in_a_partition(self, place: BytesLogPlace) -> None:
        log = place.log()
        append(log, *metrics(*range(20)))
        append(log, *metrics(*range(20, 25)))
        at = [record.position for record in rest(log, "metrics")]
        assert at == sorted(set(at))
        assert len(at) == 25

    def test_a_partition_that_is_named_is_where_a_record_lies(self, place: BytesLogPlace) -> None:
        log = place.log()
        append(log, *(Out("results", line(each), partition=each) for each in range(place.partitions)))
        for each in range(place.partitions):
            assert values(rest(log, "results", partition=each)) == [line(each)]

    def test_the_rest_is_all_that_was_acknowledged_before(self, place: BytesLogPlace) -> None:
        writer, log = place.log(), place.log()
        log.partitions("metrics")
        reader = log.read("metrics")
        assert list(reader.read_to_end()) == []
        for number in range(5):
            append(writer, *metrics(number))
            assert values(list(reader.read_to_end())) == [line(number)]
        assert list(reader.read_to_end()) == []
        reader.close()

    def test_a_record_that_comes_is_returned_and_none_after_a_while(self, place: BytesLogPlace) -> None:
        writer, log = place.log(), place.log()
        append(writer, *metrics(1))
        reader = log.read("metrics", Start(end=True))
        assert reader.next(0.05) is None
        append(writer, *metrics(2))
        deadline = Deadline.after(_PATIENCE_SECONDS)
        while (found := reader.next(0.5)) is None and not deadline.passed:
            pass
        assert found is not None
        assert found.value == line(2)
        reader.close()

    def test_reading_begins_where_it_was_asked_to(self, place: BytesLogPlace) -> None:
        log = place.log()
        append(log, *metrics(1, 2))
        time.sleep(0.05)
        since = time.time_ns() // 1_000_000
        time.sleep(0.05)
        append(log, *metrics(3, 4))
        found = rest(log, "metrics")
        here = found[0].partition
        for nth, record in enumerate(found):
            start = Start(position=record.position)
            assert values(rest(log, "metrics", start, here)) == values(found)[nth:]
        assert values(rest(log, "metrics", Start(since_ms=since))) == [line(3), line(4)]
        assert values(rest(log, "metrics", Start(since_ms=since + 3_600_000))) == []
        assert values(rest(log, "metrics", Start(last=True), here)) == [line(4)]
        assert values(rest(log, "metrics", Start(end=True))) == []

    def test_times_are_when_records_were_appended(self, place: BytesLogPlace) -> None:
        log, before = place.log(), time.time_ns() // 1_000_000
        append(log, *metrics(1))
        [record] = rest(log, "metrics")
        assert before - 1_000 <= record.timestamp_ms <= time.time_ns() // 1_000_000 + 1_000

    def test_windows_from_the_end_leave_nothing_out_and_repeat_nothing(self, place: BytesLogPlace) -> None:
        log = place.log()
        append(log, *metrics(*range(7)))
        append(log, *metrics(*range(7, 40)))
        here = rest(log, "metrics")[0].partition
        for about in (1, 3, 16, 100):
            assert backwards(log, "metrics", here, about) == [line(each) for each in range(40)]
        assert 1 <= len(log.read_backwards("metrics", here, None, 3)) <= 40

    def test_a_partition_without_records_has_no_window(self, place: BytesLogPlace) -> None:
        log = place.log()
        log.partitions("metrics")
        assert list(log.read_backwards("metrics", 0, None, 10)) == []

    def test_ends_say_what_a_partition_holds(self, place: BytesLogPlace) -> None:
        log = place.log()
        append(log, *metrics(1, 2, 3))
        found = rest(log, "metrics")
        here = found[0].partition
        ends = log.ends("metrics")
        assert set(ends) == set(range(place.partitions))
        assert ends[here].first <= found[0].position
        assert found[-1].position < ends[here].end
        assert (ends[here].records or 3) >= 3
        append(log, *metrics(4))
        assert rest(log, "metrics")[-1].position >= ends[here].end
        empty = [each for each in ends if each != here]
        assert all(values(rest(log, "metrics", Start(position=ends[each].first), each)) == [] for each in empty)

    def test_ends_since_a_time_begin_with_the_first_record_from_then_on(self, place: BytesLogPlace) -> None:
        log = place.log()
        append(log, *metrics(1, 2))
        time.sleep(0.05)
        since = time.time_ns() // 1_000_000
        time.sleep(0.05)
        append(log, *metrics(3))
        here = rest(log, "metrics")[0].partition
        ends = log.ends("metrics", since)[here]
        assert values(rest(log, "metrics", Start(position=ends.first), here)) == [line(3)]

    def test_a_place_has_a_name_for_people(self, place: BytesLogPlace) -> None:
        log = place.log()
        append(log, *metrics(1, 2))
        one, two = rest(log, "metrics")
        names = {log.place("metrics", record.partition, record.position) for record in (one, two)}
        assert len(names) == 2
        assert log.name("metrics") != log.name("results")

    def test_letters_of_a_batch_that_is_repeated_are_there_with_the_same_bytes(self, place: BytesLogPlace) -> None:
        log = place.log()
        for _ in range(2):
            letters = [Out("dead_letters", line(each), key=b"%d" % each) for each in range(2)]
            log.append(letters, within_seconds=_PATIENCE_SECONDS, name="000000000000007-0-0123456789abcdef")
        assert set(values(rest(log, "dead_letters"))) == {line(0), line(1)}


class GrowingTopicContract:
    """For systems whose topics can get partitions."""

    def test_partitions_that_are_added_are_read_from_their_beginning(self, place: GrowingLogPlace) -> None:
        log = place.log()
        append(log, *metrics(1))
        reader = log.read("metrics", Start(end=True))
        place.add_partition("metrics")
        deadline = Deadline.after(_PATIENCE_SECONDS)
        while log.partitions("metrics")["metrics"] == place.partitions and not deadline.passed:
            time.sleep(0.1)
        append(log, Out("metrics", line(2), partition=place.partitions))
        found: list[bytes] = []
        while not found and not deadline.passed:
            found += values(list(reader.read_to_end()))
        assert found == [line(2)]
        reader.close()

    def test_what_follows_goes_to_partitions_that_were_added(self, place: GrowingLogPlace) -> None:
        with open_fence(place) as fenced:
            fenced.append([decision(1)], commands(1))
            place.add_partition("commands")
            log = place.log()
            deadline = Deadline.after(_PATIENCE_SECONDS)
            while log.partitions("commands")["commands"] == place.partitions and not deadline.passed:
                time.sleep(0.1)
            fenced.append([decision(2)], commands(2, partition=place.partitions))
        assert values(rest(place.log(), "commands", partition=place.partitions)) == [line(2)]


class FencedContract:
    """Scopes: inherited by the tests of each system, which give the fixture ``place``."""

    def test_behind_an_empty_one_is_nothing(self, place: BytesLogPlace) -> None:
        with open_fence(place) as fenced:
            assert list(fenced.history()) == []
            assert list(fenced.history(10)) == []

    def test_what_is_appended_is_behind_the_next_holder_with_its_headers(self, place: BytesLogPlace) -> None:
        with open_fence(place) as fenced:
            fenced.append([decision(1)], commands(1, 2))
            fenced.append([decision(2), decision(3)])
        with open_fence(place) as fenced:
            found = list(fenced.history())
        assert values(found) == [line(1), line(2), line(3)]
        assert [record.headers["epoch"] for record in found] == [b"1", b"2", b"3"]
        assert values(rest(place.log(), "commands")) == [line(1), line(2)]
        assert values(rest(place.log(), "journal")) == values(found)

    def test_about_so_many_are_the_newest(self, place: BytesLogPlace) -> None:
        with open_fence(place) as fenced:
            for number in range(30):
                fenced.append([decision(number)])
        with open_fence(place) as fenced:
            found = values(list(fenced.history(5)))
        assert found == [line(number) for number in range(30)][-len(found) :]
        assert found

    def test_the_holder_before_appends_nothing_any_more(self, place: BytesLogPlace) -> None:
        with open_fence(place) as old:
            old.append([decision(1)], commands(1))
            with open_fence(place) as new:
                assert values(list(new.history())) == [line(1)]
                with pytest.raises(LeadershipLostError):
                    old.append([decision(2)], commands(2))
                new.append([decision(3)], commands(3))
                with pytest.raises(LeadershipLostError):
                    old.append([decision(4)])
        log = place.log()
        assert values(rest(log, "journal")) == [line(1), line(3)]
        assert values(rest(log, "commands")) == [line(1), line(3)]

    def test_other_names_hold_other_scopes(self, place: BytesLogPlace) -> None:
        with open_fence(place) as journal, open_fence(place, TICKS) as ticks:
            ticks.append(*tick(7, place.partitions))
            journal.append([decision(1)])
        assert values(rest(place.log(), "journal")) == [line(1)]

    def test_nothing_is_decided_where_it_is_refused_before_the_commit(self, place: BytesLogPlace) -> None:
        with open_fence(place) as fenced:
            with pytest.raises(LeadershipLostError, match="another leads"):
                fenced.append([decision(1)], commands(1), lose)
            log = place.log()
            assert (rest(log, "journal"), rest(log, "commands")) == ([], [])
            fenced.append([decision(2)], commands(2))
        assert values(rest(log, "journal")) == [line(2)]
        assert values(rest(log, "commands")) == [line(2)]

    def test_the_last_record_of_a_decision_cannot_be_seen_before_the_commit(self, place: BytesLogPlace) -> None:
        log, seen = place.log(), list[list[bytes]]()
        log.partitions("journal", "commands")

        def look() -> None:
            # ``rest`` may wait for the commit: it cannot tell what is acknowledged from what is about to be.
            seen.extend(backwards(log, topic, 0, 100) for topic in ("journal", "commands"))

        with open_fence(place) as fenced:
            fenced.append([decision(1), decision(2)], commands(1), look)
        assert line(2) not in seen[0]
        assert seen[1] == []

    def test_completing_what_is_there_appends_nothing(self, place: BytesLogPlace) -> None:
        with open_fence(place) as fenced:
            fenced.append([decision(1)], commands(1, 2))
        for _ in range(2):
            with open_fence(place) as fenced:
                assert values(list(fenced.history())) == [line(1)]
                fenced.complete(commands(1, 2), line(0, "mark"))
        assert values(rest(place.log(), "commands")) == [line(1), line(2)]

    def test_what_was_decided_and_did_not_follow_is_completed_once_in_its_order(self, place: BytesLogPlace) -> None:
        if place.atomic:
            pytest.skip("what is decided has followed")
        with open_fence(place) as fenced:
            fenced.append([decision(1)], commands(1))  # as if it had died after the first of three
        for _ in range(2):
            with open_fence(place) as fenced:
                fenced.complete(commands(1, 2, 3), line(0, "mark"))
        assert values(rest(place.log(), "commands")) == [line(1), line(2), line(3)]

    def test_records_of_several_appends_keep_their_order(self, place: BytesLogPlace) -> None:
        with open_fence(place) as fenced:
            for number in range(10):
                fenced.append([decision(number)], commands(10 * number, 10 * number + 1))
        wanted = [line(10 * number + nth) for number in range(10) for nth in (0, 1)]
        assert values(rest(place.log(), "commands", partition=0)) == wanted

    def test_what_is_not_kept_any_more_is_not_read(self, place: BytesLogPlace) -> None:
        with open_fence(place) as fenced:
            for number in range(6):
                fenced.append([decision(number)])
            third = rest(place.log(), "journal")[3]
            for _ in range(2):
                fenced.prune_before(third.position)
                assert values(rest(place.log(), "journal")) == [line(3), line(4), line(5)]
            fenced.append([decision(6)])
        with open_fence(place) as fenced:
            assert values(list(fenced.history())) == [line(each) for each in (3, 4, 5, 6)]
        log = place.log()
        assert log.ends("journal")[0].first <= third.position
        assert backwards(log, "journal", 0, 2) == [line(each) for each in (3, 4, 5, 6)]

    def test_a_holder_that_is_fenced_prunes_nothing(self, place: BytesLogPlace) -> None:
        with open_fence(place) as old:
            for number in range(3):
                old.append([decision(number)])
            last = rest(place.log(), "journal")[-1]
            with open_fence(place) as new:
                new.append([decision(3)])
                try:
                    old.prune_before(last.position)
                except LeadershipLostError:
                    assert values(rest(place.log(), "journal")) == [line(each) for each in range(4)]
                new.append([decision(4)])
        assert values(rest(place.log(), "journal"))[-3:] == [line(2), line(3), line(4)]

    def test_what_many_write_gets_the_ticks_once_in_every_partition(self, place: BytesLogPlace) -> None:
        log = place.log()
        append(log, *(Out("results", line(1), partition=each) for each in range(place.partitions)))
        with open_fence(place, TICKS) as fenced:
            fenced.append(*tick(60_000, place.partitions))
            append(log, *(Out("results", line(2), partition=each) for each in range(place.partitions)))
            fenced.append(*tick(120_000, place.partitions))
        for each in range(place.partitions):
            wanted = [line(1), line(60_000, "tick"), line(2), line(120_000, "tick")]
            assert values(rest(log, "results", partition=each)) == wanted
        assert values(rest(log, "metrics", partition=0)) == [line(60_000), line(120_000)]

    def test_who_takes_the_ticks_over_repeats_none_of_them(self, place: BytesLogPlace) -> None:
        with open_fence(place, TICKS) as old:
            old.append(*tick(60_000, place.partitions))
            with open_fence(place, TICKS) as new:
                found = values(list(new.history(1)))
                assert found[-1:] == ([] if place.atomic else [line(60_000, "intent")])
                new.complete(tick(60_000, place.partitions)[1])
                with pytest.raises(LeadershipLostError):
                    old.append(*tick(120_000, place.partitions))
                new.append(*tick(180_000, place.partitions))
        log = place.log()
        assert values(rest(log, "metrics", partition=0)) == [line(60_000), line(180_000)]
        for each in range(place.partitions):
            assert values(rest(log, "results", partition=each)) == [line(60_000, "tick"), line(180_000, "tick")]


def take(claims: Claims, number: int, most: int = 16) -> list[LogRecord]:
    """The next *number* records: the group may take a while to share out the partitions."""
    found: list[LogRecord] = []
    deadline = Deadline.after(_PATIENCE_SECONDS)
    while len(found) < number and not deadline.passed:
        found += claims.poll(min(most, number - len(found)), 1.0)
    return found


def nothing_comes(claims: Claims) -> bool:
    """Whether several takes find nothing."""
    return not any(claims.poll(16, 0.2) for _ in range(3))


@contextmanager
def executor(place: BytesLogPlace) -> Iterator[Claims]:
    """One more member; it is the only one, so a test ends the one before."""
    with closing(place.log().claims(GROUP)) as claims:
        yield claims


def issue(place: BytesLogPlace, *numbers: int) -> None:
    """Append commands as a leader does."""
    with open_fence(place) as fenced:
        fenced.append([decision(numbers[0])], commands(*numbers))


def answers(partition: int, *numbers: int) -> list[Out]:
    return [Out("results", line(number, "done"), key=b"tenant/ns", partition=partition) for number in numbers]


class ClaimsContract:
    """Claims: inherited by the tests of each system, which give the fixture ``place``."""

    def test_records_come_in_their_order_and_no_more_than_asked_for(self, place: BytesLogPlace) -> None:
        issue(place, *range(5))
        with executor(place) as claims:
            assert values(take(claims, 2, most=2)) == [line(0), line(1)]
            assert values(take(claims, 3)) == [line(2), line(3), line(4)]
            assert claims.assigned is not None
            assert claims.assigned >= 1
            assert nothing_comes(claims)

    def test_a_new_partition_has_no_state(self, place: BytesLogPlace) -> None:
        issue(place, 1)
        with executor(place) as claims:
            [taken] = take(claims, 1)
            assert claims.claim(taken.partition).state == b""
            assert claims.claim(taken.partition) is claims.claim(taken.partition)

    def test_what_is_stored_is_known_to_the_next_and_records_come_again(self, place: BytesLogPlace) -> None:
        issue(place, 1, 2)
        with executor(place) as claims:
            taken = take(claims, 2)
            claims.claim(taken[0].partition).store(b'{"begun":1}')
            assert claims.claim(taken[0].partition).state == b'{"begun":1}'
        with executor(place) as claims:
            taken = take(claims, 2)
            assert values(taken) == [line(1), line(2)]
            assert claims.claim(taken[0].partition).state == b'{"begun":1}'

    def test_what_is_finished_does_not_come_again_and_has_its_results(self, place: BytesLogPlace) -> None:
        issue(place, 1, 2, 3)
        with executor(place) as claims:
            one, two = take(claims, 2, most=2)
            claim = claims.claim(one.partition)
            claim.finish(b'{"epoch":4}', answers(one.partition, 1, 2), two.position)
            assert claim.state == b'{"epoch":4}'
            assert values(rest(place.log(), "results")) == [line(1, "done"), line(2, "done")]
        with executor(place) as claims:
            [three] = take(claims, 1)
            assert three.value == line(3)
            assert claims.claim(three.partition).state == b'{"epoch":4}'
            assert nothing_comes(claims)
        assert values(rest(place.log(), "results")) == [line(1, "done"), line(2, "done")]

    def test_what_needs_no_results_is_finished_all_the_same(self, place: BytesLogPlace) -> None:
        issue(place, 1, 2)
        with executor(place) as claims:
            one = take(claims, 1, most=1)[0]
            claims.claim(one.partition).finish(b"", [], one.position)
        with executor(place) as claims:
            assert values(take(claims, 1)) == [line(2)]
        assert rest(place.log(), "results") == []

    def test_states_and_results_go_on_one_after_the_other(self, place: BytesLogPlace) -> None:
        issue(place, *range(4))
        with executor(place) as claims:
            for number, record in enumerate(take(claims, 4)):
                claim = claims.claim(record.partition)
                claim.store(b'{"begun":%d}' % number)
                claim.finish(b'{"done":%d}' % number, answers(record.partition, number), record.position)
        assert values(rest(place.log(), "results")) == [line(number, "done") for number in range(4)]

    def test_a_state_may_be_as_long_as_is_said(self, place: BytesLogPlace) -> None:
        issue(place, 1)
        state = b'{"s":"%s"}' % (b"x" * 2_000)
        with executor(place) as claims:
            [taken] = take(claims, 1)
            assert claims.largest_state >= len(state)
            claims.claim(taken.partition).store(state)
        with executor(place) as claims:
            [taken] = take(claims, 1)
            assert claims.claim(taken.partition).state == state

    def test_what_is_issued_later_comes_later(self, place: BytesLogPlace) -> None:
        issue(place, 1)
        with executor(place) as claims:
            [one] = take(claims, 1)
            claims.claim(one.partition).finish(b"", answers(one.partition, 1), one.position)
            assert nothing_comes(claims)
            issue(place, 2)
            assert values(take(claims, 1)) == [line(2)]


class HungExecutorPlace(BytesLogPlace, Protocol):
    """The same, where several executors take part."""

    def expel(self) -> None:
        """Take the partitions from all members of GROUP, as from members that hang."""
        ...


class HungExecutorContract:
    """For systems on which several executors share the partitions."""

    def test_who_hung_stores_and_finishes_nothing_once_another_has_claimed(self, place: HungExecutorPlace) -> None:
        issue(place, 1, 2)
        with executor(place) as hung:
            one = take(hung, 1, most=1)[0]
            old = hung.claim(one.partition)
            old.store(b'{"begun":1}')
            place.expel()
            with executor(place) as claims:
                taken = take(claims, 2)
                new = claims.claim(one.partition)
                assert (values(taken), new.state) == ([line(1), line(2)], b'{"begun":1}')
                with pytest.raises(TakenOverError):
                    old.store(b'{"begun":2}')
                with pytest.raises((PartitionTakenOverError, TakenOverError)):
                    old.finish(b"", answers(one.partition, 1), one.position)
                new.finish(b'{"epoch":1}', answers(one.partition, 1, 2), taken[-1].position)
        assert values(rest(place.log(), "results")) == [line(1, "done"), line(2, "done")]
