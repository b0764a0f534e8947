"""``trimtab pause``, ``resume``, ``mode`` and ``stop-all``, with log and election in folders."""

import fcntl
import getpass
import json
from pathlib import Path
from threading import Timer

import pytest
from typer.testing import CliRunner, Result

from controller.adapters import long_work
from controller.adapters.folder.controls import FileControls
from controller.cli import app as cli
from controller.cli import status
from controller.model.errors import ControlsCorruptError, SettingsError
from controller.settings.trimtab_toml import read_settings
from controller.wire.answers.status import ControlsAnswer
from tests.folder_settings import write_settings
from tests.folders import journal_in
from tests.journal_entries import entry
from tests.records import T

BUNDLE = "tenant/ns/0x00000000_0x40000000"


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    return write_settings(tmp_path, cluster="lab")


def run(conf: Path, *words: str) -> Result:
    return CliRunner().invoke(cli.app, [*words, "--conf", str(conf)], env={"COLUMNS": "80"})


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["pause"], "Paused lab: no commands from the next interval on, until `trimtab resume --conf trimtab.toml`."),
        (["resume"], "Resumed lab: commands may be issued from the next interval on."),
        (["mode", "observe"], "The mode of lab is observe from the next interval on."),
        (["stop-all"], "Epoch 1 starts: executors answer 'fenced' to older commands that they have not started."),
    ],
)
def test_what_was_set_is_told_in_80_columns_and_as_json(
    conf: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], told: str
) -> None:
    monkeypatch.chdir(conf.parent)
    conf = Path(conf.name)
    answer = run(conf, *words)
    assert answer.exit_code == 0, answer.output
    assert told in " ".join(answer.output.split())
    assert max(map(len, answer.output.splitlines())) <= 80
    assert ControlsAnswer(**json.loads(run(conf, *words, "--json").stdout)).cluster == "lab"


def test_a_process_that_stands_still_while_it_sets_controls_keeps_nobody_from_stopping_commands(
    conf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controller.adapters.folder.changes_lock._PATIENCE_SECONDS", 0.01, raising=False)
    (conf.parent / "election").mkdir()
    with (conf.parent / "election" / "controls.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        goes_on = Timer(1.0, held.close)
        goes_on.start()
        found = run(conf, "stop-all")
        goes_on.cancel()
    assert found.exit_code == 1
    assert "Epoch 1 starts: executors answer 'fenced' to older commands" in " ".join(found.output.split())
    assert "controls.lock: another process has held this lock for 0.01 s: end it" in str(found.exception)


def test_a_user_without_a_name_is_told_by_number(conf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nameless() -> str:
        raise KeyError("getpwuid(): uid not found: 12345")

    monkeypatch.setattr(getpass, "getuser", nameless)
    monkeypatch.setattr("os.getuid", lambda: 12345)
    assert run(conf, "pause").exit_code == 0
    assert "set by user 12345 at" in " ".join(run(conf, "status").output.split())


@pytest.mark.parametrize("words", [["resume"], ["mode", "active"], ["release", "--all"]])
def test_controls_that_cannot_be_read_are_replaced_by_what_pauses_alone(conf: Path, words: list[str]) -> None:
    assert run(conf, "pause").exit_code == 0
    (stored,) = (conf.parent / "election").rglob("controls.json")
    stored.write_bytes(b'{"pause": 7')
    refused = run(conf, *words)
    assert isinstance(refused.exception, ControlsCorruptError)
    assert "set them again with `trimtab pause`" in str(refused.exception)
    assert stored.read_bytes() == b'{"pause": 7'
    assert run(conf, "pause").exit_code == 0
    assert run(conf, *words).exit_code == 0


@pytest.mark.parametrize("damage", [b"", b"{", b"null", b'{"type": "decision", "cluster": "lab"}', b"\xff" * 100])
def test_stop_all_fences_whatever_the_journal_holds(conf: Path, damage: bytes) -> None:
    name = read_settings(conf).cluster.name
    journal = journal_in(conf.parent / "log", cluster=name)
    journal.open()
    journal.begin_epoch(7)
    journal.append(entry(T), epoch=7, issued_at_ms=T, before_commit=lambda: None)
    newest = max((conf.parent / "log" / "journal").iterdir())
    headers = newest.read_bytes().partition(b"\n")[0]
    newest.write_bytes(headers + b"\n" + damage)
    found = run(conf, "stop-all", "--json")
    assert found.exit_code == 0, found.output
    answer = json.loads(found.stdout)
    assert answer["paused"]
    assert answer["epoch"] == 8
    assert newest.read_bytes() == headers + b"\n" + damage


@pytest.mark.parametrize(
    ("words", "printer"), [(["status"], "print_status"), (["status", BUNDLE], "print_fields")], ids=["all", "bundle"]
)
def test_an_answer_is_printed_once_the_bar_is_gone(
    conf: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], printer: str
) -> None:
    shown = []
    monkeypatch.setattr(status, printer, lambda *_, **__: shown.append(list(long_work._UNDER_WAY)))
    assert run(conf, *words).exit_code == 0
    assert shown == [[]]


def test_what_is_no_bundle_is_a_usage_error(conf: Path) -> None:
    answer = run(conf, "status", "tenant/ns")
    assert answer.exit_code == 2
    assert "Error: Invalid value for bundle:" in answer.output


def test_a_file_where_the_log_should_be_is_an_error(conf: Path, tmp_path: Path) -> None:
    (tmp_path / "log").touch()
    error = run(conf, "status").exception
    assert isinstance(error, SettingsError)
    assert str(error) == f"log.folder.path = {str(tmp_path / 'log')!r}: {tmp_path / 'log'} is not a folder"


@pytest.mark.parametrize("command", ["pause", "stop-all"])
@pytest.mark.parametrize("odd", ["x" * 100_000, "two\nlines \x1b[2J", "latin-1: \udce4", "\0"])
def test_whatever_is_pasted_as_a_reason_or_a_name_the_command_works(conf: Path, command: str, odd: str) -> None:
    found = run(conf, command, "--reason", odd, "--by", odd)
    assert found.exit_code == 0, found.output
    controls, _ = FileControls(conf.parent / "election", cluster="lab").read()
    (pause,) = controls.pauses
    assert (pause.reason + pause.by).isprintable()


@pytest.mark.parametrize(
    "words",
    [
        ["mode", "dry_run"],
        ["resume"],
        ["release", "--all"],
        ["take-over", "--yes"],
        ["apply", "--proposal", "0" * 8],
    ],
    ids=lambda words: words[0],
)
def test_a_key_is_refused_where_nothing_is_signed(conf: Path, words: list[str]) -> None:
    answer = run(conf, *words, "--key", "ada.pem")
    assert answer.exit_code == 2
    assert "nothing is signed" in " ".join(answer.output.split())
    assert run(conf, "controls", "--json").stdout == ""


def test_what_was_excluded_is_included_by_the_name_that_excluded_it_and_once_in_the_history(conf: Path) -> None:
    name = "tenant/ns/0x00000000_0x4000000A"
    assert run(conf, "exclude", name).exit_code == 0
    assert run(conf, "include", name, name).exit_code == 0
    newest = json.loads(run(conf, "controls", "--json").stdout.splitlines()[0])
    assert (newest["action"], newest["detail"]) == ("include", name.lower())


@pytest.mark.parametrize("command", ["include", "release"])
def test_of_ten_thousand_wrong_names_the_error_says_some_and_how_many(conf: Path, command: str) -> None:
    answer = run(conf, command, *(f"tenant/wrong-{number}" for number in range(10_000)))
    assert answer.exit_code == 1
    assert "tenant/wrong-0, " in str(answer.exception)
    assert "and 9990 more is not" in str(answer.exception)
    assert len(str(answer.exception)) < 500
