"""Commands as processes: real ones, on a folder, with a played broker."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from controller.adapters.process.process_tree import descendants
from controller.lab.processes import Processes
from controller.model.errors import TrimtabError
from tests.admin_servers import admin_servers

pytestmark = pytest.mark.integration


def write_conf(folder: Path, broker: str) -> Path:
    conf = folder / "trimtab.toml"
    conf.write_text(
        f"""
        cluster.name = "demo"
        election = {{ kind = "file", path = "election" }}
        checkpoint.path = "checkpoint"
        log = {{ kind = "folder", folder = {{ path = "log" }} }}
        pulsar.admin_url = ["http://{broker}"]
        """,
        encoding="utf-8",
    )
    return conf


def wait_for(path: Path, processes: Processes) -> None:
    deadline = time.monotonic() + 60
    while not path.exists():
        processes.check()
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_command_runs_till_it_is_stopped_and_ends_in_order(tmp_path: Path) -> None:
    with admin_servers(1) as [broker], Processes(write_conf(tmp_path, broker.name), tmp_path) as processes:
        processes.start("execute")
        processes.wait_for("execute", "")
        wait_for(tmp_path / "log" / "executor", processes)
        assert processes.stop() == {"execute": 0}
        assert processes.stop() == {}


def test_a_command_that_ends_is_reported_with_its_last_lines(tmp_path: Path) -> None:
    with Processes(tmp_path / "nowhere.toml", tmp_path) as processes:
        processes.start("execute")
        with pytest.raises(TrimtabError, match=r"trimtab execute has ended; .*execute\.log ends with\n.*nowhere\.toml"):
            processes.wait_for("execute", "it is never said")


#: Starts an executor, prints its process, and waits.
_STARTER = """
import sys, time
from pathlib import Path
from controller.adapters.process.process_tree import descendants
from controller.lab.processes import Processes
processes = Processes(Path(sys.argv[1]), Path(sys.argv[1]).parent)
processes.start("execute")
print(processes.pid("execute"), flush=True)
time.sleep(600)
"""


def test_a_command_ends_with_the_process_that_started_it_however_that_ends(tmp_path: Path) -> None:
    with admin_servers(1) as [broker]:
        conf = write_conf(tmp_path, broker.name)
        with subprocess.Popen(
            [sys.executable, "-c", _STARTER, str(conf)], stdout=subprocess.PIPE, text=True
        ) as starter:
            assert starter.stdout is not None
            executor = int(starter.stdout.readline())
            deadline = time.monotonic() + 60
            while not (tmp_path / "log" / "executor").exists():
                assert time.monotonic() < deadline
                time.sleep(0.05)
            assert executor in descendants(starter.pid)
            starter.kill()
        while executor in descendants(1):
            assert time.monotonic() < deadline
            time.sleep(0.05)
