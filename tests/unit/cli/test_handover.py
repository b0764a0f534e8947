"""``trimtab take-over`` and ``trimtab hand-back``: the brokers' switches, in the right order."""

import json
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from controller.cli import controls as controls_of_operators
from controller.cli import handover
from controller.log.elections import election_system
from controller.model.errors import ProposalRefusedError, SettingsError, TrimtabError
from controller.settings.trimtab_toml import read_settings
from tests.proposals import key_of

SHEDDING, SPLITTING = "loadBalancerSheddingEnabled", "loadBalancerAutoBundleSplitEnabled"

app = typer.Typer()
app.command("take-over")(handover.take_over)
app.command("hand-back")(handover.hand_back)


class Broker(ThreadingHTTPServer):
    """A broker whose dynamic settings can be changed."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.name = f"127.0.0.1:{self.server_port}"
        self.settings = {"clusterName": "lab", "loadBalancerEnabled": "true", SHEDDING: "true", SPLITTING: "true"}
        #: What was set, and the operator's controls of trimtab at that time.
        self.changes: list[tuple[str, str, str]] = []
        self.hears = True
        self.look: Any = None


class _Handler(BaseHTTPRequestHandler):
    server: Broker

    def do_GET(self) -> None:
        answers = {
            "/admin/v2/brokers/lab": [self.server.name],
            "/admin/v2/brokers": [self.server.name],
            "/admin/v2/clusters": ["lab"],
            "/admin/v2/brokers/configuration/runtime": self.server.settings,
            "/admin/v2/brokers/configuration/values": {},
            "/admin/v2/brokers/version": "4.0.8",
        }
        found = answers.get(self.path)
        self._answer(404 if found is None else 200, found)

    def do_POST(self) -> None:
        *_, key, value = self.path.split("/")
        self.server.changes.append((key, value, self.server.look()))
        if self.server.hears:
            self.server.settings[key] = value
        self._answer(204, None)

    def _answer(self, status: int, content: Any) -> None:
        body = b"" if content is None else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def broker() -> Iterator[Broker]:
    server = Broker()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def conf(tmp_path: Path, broker: Broker) -> Path:
    path = tmp_path / "trimtab.toml"
    path.write_text(
        f"""
        cluster.name = "lab"
        log = {{kind = "folder", folder.path = "log"}}
        election = {{kind = "file", path = "election"}}
        checkpoint.path = "checkpoint"
        pulsar.admin_url = ["http://{broker.name}"]
        """
    )
    broker.look = lambda: stored(path)
    return path


def stored(conf: Path) -> str:
    """Whether trimtab is paused now, and its mode."""
    with closing(election_system(read_settings(conf)).controls()) as store:
        controls, _ = store.read()
    return f"{'paused' if controls.pauses else 'running'} {controls.mode.value if controls.mode else 'settings'}"


def run(command: str, conf: Path, *options: str) -> Result:
    return CliRunner().invoke(app, [command, "--conf", str(conf), *options])


def test_hand_back_pauses_trimtab_before_the_brokers_balance(broker: Broker, conf: Path) -> None:
    broker.settings |= {SHEDDING: "false", SPLITTING: "false"}
    result = run("hand-back", conf, "--yes", "--by", "alice")
    assert result.exit_code == 0, result.output
    assert broker.changes == [(SHEDDING, "true", "paused settings"), (SPLITTING, "true", "paused settings")]


def test_take_over_lets_trimtab_act_only_when_no_broker_balances(broker: Broker, conf: Path) -> None:
    result = run("take-over", conf, "--yes", "--by", "alice")
    assert result.exit_code == 0, result.output
    assert broker.changes == [(SHEDDING, "false", "running settings"), (SPLITTING, "false", "running settings")]
    assert stored(conf) == "running active"


def test_after_a_hand_back_take_over_is_refused_until_trimtab_is_resumed_as_nobody_would_balance(
    broker: Broker, conf: Path
) -> None:
    assert run("hand-back", conf, "--yes", "--by", "alice").exit_code == 0
    broker.changes.clear()
    refused = run("take-over", conf, "--yes", "--by", "bob")
    assert isinstance(refused.exception, TrimtabError)
    assert "alice" in str(refused.exception)
    assert "trimtab resume" in str(refused.exception)
    assert broker.changes == []
    controls_of_operators.resume(conf=conf, reason="", by="alice")
    assert run("take-over", conf, "--yes", "--by", "bob").exit_code == 0
    assert stored(conf) == "running active"


def test_take_over_is_refused_where_the_settings_pause_trimtab(broker: Broker, conf: Path) -> None:
    conf.write_text(conf.read_text() + "decisions.paused = true")
    refused = run("take-over", conf, "--yes")
    assert isinstance(refused.exception, TrimtabError)
    assert "by the settings" in str(refused.exception)
    assert broker.changes == []


def test_take_over_leaves_a_switch_alone_whose_work_is_not_trimtabs(broker: Broker, conf: Path) -> None:
    conf.write_text(conf.read_text() + "decisions.split = false")
    assert run("take-over", conf, "--yes").exit_code == 0
    assert [key for key, _, _ in broker.changes] == [SHEDDING]


def test_a_broker_that_does_not_hear_of_it_is_named_and_trimtab_does_not_act(
    broker: Broker, conf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handover, "_HEARD_SECONDS", 0.0)
    broker.hears = False
    result = run("take-over", conf, "--yes")
    assert isinstance(result.exception, TrimtabError)
    assert broker.name in str(result.exception)
    assert stored(conf) == "running settings"


@pytest.mark.parametrize("command", ["take-over", "hand-back"])
def test_without_a_terminal_and_without_yes_nothing_is_changed(broker: Broker, conf: Path, command: str) -> None:
    result = run(command, conf)
    assert isinstance(result.exception, SettingsError)
    assert "give --yes" in str(result.exception)
    assert broker.changes == []


def test_hand_back_goes_on_where_the_election_cannot_be_reached(
    broker: Broker, conf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(**_: Any) -> None:
        raise TrimtabError("ZooKeeper does not answer")

    monkeypatch.setattr(controls_of_operators, "pause", away)
    result = run("hand-back", conf, "--yes")
    assert result.exit_code == 0, result.output
    assert broker.settings[SHEDDING] == broker.settings[SPLITTING] == "true"


def test_without_a_key_that_the_policy_demands_no_broker_stops_balancing(broker: Broker, conf: Path) -> None:
    with conf.open("a", encoding="utf-8") as settings:
        settings.write(f'\n[approvals.keys.ada]\nkey = "{key_of("ada").public_text}"\n')
    result = CliRunner().invoke(app, ["take-over", "--yes", "--conf", str(conf)])
    assert isinstance(result.exception, ProposalRefusedError), (result.output, result.exception)
    assert broker.changes == []


def test_with_a_key_the_mode_waits_for_approval_once_no_broker_balances(
    broker: Broker, conf: Path, tmp_path: Path
) -> None:
    with conf.open("a", encoding="utf-8") as settings:
        settings.write(f'\n[approvals.keys.ada]\nkey = "{key_of("ada").public_text}"\n')
    (tmp_path / "ada.pem").write_bytes(key_of("ada").pem)
    words = ["take-over", "--yes", "--key", str(tmp_path / "ada.pem"), "--conf", str(conf)]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, (result.output, result.exception)
    assert "Proposed: mode active" in result.output
    assert broker.settings[SHEDDING] == "false"
