"""What the supervisor makes of a query that ended, without Spark: queries, sinks and leadership are played."""

import os
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any, NoReturn
from unittest.mock import Mock

import pytest

from controller.model.errors import JournalError, LeadershipLostError, StalledError, TrimtabError
from controller.settings.trimtab_toml import Settings
from streaming import supervisor


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

    def lost(self) -> bool:
        return False

    def session_lost(self) -> bool:
        return self._gone

    def release(self) -> None:
        """Nothing is held."""


@pytest.fixture(autouse=True)
def rehearse(monkeypatch: pytest.MonkeyPatch) -> Mock:
    played = Mock()
    monkeypatch.setattr(supervisor, "rehearse", played)
    return played


def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leadership: PlayedLeadership, **assembly: Any) -> None:
    """Run with two queries that end at once; Spark tells it in words of its own."""
    ended = Mock(name="played", isActive=False)
    ended.awaitTermination.side_effect = RuntimeError("a file of the checkpoint is another's")
    writer = Mock()
    writer.trigger.return_value.start.return_value = ended
    parts = Mock(**{"leadership.return_value": leadership, "dead_letter_sink.return_value.failure": None, **assembly})
    monkeypatch.setattr("streaming.supervisor.assembly", parts)
    monkeypatch.setattr(supervisor, "_POLL_SECONDS", 0.0)
    for name in ("decision_query", "dead_letter_query"):
        monkeypatch.setattr(supervisor, name, Mock(return_value=writer))
    (tmp_path / "broker.conf").write_text("", encoding="utf-8")
    settings = Settings.model_validate(
        {
            "cluster": {"name": "lab", "broker_conf": str(tmp_path / "broker.conf")},
            "log": {"kind": "folder", "folder": {"path": str(tmp_path)}},
            "election": {"kind": "file", "path": str(tmp_path)},
            "checkpoint": {"path": str(tmp_path)},
        }
    )
    supervisor.run(settings, stop=lambda: False)


def sink(failure: Exception | None) -> dict[str, Any]:
    return {"decision_sink.return_value": Mock(epoch=1, failure=failure)}


@pytest.mark.parametrize("failure", [None, JournalError("no such writer"), RuntimeError("Java says no")])
def test_whatever_ended_the_query_of_one_who_leads_no_longer_it_is_lost_leadership(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: Exception | None
) -> None:
    with pytest.raises(LeadershipLostError) as caught:
        run(tmp_path, monkeypatch, PlayedLeadership(gone=True), **sink(failure))
    assert caught.value.exit_code == 75


def test_a_leader_whose_query_ended_tells_what_its_sink_failed_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(JournalError, match="no such writer"):
        run(tmp_path, monkeypatch, PlayedLeadership(gone=False), **sink(JournalError("no such writer")))


def test_a_leader_whose_query_ended_by_itself_tells_what_spark_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(TrimtabError, match="a file of the checkpoint"):
        run(tmp_path, monkeypatch, PlayedLeadership(gone=False), **sink(None))


def test_who_stands_by_rehearses_on_the_session_it_will_lead_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rehearse: Mock
) -> None:
    session = Mock()
    with pytest.raises(TrimtabError):
        run(tmp_path, monkeypatch, PlayedLeadership(gone=False), session=session, **sink(None))
    [call] = rehearse.call_args_list
    assert call.args[0] is session.return_value


def test_who_has_led_does_not_rehearse_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rehearse: Mock) -> None:
    class LostOnce(PlayedLeadership):
        def acquire(self, _: Callable[[], bool], stand_by: Callable[[], None]) -> bool:
            stand_by()
            first, self.acquired = not self.acquired, True
            return first

        def session_lost(self) -> bool:
            return False

    run(tmp_path, monkeypatch, LostOnce(gone=True), **sink(None))
    rehearse.assert_called_once()


def test_spark_runs_before_this_process_leads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    leadership, led = PlayedLeadership(gone=False), list[bool]()
    session = Mock(side_effect=lambda *_: led.append(leadership.acquired))
    with pytest.raises(TrimtabError):
        run(tmp_path, monkeypatch, leadership, session=session, **sink(None))
    assert led == [False]


class Ended(BaseException):
    """In the place of the end of this process."""


def run_query(query: Mock, error: Exception | None) -> None:
    with supervisor._running(query):
        if error is not None:
            raise error


@pytest.mark.parametrize(
    ("error", "code"), [(None, 70), (StalledError("stands still"), 70), (LeadershipLostError("another leads"), 75)]
)
def test_a_query_that_cannot_be_stopped_ends_the_process(
    monkeypatch: pytest.MonkeyPatch, error: Exception | None, code: int
) -> None:
    never, codes = Event(), list[int]()

    def exit_now(code: int) -> NoReturn:
        codes.append(code)
        raise Ended

    monkeypatch.setattr(supervisor, "_STOP_SECONDS", 0.01)
    monkeypatch.setattr(os, "_exit", exit_now)
    with pytest.raises(Ended):
        run_query(Mock(stop=never.wait), error)
    never.set()
    assert codes == [code]


def test_a_query_that_stops_leaves_its_error_as_it_was() -> None:
    query = Mock()
    with pytest.raises(StalledError):
        run_query(query, StalledError("stands still"))
    query.stop.assert_called_once_with()


def test_the_sink_learns_whether_spark_has_committed_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Mock(return_value=Mock(epoch=1, failure=None))
    with pytest.raises(TrimtabError):
        run(
            tmp_path,
            monkeypatch,
            PlayedLeadership(gone=False),
            decision_sink=made,
            has_committed=Mock(return_value=True),
        )
    assert made.call_args.kwargs == {"has_begun": True}
