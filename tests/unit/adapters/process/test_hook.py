"""A command of the operator runs without a shell, within its time, and ends with all that it has started."""

import sys
import time
from pathlib import Path

import pytest

from controller.adapters.network.waiting import wait_for
from controller.adapters.process import hook
from controller.adapters.process.hook import run_hook

_SECONDS = 20.0
_START_ANOTHER = 'sleep 600 & echo $! > "$1"; wait'


def ignore() -> None:
    """Nothing happens meanwhile."""


def test_a_command_finds_the_broker_in_its_environment_and_prints_to_standard_error(
    capfd: pytest.CaptureFixture[str],
) -> None:
    program = "import os; print('restarting', os.environ['BROKER'])"
    assert run_hook([sys.executable, "-c", program], {"BROKER": "broker-1:8080"}, _SECONDS, ignore) == ""
    assert capfd.readouterr() == ("", "restarting broker-1:8080\n")


def test_its_arguments_are_no_shells(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_hook(["echo", "$BROKER", "a; b", "*"], {"BROKER": "x"}, _SECONDS, ignore) == ""
    assert capfd.readouterr().err == "$BROKER a; b *\n"


@pytest.mark.parametrize(
    ("script", "why"), [("exit 3", "ended with exit code 3"), ("kill -9 $$", "was ended by signal 9")]
)
def test_why_it_failed_is_said(script: str, why: str) -> None:
    assert run_hook(["sh", "-c", script], {}, _SECONDS, ignore) == why


def test_a_program_that_cannot_be_run_is_named_without_a_trace(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "restart"
    script.write_text("echo no interpreter is named\n", encoding="utf-8")
    script.chmod(0o755)
    assert run_hook([str(script)], {}, _SECONDS, ignore) == "ended with exit code 126"
    assert capfd.readouterr().err == f"trimtab: {script} cannot be run: Exec format error\n"


def test_it_is_ended_with_all_that_it_started_when_its_time_is_over(tmp_path: Path) -> None:
    began, started = time.monotonic(), tmp_path / "pid"
    why = run_hook(["sh", "-c", _START_ANOTHER, "sh", str(started)], {}, 0.5, ignore)
    assert why == "took longer than 0.5 s, and was ended"
    assert time.monotonic() - began < _SECONDS
    state = Path(f"/proc/{int(started.read_text())}/stat")
    wait_for(
        lambda: not state.exists() or state.read_text().rpartition(")")[2].split()[0] in "ZX", _SECONDS, every=0.01
    )


def test_what_keeps_the_plan_in_force_is_called_while_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook, "_MEANWHILE_SECONDS", 0.0)
    calls = list[int]()
    assert run_hook(["sleep", "0.5"], {}, _SECONDS, lambda: calls.append(1)) == ""
    assert calls


def test_it_reads_nothing() -> None:
    assert run_hook(["cat"], {}, _SECONDS, ignore) == ""
