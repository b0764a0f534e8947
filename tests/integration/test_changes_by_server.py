"""``--server``: two people propose, approve and pause from a laptop, by a real ``trimtab serve``."""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner, Result

from controller.cli.app import app
from controller.model.errors import AccessDeniedError, NothingFoundError
from controller.offline.plans.planner import PlanRequest, planned_cluster
from controller.planning.plans.plan import DRAIN
from controller.wire.plan import encode_plan, hash_of
from tests.integration.test_server_option import _address
from tests.live_cluster import QUIET, SETTINGS, LiveCluster
from tests.modelled_log import settings_in

pytestmark = pytest.mark.integration

BROKER = "broker-1:8080"


class Site(NamedTuple):
    folder: Path
    url: str
    plan: Path
    id: str

    def run(self, person: str, *words: object) -> Result:
        token = ["--token-file", str(self.folder / f"{person}.token")]
        return CliRunner().invoke(app, [*map(str, words), "--server", self.url, *token])

    def said(self, person: str, *words: object) -> Any:
        result = self.run(person, *words, "--json")
        assert result.exit_code == 0, (words, result.output, result.exception)
        return json.loads(result.stdout)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("changes")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    web = f'[web]\nlisten = "127.0.0.1:{port}"\ntokens_file = "tokens.toml"\nwrites = true\n'
    web += "requests_per_second = 1000.0\n"
    conf = settings_in(folder, broker_conf=QUIET, more=f"{SETTINGS}{web}")
    plan = planned_cluster(LiveCluster(conf).source(), PlanRequest(kind=DRAIN, brokers=(BROKER,))).plan
    (folder / "plan.json").write_bytes(encode_plan(plan))
    lines = ""
    for name, role in (("ada", "operator"), ("bob", "approver"), ("eve", "viewer")):
        words = [sys.executable, "-m", "controller.cli", "token", name, "--role", role]
        made = subprocess.run(words, check=True, capture_output=True, text=True)
        (folder / f"{name}.token").write_text(made.stderr.split()[-1])
        lines += made.stdout
    (folder / "tokens.toml").write_text(lines)
    with (folder / "log.txt").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "controller.cli", "serve", "--conf", str(conf)], stdout=log, stderr=log
        )
    try:
        yield Site(folder, _address(process, folder / "log.txt"), folder / "plan.json", hash_of(plan))
    finally:
        process.kill()
        process.wait()


def test_one_proposes_and_another_approves_by_the_server(site: Site) -> None:
    made = site.said("ada", "proposals", "make", site.plan, "--reason", "new kernel")
    assert (made["id"], made["state"], made["author"]) == (site.id, "pending", "ada")
    assert site.said("eve", "proposals", "list")["id"] == site.id
    assert isinstance(site.run("eve", "proposals", "approve", site.id, "--reason", "x").exception, AccessDeniedError)
    own = site.run("ada", "proposals", "approve", site.id, "--reason", "mine")
    assert own.exception is not None
    approved = site.said("bob", "proposals", "approve", site.id[:32], "--reason", "checked")
    assert (approved["state"], approved["approvedBy"]) == ("approved", ["bob"])
    shown = site.said("eve", "proposals", "show", site.id[:12])
    assert [(each["person"], each["reason"]) for each in shown["statements"]] == [
        ("ada", "new kernel"),
        ("bob", "checked"),
    ]
    text = site.run("eve", "proposals", "show", site.id[:12]).stdout
    assert "Whose clients reconnect" in text
    assert isinstance(site.run("eve", "proposals", "show", "0" * 12).exception, NothingFoundError)


def test_what_is_done_with_the_controls_is_done_in_the_persons_name(site: Site) -> None:
    assert site.said("ada", "pause", "--reason", "upgrade")["paused"] is True
    history = [json.loads(line) for line in site.run("eve", "controls", "--json").stdout.splitlines()]
    assert (history[0]["action"], history[0]["by"], history[0]["reason"]) == ("pause", "ada", "upgrade")
    site.said("ada", "resume", "--reason", "over")
    assert site.said("bob", "mode", "observe", "--reason", "look")["mode"] == "observe"
    assert isinstance(site.run("eve", "pause", "--reason", "no").exception, AccessDeniedError)


def test_a_change_without_a_reason_or_with_a_local_key_is_refused_before_anything_is_sent(site: Site) -> None:
    assert site.run("ada", "pause").exit_code == 2
    assert site.run("ada", "apply").exit_code == 2
    assert site.run("ada", "proposals", "approve", site.id, "--key", "ada.pem", "--reason", "x").exit_code == 2
    assert site.run("ada", "release", "--all", "--reason", "x").exit_code == 2
