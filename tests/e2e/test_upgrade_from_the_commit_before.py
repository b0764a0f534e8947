"""The commit before as the release that runs, and this one as the next: a rolling upgrade of the controller."""

import os
import signal
import subprocess
import sys
import tarfile
import zipfile
from itertools import count
from pathlib import Path
from typing import Final

import pytest

from controller.adapters.disk.jars import FOLDER
from controller.adapters.disk.places import CACHE
from controller.model.journal import JournalEntry
from controller.settings.trimtab_toml import Settings, read_settings
from controller.simulator.cluster import ClusterShape, ModelledCluster
from controller.simulator.demo.settings import demo_conf
from controller.simulator.lock_step import LockStep
from tests.supply_chain.materials import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.extended]

_START_MS: Final = 1_735_689_600_000
_BEFORE_AND_AFTER: Final = 3
_PROGRAM: Final = "from controller.cli.main import main; main()"


def _modules(commit: str, folder: Path) -> Path:
    """The modules of the wheel of *commit*."""
    sources, archive, modules = folder / "sources", folder / "sources.tar", folder / "modules"
    subprocess.run(["git", "archive", "-o", str(archive), commit], cwd=ROOT, check=True)
    with tarfile.open(archive) as opened:
        opened.extractall(sources)
    words = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", str(folder), "."]
    subprocess.run(words, cwd=sources, env=os.environ | {CACHE: str(FOLDER)}, check=True, capture_output=True)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        wheel.extractall(modules)
    return modules


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    words = ["git", "rev-parse", "--quiet", "--verify", "HEAD~1"]
    if subprocess.run(words, cwd=ROOT, capture_output=True, check=False).returncode:
        pytest.skip("this clone has no commit before")
    return _modules("HEAD~1", tmp_path_factory.mktemp("before"))


@pytest.fixture(scope="module")
def after(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _modules("HEAD", tmp_path_factory.mktemp("after"))


class _Controllers:
    """The processes of `trimtab run` of one cluster."""

    def __init__(self, conf: Path) -> None:
        self._conf, self._running = conf, list[subprocess.Popen[bytes]]()

    def start(self, modules: Path) -> None:
        """Start one of the wheel with *modules*."""
        log = self._log(len(self._running))
        environment = os.environ | {"PYTHONPATH": str(modules), CACHE: str(FOLDER)}
        words = [sys.executable, "-c", _PROGRAM, "run", "--conf", str(self._conf)]
        with log.open("wb") as out:
            self._running.append(
                subprocess.Popen(words, cwd=self._conf.parent, env=environment, stdout=out, stderr=subprocess.STDOUT)
            )

    def end(self, number: int) -> int:
        """Have the one that was started as *number* end as a service manager does; its exit code."""
        self._running[number].send_signal(signal.SIGTERM)
        return self._running[number].wait(60)

    def output(self, number: int) -> str:
        return self._log(number).read_text(encoding="utf-8")

    def is_alive(self) -> bool:
        """See Controller."""
        return any(each.poll() is None for each in self._running)

    def join(self, timeout: float | None = None) -> None:
        """See Controller: whatever still runs is killed."""
        for each in self._running:
            each.kill()
            each.wait(timeout)

    def _log(self, number: int) -> Path:
        return self._conf.with_name(f"output-{number}")


def _play(settings: Settings, conf: Path, first: Path, then: Path | None) -> tuple[list[JournalEntry], str]:
    """The decisions of as many intervals before *then* takes over from *first* as after it, and what it printed."""
    cluster = ModelledCluster(ClusterShape(), seed=1, name=settings.cluster.name)
    lock_step, controllers = LockStep(cluster, settings), _Controllers(conf)
    times = count(_START_MS + settings.intervals.period_ms, settings.intervals.period_ms)
    entries = []
    controllers.start(first)
    try:
        for number in range(2 * _BEFORE_AND_AFTER):
            if number == _BEFORE_AND_AFTER and then is not None:
                controllers.start(then)  # stands by
                assert controllers.end(0) == 0, controllers.output(0)
            entry, _ = lock_step.play(next(times), controllers)
            entries.append(entry)
            cluster.advance()
        last = 0 if then is None else 1
        assert controllers.end(last) == 0, controllers.output(last)
        return entries, controllers.output(last)
    finally:
        controllers.join()


def test_the_next_release_goes_on_with_the_checkpoint_the_journal_and_the_settings(
    before: Path, after: Path, tmp_path: Path
) -> None:
    played = {}
    for name, then in (("upgraded", after), ("not upgraded", None)):
        conf = demo_conf(tmp_path / name)
        played[name], output = _play(read_settings(conf), conf, before, then)
        assert "ERROR" not in output, output
    decided = {name: [_moves(each) for each in entries] for name, entries in played.items()}
    assert decided["upgraded"] == decided["not upgraded"]
    assert any(decided["upgraded"][_BEFORE_AND_AFTER:])


def _moves(entry: JournalEntry) -> list[tuple[str, str, str]]:
    return [(one.action, one.bundle, one.destination) for one in entry.decision.commands]
