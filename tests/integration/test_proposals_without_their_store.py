"""ZooKeeper, or the log that elects, is dead or hangs while people decide on proposals: each hears so, soon."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pytest
import urllib3

from controller.adapters.approvals.making import Signer, propose_plan
from controller.lab.servers import Server, kafka_server, zookeeper_server
from controller.log.elections import election_system
from controller.settings.trimtab_toml import read_settings
from controller.wire.plan import encode_plan, parse_plan
from tests.integration.test_server_option import _address
from tests.kafka_log import as_toml, own_topics
from tests.live_cluster import QUIET
from tests.proposals import key_of
from tests.records import CLUSTER
from tests.unit.web.test_proposals_by_rest import plan_file
from tests.web_people import token_of, tokens_file

pytestmark = pytest.mark.integration

#: No answer takes longer: a proxy's usual patience.
_SECONDS: Final = 30.0


#: What of the settings is so where the proposals lie there: of its address, and of the topics.
_PLACES: Final = {
    "ZooKeeper": """log = {{ kind = "folder", folder.path = "log" }}
election = {{ kind = "zookeeper", hosts = "{0}", path = "/trimtab", session_timeout_seconds = 4 }}
[checkpoint]""",
    "Kafka": """election = {{ kind = "log", session_timeout_seconds = 4 }}
log.kind = "kafka"
[log.kafka]
{1}
[checkpoint]""",
}


@dataclass(frozen=True, kw_only=True)
class _Site:
    conf: Path
    url: str
    #: The hash of a plan that olga proposed.
    plan: str
    #: Where proposals lie.
    server: Server

    def asked(self, method: str, path: str, body: Any = None) -> urllib3.BaseHTTPResponse:
        """The answer to anna, within ``_SECONDS``."""
        headers = {"Authorization": f"Bearer {token_of('anna')}", "If-Match": "*"}
        return urllib3.request(
            method, self.url.rstrip("/") + path, json=body, headers=headers, timeout=_SECONDS, retries=False
        )

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """``trimtab`` with *words*, which ends in time."""
        line = [sys.executable, "-m", "controller.cli", *words, "--conf", str(self.conf)]
        return subprocess.run(line, capture_output=True, text=True, timeout=4 * _SECONDS, check=False)


@pytest.fixture(params=["ZooKeeper", "Kafka"])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[_Site]:
    (tmp_path / "page.key").write_bytes(key_of("page").pem)
    (tmp_path / "page.key").chmod(0o600)
    (tmp_path / "broker.conf").write_text(QUIET, encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with (zookeeper_server if request.param == "ZooKeeper" else kafka_server)(tmp_path / "server") as server:
        topics = as_toml(own_topics(server.address, 1)) if request.param == "Kafka" else ""
        conf = tmp_path / "trimtab.toml"
        conf.write_text(
            f"""cluster.name = "{CLUSTER}"
{_PLACES[request.param].format(server.address, topics)}
path = "checkpoint"
[web]
listen = "127.0.0.1:{port}"
writes = true
requests_per_second = 10000.0
signing_key_file = "page.key"
{tokens_file(tmp_path)}
[approvals.servers.page]
key = "{key_of("page").public_text}"
""",
            encoding="utf-8",
        )
        plan = _proposed(conf)
        with (tmp_path / "serve.txt").open("wb") as log:
            words = [sys.executable, "-m", "controller.cli", "serve", "--conf", str(conf)]
            process = subprocess.Popen(words, stdout=log, stderr=log)
        try:
            yield _Site(conf=conf, url=_address(process, tmp_path / "serve.txt"), plan=plan, server=server)
        finally:
            process.kill()
            process.wait()


def _proposed(conf: Path) -> str:
    settings = read_settings(conf)
    signer = Signer(person="olga", policy=settings.approvals, cluster=CLUSTER, key_name="page", key=key_of("page"))
    content = encode_plan(replace(parse_plan(plan_file())[0], cluster=CLUSTER))
    with closing(election_system(settings).proposals()) as store:
        return propose_plan(store, signer, content, now_ms=time.time_ns() // 1_000_000).proposal.hash


@pytest.mark.parametrize("hangs", [False, True])
def test_who_asks_for_proposals_hears_soon_that_their_store_is_away(site: _Site, *, hangs: bool) -> None:
    plan, process = site.plan, site.server.pid()
    name = {"zookeeper": "ZooKeeper", "kafka": "Kafka"}[site.server.name]
    assert process is not None
    assert site.asked("GET", "/api/v1/proposals").json()["proposals"][0]["id"] == plan
    os.kill(process, signal.SIGSTOP if hangs else signal.SIGKILL)
    try:
        # What was read before is shown until a read has failed.
        _until(lambda: name.encode() in site.asked("GET", "/plans").data)
        reason = {"reason": "looks right"}
        for method, path, body, statuses in (
            ("GET", "/plans", None, {200}),
            ("GET", f"/proposals/{plan}", None, {503}),
            ("GET", "/api/v1/proposals", None, {503}),
            ("POST", f"/api/v1/proposals/{plan}/approve", reason, {503}),
            ("POST", "/api/v1/controls/pause", reason, {503}),
            ("GET", "/", None, {200}),
        ):
            answer = site.asked(method, path, body)
            assert answer.status in statuses, (path, answer.status, answer.data)
            # While others wait for an answer, nobody else does for long.
            is_told = name in answer.data.decode() or "proposals, which do not answer" in answer.data.decode()
            assert path == "/" or is_told, (path, answer.data.decode()[-700:])
        for words in (["list"], ["show", plan], ["approve", plan, "--by", "anna"]):
            ended = site.command("proposals", *words)
            assert ended.returncode not in (0, 2), (words, ended)
            assert name in ended.stderr, (words, ended)
            assert "Traceback" not in ended.stderr
    finally:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGCONT)
    if hangs:
        _until(lambda: site.asked("GET", "/api/v1/proposals").status == 200)
        assert json.loads(site.command("proposals", "list", "--json").stdout)["state"] == "pending"


def _until(holds: Any) -> None:
    ends = time.monotonic() + _SECONDS
    while not holds():
        assert time.monotonic() < ends
        time.sleep(0.5)
