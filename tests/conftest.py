"""Real servers for the whole test run, each started when the first test asks for it; how hard properties try."""

import gc
import os
import re
import signal
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
import typer.main
import typer.testing
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadGroupScheduling

from controller.adapters.long_work import set_quiet
from controller.lab.pulsar_release import USUAL, PulsarRelease, find_release
from controller.lab.pulsar_server import PulsarCluster
from controller.lab.servers import KafkaServer, ZooKeeperServer
from controller.settings.redaction import SECRETS, Redactor
from tests.conformance.summary import ConformanceSummary
from tests.effort import PLAIN, THOROUGH
from tests.shared_servers import begin_run, end_run, shared
from tests.xdist_groups import FileOrGroupScheduling, arrange

# All that collecting makes stays: the garbage collector never looks at it (pytest_collection_finish).
gc.disable()

# Their asserts are to say as much as those of test files.
pytest.register_assert_rewrite(
    *(f"tests.contracts.{port}" for port in ("collectors", "controls", "journal", "leadership", "midway"))
)

# Busy machines make any deadline a matter of luck.  scripts/test asks for the thorough profile: many examples, the same
# ones each time, so that a commit passes always or never.  Plain pytest tries a few new ones each time.
_PATIENT: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("quick", max_examples=2, derandomize=False, **_PATIENT)
settings.register_profile(THOROUGH, max_examples=80, derandomize=True, **_PATIENT)
settings.register_profile("search", max_examples=80, derandomize=False, **_PATIENT)
settings.load_profile("quick")

# Typer makes the commands of an application anew whenever a test calls one: that takes longer than most of them.
vars(typer.testing)["_get_command"] = cache(typer.main.get_command)

# No test can see whether a file outlives a power cut, and each answer of the disk takes 2 to 10 ms.  fstat refuses what
# fsync would.  Processes that tests start do sync.
vars(os)["fsync"] = os.fstat

_TESTS: Final = Path(__file__).parent
#: Folders in which every test has one of these marks.
_NOT_PLAIN: Final = {_TESTS / "integration", _TESTS / "e2e"}
#: In the text of a file whose tests all have one.
_ALL_MARKED: Final = re.compile(r"^pytestmark = pytest\.mark\.(slow|extended)$", re.MULTILINE)
#: What tests have left running, to be named at the end.
_LEFT = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("trimtab").addoption(
        "--update-golden", action="store_true", help="write the decisions in tests/data/golden anew"
    )
    parser.getgroup("trimtab").addoption(
        "--pulsar", metavar="VERSION", help="only tests on a real Pulsar, and on this release: 4.0 or 5.0"
    )


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist starts workers
def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(ConformanceSummary())
    # The width of the terminal is no part of a test.
    os.environ.pop("COLUMNS", None)
    # SIGTERM ends the run and its servers, too, as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if not _is_worker(config):
        begin_run()
    if config.args_source is config.ArgsSource.TESTPATHS and not config.option.markexpr:
        config.option.markexpr = PLAIN


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One more than there are processors, as some tests wait.  None where files are named: each imports all of them."""
    return (os.cpu_count() or 1) + 1 if config.args_source is config.ArgsSource.TESTPATHS else 0


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadGroupScheduling:
    return FileOrGroupScheduling(config, log)


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def _run_folder(config: pytest.Config) -> Path:
    """The temporary folder of the run; each worker's own lies in it."""
    folder: Path = config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
    return folder.parent if _is_worker(config) else folder


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Plain pytest does not read what it would run nothing of; None: others decide."""
    if config.option.markexpr != PLAIN:
        return None
    is_marked = collection_path.suffix == ".py" and _ALL_MARKED.search(collection_path.read_text(encoding="utf-8"))
    return True if is_marked or collection_path in _NOT_PLAIN else None


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Order and group the tests; with --pulsar leave out those that no release of Pulsar makes a difference to."""
    if config.getoption("pulsar"):
        left_out = [item for item in items if not _depends_on_the_release(item)]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]
    arrange(items)


def _depends_on_the_release(item: pytest.Item) -> bool:
    return "pulsar_release" in getattr(item, "fixturenames", ()) and not item.get_closest_marker("any_pulsar")


def pytest_collection_finish(session: pytest.Session) -> None:
    # All that is loaded by now stays, and little of it is garbage; without this the garbage collector would look at it
    # hundreds of times.
    gc.freeze()
    gc.set_threshold(200_000, 20, 20)
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """After all workers: end the servers, and whatever failed or interrupted tests have left behind."""
    if not _is_worker(session.config):
        session.config.stash[_LEFT] = end_run(_run_folder(session.config))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for command in terminalreporter.config.stash.get(_LEFT, []):
        terminalreporter.write_line(f"left running by a test, and killed: {command}", yellow=True)


def pytest_runtest_teardown() -> None:
    """No test leaves the process quiet for the next one, as a command with ``--quiet`` does, or with secrets.

    A fixture of every test would take several times as long.
    """
    set_quiet(False)
    vars(SECRETS).update(vars(Redactor()))


@pytest.fixture(scope="session")
def kafka(pytestconfig: pytest.Config) -> KafkaServer:
    """One broker for each worker: a test uses topics of its own, and leaves it running.

    Controllers of one cluster's name fence each other, also where their topics differ, and most tests use one name.
    """
    worker = pytestconfig.workerinput["workerid"] if _is_worker(pytestconfig) else "main"  # type: ignore[attr-defined]
    return shared(_run_folder(pytestconfig), f"kafka-{worker}", KafkaServer)


@pytest.fixture(scope="session")
def zookeeper(pytestconfig: pytest.Config) -> ZooKeeperServer:
    """One server for all: a test uses paths of its own, and leaves it running."""
    return shared(_run_folder(pytestconfig), "zookeeper", ZooKeeperServer)


@pytest.fixture(scope="session")
def pulsar_release(pytestconfig: pytest.Config) -> PulsarRelease:
    """The release of every real Pulsar that tests start."""
    version = pytestconfig.getoption("pulsar")
    return find_release(version) if version else USUAL


@pytest.fixture(scope="session")
def pulsar(tmp_path_factory: pytest.TempPathFactory, pulsar_release: PulsarRelease) -> Iterator[PulsarCluster]:
    """Three brokers in one JVM, for one worker (tests/xdist_groups.py): a test uses namespaces of its own."""
    cluster = PulsarCluster(tmp_path_factory.mktemp("pulsar"), release=pulsar_release)
    cluster.start()
    yield cluster
    for part in cluster.parts.values():
        part.stop(signal.SIGKILL)
