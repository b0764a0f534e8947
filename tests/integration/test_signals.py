"""What a signal does to a command; each case is a small process of its own."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from controller.adapters.network.waiting import wait_for
from controller.adapters.process.process_tree import descendants

pytestmark = pytest.mark.integration

_HEAD = "import os, subprocess, time, logging; from controller.adapters.process import signals\n"
_READY = "print('ready', flush=True); "
#: Who runs the tests may have started them by nohup, which what they start inherits.
_WITH_A_TERMINAL = "import signal; signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"
#: A process that has not ended by then does not end.
_END_SECONDS = 60.0


class Played:
    """A process that runs a few lines of Python, which print ``ready`` first."""

    def __init__(self, lines: str, started_by: Sequence[str]) -> None:
        beginning = _HEAD if "nohup" in started_by else _WITH_A_TERMINAL + _HEAD
        command = [*started_by, sys.executable, "-u", "-c", beginning + lines]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def told(self, *numbers: signal.Signals) -> tuple[int, str]:
        """Exit code and output after these signals."""
        for number in numbers:
            self.process.send_signal(number)
            time.sleep(0.05)
        assert self.process.stdout is not None
        too_long = threading.Timer(_END_SECONDS, self.process.kill)
        too_long.start()
        output = self.process.stdout.read()  # not communicate: it passes over what was read ahead
        too_long.cancel()
        return self.process.wait(30), output


@contextmanager
def played(lines: str, started_by: Sequence[str] = ()) -> Iterator[Played]:
    process = Played(lines, started_by)
    try:
        yield process
    finally:
        process.process.kill()
        process.process.wait()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_work_that_returns_when_it_is_told_ends_in_order(number: signal.Signals) -> None:
    with played(f"def work(until):\n    {_READY}until.wait(); print('done')\nsignals.run_until_told(work)") as process:
        code, output = process.told(number)
    assert code == 0
    assert output.splitlines()[0] == "done"
    assert f"ended: {number.name}, in order" in output


def test_a_command_that_was_started_by_nohup_goes_on_when_its_terminal_ends() -> None:
    work = f"def work(until):\n    {_READY}until.wait(1.0); print(until.is_set())\nsignals.run_until_told(work)"
    with played(work, ["nohup"]) as process:
        code, output = process.told(signal.SIGHUP)
    assert (code, output) == (0, "False\n")


def test_a_command_whose_terminal_ends_while_it_is_loaded_ends_too() -> None:
    loading = f"def load(exit_code):\n    {_READY}time.sleep(60)\nsignals.end_at_once = load\n"
    with played(
        f"{loading}import sys; from controller.cli.main import main\nsys.argv = ['', 'plan']; main()"
    ) as process:
        assert process.told(signal.SIGHUP) == (130, "trimtab: SIGHUP: stopping\ntrimtab: ended: SIGHUP\n")


def test_work_that_does_not_return_is_broken_off_when_its_patience_ends() -> None:
    work = f"def work(until):\n    {_READY}time.sleep(60)\nsignals.run_until_told(work)"
    with played(f"signals._PATIENCE_SECONDS = 0.1\n{work}") as process:
        began = time.monotonic()
        code, output = process.told(signal.SIGTERM)
    assert time.monotonic() - began < 10
    assert code == 0
    assert "unfinished work is repeated" in output


def test_a_second_signal_ends_the_process_at_once() -> None:
    work = f"def work(until):\n    {_READY}time.sleep(600)\nsignals.run_until_told(work)"
    with played(f"signals._PATIENCE_SECONDS = 600\n{work}") as process:
        code, output = process.told(signal.SIGINT, signal.SIGTERM)
    assert code == 0
    assert "SIGINT, SIGTERM again" in output


_FINISHES = f"def work(until):\n    {_READY}until.wait(); time.sleep(0.5); print('done')\nsignals.run_until_told(work)"


@pytest.mark.parametrize(
    ("started_by", "numbers"), [((), (signal.SIGTERM, signal.SIGTERM)), (("timeout", "600"), (signal.SIGTERM,))]
)
def test_a_signal_that_is_sent_twice_at_once_as_timeout_does_lets_the_work_finish(
    started_by: Sequence[str], numbers: Sequence[signal.Signals]
) -> None:
    with played(_FINISHES, started_by) as process:
        code, output = process.told(*numbers)
    assert code == 0
    assert output.splitlines()[0] == "done"
    assert "ended: SIGTERM, in order" in output


def test_the_same_signal_later_ends_the_process_at_once() -> None:
    work = f"def work(until):\n    {_READY}time.sleep(600)\nsignals.run_until_told(work)"
    with played(f"signals._PATIENCE_SECONDS = 600; signals._TWICE_SECONDS = 0.01\n{work}") as process:
        code, output = process.told(signal.SIGTERM, signal.SIGTERM)
    assert code == 0
    assert "SIGTERM, SIGTERM again" in output


def test_a_block_that_is_interrupted_twice_at_once_stops_what_it_started() -> None:
    stop = "time.sleep(0.5); print('stopped')"
    with played(f"with signals.interrupts():\n  try:\n    {_READY}time.sleep(60)\n  finally: {stop}") as process:
        code, output = process.told(signal.SIGINT, signal.SIGINT)
    assert code == 0
    assert output == "trimtab: SIGINT: stopping\nstopped\ntrimtab: ended: SIGINT, in order\n"


def test_work_that_fails_while_it_stops_is_no_failure_and_leaves_one_line() -> None:
    work = f"def work(until):\n    {_READY}until.wait(); raise ValueError('gone')\n"
    with played(f"{work}signals.run_until_told(work)") as process:
        code, output = process.told(signal.SIGTERM)
    assert code == 0
    assert "while stopping: gone" in output
    assert "Traceback" not in output


def test_work_that_fails_by_itself_raises_what_it_failed_with() -> None:
    with played(f"def work(until):\n    {_READY}raise ValueError('gone')\nsignals.run_until_told(work)") as process:
        code, output = process.told()
    assert code == 1
    assert output.rstrip().endswith("ValueError: gone")


def test_work_that_ends_by_itself_leaves_signals_as_they_were() -> None:
    with played(f"signals.run_until_told(lambda until: None); {_READY}time.sleep(60)") as process:
        assert process.told(signal.SIGTERM)[0] == -signal.SIGTERM


def test_what_the_process_has_started_ends_with_it() -> None:
    work = (
        "def work(until):\n"
        "    subprocess.Popen(['sh', '-c', 'trap \"\" TERM; sleep 600 & sleep 600'], start_new_session=True,"
        " stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\n"
        f"    time.sleep(0.2); {_READY}time.sleep(600)\n"
        "signals.run_until_told(work)"
    )
    with played(work) as process:
        below = descendants(process.process.pid)
        assert len(below) == 3
        assert process.told(signal.SIGTERM, signal.SIGINT)[0] == 0
    assert not [pid for pid in below if Path(f"/proc/{pid}").exists() and pid in descendants(1)]


def test_a_process_whose_end_is_forced_leaves_nothing_stopped_behind() -> None:
    # As on a busy machine: what it has started is stopped, and not killed yet, when the time is over.
    slow = (
        "from controller.adapters.process import process_tree\n"
        "look = process_tree.descendants\n"
        "process_tree.descendants = lambda pid: (time.sleep(0.3), look(pid))[1]\n"
    )
    start = "subprocess.Popen(['sleep', '600'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\n"
    mask = "import ctypes; mask = ctypes.create_string_buffer(128)\n"
    with played(f"{slow}signals.end_at_once()\n{start}{mask}{_READY}ctypes.CDLL(None).sigwait(mask, mask)") as process:
        [below] = descendants(process.process.pid)
        assert process.told(signal.SIGTERM)[0] == 0
    wait_for(lambda: below not in descendants(1), 10.0, every=0.05)


def test_a_signal_ends_a_process_that_is_being_loaded_with_exit_code_0() -> None:
    with played(f"signals.end_at_once(); {_READY}time.sleep(60)") as process:
        assert process.told(signal.SIGTERM) == (0, "trimtab: SIGTERM: stopping\ntrimtab: ended: SIGTERM\n")


def test_a_command_that_a_signal_breaks_off_ends_with_the_exit_code_of_shells() -> None:
    with played(f"signals.end_at_once(signals.INTERRUPTED); {_READY}time.sleep(60)") as process:
        assert process.told(signal.SIGINT) == (130, "trimtab: SIGINT: stopping\ntrimtab: ended: SIGINT\n")


def test_a_main_thread_in_a_call_that_blocks_keeps_no_command_from_ending() -> None:
    # Python's own handler runs in the main thread alone, and here that never comes back from C.
    blocked = "import ctypes; ctypes.CDLL(None).sigwait"
    lines = f"signals.end_at_once(130); {blocked}; mask = ctypes.create_string_buffer(128); {_READY}"
    with played(f"{lines}ctypes.CDLL(None).sigwait(mask, mask)") as process:
        assert process.told(signal.SIGINT) == (130, "trimtab: SIGINT: stopping\ntrimtab: ended: SIGINT\n")


def test_a_block_that_does_not_stop_when_it_is_interrupted_is_ended_all_the_same() -> None:
    never = f"with signals.interrupts(130):\n  try:\n    {_READY}time.sleep(60)\n  finally: time.sleep(60)"
    with played(f"signals._LIMIT_SECONDS = 0.1; signals.end_at_once(130)\n{never}") as process:
        code, output = process.told(signal.SIGINT)
    assert (code, output) == (130, "trimtab: SIGINT: stopping\ntrimtab: ended: SIGINT\n")


def test_output_that_nobody_takes_keeps_no_command_from_ending() -> None:
    full = "[os.write(1, b'x' * 65536) for _ in range(64)]"
    with played(f"signals.end_at_once(130); {_READY}{full}") as process:
        time.sleep(0.1)
        process.process.send_signal(signal.SIGINT)
        assert process.process.wait(30) == 130


#: Each is what keeps a process from coming to the end of its own end.
_HINDRANCES = {
    "output that nobody takes": "[os.write(1, b'x' * 65536) for _ in range(64)]",
    "a log that waits": (
        "logging.basicConfig(); lock = logging.getLogger().handlers[0].lock\n"
        "import threading; threading.Thread(target=lambda: (lock.acquire(), time.sleep(60)), daemon=True).start()\n"
        "time.sleep(60)"
    ),
    "a machine that is slow to list processes": (
        "from controller.adapters.process import process_tree\n"
        "look = process_tree.descendants\n"
        "process_tree.descendants = lambda pid: (time.sleep(0.5), look(pid))[1]\n"
        "with signals.interrupts():\n  try: time.sleep(60)\n  finally: time.sleep(60)"
    ),
}


@pytest.mark.parametrize("hindrance", _HINDRANCES.values(), ids=_HINDRANCES)
def test_what_a_process_has_started_ends_with_it_also_where_its_end_is_forced(hindrance: str) -> None:
    start = "subprocess.Popen(['sleep', '600'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\n"
    with played(f"signals.end_at_once(130)\n{start}{_READY}\n{hindrance}") as process:
        [below] = descendants(process.process.pid)
        time.sleep(0.2)
        process.process.send_signal(signal.SIGINT)
        process.process.wait(30)
    wait_for(lambda: below not in descendants(1), 10.0, every=0.05)


def test_what_is_to_be_cleaned_up_is_when_a_signal_ends_the_process(tmp_path: Path) -> None:
    lines = f"signals.end_at_once(); signals.clean_up_at_end(lambda: os.rmdir({str(tmp_path / 'x')!r})); "
    os.mkdir(tmp_path / "x")
    with played(f"{lines}{_READY}time.sleep(60)") as process:
        process.told(signal.SIGINT)
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("exit_code", [0, 130])
def test_a_block_that_is_interrupted_may_stop_what_it_started_and_ends_the_process(exit_code: int) -> None:
    block = f"with signals.interrupts({exit_code}):\n  try:\n    {_READY}time.sleep(60)\n  finally: print('stopped')\n"
    with played(f"{block}print('never')") as process:
        code, output = process.told(signal.SIGINT)
    assert code == exit_code
    assert output == "trimtab: SIGINT: stopping\nstopped\ntrimtab: ended: SIGINT, in order\n"


def test_an_error_that_leaves_an_interrupted_block_is_said_and_is_no_failure() -> None:
    block = f"with signals.interrupts():\n  try:\n    {_READY}time.sleep(60)\n  finally: raise ValueError('gone')"
    with played(block) as process:
        code, output = process.told(signal.SIGTERM)
    told = ["SIGTERM: stopping", "while stopping: gone", "ended: SIGTERM, in order"]
    assert (code, output) == (0, "".join(f"trimtab: {line}\n" for line in told))


def test_a_block_that_ends_by_itself_leaves_signals_as_they_were() -> None:
    with played(f"with signals.interrupts(): pass\n{_READY}time.sleep(60)") as process:
        assert process.told(signal.SIGTERM)[0] == -signal.SIGTERM
