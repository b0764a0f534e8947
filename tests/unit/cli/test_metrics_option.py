"""Where `trimtab run`, `collect` and `execute` serve their metrics."""

import socket
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from urllib.request import urlopen

import pytest
from typer.testing import CliRunner

from controller.adapters.metrics.collector import CollectorMetrics
from controller.adapters.metrics.controller import ControllerMetrics
from controller.adapters.metrics.executor import ExecutorMetrics
from controller.adapters.metrics.health import ProcessHealth
from controller.adapters.outages import Part
from controller.cli.app import app
from controller.cli.shared.metrics_address import served
from controller.cli.shared.starting import started
from controller.model.errors import SettingsError
from controller.settings.trimtab_toml import Settings, read_settings
from tests.folder_settings import write_settings


def settings(folder: Path, **addresses: str) -> Settings:
    lines = (f'{role} = "{where}"' for role, where in addresses.items())
    return read_settings(write_settings(folder, "[metrics]", *lines, cluster="lab"))


@pytest.fixture
def taken() -> Iterator[str]:
    """An address at which another process listens."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield f"127.0.0.1:{other.getsockname()[1]}"


def free() -> str:
    """An address that is free, just now."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        return f"127.0.0.1:{other.getsockname()[1]}"


def test_without_an_address_nothing_listens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("controller.cli.shared.metrics_address.MetricsServer", None)
    caplog.set_level("INFO")
    with served(ControllerMetrics(), settings(tmp_path)):
        assert caplog.text == ""


def test_each_role_has_an_address_of_its_own_and_says_where_it_is(
    tmp_path: Path, taken: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    where = free()
    with served(CollectorMetrics(), settings(tmp_path, collector=where, controller=taken)):
        page = urlopen(f"http://{where}/metrics", timeout=10).read().decode()
    assert 'trimtab_info{cluster="lab",role="collector",version="' in page
    assert "trimtab_period_seconds 60.0" in page
    assert [record.getMessage() for record in caplog.records] == [
        f"metrics are at http://{where}/metrics, beside /healthz and /readyz"
    ]


def test_the_option_has_priority_over_the_settings(tmp_path: Path, taken: str) -> None:
    where = free()
    with served(ControllerMetrics(), settings(tmp_path, controller=taken), where):
        assert urlopen(f"http://{where}/healthz", timeout=10).read() == b"alive\n"


def test_who_may_read_metrics_off_loopback_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    where = free().replace("127.0.0.1", "0.0.0.0")
    with served(ControllerMetrics(), settings(tmp_path, controller=where)):
        assert "everybody who can reach this address can read them" in caplog.text


def test_an_address_that_another_process_has_is_refused_with_what_to_do(tmp_path: Path, taken: str) -> None:
    told = rf"served at {taken} \(controller in \[metrics\]\): another process listens there; .* --metrics"
    with pytest.raises(SettingsError, match=told), served(ControllerMetrics(), settings(tmp_path, controller=taken)):
        pytest.fail("it listens there all the same")


def test_an_address_of_another_host_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(SettingsError, match=r"--metrics\): this host has no such address"),
        served(ControllerMetrics(), settings(tmp_path), "192.0.2.1:9640"),
    ):
        pytest.fail("it listens there all the same")


@pytest.mark.parametrize("command", ["run", "collect", "execute"])
def test_an_option_that_is_no_address_is_refused(command: str) -> None:
    result = CliRunner().invoke(app, [command, "--metrics", "9640"])
    assert result.exit_code == 2
    assert "is not an address" in result.output


def test_a_process_that_waits_for_a_server_is_not_ready_and_says_which_it_cannot_reach(tmp_path: Path) -> None:
    metrics, pulsar = ExecutorMetrics(), f'pulsar.admin_url = ["http://{free()}"]'
    conf = write_settings(tmp_path, pulsar, cluster="lab")

    def stop() -> bool:
        """Give up once the look has failed."""
        return metrics.registry.get_sample_value("trimtab_reachable", {"part": "brokers"}) == 0

    with started(read_settings(conf), stop, Part.BROKERS, metrics=metrics) as watch:
        assert watch is None
    assert metrics.health.now == (
        False,
        "it waits until the servers that it needs answer; its log names those that do not",
    )


def test_a_process_that_can_reach_all_it_needs_begins(tmp_path: Path) -> None:
    metrics = ExecutorMetrics()
    with started(settings(tmp_path), lambda: False, Part.LOG, metrics=metrics) as watch:
        assert watch is not None
        assert metrics.health.now == (False, "it begins its work")
    assert "trimtab_reachable{" not in metrics.page().decode()


def test_what_takes_long_begins_before_any_server_is_asked_and_not_with_wrong_settings(tmp_path: Path) -> None:
    asked = list[str]()

    def stop() -> bool:
        asked.append("server")
        return True

    conf = write_settings(tmp_path, f'pulsar.admin_url = ["http://{free()}"]', cluster="lab")
    (tmp_path / "broker.conf").touch()
    needed = read_settings(conf)
    with started(needed, stop, Part.BROKERS, meanwhile=lambda: asked.append("long")):
        assert asked[0] == "long"
        assert "server" in asked
    asked.clear()
    (tmp_path / "broker.conf").write_text("loadBalancerLoadSheddingStrategy=NoSuchShedder\n")
    with pytest.raises(SettingsError), started(needed, stop, decides=True, meanwhile=lambda: asked.append("long")):
        pass
    assert asked == []


def test_the_watchdog_of_systemd_hears_of_it_until_its_main_loop_stands_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # an address of a socket is at most 107 bytes long
    now = 0.0
    shown = CollectorMetrics()
    shown.health = ProcessHealth(lambda: now)
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as systemd:
        systemd.bind("notify")
        systemd.settimeout(30)
        monkeypatch.setenv("NOTIFY_SOCKET", "notify")
        monkeypatch.setenv("WATCHDOG_USEC", "30000")
        with served(shown, settings(tmp_path)):
            assert systemd.recv(100) == b"WATCHDOG=1"
            now = 600.0
            assert shown.health.standstill
        systemd.setblocking(False)
        with suppress(BlockingIOError):
            while systemd.recv(100):
                """What was said before it stood still."""
        with served(shown, settings(tmp_path)):
            pass
        with pytest.raises(BlockingIOError):
            systemd.recv(100)
