"""Two real ``trimtab serve`` and a real ZooKeeper: what people write by both at once is all there, each once."""

import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pytest
import urllib3

from controller.adapters.approvals.making import Signer, propose_plan
from controller.lab.servers import ZooKeeperServer
from controller.log.elections import election_system
from controller.offline.plans.proposal_view import proposal_answer
from controller.planning.plans.plan_steps import PlanLimits, empty_step
from controller.settings.trimtab_toml import Settings, read_settings
from controller.wire.plan import encode_plan
from tests.balance_problems import problem
from tests.integration.test_server_option import _address
from tests.live_cluster import QUIET
from tests.modelled_log import played
from tests.plans import plan_of
from tests.proposals import key_of
from tests.records import CLUSTER
from tests.web_people import token_of, tokens_file

pytestmark = pytest.mark.integration

#: Proposals that wait for approvals; and changes, and proposals, that each person makes at each server.
PLANS: Final = 3
CHANGES: Final = 3
SERVERS: Final = (0, 1)
OPERATORS: Final = ("otto", "olga")
#: One at each server.
APPROVERS: Final = ("anna", "abel")
#: An answer to a request that changed nothing: somebody was faster, or the server asks to try again.
AGAIN: Final = (409, 412, 503)


class _Person:
    """Sends requests to one server under a name; within *seconds* each of them succeeds."""

    def __init__(self, url: str, name: str, *, seconds: float = 20.0) -> None:
        self._url, self._headers = f"{url.rstrip('/')}/api/v1", {"Authorization": f"Bearer {token_of(name)}"}
        self._pool = urllib3.PoolManager(timeout=10.0, retries=False)
        self._ends = time.monotonic() + seconds
        #: How often somebody else was faster.
        self.slower = 0

    def get(self, path: str) -> urllib3.BaseHTTPResponse:
        answer = self._pool.request("GET", self._url + path, headers=self._headers)
        assert answer.status == 200, (path, answer.status, answer.data)
        return answer

    def post(self, path: str, body: dict[str, Any], version: str = "*") -> dict[str, Any]:
        """The answer; the same request is sent again, with the *version* as of then, while nothing was changed."""
        key = uuid4().hex
        while True:
            headers = self._headers | {"If-Match": version, "Idempotency-Key": key}
            answer = self._pool.request("POST", self._url + path, json=body, headers=headers)
            if answer.status in (200, 202):
                return dict(answer.json())
            assert answer.status in AGAIN, (path, body, answer.status, answer.data)
            assert time.monotonic() < self._ends, (path, body, answer.status, answer.data)
            if answer.status == 412:
                self.slower, version = self.slower + 1, self.controls()

    def controls(self) -> str:
        """The version of the controls."""
        return self.get("/controls").headers["ETag"]


@pytest.fixture
def servers(
    zookeeper: ZooKeeperServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Settings, list[str]]]:
    """The settings, and the address of each server."""
    folder, root = tmp_path_factory.mktemp("servers"), f"/{uuid4().hex}"
    (folder / "page.key").write_bytes(key_of("page").pem)
    (folder / "page.key").chmod(0o600)
    (folder / "broker.conf").write_text(QUIET, encoding="utf-8")
    confs = [folder / f"{number}.toml" for number in SERVERS]
    for conf in confs:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        conf.write_text(
            f"""cluster.name = "{CLUSTER}"
log = {{ kind = "folder", folder.path = "log" }}
election = {{ kind = "zookeeper", hosts = "{zookeeper.hosts}", path = "{root}" }}
checkpoint.path = "checkpoint"
[web]
listen = "127.0.0.1:{port}"
writes = true
requests_per_second = 10000.0
signing_key_file = "page.key"
{tokens_file(folder)}
[approvals]
required = 2
[approvals.servers.page]
key = "{key_of("page").public_text}"
""",
            encoding="utf-8",
        )
    played(confs[0], 2)  # without a decision there are no controls to look at
    with ExitStack() as running:
        urls = [running.enter_context(_serving(conf)) for conf in confs]
        yield read_settings(confs[0]), urls


@contextmanager
def _serving(conf: Path) -> Iterator[str]:
    """The address of a server of its own process."""
    output = conf.with_suffix(".txt")
    with output.open("wb") as log:
        words = [sys.executable, "-m", "controller.cli", "serve", "--conf", str(conf)]
        process = subprocess.Popen(words, stdout=log, stderr=log)
    try:
        yield _address(process, output)
    finally:
        process.kill()
        process.wait()


def _propose_plans(settings: Settings) -> list[str]:
    """The hashes of plans that vera proposed."""
    cluster, made, now_ms = settings.cluster.name, list[str](), _now_ms()
    signer = Signer(person="vera", policy=settings.approvals, cluster=cluster, key_name="page", key=key_of("page"))
    with closing(election_system(settings).proposals()) as store:
        for bundles in range(3, 3 + PLANS):
            one = problem([[100.0]] * 4, [(0, [2.0])] * bundles, connections=[1.0] * bundles)
            plan = replace(plan_of(one, [empty_step(one, [0], PlanLimits())]), cluster=cluster)
            made.append(propose_plan(store, signer, encode_plan(plan), now_ms=now_ms).proposal.hash)
    return made


def test_what_two_servers_write_at_once_is_all_there_and_each_once(servers: tuple[Settings, list[str]]) -> None:
    settings, urls = servers
    plans, seen = _propose_plans(settings), _Person(urls[0], "vera").controls()
    operators = [_Person(urls[server], name) for server in SERVERS for name in OPERATORS]

    def changes(number: int) -> list[str]:
        """Each operator's first change is of the same version, so that it is stored for one of them at most."""
        for each in range(CHANGES):
            body = {"mode": "observe", "reason": f"{number} {each}"}
            operators[number].post("/controls/mode", body, "*" if each else seen)
        return []

    def proposes(server: int) -> list[str]:
        person = _Person(urls[server], "otto")
        bodies = ({"mode": "dry_run", "reason": f"server {server} {each}"} for each in range(CHANGES))
        return [str(person.post("/controls/mode", body)["proposal"]) for body in bodies]

    def approves(server: int) -> list[str]:
        person = _Person(urls[server], APPROVERS[server])
        for key in plans:
            person.post(f"/proposals/{key}/approve", {"reason": f"checked {key}"})
        return []

    states = dict.fromkeys(plans, ("approved", sorted(APPROVERS)))
    with ThreadPoolExecutor() as pool:
        writes = [pool.submit(changes, number) for number in range(len(operators))]
        writes += [pool.submit(each, server) for server in SERVERS for each in (proposes, approves)]
        for done in as_completed(writes):
            states |= dict.fromkeys(done.result(), ("pending", list[str]()))
    assert sum(each.slower for each in operators) >= len(operators) - 1
    history = Counter(
        [
            *((name, "mode", f"{at} {each}") for at, name in enumerate(OPERATORS * 2) for each in range(CHANGES)),
            *(("otto", "propose", f"server {server} {each}") for server in SERVERS for each in range(CHANGES)),
            *((name, "approve", f"checked {key}") for name in APPROVERS for key in plans),
        ]
    )
    assert _proposals(settings) == states
    for url in urls:
        vera, ends = _Person(url, "vera"), time.monotonic() + 10
        while (now := _history(vera)) != history:  # a server shows for a second what it has read
            assert time.monotonic() < ends, (now - history, history - now)
            time.sleep(0.2)


def _proposals(settings: Settings) -> dict[str, tuple[str, list[str]]]:
    """Of each proposal that is stored its state, and who approved it."""
    with closing(election_system(settings).proposals()) as store:
        answers = [proposal_answer(each, settings, _now_ms()) for each in store.read_all().proposals]
    return {each.id: (each.state, sorted(each.approved_by)) for each in answers}


def _history(person: _Person) -> Counter[tuple[str, str, str]]:
    """What the history says, by the server of *person*."""
    events = person.get("/history?limit=100").json()["events"]
    return Counter((each["by"], each["action"], each["reason"]) for each in events)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
