"""The operators' controls survive restarts: stored beside the election, read at every interval, with who set them."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from controller.adapters.controls_in_force import ControlsInForce
from controller.adapters.election.controls import ABSENT
from controller.adapters.folder.controls import FileControls
from controller.adapters.folder.election import FileElection
from controller.adapters.folder.leadership import FileLeadership
from controller.cli import controls as controls_cli
from controller.cycle import decide
from controller.log.elections import election_system
from controller.model.controls import Choice, Controls, OperatorControls, Pause
from controller.model.decision import Reason
from controller.model.errors import (
    AnotherClusterError,
    ControlsCorruptError,
    ControlsUnreachableError,
    LeadershipLostError,
    WireError,
)
from controller.model.journal import JournalEntry
from controller.settings.standing_controls import standing_controls
from controller.settings.trimtab_toml import Settings, read_settings
from controller.wire.commands import epoch_event
from controller.wire.controls import encode_controls, parse_controls
from tests.cluster import INTERVAL
from tests.commands import T, unload
from tests.contracts.controls import ControlStoreContract, OpenStore
from tests.folder_settings import write_settings
from tests.folders import journal_in
from tests.unit.cycle.test_cycle import POLICY, UNEVEN, WARM
from tests.unit.executor.test_executor_loop import BUNDLES, Owners, executor, issued, results, write

PAUSED = Pause(reason="upgrade", by="ada", at_ms=5)


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    (tmp_path / "log").mkdir()
    return write_settings(tmp_path, 'decisions.mode = "active"', cluster="standalone")


@pytest.fixture
def settings(conf: Path) -> Settings:
    return read_settings(conf)


def cli(conf: Path, command: Any, *arguments: str) -> Result:
    app = typer.Typer()
    app.command()(command)
    result = CliRunner().invoke(app, [*arguments, "--conf", str(conf)])
    assert result.exit_code == 0, result.output
    return result


def in_force(settings: Settings, now_ms: int = INTERVAL) -> ControlsInForce:
    """What a controller that begins to lead has."""
    return ControlsInForce(standing_controls(settings), election_system(settings).controls(), lambda: now_ms)


def test_each_control_says_in_json_what_holds_from_now_on(conf: Path) -> None:
    def said(command: Any, *arguments: str) -> Any:
        return json.loads(cli(conf, command, *arguments, "--json").stdout)

    assert said(controls_cli.pause) == {"cluster": "standalone", "paused": True}
    resumed = said(controls_cli.resume)
    assert (resumed["paused"], len(resumed["ended"]), resumed["pauses"]) == (False, 1, [])
    assert said(controls_cli.mode, "observe") == {"cluster": "standalone", "mode": "observe"}
    assert said(controls_cli.stop_all) == {"cluster": "standalone", "paused": True, "epoch": 1}


# ---- across processes ----


def test_two_leaderships_after_each_other_see_the_pause_and_who_it_was(conf: Path, settings: Settings) -> None:
    first = in_force(settings)
    assert not first.at(INTERVAL).paused
    cli(conf, controls_cli.pause, "--reason", "upgrade", "--by", "ada")
    for leadership in (first, in_force(settings)):
        controls = leadership.at(INTERVAL)
        assert (controls.paused, controls.reason, controls.by) == (True, "upgrade", "ada")
        assert controls.since_ms > 0
        decision, _ = decide(UNEVEN, [], WARM, controls, POLICY)
        assert decision.commands == ()
        (verdict,) = [v for v in decision.verdicts if v.reason is Reason.PAUSED]
        assert verdict.detail == "ada: upgrade"
    cli(conf, controls_cli.resume, "--by", "ada")
    for leadership in (first, in_force(settings)):
        assert not leadership.at(INTERVAL).paused
        assert leadership.at(INTERVAL).resumed_ms > 0


def test_an_operators_choice_replaces_the_settings_until_it_is_removed(conf: Path, settings: Settings) -> None:
    changed = settings.decisions.model_copy(update={"mode": "observe", "paused": True})
    other = settings.model_copy(update={"decisions": changed})
    assert (in_force(other).at(INTERVAL).mode, in_force(other).at(INTERVAL).paused) == ("observe", True)
    cli(conf, controls_cli.mode, "dry_run")
    cli(conf, controls_cli.resume)
    assert (in_force(other).at(INTERVAL).mode, in_force(other).at(INTERVAL).paused) == ("dry_run", False)
    cli(conf, controls_cli.mode, "settings")
    assert in_force(other).at(INTERVAL).mode == "observe"


def test_a_resume_is_always_later_than_the_one_before(conf: Path, settings: Settings) -> None:
    ahead = OperatorControls(resumed_ms=1 << 60)
    assert election_system(settings).controls().write(ahead, ABSENT)
    cli(conf, controls_cli.resume)
    assert election_system(settings).controls().read()[0].resumed_ms == (1 << 60) + 1


def test_by_default_the_user_name_is_recorded(conf: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "grace")
    cli(conf, controls_cli.pause)
    assert in_force(settings).at(INTERVAL).by == "grace"


# ---- the store ----


class TestFileControls(ControlStoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> OpenStore:
        return lambda: FileControls(tmp_path, cluster="standalone")

    @pytest.fixture
    def of_another(self, tmp_path: Path) -> OpenStore:
        return lambda: FileControls(tmp_path, cluster="other")


def test_a_folder_of_an_earlier_release_is_no_clusters_until_one_works_there(tmp_path: Path) -> None:
    (tmp_path / "epoch").write_bytes(b"7\n")
    (tmp_path / "controls.json").write_bytes(encode_controls(OperatorControls(pauses=(PAUSED,))))
    one, other = FileElection(tmp_path, cluster="standalone"), FileElection(tmp_path, cluster="other")
    assert one.controls().read()[0] == OperatorControls(pauses=(PAUSED,))
    assert one.controls().write(OperatorControls(), one.controls().version())
    assert other.controls().epoch() == 7, "a person's command does not make the folder theirs"
    one.leadership()
    assert one.controls().epoch() == 7
    for use in (
        other.leadership,
        other.collectors,
        lambda: other.controls().read(),
        lambda: FileElection(tmp_path, cluster="other"),
    ):
        with pytest.raises(
            AnotherClusterError, match=r"is of cluster 'standalone'.*cluster 'other' a folder of its own"
        ):
            use()


def test_a_file_election_is_the_clusters_whose_collector_or_whose_operator_came_first(tmp_path: Path) -> None:
    FileElection(tmp_path / "a", cluster="standalone").collectors()
    FileControls(tmp_path / "b", cluster="standalone").raise_epoch(3)
    for folder in ("a", "b"):
        with pytest.raises(AnotherClusterError, match="'standalone'"):
            FileElection(tmp_path / folder, cluster="other").leadership()


def test_the_command_line_tries_again_where_somebody_came_in_between(tmp_path: Path) -> None:
    mode = Choice(value="observe", reason="", by="bob", at_ms=1)

    class Raced(FileControls):
        raced = False

        def write(self, controls: OperatorControls, version: int) -> bool:
            if not self.raced:
                Raced.raced = True
                super().write(OperatorControls(mode=mode), version)
            return super().write(controls, version)

    controls_cli.change(Raced(tmp_path, cluster="standalone"), lambda now: replace(now, pauses=(PAUSED,)))
    assert FileControls(tmp_path, cluster="standalone").read()[0] == OperatorControls(mode=mode, pauses=(PAUSED,))


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"{}",
        b"[]",
        b'{"v":2,"type":"controls"}',
        b'{"v":1,"type":"controls","mode":{"value":"all"}}',
        b"x" * 20_000,
    ],
)
def test_invalid_controls_stop_all_commands_until_they_are_set_again(
    conf: Path, settings: Settings, value: bytes
) -> None:
    controller = in_force(settings)
    assert controller.at(INTERVAL).unknown == ""
    file = Path(settings.election.path) / "controls.json"
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(value)
    with pytest.raises(ControlsCorruptError, match=r"controls\.json does not hold valid controls"):
        election_system(settings).controls().read()
    assert "does not hold valid controls" in controller.at(INTERVAL).unknown
    cli(conf, controls_cli.pause)
    assert controller.at(INTERVAL).paused
    assert controller.at(INTERVAL).unknown == ""


def test_controls_come_back_as_they_were_and_what_is_too_long_or_not_printable_is_refused() -> None:
    controls = OperatorControls(
        mode=Choice(value="observe", reason="upgrade", by="ada", at_ms=5), pauses=(PAUSED,), resumed_ms=7
    )
    assert parse_controls(encode_controls(controls)) == controls
    assert parse_controls(encode_controls(OperatorControls())) == OperatorControls()
    for bad in (replace(PAUSED, reason="x" * 501), replace(PAUSED, by="a\nb"), replace(PAUSED, by="")):
        with pytest.raises(WireError, match="bad_value"):
            encode_controls(OperatorControls(pauses=(bad,)))


class Away(FileControls):
    """A store that can be out of reach."""

    away = True

    def read(self) -> tuple[OperatorControls, int]:
        if self.away:
            raise ControlsUnreachableError("no connection")
        return super().read()


def test_a_controller_that_could_never_read_them_issues_nothing(
    tmp_path: Path, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    store = Away(tmp_path, cluster="standalone")
    controller = ControlsInForce(standing_controls(settings), store, lambda: INTERVAL)
    assert controller.at(INTERVAL).unknown == "it is not known whether somebody paused: no connection"
    assert "no commands are issued until they can be read: no connection" in caplog.text
    store.away = False
    assert controller.at(INTERVAL) == Controls(mode="active")


def test_while_they_cannot_be_read_the_last_known_ones_hold(tmp_path: Path, settings: Settings) -> None:
    store = Away(tmp_path, cluster="standalone")
    store.away = False
    store.write(OperatorControls(pauses=(PAUSED,)), ABSENT)
    controller = ControlsInForce(standing_controls(settings), store, lambda: INTERVAL)
    before = controller.at(INTERVAL)
    store.away = True
    assert controller.at(INTERVAL) == before
    assert before.paused


def test_age_and_calendar_are_part_of_the_controls(settings: Settings) -> None:
    maintenance = settings.guardrails.maintenance.model_copy(update={"frozen": ("* * * * * for 5m",)})
    guardrails = settings.guardrails.model_copy(update={"maintenance": maintenance})
    frozen = settings.model_copy(update={"guardrails": guardrails})
    late = INTERVAL + settings.intervals.stale_after_seconds * 1000 + 1
    controls = in_force(frozen, late).at(INTERVAL)
    assert controls.stale
    assert controls.maintenance == "in the frozen window '* * * * * for 5m' (UTC)"


# ---- stop-all ----


def entry(interval: int = T) -> JournalEntry:
    commands = tuple(unload(bundle) for bundle in BUNDLES)
    decision, memory = decide(UNEVEN, [], WARM, Controls(mode="active"), POLICY)
    decided = replace(decision, interval=interval, commands=commands)
    return JournalEntry(cluster="standalone", decision=decided, memory=memory, controls=Controls(mode="active"))


def test_stop_all_empties_what_is_not_begun_and_ends_the_running_leadership(conf: Path, settings: Settings) -> None:
    folder, leader = Path(conf.parent / "log"), FileLeadership(Path(settings.election.path))
    assert leader.acquire(lambda: False)
    journal = journal_in(folder, cluster="standalone")
    epoch = leader.claim(journal.open().epoch)
    journal.begin_epoch(epoch)
    journal.append(entry(), epoch=epoch, issued_at_ms=T, before_commit=leader.check)

    told = cli(conf, controls_cli.stop_all, "--by", "ada").output
    assert "Paused standalone" in told
    assert "Epoch 2 starts: executors answer 'fenced' to older commands that they have not started" in told
    with pytest.raises(LeadershipLostError):
        leader.check()
    cluster = Owners()
    works, inbox = executor(folder, cluster)
    while works.step():
        pass
    inbox.close()
    assert cluster.acted == []
    assert sorted(results(folder)) == sorted((unload(bundle).id, "fenced") for bundle in BUNDLES)

    assert leader.acquire(lambda: False)
    assert leader.claim(journal.open().epoch) == 3
    assert in_force(settings).at(INTERVAL).paused
    leader.release()


def test_stop_all_works_where_nobody_leads_and_again(conf: Path, settings: Settings) -> None:
    assert "Epoch 1 starts" in cli(conf, controls_cli.stop_all).output
    assert "Epoch 2 starts" in cli(conf, controls_cli.stop_all).output
    stored = json.loads((Path(settings.election.path) / "controls.json").read_bytes())
    assert [each["reason"] for each in stored["pauses"]] == ["stop-all"]


def test_a_command_that_was_taken_and_not_begun_is_fenced_when_a_newer_epoch_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controller.log.inbox._LOOK_AGAIN_SECONDS", 0.0)
    journal = journal_in(tmp_path, cluster="standalone")
    journal.open()
    journal.begin_epoch(1)
    cluster = Owners(disturb=lambda: journal.begin_epoch(2))
    first, second = (unload(f"tenant/one/{each}") for each in ("0x40000000_0x80000000", "0x80000000_0xc0000000"))
    write(tmp_path, "1", epoch_event("standalone", 1, T), issued(first), issued(second))
    works, inbox = executor(tmp_path, cluster)
    works.step()
    inbox.close()
    assert cluster.acted == [first.id]
    assert results(tmp_path) == [(first.id, "done"), (second.id, "fenced")]
