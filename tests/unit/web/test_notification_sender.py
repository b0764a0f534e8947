"""Sending: each notification at least once and in general once, whoever sends and whoever dies."""

import threading
import time as real_time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from controller.doctor.finding import error
from controller.model.errors import TrimtabError
from controller.web.notifications.facts import ProposalFact
from controller.web.notifications.outbox import DELAYS
from controller.web.notifications.sender import NotificationSender
from controller.wire.notifications import MAX_STATE_BYTES, MOST_WAITING, decode_state
from tests.notifications import PERIOD_MS, ChangingData, MemoryNotifications, NotingReceiver, SharedState, Time, sender
from tests.page_data import T


def rounds(
    each: NotificationSender, time: Time, until: Callable[[], bool] = lambda: False, most: int = 20, stuck: int = 0
) -> None:
    """Some rounds, in which requests end, but for *stuck* ones; fewer where *until* becomes true."""
    for _ in range(most):
        each.round()
        if until():
            return
        ends = real_time.monotonic() + 10
        while each.unfinished > stuck and real_time.monotonic() < ends:
            real_time.sleep(0.001)
        time.pass_seconds(1)


class Cluster:
    """A cluster, in which nothing was wrong when the first sender began."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.shared, self.time = folder, SharedState(), Time()
        self.data = ChangingData("east")
        self.receiver = NotingReceiver()
        first = self.sender()
        rounds(first, self.time, most=2)
        self.shared.senders.clear()

    def sender(self, *receivers: NotingReceiver, lines: tuple[str, ...] = ()) -> NotificationSender:
        """One more process."""
        store = MemoryNotifications(self.shared)
        return sender(self.folder, store, self.data, *(receivers or (self.receiver,)), time=self.time, lines=lines)

    def happens(self) -> None:
        """The breaker trips, once more."""
        self.data.tripped_at = (self.data.tripped_at or T) + 1

    def waiting(self) -> int:
        """How many notifications wait, as stored."""
        assert self.shared.value is not None
        return len(decode_state(self.shared.value, "east").waiting)


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


def test_what_happens_is_sent_once(cluster: Cluster) -> None:
    one = cluster.sender()
    cluster.happens()
    rounds(one, cluster.time)
    assert [each.kind for each in cluster.receiver.accepted] == ["breaker-opened"]
    assert cluster.waiting() == 0


def test_of_several_processes_one_sends(cluster: Cluster) -> None:
    one, other = cluster.sender(), cluster.sender()
    cluster.happens()
    for _ in range(10):
        rounds(one, cluster.time, most=1)
        rounds(other, cluster.time, most=1)
    assert cluster.receiver.attempts == 1


def test_what_a_sender_stored_before_it_died_is_sent_by_the_next_with_the_same_id(cluster: Cluster) -> None:
    dead, alive = NotingReceiver(problem="no answer"), cluster.receiver
    cluster.happens()
    rounds(cluster.sender(dead), cluster.time, lambda: dead.attempts > 0)
    assert cluster.waiting() == 1
    [waiting] = decode_state(cluster.shared.value or b"", "east").waiting
    cluster.shared.senders.clear()
    rounds(cluster.sender(), cluster.time)
    assert [each.id for each in alive.accepted] == [waiting.notification.id]


def test_what_a_sender_sent_and_did_not_store_is_sent_again_with_the_same_id(cluster: Cluster) -> None:
    cluster.happens()
    stored_before_the_answer = SharedState()
    one = cluster.sender()
    rounds(one, cluster.time, lambda: cluster.waiting() == 1)
    stored_before_the_answer.value, stored_before_the_answer.version = cluster.shared.value, cluster.shared.version
    rounds(one, cluster.time, lambda: cluster.waiting() == 0)
    cluster.shared = stored_before_the_answer
    rounds(cluster.sender(), cluster.time)
    first, second = cluster.receiver.accepted
    assert first.id == second.id


def test_after_a_restart_nothing_old_is_sent(cluster: Cluster) -> None:
    cluster.data.epoch += 1
    cluster.happens()
    rounds(cluster.sender(), cluster.time)
    sent = len(cluster.receiver.accepted)
    cluster.shared.senders.clear()
    rounds(cluster.sender(), cluster.time)
    assert len(cluster.receiver.accepted) == sent == 2


def test_while_the_past_is_loaded_after_a_restart_nothing_is_sent(cluster: Cluster) -> None:
    cluster.data.loaded = False
    cluster.data.epoch = 7
    rounds(cluster.sender(), cluster.time)
    assert cluster.receiver.attempts == 0
    cluster.data.loaded = True
    rounds(cluster.sender(), cluster.time, most=1)
    cluster.shared.senders.clear()
    rounds(cluster.sender(), cluster.time)
    assert cluster.receiver.attempts == 1


def test_a_notification_that_is_not_accepted_is_tried_again_ever_later_and_given_up(cluster: Cluster) -> None:
    cluster.receiver.problem = "it answered 500"
    one = cluster.sender(lines=("[notifications]", "give_up_hours = 1", "silent_intervals = 10_000"))
    cluster.happens()
    times = list[int]()
    for _ in range(200):
        before = cluster.receiver.attempts
        rounds(one, cluster.time, most=1)
        times += [cluster.time.now_ms] if cluster.receiver.attempts > before else []
        cluster.time.pass_seconds(19)
    gaps = [(later - earlier) / 1000 for earlier, later in pairwise(times)]
    assert len(gaps) >= 4
    assert all(wanted <= gap <= wanted + 60 for gap, wanted in zip(gaps, DELAYS, strict=False))
    assert cluster.waiting() == 0
    page = one._metrics.page().decode()
    assert 'trimtab_notifications_dropped_total{cluster="east",webhook="oncall",why="too_old"} 1.0' in page


def test_a_receiver_that_accepts_again_hears_how_many_it_missed(cluster: Cluster) -> None:
    cluster.receiver.problem = "it answered 500"
    one = cluster.sender(lines=("[notifications]", "give_up_hours = 1", "silent_intervals = 10_000"))
    for _ in range(3):
        cluster.happens()
        rounds(one, cluster.time, most=6)
    cluster.time.pass_seconds(3_700)
    rounds(one, cluster.time, most=3)
    cluster.receiver.problem = ""
    cluster.happens()
    rounds(one, cluster.time)
    cluster.happens()
    rounds(one, cluster.time)
    assert cluster.receiver.dropped == [3, 0]


def test_a_receiver_that_hangs_does_not_delay_another(cluster: Cluster) -> None:
    stuck = NotingReceiver("stuck", blocked=threading.Event())
    one = cluster.sender(stuck, cluster.receiver)
    for number in (1, 2, 3):
        cluster.happens()
        rounds(one, cluster.time, most=8, stuck=1)
        assert len(cluster.receiver.accepted) == number
    assert stuck.attempts == 1
    assert stuck.blocked is not None
    stuck.blocked.set()


def test_no_more_wait_than_are_allowed_and_the_oldest_are_given_up(cluster: Cluster) -> None:
    cluster.receiver.problem = "it answered 500"
    one = cluster.sender(lines=("[notifications]", "silent_intervals = 10_000"))
    for _ in range(MOST_WAITING + 5):
        cluster.happens()
        cluster.time.pass_seconds(5)
        one.round()
    assert cluster.waiting() == MOST_WAITING
    assert cluster.shared.value is not None
    assert len(cluster.shared.value) < MAX_STATE_BYTES
    state = decode_state(cluster.shared.value, "east")
    assert state.dropped == {"oncall": 5}
    assert state.waiting[-1].notification.at_ms == cluster.data.tripped_at


def test_a_webhook_gets_only_the_events_that_it_wants(cluster: Cluster) -> None:
    other = NotingReceiver("breaker-only", kinds=frozenset({"breaker-opened"}))
    one = cluster.sender(cluster.receiver, other)
    cluster.data.epoch += 1
    rounds(one, cluster.time)
    cluster.happens()
    rounds(one, cluster.time)
    assert [each.kind for each in cluster.receiver.accepted] == ["leader-changed", "breaker-opened"]
    assert [each.kind for each in other.accepted] == ["breaker-opened"]


def test_a_webhook_that_the_settings_no_longer_have_holds_up_nothing(cluster: Cluster) -> None:
    gone = NotingReceiver("gone", problem="it answered 404")
    cluster.happens()
    rounds(cluster.sender(gone), cluster.time)
    cluster.shared.senders.clear()
    rounds(cluster.sender(), cluster.time)
    assert cluster.waiting() == 0
    assert cluster.receiver.accepted == []


@pytest.mark.parametrize("value", [b"", b"{", b"[]", b'{"v":1,"type":"notifications","cluster":"west"}', b"x" * 2**21])
def test_a_state_that_cannot_be_used_begins_anew_without_a_flood(cluster: Cluster, value: bytes) -> None:
    cluster.shared.value = value
    one = cluster.sender()
    rounds(one, cluster.time)
    assert cluster.receiver.attempts == 0
    cluster.happens()
    rounds(one, cluster.time)
    assert len(cluster.receiver.accepted) == 1


def test_two_processes_that_both_believe_to_send_store_nothing_over_each_other(cluster: Cluster) -> None:
    one, other = cluster.sender(), cluster.sender()
    rounds(one, cluster.time, most=1)
    cluster.shared.senders.reverse()
    rounds(other, cluster.time, most=1)
    cluster.shared.senders.clear()
    cluster.happens()
    rounds(other, cluster.time)
    cluster.shared.senders.clear()
    rounds(one, cluster.time)
    assert len(cluster.receiver.accepted) == 1


def test_the_doctor_is_asked_now_and_then_and_a_new_error_is_told(cluster: Cluster) -> None:
    asked = list[int]()

    def ask(_: object) -> tuple[object, ...]:
        asked.append(cluster.time.now_ms)
        return (error("topic-missing", "trimtab-journal", observed="there is no such topic"),)

    store = MemoryNotifications(cluster.shared)
    one = sender(cluster.folder, store, cluster.data, cluster.receiver, time=cluster.time, ask_doctor=ask)
    rounds(one, cluster.time)
    cluster.data.decided += 60 * PERIOD_MS
    cluster.time.pass_seconds(3_600)
    rounds(one, cluster.time)
    assert len(asked) == 2
    assert [each.kind for each in cluster.receiver.accepted] == ["doctor-error"]


def test_a_proposal_that_waits_is_told(cluster: Cluster) -> None:
    fact = ProposalFact(id="a" * 64, state="pending", author="ann", title="4 moves", expires_at_ms=T)
    store = MemoryNotifications(cluster.shared)
    one = sender(
        cluster.folder, store, cluster.data, cluster.receiver, time=cluster.time, read_proposals=lambda: (fact,)
    )
    rounds(one, cluster.time)
    assert [each.kind for each in cluster.receiver.accepted] == ["proposal-waits"]
    assert "ann" in cluster.receiver.accepted[0].text


def test_proposals_that_cannot_be_read_stop_no_other_notification(cluster: Cluster) -> None:
    def unreadable() -> tuple[ProposalFact, ...]:
        raise TrimtabError("no answer")

    store = MemoryNotifications(cluster.shared)
    one = sender(cluster.folder, store, cluster.data, cluster.receiver, time=cluster.time, read_proposals=unreadable)
    cluster.happens()
    rounds(one, cluster.time)
    assert [each.kind for each in cluster.receiver.accepted] == ["breaker-opened"]


def test_a_process_that_ends_stores_what_was_accepted_so_that_the_next_does_not_send_it_again(cluster: Cluster) -> None:
    ended = threading.Event()
    one = cluster.sender()
    cluster.happens()
    thread = threading.Thread(target=one.run, args=[ended])
    thread.start()
    while not cluster.receiver.accepted:
        real_time.sleep(0.01)
        cluster.time.pass_seconds(1)
    ended.set()
    thread.join(10)
    rounds(cluster.sender(), cluster.time)
    assert cluster.receiver.attempts == 1
