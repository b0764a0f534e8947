"""The executor on a log in a folder and a cluster that is a dict."""

import errno
import json
import os
import re
import threading
import time
from collections.abc import Callable
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn, Self

import pytest

from controller.adapters.folder.names import numbered
from controller.adapters.metrics.executor import ExecutorMetrics
from controller.adapters.metrics.health import ProcessHealth
from controller.adapters.pulsar.admin import PulsarError
from controller.executor import loop
from controller.executor.judge import Observation
from controller.executor.loop import Executor
from controller.executor.pace import RateLimiter
from controller.log.files.log import FolderLog
from controller.log.inbox import MOST_ANSWERED, AnsweredIds, Inbox, PartitionMemory
from controller.log.port import TakenOverError
from controller.model.decision import Command
from controller.model.errors import SettingsError, TrimtabError
from controller.settings.trimtab_toml import ExecutorSettings
from controller.wire.commands import command_event, epoch_event
from controller.wire.results import Result, decode_result
from tests.commands import QUARTERS, A, B, C, T, unload
from tests.folders import inbox_in

BUNDLES = [f"tenant/{name}/0x40000000_0x80000000" for name in ("one", "two", "three")]


class Owners:
    """Every bundle is A's; an unload gives it to its destination."""

    def __init__(self, *, disturb: Callable[[], None] = lambda: None) -> None:
        self.acted: list[str] = []
        self._owner: dict[str, str] = {}
        self._disturb = disturb

    def within(self, _: float) -> Self:
        return self

    def not_active(self, _: Command) -> tuple[str, ...]:
        return ()

    def look(self, command: Command) -> Observation:
        return Observation(boundaries=QUARTERS, owner=self._owner.get(command.bundle, A))

    look_after = look

    def act(self, command: Command) -> None:
        self.acted.append(command.id)
        self._disturb()
        self._owner[command.bundle] = command.destination


def write(folder: Path, name: str, *events: bytes) -> None:
    FolderLog(folder, cluster="standalone").partitions("commands")
    (folder / "commands" / numbered(int(name))).write_bytes(b"\n".join(events) + b"\n")


def executor(folder: Path, cluster: Owners, *, now_ms: int = T, batch: int = 16) -> tuple[Executor, Inbox]:
    inbox = inbox_in(folder, cluster="standalone")
    settings = ExecutorSettings(max_per_second=1000.0, batch=batch, attempts=2)
    return Executor(inbox, cluster, settings, name="standalone", now_ms=lambda: now_ms), inbox


def play(folder: Path, cluster: Owners, *, now_ms: int = T, batch: int = 16) -> int:
    """Everything there is to do, by an executor of its own; returns the number of batches."""
    works, inbox = executor(folder, cluster, now_ms=now_ms, batch=batch)
    try:
        batches = 0
        while works.step():
            batches += 1
        return batches
    finally:
        inbox.close()


def remembered(folder: Path) -> Any:
    """What is stored of the commands while no executor runs."""
    with closing(FolderLog(folder, cluster="standalone").claims("")) as claims:
        return json.loads(claims.claim(0).state)


def results(folder: Path) -> list[tuple[str, str]]:
    lines = [line for path in sorted((folder / "results").glob("*.jsonl")) for line in path.read_bytes().splitlines()]
    read = [decode_result(line, cluster="standalone", period_ms=60_000) for line in lines]
    return [(result.id, result.status) for result in read if isinstance(result, Result)]


def issued(command: Command, epoch: int = 1) -> bytes:
    return command_event(command, epoch, T)


def test_every_command_is_carried_out_and_answered_once(tmp_path: Path) -> None:
    cluster, commands = Owners(), [unload(bundle) for bundle in BUNDLES]
    write(tmp_path, "1", epoch_event("standalone", 1, T), *map(issued, commands))
    assert play(tmp_path, cluster, batch=2) == 2
    assert sorted(results(tmp_path)) == sorted((command.id, "done") for command in commands)
    assert play(tmp_path, cluster) == 0
    assert len(cluster.acted) == 3


def test_a_result_says_who_had_the_bundle_before_and_who_has_it_now(tmp_path: Path) -> None:
    write(tmp_path, "1", issued(unload()), issued(unload(BUNDLES[1], destination="")))
    play(tmp_path, Owners())
    lines = [line for path in (tmp_path / "results").glob("*.jsonl") for line in path.read_bytes().splitlines()]
    told = {read["id"]: (read["ownerBefore"], read["ownerAfter"]) for read in map(json.loads, lines)}
    assert told == {unload().id: (A, B), unload(BUNDLES[1]).id: (A, None)}


def test_a_failpoint_lies_between_the_acts_of_a_batch_and_its_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, passed = Owners(), list[tuple[str, int, int]]()

    def passes(name: str) -> None:
        passed.append((name, len(cluster.acted), len(results(tmp_path))))

    monkeypatch.setattr(loop, "failpoint", passes)
    write(tmp_path, "1", *(issued(unload(bundle)) for bundle in BUNDLES))
    assert play(tmp_path, cluster, batch=2) == 2
    assert passed == [("before-answer", 2, 0), ("before-answer", 3, 2)]


def test_a_full_disk_is_told_by_its_file_begins_nothing_and_has_nothing_done_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(_: int) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    write(tmp_path, "1", issued(unload()))
    cluster = Owners()
    with monkeypatch.context() as full:
        full.setattr(os, "fsync", no_room)
        with pytest.raises(TrimtabError, match=r"position\.json: No space left on device; make room"):
            play(tmp_path, cluster)
    assert cluster.acted == []
    with monkeypatch.context() as full:
        cluster = Owners(disturb=lambda: full.setattr(os, "fsync", no_room))
        with pytest.raises(TrimtabError, match=r"position\.json: No space left on device; make room"):
            play(tmp_path, cluster)
    play(tmp_path, cluster)
    assert results(tmp_path) == [(unload().id, "already_done")]
    assert cluster.acted == [unload().id]


def test_the_namespace_of_the_log_is_not_touched_whoever_wrote_the_command(tmp_path: Path) -> None:
    cluster, own, other = Owners(), unload("public/trimtab/0x40000000_0x80000000"), unload()
    write(tmp_path, "1", issued(own), issued(other))
    inbox = inbox_in(tmp_path, cluster="standalone")
    settings = ExecutorSettings(max_per_second=1000.0)
    Executor(
        inbox, cluster, settings, name="standalone", now_ms=lambda: T, own_namespaces=frozenset({"public/trimtab"})
    ).step()
    inbox.close()
    assert sorted(results(tmp_path)) == sorted([(own.id, "skipped"), (other.id, "done")])
    assert cluster.acted == [other.id]


def test_a_command_that_comes_again_is_neither_done_nor_answered_again(tmp_path: Path) -> None:
    cluster, event = Owners(), issued(unload())
    write(tmp_path, "1", event, event)
    write(tmp_path, "2", event)
    play(tmp_path, cluster, batch=2)
    write(tmp_path, "3", event)
    play(tmp_path, cluster)
    assert results(tmp_path) == [(unload().id, "done")]
    assert cluster.acted == [unload().id]


def test_what_was_answered_is_known_from_the_results_alone(tmp_path: Path) -> None:
    cluster = Owners()
    write(tmp_path, "1", issued(unload()))
    play(tmp_path, cluster)
    (tmp_path / "executor" / "position.json").unlink()
    assert play(tmp_path, cluster) == 1
    assert results(tmp_path) == [(unload().id, "done")]


def test_no_command_of_an_old_epoch_is_carried_out_even_before_the_newer_epoch(tmp_path: Path) -> None:
    cluster = Owners()
    late, early = unload(BUNDLES[0]), unload(BUNDLES[1])
    write(tmp_path, "1", issued(early, epoch=1), epoch_event("standalone", 2, T))
    play(tmp_path, cluster)
    write(tmp_path, "2", issued(late, epoch=1))
    play(tmp_path, cluster)
    assert results(tmp_path) == [(early.id, "fenced"), (late.id, "fenced")]
    assert cluster.acted == []


@pytest.mark.parametrize("epoch", [(1 << 63) - 1, 1 << 40, 1_000_004])
def test_an_absurd_epoch_fences_nobody_is_not_remembered_and_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, epoch: int
) -> None:
    cluster, forged, own, later = Owners(), *(unload(bundle) for bundle in BUNDLES)
    begins = epoch_event("standalone", 3, T), epoch_event("standalone", epoch, T)
    write(tmp_path, "1", *begins, issued(forged, epoch=epoch), issued(own, epoch=3))
    play(tmp_path, cluster)
    write(tmp_path, "2", issued(later, epoch=4))
    play(tmp_path, cluster)
    assert results(tmp_path) == [(own.id, "done"), (later.id, "done")]
    assert cluster.acted == [own.id, later.id]
    assert remembered(tmp_path)["epoch"] == 4
    assert caplog.text.count(f"its epoch is {epoch}, the newest before it 3") == 2


@pytest.mark.parametrize(("epoch", "status"), [(3, "done"), (4, "fenced"), (1 << 40, "done")])
def test_an_epoch_that_comes_just_before_an_act_fences_it_unless_it_is_absurd(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, epoch: int, status: str
) -> None:
    write(tmp_path, "1", epoch_event("standalone", 3, T), issued(command := unload(), epoch=3))
    works, inbox = executor(tmp_path, Owners())
    monkeypatch.setattr(inbox, "newest_epoch", lambda _partition: epoch)
    works.step()
    inbox.close()
    assert results(tmp_path) == [(command.id, status)]


def test_an_epoch_is_believed_as_far_ahead_as_leaders_may_have_come(tmp_path: Path) -> None:
    cluster, old, new = Owners(), unload(BUNDLES[0]), unload(BUNDLES[1])
    write(tmp_path, "1", epoch_event("standalone", 3, T), issued(new, epoch=1_000_003), issued(old, epoch=3))
    play(tmp_path, cluster)
    assert sorted(results(tmp_path)) == sorted([(old.id, "fenced"), (new.id, "done")])


@pytest.mark.parametrize("id", ["x" * 61, "x" * 5_000_000, "\N{SNOWMAN}" * 11, "\N{GRINNING FACE}" * 6, '\\"' * 31])
def test_a_command_with_an_absurd_id_is_passed_over_and_the_others_are_carried_out(
    tmp_path: Path,
    id: str,  # noqa: A002
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster, own = Owners(), unload(BUNDLES[1], id="y" * 60)
    absurd = issued(own).replace(b"y" * 60, id.encode())
    write(tmp_path, "1", absurd, issued(own))
    play(tmp_path, cluster)
    assert results(tmp_path) == [(own.id, "done")]
    assert len((tmp_path / "executor" / "position.json").read_bytes()) < 1_000
    [told] = [message for message in caplog.messages if "ignoring" in message]
    assert re.search(r": its id takes \d+ characters as JSON, at most 60 are allowed$|at most 1024 characters", told)


def test_unknown_fields_of_a_command_change_nothing(tmp_path: Path) -> None:
    cluster, own = Owners(), unload()
    fields = json.loads(issued(own))
    fields |= {"force": True, "traceparent": "00-x"}
    fields["data"] |= {"bypass": ["guardrails"], "epoch": 9}
    write(tmp_path, "1", json.dumps(fields).encode())
    play(tmp_path, cluster)
    assert results(tmp_path) == [(own.id, "done")]
    assert remembered(tmp_path)["epoch"] == 1


def test_an_expired_command_is_answered_and_not_carried_out(tmp_path: Path) -> None:
    cluster = Owners()
    write(tmp_path, "1", issued(unload()))
    play(tmp_path, cluster, now_ms=T + 300_000)
    assert results(tmp_path) == [(unload().id, "expired")]
    assert cluster.acted == []


def test_commands_of_other_clusters_and_invalid_ones_are_ignored(tmp_path: Path) -> None:
    cluster = Owners()
    write(tmp_path, "1", b"{}", b"no JSON", issued(unload(cluster="other"), epoch=9), issued(unload()))
    play(tmp_path, cluster)
    assert results(tmp_path) == [(unload().id, "done")]


def test_a_command_that_an_executor_died_at_is_answered_as_unknown_and_not_repeated(tmp_path: Path) -> None:
    def die() -> None:
        raise KeyboardInterrupt

    dying, survivor = Owners(disturb=die), Owners()
    write(tmp_path, "1", issued(unload()))
    with pytest.raises(KeyboardInterrupt):
        play(tmp_path, dying)
    assert remembered(tmp_path)["begun"] == [unload().id]
    play(tmp_path, survivor)
    assert results(tmp_path) == [(unload().id, "unknown")]
    assert survivor.acted == []


def test_a_command_that_was_done_when_its_executor_died_is_found_done(tmp_path: Path) -> None:
    cluster = Owners()
    write(tmp_path, "1", issued(unload()))
    works, inbox = executor(tmp_path, cluster)
    inbox.answer = die  # type: ignore[assignment, method-assign]
    with pytest.raises(KeyboardInterrupt):
        works.step()
    inbox.close()
    play(tmp_path, cluster)
    assert results(tmp_path) == [(unload().id, "already_done")]
    assert len(cluster.acted) == 1


def die(_: object) -> None:
    raise KeyboardInterrupt


def test_within_a_namespace_commands_are_carried_out_in_their_order(tmp_path: Path) -> None:
    cluster = Owners()
    commands = [unload(id=f"id-{nth}", source=A if nth % 2 == 0 else B, destination="ab"[(nth + 1) % 2] + ":8080")
                for nth in range(6)]  # fmt: skip
    write(tmp_path, "1", *map(issued, commands))
    play(tmp_path, cluster)
    assert cluster.acted == [command.id for command in commands]


def test_a_command_waits_for_a_silent_cluster_until_it_expires_and_not_a_moment_longer(tmp_path: Path) -> None:
    now, looked = T, list[int]()
    command = unload()

    class Away(Owners):
        def look(self, command: Command) -> Observation:
            nonlocal now
            looked.append(now)
            now = min(now + 150_000, command.expires_at_ms)
            raise PulsarError("connection refused", sent=False, away=True)

    write(tmp_path, "1", issued(command))
    inbox, settings = inbox_in(tmp_path, cluster="standalone"), ExecutorSettings(attempts=1)
    Executor(inbox, Away(), settings, name="standalone", now_ms=lambda: now, sleep=lambda _: None).step()
    inbox.close()
    assert command.expires_at_ms == T + 300_000
    assert looked == [T, T + 150_000]


def test_two_executors_on_one_folder_are_refused(tmp_path: Path) -> None:
    inbox = inbox_in(tmp_path, cluster="standalone")
    try:
        with pytest.raises(TakenOverError, match="another executor uses this folder"):
            inbox_in(tmp_path, cluster="standalone")
    finally:
        inbox.close()


def test_an_executor_whose_lock_was_deleted_begins_nothing_and_leaves_what_the_other_one_keeps(tmp_path: Path) -> None:
    write(tmp_path, "1", issued(unload()))
    cluster, kept = Owners(), tmp_path / "executor" / "position.json"
    first, inbox = executor(tmp_path, cluster)
    (tmp_path / "executor" / "lock").unlink()
    assert play(tmp_path, Owners()) == 1
    before = kept.read_bytes()
    write(tmp_path, "2", issued(unload(BUNDLES[1])))
    with pytest.raises(TakenOverError, match="lock was deleted: another executor may use this folder by now"):
        first.step()
    inbox.close()
    assert (cluster.acted, kept.read_bytes()) == ([], before)


def test_a_cluster_that_does_not_answer_is_a_failed_command_not_the_end(tmp_path: Path) -> None:
    class Away(Owners):
        def look(self, command: Command) -> Observation:
            raise PulsarError(f"no connection about {command.bundle}", sent=False)

    write(tmp_path, "1", issued(unload()))
    play(tmp_path, Away())
    assert results(tmp_path) == [(unload().id, "failed")]


def test_in_an_outage_of_the_admin_api_commands_expire_instead_of_failing_and_only_one_of_a_batch_waits(
    tmp_path: Path,
) -> None:
    now, looked = T, list[str]()

    def pass_time(seconds: float) -> None:
        nonlocal now
        now += round(seconds * 1000)

    class Away(Owners):
        def look(self, command: Command) -> Observation:
            looked.append(command.id)
            raise PulsarError("connection refused", sent=False, away=True)

    commands = [unload(bundle) for bundle in BUNDLES]
    commands[0] = replace(commands[0], expires_at_ms=T + 9_000)
    write(tmp_path, "1", *map(issued, commands))
    inbox = inbox_in(tmp_path, cluster="standalone")
    settings = ExecutorSettings(max_per_second=1000.0, max_concurrent=1)
    works = Executor(
        inbox, Away(), settings, name="standalone", now_ms=lambda: now, give_up_seconds=60.0, sleep=pass_time
    )
    works.step()
    assert results(tmp_path) == [(command.id, "expired") for command in commands]
    # The first one was tried until it expired, each of the others as often as any command.
    assert now >= commands[0].expires_at_ms
    assert [looked.count(command.id) for command in commands[1:]] == [3, 3]
    again = replace(unload("tenant/four/0x40000000_0x80000000"), expires_at_ms=now + 9_000)
    write(tmp_path, "2", issued(again))
    works.step()
    inbox.close()
    assert now >= again.expires_at_ms, "of the next batch one waits again"


def test_a_broker_that_hangs_costs_a_batch_the_time_of_one_command_and_nothing_that_names_other_brokers(
    tmp_path: Path,
) -> None:
    looked, hang, hung = list[str](), threading.Event(), {A}

    class Hung(Owners):
        def look(self, command: Command) -> Observation:
            if command.source in hung:
                looked.append(command.id)
                hang.wait(0.02)
                raise PulsarError("no answer", away=True)
            return Observation(boundaries=QUARTERS, owner=command.source)

        def look_after(self, command: Command) -> Observation:
            return Observation(boundaries=QUARTERS, owner=command.destination)

    def about(start: int, source: str, destination: str) -> Command:
        return unload(f"tenant/ns/0x{start:x}0000000_0x{start + 4:x}0000000", source=source, destination=destination)

    commands = [about(0, A, B), about(4, A, C), about(8, C, A)]
    other = unload("tenant/ns/0xc0000000_0xffffffff", source=C, destination="d:8080")
    write(tmp_path, "1", *map(issued, [*commands, other]))
    inbox, settings = inbox_in(tmp_path, cluster="standalone"), ExecutorSettings(max_per_second=1000.0)
    executor = Executor(inbox, Hung(), settings, name="standalone", now_ms=lambda: T, give_up_seconds=0.01)
    executor.step()
    assert results(tmp_path) == [*((command.id, "expired") for command in commands), (other.id, "done")]
    assert set(looked) == {commands[0].id}
    # With the next batch it is asked again.
    hung.clear()
    again = replace(commands[0], id="ab" * 16)
    write(tmp_path, "2", issued(again))
    executor.step()
    inbox.close()
    assert results(tmp_path)[-1] == (again.id, "done")


def test_a_broker_that_is_slow_and_does_as_it_is_told_costs_no_other_command_its_turn(tmp_path: Path) -> None:
    class Slow(Owners):
        def look_after(self, command: Command) -> Observation:
            threading.Event().wait(0.02)
            return super().look(command)

    write(tmp_path, "1", *(issued(unload(bundle)) for bundle in BUNDLES[:2]))
    inbox, settings = inbox_in(tmp_path, cluster="standalone"), ExecutorSettings(max_per_second=1000.0)
    Executor(inbox, Slow(), settings, name="standalone", now_ms=lambda: T, give_up_seconds=0.01).step()
    inbox.close()
    assert [status for _, status in results(tmp_path)] == ["done", "done"]


def test_a_command_waits_for_its_turn_before_its_time_begins_and_is_not_begun_where_it_expired_meanwhile(
    tmp_path: Path,
) -> None:
    now, events = T, list[str]()

    def wait(seconds: float) -> None:
        nonlocal now
        now += round(seconds * 1000)
        events.append("turn")

    class Told(Owners):
        def within(self, _: float) -> Self:
            events.append("time begins")
            return self

        def look(self, command: Command) -> Observation:
            events.append("look")
            return super().look(command)

        def look_after(self, command: Command) -> Observation:
            return super().look(command)

        def act(self, command: Command) -> None:
            events.append("act")
            super().act(command)

    pace = RateLimiter(1 / 200, clock=lambda: now / 1000, sleep=wait)  # commands expire after 300 s
    write(tmp_path, "1", *(issued(unload(bundle)) for bundle in BUNDLES))
    inbox = inbox_in(tmp_path, cluster="standalone")
    settings = ExecutorSettings(max_concurrent=1)
    Executor(inbox, Told(), settings, name="standalone", now_ms=lambda: now, rate_limiter=pace).step()
    inbox.close()
    assert [status for _, status in results(tmp_path)] == ["done", "done", "expired"]
    assert events == ["time begins", "look", "act", "turn", "time begins", "look", "act", "turn"]


def test_a_command_that_acts_on_nothing_takes_no_turn_from_those_that_do(tmp_path: Path) -> None:
    def waited(name: str, mode: str = "active", *, dry_run: bool = False, begun: bool = False) -> int:
        """How often two commands wait for their turn, where the second one of two that act waits."""
        folder, waits, now = tmp_path / name, 0, T
        folder.mkdir()
        write(folder, "1", *(issued(unload(bundle, mode=mode)) for bundle in BUNDLES[:2]))
        if begun:
            works, inbox = executor(folder, Owners())
            inbox.answer = die  # type: ignore[assignment, method-assign]
            with pytest.raises(KeyboardInterrupt):
                works.step()
            inbox.close()

        def wait(seconds: float) -> None:
            nonlocal waits, now
            waits, now = waits + 1, now + round(seconds * 1000)

        pace = RateLimiter(1 / 200, clock=lambda: now / 1000, sleep=wait)
        inbox = inbox_in(folder, cluster="standalone")
        settings = ExecutorSettings(max_concurrent=1, dry_run=dry_run)
        Executor(inbox, Owners(), settings, name="standalone", now_ms=lambda: now, rate_limiter=pace).step()
        inbox.close()
        assert len(results(folder)) == 2
        return waits

    assert waited("active") == 1
    assert waited("dry command", mode="dry_run") == 0
    assert waited("dry executor", dry_run=True) == 0
    assert waited("begun by another", begun=True) == 0


def test_an_executor_ends_when_told_to(tmp_path: Path) -> None:
    write(tmp_path, "1", issued(unload()))
    works, inbox = executor(tmp_path, Owners())
    until = threading.Event()
    thread = threading.Thread(target=works.run, args=[until])
    thread.start()
    while not results(tmp_path):
        until.wait(0.01)
    until.set()
    thread.join(5)
    inbox.close()
    assert not thread.is_alive()


def test_what_was_begun_is_remembered_until_it_is_answered_however_small_the_next_batches(tmp_path: Path) -> None:
    both = threading.Barrier(2)

    def die_together() -> None:
        both.wait(5)
        raise KeyboardInterrupt

    wanted = [unload(bundle) for bundle in ("tenant/one/0x40000000_0x80000000", "tenant/two/0x80000000_0xc0000000")]
    write(tmp_path, "1", *map(issued, wanted))
    with pytest.raises(KeyboardInterrupt):
        play(tmp_path, Owners(disturb=die_together))
    survivor = Owners()
    assert play(tmp_path, survivor, batch=1) == 2
    assert results(tmp_path) == [(command.id, "unknown") for command in wanted]
    assert survivor.acted == []


def test_unloads_of_the_same_range_are_carried_out_one_after_the_other(tmp_path: Path) -> None:
    # Pulsar keeps the wish for a destination by the range, without the namespace.
    under_way, most = 0, 0
    counting = threading.Lock()

    class Busy(Owners):
        def act(self, command: Command) -> None:
            nonlocal under_way, most
            with counting:
                under_way += 1
                most = max(most, under_way)
            super().act(command)

        def look_after(self, command: Command) -> Observation:
            nonlocal under_way
            time.sleep(0.02)
            with counting:
                under_way -= 1
            return self.look(command)

    write(tmp_path, "1", *(issued(unload(bundle)) for bundle in BUNDLES))
    play(tmp_path, Busy())
    assert [status for _, status in results(tmp_path)] == ["done"] * 3
    assert most == 1


def test_an_executor_that_was_replaced_acts_on_nothing_and_answers_nothing(tmp_path: Path) -> None:
    cluster = Owners()
    write(tmp_path, "1", issued(unload()))
    works, inbox = executor(tmp_path, cluster)

    def replaced(partition: int, command: str) -> None:
        raise TakenOverError(f"{command} of partition {partition} is another's")

    inbox.begin = replaced  # type: ignore[method-assign]
    with pytest.raises(TakenOverError):
        works.step()
    inbox.close()
    assert cluster.acted == []
    assert results(tmp_path) == []


@pytest.mark.parametrize(("still_seconds", "acts"), [(4.9, True), (5.1, False)])
def test_a_process_that_stood_still_for_half_its_session_acts_on_nothing(
    tmp_path: Path, still_seconds: float, acts: bool
) -> None:
    now, cluster = 100.0, Owners()

    def stand_still(partition: int, command: str) -> None:
        nonlocal now
        now += still_seconds

    write(tmp_path, "1", issued(unload()))
    inbox = inbox_in(tmp_path, cluster="standalone")
    inbox.begin = stand_still  # type: ignore[method-assign]
    settings = ExecutorSettings(max_per_second=1000.0, session_timeout_seconds=10)
    works = Executor(inbox, cluster, settings, name="standalone", now_ms=lambda: T, clock=lambda: now)
    with nullcontext() if acts else pytest.raises(TakenOverError, match="made no progress"):
        works.step()
    inbox.close()
    assert cluster.acted == [unload().id] * acts


def test_once_one_of_a_batch_cannot_be_carried_out_no_other_that_waits_is_begun(tmp_path: Path) -> None:
    cluster = Owners(disturb=lambda: die(None))
    write(tmp_path, "1", *(issued(unload(bundle)) for bundle in BUNDLES))
    with pytest.raises(KeyboardInterrupt):
        play(tmp_path, cluster)
    assert len(cluster.acted) == 1


def test_a_command_that_expires_while_those_before_it_are_carried_out_is_not_begun(tmp_path: Path) -> None:
    now = T
    deadline = unload().expires_at_ms

    def pass_time() -> None:
        nonlocal now
        now = deadline

    cluster = Owners(disturb=pass_time)
    write(tmp_path, "1", *(issued(unload(BUNDLES[0], id=name)) for name in ("first", "second")))
    inbox = inbox_in(tmp_path, cluster="standalone")
    works = Executor(inbox, cluster, ExecutorSettings(max_per_second=1000.0), name="standalone", now_ms=lambda: now)
    works.step()
    inbox.close()
    assert results(tmp_path) == [("first", "done"), ("second", "expired")]


def test_a_command_that_expires_while_the_log_stores_that_it_begins_is_not_carried_out(tmp_path: Path) -> None:
    now, cluster = T, Owners()
    write(tmp_path, "1", issued(unload()))
    inbox = inbox_in(tmp_path, cluster="standalone")
    begin = inbox.begin

    def take_long(partition: int, command: str) -> None:
        nonlocal now
        begin(partition, command)
        now = unload().expires_at_ms

    inbox.begin = take_long  # type: ignore[method-assign]
    works = Executor(inbox, cluster, ExecutorSettings(max_per_second=1000.0), name="standalone", now_ms=lambda: now)
    works.step()
    inbox.close()
    assert cluster.acted == []
    assert results(tmp_path) == [(unload().id, "expired")]


def test_a_folder_that_is_another_clusters_log_is_refused_by_name(tmp_path: Path) -> None:
    write(tmp_path, "1", issued(unload()))
    play(tmp_path, Owners())
    with pytest.raises(SettingsError, match=r"is of cluster 'standalone'.*: give cluster 'other' a folder of its own"):
        inbox_in(tmp_path, cluster="other")
    inbox_in(tmp_path, cluster="standalone").close()


def test_lines_among_the_results_that_are_no_results_are_passed_over(tmp_path: Path) -> None:
    write(tmp_path, "1", issued(unload()))
    play(tmp_path, Owners())
    (kept,) = (tmp_path / "results").glob("*.jsonl")
    no_results = b"no json", b"[1]", b'{"type":"result"}', b'{"type":"result","id":["a"]}', b'{"type":"tick"}'
    kept.write_bytes(b"\n".join([*no_results, kept.read_bytes()]))
    (tmp_path / "executor" / "position.json").unlink()
    cluster = Owners()
    play(tmp_path, cluster)
    assert cluster.acted == []  # the result among them still counts


def test_an_executor_is_alive_while_it_carries_out_a_batch_of_slow_commands(tmp_path: Path) -> None:
    seconds, said = 0.0, []
    metrics = ExecutorMetrics()
    metrics.health = ProcessHealth(lambda: seconds)
    metrics.health.limit_standstill(100)

    def takes_long() -> None:
        nonlocal seconds
        seconds += 60
        said.append(metrics.health.standstill)

    write(tmp_path, "1", *(issued(unload(bundle)) for bundle in BUNDLES[:3]))
    inbox, settings = inbox_in(tmp_path, cluster="standalone"), ExecutorSettings(max_per_second=1000.0)
    cluster = Owners(disturb=takes_long)
    Executor(inbox, cluster, settings, name="standalone", now_ms=lambda: T, metrics=metrics).step()
    inbox.close()
    assert said == ["", "", ""]


def test_an_executor_without_commands_is_alive(tmp_path: Path) -> None:
    seconds, metrics = 0.0, ExecutorMetrics()
    metrics.health = ProcessHealth(lambda: seconds)
    metrics.health.limit_standstill(100)
    inbox, settings = inbox_in(tmp_path, cluster="standalone"), ExecutorSettings()
    works = Executor(inbox, Owners(), settings, name="standalone", now_ms=lambda: T, metrics=metrics)
    seconds = 101.0
    assert metrics.health.standstill
    works.step()
    inbox.close()
    assert not metrics.health.standstill


def test_the_metrics_tell_answers_attempts_and_what_got_no_answer(tmp_path: Path) -> None:
    done, late = unload(BUNDLES[0]), replace(unload(BUNDLES[1]), expires_at_ms=T)
    write(tmp_path, "1", epoch_event("standalone", 1, T), issued(done), issued(done), issued(late), b"no event")
    inbox, metrics = inbox_in(tmp_path, cluster="standalone"), ExecutorMetrics()
    assert metrics.health.now[0] is False
    settings = ExecutorSettings(max_per_second=1000.0)
    Executor(inbox, Owners(), settings, name="standalone", now_ms=lambda: T + 1000, metrics=metrics).step()
    inbox.close()
    shown = metrics.registry.get_sample_value
    assert shown("trimtab_executions_total", {"action": "unload", "status": "done"}) == 1
    assert shown("trimtab_executions_total", {"action": "unload", "status": "expired"}) == 1
    assert shown("trimtab_passed_over_total", {"why": "repeated"}) == 1
    assert shown("trimtab_passed_over_total", {"why": "unreadable"}) == 1
    assert shown("trimtab_attempts_total", {"action": "unload"}) == 1
    assert shown("trimtab_execution_seconds_count", {"action": "unload"}) == 1
    assert shown("trimtab_execution_delay_seconds_sum") == (T + 1000 - done.interval) / 1000
    assert metrics.health.now == (True, "executes: 1 partitions of the command topic are assigned to it")


def test_an_executor_is_ready_once_the_group_has_decided_even_if_others_have_all_partitions() -> None:
    metrics = ExecutorMetrics()
    metrics.assigned(None)
    assert metrics.health.now[0] is False
    metrics.assigned(0)
    assert metrics.health.now[0] is True
    metrics.assigned(3)
    assert metrics.registry.get_sample_value("trimtab_executor_partitions") == 3
    metrics.restarts()
    assert metrics.health.now[0] is False
    assert metrics.registry.get_sample_value("trimtab_executor_partitions") == 0


def test_the_log_says_which_bundle_went_from_where_to_where_and_how_it_ended(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    command, gone = unload(BUNDLES[0]), replace(unload(BUNDLES[1]), source="gone:8080")
    write(tmp_path, "1", issued(command), issued(gone))
    play(tmp_path, Owners())
    told = [record.getMessage() for record in caplog.records if record.name.endswith("executor.loop")]
    assert f"unload of {BUNDLES[0]} from {A} to {command.destination}: done" in told
    (refused,) = [line for line in told if BUNDLES[1] in line]
    assert refused.startswith(f"unload of {BUNDLES[1]} from gone:8080 to {gone.destination}: obsolete, ")


def test_the_log_says_which_command_comes_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    command = unload(BUNDLES[0])
    write(tmp_path, "1", issued(command), issued(command))
    play(tmp_path, Owners())
    (again,) = [record for record in caplog.records if "repeated" in record.getMessage()]
    assert again.getMessage() == f"ignoring repeated unload of {BUNDLES[0]}"
    assert (vars(again)["command"], vars(again)["bundle"], vars(again)["epoch"]) == (command.id, BUNDLES[0], 1)


def test_pauses_between_attempts_end_with_the_time_of_the_command(tmp_path: Path) -> None:
    class Refusing(Owners):
        def look(self, _: Command) -> Observation:
            raise PulsarError("HTTP 500", status=500)

    slept = list[float]()
    write(tmp_path, "1", issued(unload()))
    inbox = inbox_in(tmp_path, cluster="standalone")
    settings = ExecutorSettings(max_per_second=1000.0, attempts=30)
    works = Executor(
        inbox, Refusing(), settings, name="standalone", give_up_seconds=10.0, now_ms=lambda: T, sleep=slept.append
    )
    works.step()
    inbox.close()
    assert [status for _, status in results(tmp_path)] == ["failed"]
    assert len(slept) == 29
    assert max(slept) <= 10.0


def test_the_ids_that_were_answered_last_are_remembered_and_no_more_than_a_fixed_number() -> None:
    answered = AnsweredIds(f"command-{number}" for number in range(MOST_ANSWERED))
    answered.add("command-7")
    assert len(answered) == MOST_ANSWERED
    answered.add("one-more")
    assert len(answered) == MOST_ANSWERED
    assert "command-0" not in answered
    assert "command-1" in answered
    assert "one-more" in answered
    memory = PartitionMemory(answered=answered, started={"command-7", "begun"})
    memory.forget_answered()
    assert memory.started == {"begun"}


def test_a_command_that_was_begun_is_looked_at_however_late_and_never_called_expired(tmp_path: Path) -> None:
    dying = Owners(disturb=lambda: die(None))
    write(tmp_path, "1", issued(unload()))
    with pytest.raises(KeyboardInterrupt):
        play(tmp_path, dying)
    play(tmp_path, Owners(), now_ms=unload().expires_at_ms + 1)
    assert results(tmp_path) == [(unload().id, "unknown")]
