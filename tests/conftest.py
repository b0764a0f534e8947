"""Real servers for the whole test run, each started when the first test asks for it; how hard properties try."""

import gc
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from controller.lab.pulsar_server import PulsarCluster
from controller.lab.servers import KafkaServer, ZooKeeperServer
from tests.conformance.summary import ConformanceSummary
from tests.shared_servers import begin_run, end_run, shared

if TYPE_CHECKING:
    from xdist.remote import Producer

    from tests.scheduling import GroupScheduling

# Their asserts are to say as much as those of test files.
pytest.register_assert_rewrite(
    *(f"tests.contracts.{port}" for port in ("collectors", "controls", "journal", "leadership"))
)

# Busy machines make any deadline a matter of luck.  scripts/test asks for the thorough profile, and scripts/mutate for
# the same examples each time.
_PATIENT: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("quick", max_examples=4, **_PATIENT)
settings.register_profile("thorough", max_examples=80, **_PATIENT)
settings.register_profile("repeatable", max_examples=4, derandomize=True, **_PATIENT)
settings.load_profile("quick")

#: What tests have left running, to be told at the end.
_LEFT = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(ConformanceSummary())
    # The width of a terminal, which workers get from whoever starts them, is no part of a test.
    os.environ.pop("COLUMNS", None)
    if not _is_worker(config):
        begin_run()
        # Whoever ends the run by SIGTERM ends its servers, too, as Ctrl-C does.
        signal.signal(signal.SIGTERM, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """A worker for each processor for all tests; none where some are named: they end sooner than it starts."""
    return (os.cpu_count() or 1) if config.args_source is config.ArgsSource.TESTPATHS else 0


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: "Producer") -> "GroupScheduling":
    # Here, because a test that is named runs without xdist.
    from tests.scheduling import GroupScheduling

    return GroupScheduling(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if _is_worker(config):
        from tests.scheduling import in_order

        items[:] = [items[nth] for nth in in_order([item.nodeid for item in items])]


def pytest_collection_finish(session: pytest.Session) -> None:
    # All that is loaded by now stays; without this the garbage collector would look at it hundreds of times.
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """After all workers: end the servers, and whatever failed or interrupted tests have left behind."""
    if not _is_worker(session.config):
        session.config.stash[_LEFT] = end_run(_run_folder(session.config))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for command in terminalreporter.config.stash.get(_LEFT, []):
        terminalreporter.write_line(f"left running by a test, and killed: {command}", yellow=True)


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def _run_folder(config: pytest.Config) -> Path:
    """The temporary folder of the run; each worker's own lies in it."""
    folder: Path = config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
    return folder.parent if _is_worker(config) else folder


@pytest.fixture(scope="session")
def kafka(pytestconfig: pytest.Config) -> KafkaServer:
    """One broker for all: a test uses topics of its own, and leaves it running."""
    return shared(_run_folder(pytestconfig), "kafka", KafkaServer)


@pytest.fixture(scope="session")
def zookeeper(pytestconfig: pytest.Config) -> ZooKeeperServer:
    """One server for all: a test uses paths of its own, and leaves it running."""
    return shared(_run_folder(pytestconfig), "zookeeper", ZooKeeperServer)


@pytest.fixture(scope="session")
def pulsar(pytestconfig: pytest.Config) -> PulsarCluster:
    """Three brokers for all, in one JVM: a test uses namespaces of its own."""
    return shared(_run_folder(pytestconfig), "pulsar", PulsarCluster)
