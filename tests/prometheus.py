"""A real Prometheus for tests: the one on the PATH, or Debian's package, unpacked without installing it."""

import fcntl
import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pytest
import urllib3

from controller.adapters.disk.jars import FOLDER
from controller.lab.servers import free_port

_PACKAGE: Final = FOLDER / "prometheus"
_ANSWER_SECONDS: Final = 10.0
_START_SECONDS: Final = 60.0
_FETCH_SECONDS: Final = 120


class Prometheus:
    """What a running server says."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}"
        self._http = urllib3.PoolManager(timeout=_ANSWER_SECONDS, retries=False)

    def is_ready(self) -> bool:
        """Whether it answers."""
        try:
            return self._http.request("GET", f"{self._url}/-/ready").status == 200
        except urllib3.exceptions.HTTPError:
            return False

    def get(self, path: str) -> Any:
        """The data that it answers under /api/v1/*path*; an error of it fails the test."""
        answer = json.loads(self._http.request("GET", f"{self._url}/api/v1/{path}").data)
        assert answer["status"] == "success", f"{path}: {answer}"
        return answer["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        """What *expression* has now: series with their values."""
        found: list[dict[str, Any]] = self.get(f"query?query={quote(expression)}")["result"]
        return found


@contextmanager
def prometheus(folder: Path, config: str) -> Iterator[Prometheus]:
    """A server with this *config*, its data in *folder*.  The test is skipped where there is none to be had."""
    program = program_of("prometheus")
    file, port = folder / "prometheus.yml", free_port()
    file.write_text(config, encoding="utf-8")
    words = [program, f"--config.file={file}", f"--storage.tsdb.path={folder / 'data'}"]
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen([*words, f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)
    try:
        server, deadline = Prometheus(port), time.monotonic() + _START_SECONDS
        while not server.is_ready():
            assert process.poll() is None, (folder / "prometheus.log").read_text()
            assert time.monotonic() < deadline, "Prometheus does not answer"
            time.sleep(0.1)
        yield server
    finally:
        process.terminate()
        process.wait(30)


def program_of(name: str) -> str:
    """Where the program *name* of Prometheus' package is.  The test is skipped where there is none to be had."""
    found = _program(name)
    if found is None:
        pytest.skip(f"no {name} on the PATH, and Debian's package could not be fetched")
    return found


def _program(name: str) -> str | None:
    unpacked = _PACKAGE / "usr" / "bin" / name
    if found := shutil.which(name):
        return found
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "prometheus.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another worker may be unpacking it
        if not unpacked.exists() and shutil.which("apt-get") and shutil.which("dpkg"):
            _unpack()
    return str(unpacked) if unpacked.exists() else None


def _unpack() -> None:
    """Fetch Debian's package and unpack it; installing it would start a server that listens on all addresses."""
    _PACKAGE.mkdir(parents=True, exist_ok=True)
    for update in (False, True):
        if update:
            subprocess.run(["apt-get", "update", "-qq"], timeout=_FETCH_SECONDS, capture_output=True, check=False)
        words = ["apt-get", "download", "-qq", "prometheus"]
        subprocess.run(words, cwd=_PACKAGE, timeout=_FETCH_SECONDS, capture_output=True, check=False)
        if found := sorted(_PACKAGE.glob("*.deb")):
            subprocess.run(["dpkg", "-x", str(found[-1]), str(_PACKAGE)], timeout=_FETCH_SECONDS, check=False)
            return
