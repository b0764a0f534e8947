"""What the supervisor makes of a query that ended, without Spark: queries, sinks and leadership are played."""

import logging
import threading
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from threading import Event
from typing import Any
from unittest.mock import Mock

import pytest

from controller.adapters.folder.controls import FileControls
from controller.adapters.metrics.controller import ControllerMetrics
from controller.model.controls import ControlChange, OperatorControls
from controller.model.errors import JournalError, LeadershipLostError, SettingsError, StalledError, TrimtabError
from controller.model.leadership import Agreement
from controller.settings.trimtab_toml import Settings
from streaming import supervisor
from streaming.assembly import Assembly
from streaming.supervisor import running


class PlayedLeadership:
    """Leads once; where it is *gone*, that is known when ZooKeeper is asked, and not before the queries have begun."""

    def __init__(self, *, gone: bool) -> None:
        self._gone, self.acquired, self._checked = gone, False, False

    def acquire(self, _: Callable[[], bool], stand_by: Callable[[], None]) -> bool:
        first, self.acquired = not self.acquired, True
        if first:
            stand_by()
        return first

    def check(self) -> None:
        before, self._checked = self._checked, True
        if self._gone and before:
            raise LeadershipLostError("another leads")

    def agreement(self, name: str) -> Agreement | None:
        """Nobody else takes part."""

    def lost(self) -> bool:
        return False

    def session_lost(self) -> bool:
        return self._gone

    def release(self) -> None:
        """Nothing is held."""


class PlayedAssembly(Assembly):
    """The assembly of a folder's settings, in which nothing starts Spark; *played* replaces further parts."""

    def __init__(self, folder: Path, leadership: PlayedLeadership, **played: Any) -> None:
        (folder / "broker.conf").write_text("", encoding="utf-8")
        settings = {
            "cluster": {"name": "lab", "broker_conf": str(folder / "broker.conf")},
            "log": {"kind": "folder", "folder": {"path": str(folder)}},
            "election": {"kind": "file", "path": str(folder)},
            "checkpoint": {"path": str(folder)},
        }
        super().__init__(Settings.model_validate(settings))
        ended = Mock(name="played", isActive=False)
        ended.awaitTermination.side_effect = RuntimeError("a file of the checkpoint is another's")
        writer = Mock()
        writer.trigger.return_value.start.return_value = ended
        parts: dict[str, Any] = {
            "leadership": Mock(return_value=leadership),
            "session": Mock(),
            "warm_up": Mock(),
            "stand_by": Mock(),
            "files": Mock(),
            "refuse_another_cluster": Mock(),
            "refuse_other_version": Mock(),
            "has_committed": Mock(return_value=False),
            "decision_query": Mock(return_value=writer),
        }
        for name, part in (parts | played).items():
            setattr(self, name, part)


def run(tmp_path: Path, leadership: PlayedLeadership, sink_failure: Exception | None = None, **played: Any) -> None:
    """Run with a query that ends at once; Spark tells it in words of its own."""
    sink = Mock(return_value=Mock(epoch=1, failure=sink_failure, waits_for_brokers=""))
    assembly = PlayedAssembly(tmp_path, leadership, **{"decision_sink": sink, **played})
    supervisor.balance(assembly, stop=lambda: False, poll_seconds=0.0)


@pytest.mark.parametrize("failure", [None, JournalError("no such writer"), RuntimeError("Java says no")])
def test_any_error_of_a_query_after_lost_leadership_is_lost_leadership(
    tmp_path: Path, failure: Exception | None
) -> None:
    with pytest.raises(LeadershipLostError) as caught:
        run(tmp_path, PlayedLeadership(gone=True), failure)
    assert caught.value.exit_code == 75


def test_a_leaders_failed_query_raises_the_sinks_error(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="no such writer"):
        run(tmp_path, PlayedLeadership(gone=False), JournalError("no such writer"))


def test_a_leaders_failed_query_without_a_sink_error_raises_sparks_error(tmp_path: Path) -> None:
    with pytest.raises(TrimtabError, match="a file of the checkpoint"):
        run(tmp_path, PlayedLeadership(gone=False))


def test_a_standby_rehearses_on_the_session_it_will_lead_with(tmp_path: Path) -> None:
    session, stand_by = Mock(), Mock()
    with pytest.raises(TrimtabError):
        run(tmp_path, PlayedLeadership(gone=False), session=session, stand_by=stand_by)
    stand_by.assert_called_once_with(session.return_value)


def test_a_standby_is_ready_when_it_has_rehearsed_and_a_leader_when_it_reads_the_log(tmp_path: Path) -> None:
    seen: list[tuple[str, bool]] = []
    leadership = PlayedLeadership(gone=False)

    class Watched(ControllerMetrics):
        def stands_by(self, prepare: Callable[[], None]) -> None:
            super().stands_by(prepare)
            seen.append(("stands by", self.health.now[0]))

    metrics = Watched()
    query = Mock(isActive=False)

    def reads() -> None:
        seen.append(("reads", metrics.health.now[0]))
        seen.append(("leads", metrics.registry.get_sample_value("trimtab_leader") == 1))
        raise RuntimeError("ends")

    query.awaitTermination.side_effect = reads
    writer = Mock()
    writer.trigger.return_value.start.return_value = query
    stand_by = Mock(side_effect=lambda _: seen.append(("rehearses", metrics.health.now[0])))
    parts: dict[str, Any] = {"metrics": metrics, "decision_query": Mock(return_value=writer), "stand_by": stand_by}
    with pytest.raises(TrimtabError):
        run(tmp_path, leadership, **parts)
    assert seen == [("rehearses", False), ("stands by", True), ("reads", True), ("leads", True)]
    assert metrics.registry.get_sample_value("trimtab_leader") == 0
    assert metrics.health.now[0] is False


def test_a_process_that_has_led_does_not_rehearse_again(tmp_path: Path) -> None:
    class LostOnce(PlayedLeadership):
        def acquire(self, _: Callable[[], bool], stand_by: Callable[[], None]) -> bool:
            stand_by()
            first, self.acquired = not self.acquired, True
            return first

        def session_lost(self) -> bool:
            return False

    stand_by = Mock()
    run(tmp_path, LostOnce(gone=True), stand_by=stand_by)
    stand_by.assert_called_once()


def test_spark_runs_before_this_process_leads(tmp_path: Path) -> None:
    leadership, led = PlayedLeadership(gone=False), list[bool]()
    with pytest.raises(TrimtabError):
        run(tmp_path, leadership, session=lambda: led.append(leadership.acquired))
    assert led == [False]


def test_spark_warms_up_beside_what_comes_before_the_query(tmp_path: Path) -> None:
    session, led = Mock(), list[bool]()
    leadership = PlayedLeadership(gone=False)
    warm_up = Mock(side_effect=lambda _: led.append(leadership.acquired))
    with pytest.raises(TrimtabError):
        run(tmp_path, leadership, session=session, warm_up=warm_up)
    warm_up.assert_called_once_with(session.return_value)
    assert led == [False]


def test_what_fails_while_spark_warms_up_is_left_to_the_query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assembly = PlayedAssembly(tmp_path, PlayedLeadership(gone=False))
    failed, uncaught = threading.Event(), list[object]()

    def fails(*_: object) -> None:
        failed.set()
        raise RuntimeError("no such topic")

    monkeypatch.setattr(assembly, "records", fails)
    monkeypatch.setattr(threading, "excepthook", uncaught.append)
    Assembly.warm_up(assembly, Mock())
    assert failed.wait(10)
    for thread in threading.enumerate():
        if thread.name == "warm-up":
            thread.join(10)
    assert uncaught == []


@pytest.mark.parametrize(
    ("error", "code"), [(None, 70), (StalledError("stands still"), 70), (LeadershipLostError("another leads"), 75)]
)
def test_a_query_that_cannot_be_stopped_ends_the_process(error: Exception | None, code: int) -> None:
    never, codes = Event(), list[int]()
    with (
        nullcontext() if error is None else pytest.raises(type(error)),
        running(Mock(stop=never.wait), stop_seconds=0.01, exit_now=codes.append),
    ):
        if error is not None:
            raise error
    never.set()
    assert codes == [code]


def test_a_query_that_stops_leaves_its_error_as_it_was() -> None:
    query = Mock()
    with pytest.raises(StalledError), running(query):
        raise StalledError("stands still")
    query.stop.assert_called_once_with()


def test_the_sink_learns_whether_spark_has_committed_anything(tmp_path: Path) -> None:
    made, files = Mock(return_value=Mock(epoch=1, failure=None)), Mock()
    played = {"decision_sink": made, "has_committed": Mock(return_value=True), "files": Mock(return_value=files)}
    with pytest.raises(TrimtabError):
        run(tmp_path, PlayedLeadership(gone=False), **played)
    assert made.call_args.kwargs == {"has_begun": True, "files": files}


def test_a_checkpoint_that_others_do_not_share_is_refused_with_what_to_delete(tmp_path: Path) -> None:
    class AgreedOnAnother(PlayedLeadership):
        def agreement(self, name: str) -> Agreement:
            return Agreement(where=f"/lab/{name} in ZooKeeper (zk:2181)", propose=lambda _: "theirs")

    files = Mock(**{"read.return_value": b"ours"})
    told = r"is ours, .* use theirs: .* delete /lab/checkpoint in ZooKeeper \(zk:2181\)$"
    with pytest.raises(SettingsError, match=told):
        run(tmp_path, AgreedOnAnother(gone=False), files=Mock(return_value=files))


def test_where_nothing_can_be_deleted_a_new_checkpoint_is_begun_with_the_identity_of_the_old_one(
    tmp_path: Path,
) -> None:
    class AgreedInTheLog(PlayedLeadership):
        def agreement(self, name: str) -> Agreement:
            return Agreement(where="", propose=lambda _: "theirs")

    files = Mock(**{"read.return_value": b"ours"})
    with pytest.raises(SettingsError, match=r"is ours, .* use theirs: .* write theirs to that file$"):
        run(tmp_path, AgreedInTheLog(gone=False), files=Mock(return_value=files))
    files = Mock(**{"read.return_value": b"theirs\n"})
    with pytest.raises(TrimtabError) as ended:
        run(tmp_path, AgreedInTheLog(gone=False), files=Mock(return_value=files))
    assert not isinstance(ended.value, SettingsError)


def test_where_all_controllers_are_on_one_machine_a_checkpoint_gets_no_identity(tmp_path: Path) -> None:
    files = Mock()
    with pytest.raises(TrimtabError):
        run(tmp_path, PlayedLeadership(gone=False), files=Mock(return_value=files))
    files.create.assert_not_called()


class Stopped(PlayedLeadership):
    """A leadership that *stops* while it leads; the election goes on."""

    def __init__(self, stops: Callable[[], None]) -> None:
        super().__init__(gone=False)
        self._stops = stops

    def lost(self) -> bool:
        self._stops()
        return True


def lost(folder: Path, caplog: pytest.LogCaptureFixture, stops: Callable[[], None]) -> list[str]:
    """The lines above INFO of a run whose leadership *stops*, and whose batch was refused then."""
    caplog.set_level(logging.WARNING)
    run(folder, Stopped(stops), LeadershipLostError("a newer epoch has begun"))
    return caplog.messages


def test_a_leadership_that_stop_all_ended_is_told_in_one_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def stop_all() -> None:
        store = FileControls(tmp_path, cluster="lab")
        stopped = ControlChange(at_ms=7, by="root", action="stop-all", reason="wrong bundles")
        store.write(OperatorControls(stopped_ms=7).with_change(stopped), store.version())

    assert lost(tmp_path, caplog, stop_all) == [
        "this leadership ended: stop-all, by root: wrong bundles; this controller stands for election again"
    ]


def test_a_leadership_that_another_ended_is_told_in_one_line_with_what_the_batch_met(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert lost(tmp_path, caplog, lambda: None) == [
        "lost leadership: a newer epoch has begun; this controller stands for election again"
    ]
