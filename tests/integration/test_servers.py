"""Starting and stopping servers from the command line, on a real ZooKeeper."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from controller.adapters.network.waiting import wait_for
from controller.lab.serve import app
from controller.lab.servers import ZooKeeperServer, zookeeper_server
from controller.model.errors import TrimtabError

pytestmark = pytest.mark.integration


def run(action: str, folder: Path, port: int = 0) -> Result:
    return CliRunner().invoke(app, ["zookeeper", action, "--dir", str(folder), "--port", str(port)])


def test_a_server_outlives_its_start_and_is_stopped_from_its_folder(tmp_path: Path) -> None:
    started = run("start", tmp_path)
    assert started.exit_code == 0
    pid = ZooKeeperServer(tmp_path).pid()
    try:
        assert f"zookeeper at 127.0.0.1:{port_in(tmp_path)}, pid {pid}, log {tmp_path}" in started.stdout
        again = run("start", tmp_path)
        assert again.exit_code == 1
        assert f"is already running in {tmp_path}, pid {pid}" in again.stderr
    finally:
        stopped = run("stop", tmp_path)
    assert stopped.exit_code == 0
    assert ZooKeeperServer(tmp_path).pid() is None
    without = run("stop", tmp_path)
    assert without.exit_code == 0
    assert "does not run" in without.stdout


def port_in(folder: Path) -> str:
    lines = (folder / "zoo.cfg").read_text(encoding="utf-8").splitlines()
    return next(line.removeprefix("clientPort=") for line in lines if line.startswith("clientPort="))


def test_a_pid_that_belongs_to_another_process_by_now_is_left_alone(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as other:
        (tmp_path / "pid").write_text(f"{other.pid}\n", encoding="ascii")
        assert run("stop", tmp_path).exit_code == 0
        assert other.poll() is None
        other.kill()


def test_a_port_that_is_taken_is_named(zookeeper: ZooKeeperServer, tmp_path: Path) -> None:
    with pytest.raises(TrimtabError, match=f"port {zookeeper.port} is taken"):
        ZooKeeperServer(tmp_path, zookeeper.port).start()


def test_a_server_that_cannot_start_shows_the_end_of_its_log(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("not a folder", encoding="utf-8")
    with pytest.raises(TrimtabError, match=rf"zookeeper ended with \d+; {tmp_path}/server.log ends with\n"):
        ZooKeeperServer(tmp_path).start()


#: Starts a server in the folder of its argument for the length of a block, and never leaves that.
_BLOCK = """
import sys, time
from pathlib import Path
from controller.lab.servers import zookeeper_server
with zookeeper_server(Path(sys.argv[1])) as server:
    print(server.pid(), flush=True)
    time.sleep(600)
"""


def test_the_server_of_a_block_ends_with_a_process_that_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", _BLOCK, str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert int(process.stdout.readline()) == ZooKeeperServer(tmp_path).pid()
        process.kill()
    wait_for(lambda: ZooKeeperServer(tmp_path).pid() is None, 20, every=0.05)


def test_the_end_of_the_block_ends_the_server(tmp_path: Path) -> None:
    with zookeeper_server(tmp_path) as server:
        pid = server.pid()
        assert pid is not None
        os.kill(pid, 0)
    assert server.pid() is None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
