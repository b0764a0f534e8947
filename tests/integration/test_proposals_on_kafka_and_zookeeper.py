"""Two people on the command line, a real Kafka, a modelled cluster: propose, approve, apply.

The election lies in a real ZooKeeper, or in Kafka, too.

The controller demands approvals and signs its commands; an executor that knows its key carries them out.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from typer.testing import CliRunner, Result

from controller.adapters.network.waiting import wait_for
from controller.aggregate.shard.fold import ShardState
from controller.cli.app import app
from controller.executor.loop import Executor
from controller.lab.servers import KafkaServer, ZooKeeperServer
from controller.log.elections import election_system
from controller.log.factory import log_system
from controller.log.port import Log, LogTopic, Out
from controller.model.errors import ProposalRefusedError
from controller.offline.plans.planner import PlanRequest, planned_cluster
from controller.planning.plans.plan import DRAIN
from controller.settings.policy import read_policy
from controller.settings.trimtab_toml import Settings
from controller.wire.command_signatures import why_not_believed
from controller.wire.commands import EpochEvent, command_event, parse_event
from controller.wire.plan import encode_plan, hash_of
from controller.wire.results import Result as ExecutorResult
from controller.wire.results import decode_result
from controller.wire.rows import Located
from tests.contracts.leadership import patience
from tests.kafka_log import as_toml, own_topics
from tests.live_cluster import QUIET, SETTINGS, LiveCluster
from tests.modelled_log import LogReader
from tests.proposals import key_of
from tests.records import CLUSTER, PERIOD
from tests.unit.executor.test_executor_loop import Owners

pytestmark = pytest.mark.integration

BROKER = "broker-1:8080"
CONTROLLER = key_of("controller")


class ReaderOfAnyLog(LogReader):
    """Reads what came since, through the port of logs."""

    def __init__(self, settings: Settings) -> None:
        self._log: Log = log_system(settings).connect()
        self._readers = {topic: self._log.read(topic) for topic in ("metrics", "results")}
        self._state, self._offset = ShardState(shard=0, shards=1), 0
        self._detail = read_policy(settings).detail_limits(settings.intervals.detail_share)

    def _new(self, source: int, topic: str, decode: Callable[..., object]) -> Iterator[Located]:
        named: LogTopic = "metrics" if topic == "metrics" else "results"
        for record in self._readers[named].read_to_end():
            self._offset += 1
            decoded = decode(record.value, cluster=CLUSTER, period_ms=PERIOD)
            yield Located(source=source, partition=0, offset=self._offset, record=decoded)


class Site:
    """The settings of all processes, the people's keys, and a modelled cluster with its controller."""

    def __init__(self, folder: Path, kafka: KafkaServer, zookeeper: ZooKeeperServer | None) -> None:
        self.folder, self.conf = folder, folder / "trimtab.toml"
        (folder / "broker.conf").write_text(QUIET, encoding="utf-8")
        people = "\n".join(f'approvals.keys.{name}.key = "{key_of(name).public_text}"' for name in ("ada", "bob"))
        self.path = f"/trimtab-{uuid4().hex[:8]}"
        election = '{ kind = "log" }'
        if zookeeper is not None:
            election = f'{{ kind = "zookeeper", hosts = "{zookeeper.hosts}", path = "{self.path}" }}'
        self.conf.write_text(
            f"""cluster.name = "{CLUSTER}"
election = {election}
checkpoint.path = "checkpoint"
guardrails.brokers_balance_unknown = "ignore"
{SETTINGS}{people}
approvals.controllers.here = "{CONTROLLER.public_text}"
approvals.controller_key_file = "controller.pem"
[log]
kind = "kafka"
[log.kafka]
{as_toml(own_topics(kafka.bootstrap, 1))}
""",
            encoding="utf-8",
        )
        for name in ("ada", "bob", "controller"):
            (folder / f"{name}.pem").write_bytes(key_of(name).pem)
        self.live = LiveCluster(self.conf, reader=ReaderOfAnyLog)

    def run(self, *words: object) -> Result:
        return CliRunner().invoke(app, [*map(str, words), "--conf", str(self.conf)])

    def said(self, *words: object) -> Any:
        result = self.run(*words, "--json")
        assert result.exit_code == 0, (result.output, result.exception)
        return json.loads(result.stdout.splitlines()[-1])

    def key(self, name: str) -> list[str]:
        return ["--key", str(self.folder / f"{name}.pem")]

    def planned(self, broker: str) -> tuple[Path, str]:
        """The file of a plan that drains *broker* in several waves, and its hash."""
        asked = PlanRequest(kind=DRAIN, brokers=(broker,), wave_moves=2, wave_moves_per_broker=2)
        plan = planned_cluster(self.live.source(), asked).plan
        file = self.folder / f"{broker.partition(':')[0]}.json"
        file.write_bytes(encode_plan(plan))
        return file, hash_of(plan)


@pytest.fixture(params=["zookeeper", "log"])
def site(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    kafka: KafkaServer,
    zookeeper: ZooKeeperServer,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Site]:
    site = Site(tmp_path, kafka, zookeeper if request.param == "zookeeper" else None)
    monkeypatch.setattr("time.time_ns", lambda: site.live.interval * 1_000_000)
    clock = SimpleNamespace(sleep=lambda _: site.live.advance(), strftime=time.strftime, gmtime=time.gmtime)
    monkeypatch.setattr("controller.cli.apply.time", clock)
    leadership = election_system(site.live.settings).leadership()
    assert leadership.acquire(patience())
    yield site
    leadership.release()


def test_two_people_propose_approve_pause_resume_and_finish_a_drain(site: Site) -> None:
    file, proposal = site.planned(BROKER)
    assert site.said("proposals", "make", file, *site.key("ada"), "--reason", "new kernel")["state"] == "pending"
    assert isinstance(site.run("apply", "--proposal", proposal).exception, ProposalRefusedError)
    assert isinstance(site.run("proposals", "approve", proposal, *site.key("ada")).exception, ProposalRefusedError)
    assert site.said("proposals", "approve", proposal, *site.key("bob"))["approvedBy"] == ["bob"]
    assert site.said("proposals", "show", proposal)["drift"]["verdict"] == "still valid"
    issued = list[int]()

    def meanwhile() -> None:
        """bob pauses after the first commands, and ada resumes five intervals later."""
        if not issued and site.live.commands:
            assert (
                site.said("proposals", "pause", proposal[:12], "--by", "bob", "--reason", "wait")["state"] == "paused"
            )
            orders = site.live.controls.orders
            assert orders is None or orders.moves == ()
            issued.append(len(site.live.commands))
        elif 0 < len(issued) < 6:
            assert len(site.live.commands) == issued[0]
            issued.append(issued[0])
        elif len(issued) == 6:
            assert site.said("proposals", "resume", proposal[:12], "--by", "ada")["state"] == "applying"
            issued.append(0)

    site.live.meanwhile = meanwhile
    done = site.run("apply", "--proposal", proposal[:12], "--tolerance", 100)
    assert done.exit_code == 0, (done.output, done.exception)
    assert len(issued) == 7
    assert site.live.bundles_on(BROKER) == []
    shown = site.said("proposals", "show", proposal[:12])
    assert (shown["state"], shown["movesDone"]) == ("done", len(site.live.commands))
    assert site.said("proposals", "list", "--all")["id"] == proposal
    history = [json.loads(line) for line in site.run("controls", "--json").stdout.splitlines()]
    assert [(each["action"], each["by"]) for each in history[:2]] == [("resume-plan", "ada"), ("pause-plan", "bob")]
    check_commands(site)


def check_commands(site: Site) -> None:
    """All commands are signed, and an executor refuses one that somebody else has written to their topic."""
    settings, system = site.live.settings, log_system(site.live.settings)
    count = len(site.live.commands)

    def events() -> list[Any]:
        with closing(system.connect()) as log, closing(log.read("commands")) as reader:
            parsed = [parse_event(record.value) for record in reader.read_to_end()]
        return [each for each in parsed if not isinstance(each, EpochEvent)]

    wait_for(lambda: len(events()) == count, 60, every=0.1)
    assert not any(why_not_believed(event, [CONTROLLER.public]) for event in events())
    forged = replace(site.live.commands[-1], id="forged")
    with closing(system.connect()) as log:
        log.append([Out("commands", command_event(forged, 1, 0), partition=0)], within_seconds=30.0)
    cluster, inbox = Owners(), system.inbox()
    at_issue = site.live.commands[0].interval
    executor = Executor(
        inbox,
        cluster,
        settings.executor.model_copy(update={"max_per_second": 1000.0}),
        name=CLUSTER,
        now_ms=lambda: at_issue,
        controller_keys=settings.approvals.controller_keys,
    )
    with closing(inbox):

        def has_refused() -> bool:
            executor.step()
            return refused(system) == [forged.id]

        wait_for(has_refused, 60, every=0.1)
    assert cluster.acted == []


def refused(system: Any) -> list[str]:
    """The ids of the commands that an executor refused."""
    with closing(system.connect()) as log, closing(log.read("results")) as reader:
        read = [decode_result(record.value, cluster=CLUSTER, period_ms=PERIOD) for record in reader.read_to_end()]
    return [each.id for each in read if isinstance(each, ExecutorResult) and each.status == "refused"]


def test_a_proposal_that_was_changed_where_it_lies_moves_nothing(site: Site) -> None:
    file, proposal = site.planned(BROKER)
    site.said("proposals", "make", file, *site.key("ada"))
    site.said("proposals", "approve", proposal, *site.key("bob"))
    other, _ = site.planned("broker-2:8080")
    with closing(election_system(site.live.settings).proposals()) as store:
        stored = store.read(proposal)
        assert stored is not None
        store.remove(proposal)
        store.add(stored.proposal, other.read_bytes(), now_ms=site.live.interval)
        added = store.read(proposal)
        assert added is not None
        assert store.write(proposal, stored.record, added.version)
    shown = site.said("proposals", "show", proposal)
    assert shown["state"] == "rejected"
    assert any("was changed" in flaw for flaw in shown["flaws"])
    for words in (["apply", "--proposal", proposal], ["proposals", "approve", proposal, *site.key("bob")]):
        result = site.run(*words)
        assert isinstance(result.exception, ProposalRefusedError), (result.output, result.exception)
        assert "was changed" in str(result.exception)
    assert site.live.commands == []
    assert site.live.controls.orders is None
