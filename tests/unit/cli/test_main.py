"""How the process of a command ends."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

#: A command that fails, as one does that has lost leadership, while a thread is in a call of pulsar-client.
_FAILS_IN_A_CALL = """
import threading, time
import pulsar
from controller.cli import app, main

client = pulsar.Client("pulsar://127.0.0.1:1", pulsar.AuthenticationToken("a"), logger=pulsar.FileLogger(
    pulsar.LoggerLevel.Error, "/dev/null"), operation_timeout_seconds=60)
calls = threading.Thread(target=client.create_producer, args=["persistent://a/b/c"], daemon=True)

def fails():
    calls.start()
    time.sleep(0.2)
    assert calls.is_alive()
    print("said before the end")
    raise SystemExit(75)

app.main = fails
main.main()
"""

#: A command that prints, complains, and opens a file.
_OPENS = """
import os, sys
from controller.cli import app, main

def opens():
    with open(sys.argv[1], "w") as file:
        print("for the output")
        print("for the log", file=sys.stderr, flush=True)
        os.write(1, b"for a child's output")
        sys.stdout.flush()
        file.write("for the file")

app.main = opens
main.main()
"""

_PRINTS = """
import sys
from controller.cli import app, main

def prints():
    print("lost")
    sys.exit(0)

app.main = prints
main.main()
"""


@pytest.mark.slow
def test_the_exit_code_of_a_failed_command_is_its_own_whatever_pulsar_client_is_doing() -> None:
    ended = subprocess.run([sys.executable, "-c", _FAILS_IN_A_CALL], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (75, "said before the end\n"), ended.stderr


def test_a_command_that_cannot_write_its_last_words_does_not_end_as_a_success() -> None:
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with open("/dev/full", "w") as full:
        ended = subprocess.run([sys.executable, "-c", _PRINTS], stdout=full, env=buffered, timeout=60)
    assert ended.returncode == 120


@pytest.mark.slow
def test_where_its_output_is_closed_a_command_works_and_nothing_is_printed_into_its_files(tmp_path: Path) -> None:
    closed = 'exec "$@" >&- 2>&-'
    file = tmp_path / "file"
    ended = subprocess.run(["sh", "-c", closed, "sh", sys.executable, "-c", _OPENS, str(file)], timeout=60)
    assert (ended.returncode, file.read_text()) == (0, "for the file")
