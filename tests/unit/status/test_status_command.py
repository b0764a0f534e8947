"""`trimtab status` and `trimtab lookup --live`, on folders and small servers that play brokers."""

import json
import os
import re
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from controller.adapters.disk.verdicts import VerdictStore
from controller.adapters.factory import own_verdict_store
from controller.cli import app as cli
from controller.cli.lookup import lookup
from controller.cli.status import status
from controller.log.elections import election_system
from controller.model.decision import Decision, Reason, Verdict
from controller.model.errors import AnotherClusterError
from controller.model.names import topic_hash
from controller.settings.trimtab_toml import read_settings
from controller.status.bundle import last_verdicts
from controller.status.cluster import imbalance
from controller.wire.readable import utc
from tests.admin_servers import REPORT, AdminServer, admin_servers
from tests.folders import journal_in
from tests.journal_entries import SPLIT, UNLOAD, entry
from tests.modelled_log import settings_in
from tests.records import CLUSTER, LEFT, PERIOD, RIGHT, T, as_bytes, broker_sweep, result, tick

TOPIC = "persistent://tenant/ns/orders"
HERE = LEFT if topic_hash(TOPIC) < 0x80000000 else RIGHT
BUNDLES = "/admin/v2/namespaces/tenant/ns/bundles"
HALVES = {"boundaries": ["0x00000000", "0x80000000", "0xffffffff"], "numBundles": 2}
ELSEWHERE = "demo/other/0x00000000_0xffffffff"


@pytest.fixture
def servers() -> Iterator[list[AdminServer]]:
    with admin_servers(2) as servers:
        for server in servers:
            server.answers[f"/admin/v2/brokers/{CLUSTER}"] = (200, sorted(each.name for each in servers))
            server.answers[BUNDLES] = (200, HALVES)
            owned(server)
        yield servers


def owned(server: AdminServer, **bundles: list[int]) -> None:
    """*bundles*: by namespace-free names LEFT and RIGHT, the rates of their topics."""
    names = {"left": LEFT, "right": RIGHT}
    path = f"/admin/v2/brokers/{CLUSTER}/{server.name}/ownedNamespaces"
    server.answers[path] = (200, {names[key]: {"is_active": True} for key in bundles})
    ranges = {
        names[key].rpartition("/")[2]: {"persistent": {f"t-{n}": topic(rate) for n, rate in enumerate(rates)}}
        for key, rates in bundles.items()
    }
    server.answers["/admin/v2/broker-stats/topics"] = (200, {"tenant/ns": ranges})


def topic(rate: int) -> dict[str, Any]:
    return {"msgRateIn": rate, "msgRateOut": 0, "msgThroughputIn": 100 * rate, "msgThroughputOut": 0}


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    return settings_in(tmp_path)


def live(folder: Path, servers: list[AdminServer]) -> Path:
    return settings_in(folder, more=f'pulsar.admin_url = ["http://{servers[0].name}"]')


def journal(folder: Path) -> None:
    """Two intervals: an unload of LEFT, then a split of RIGHT; the first has its result."""
    log = journal_in(folder / "log", cluster=CLUSTER)
    log.open()
    log.begin_epoch(3)
    for each in (entry(T, UNLOAD), entry(T + PERIOD, replace(SPLIT, interval=T + PERIOD))):
        log.append(each, epoch=3, issued_at_ms=T, before_commit=lambda: None)
    results = folder / "log" / "results"
    results.mkdir(exist_ok=True)
    lines = [
        tick(T, roster=None),
        result(id=UNLOAD.id, status="failed", detail="it went elsewhere"),
        tick(T + PERIOD, roster=None),
    ]
    (results / "0.jsonl").write_bytes(b"\n".join(as_bytes(line) for line in lines))
    verdicts = (
        Verdict(subject="broker-1:8080", reason=Reason.BALANCED, observed=0.3, limit=0.5, unit="usage", by="X"),
        Verdict(subject=LEFT, reason=Reason.RECENTLY_UNLOADED),
        Verdict(subject=ELSEWHERE, reason=Reason.RECENTLY_UNLOADED),
    )
    store = VerdictStore(folder / "checkpoint" / "verdicts")
    store.write(Decision(interval=T + PERIOD, verdicts=verdicts, summary=""))


def run(command: Any, *arguments: object, exit_code: int = 0) -> Result:
    app = typer.Typer()
    app.command()(command)
    answer = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert answer.exit_code == exit_code, (answer.output, answer.exception)
    return answer


def found(command: Any, *arguments: object) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(run(command, *arguments, "--json").stdout)
    return fields


def test_before_the_first_decision_there_is_nothing_and_nothing_is_created(conf: Path) -> None:
    fields = found(status, "--conf", conf)
    assert (fields["last"], fields["epoch"], fields["ticked"], fields["commands"]) == (None, 0, None, [])
    assert (fields["leader"], fields["leaderUnknown"]) == (None, "")
    lines = run(status, "--conf", conf).stdout.splitlines()
    assert f"leader     none: no controller runs; start `trimtab run --conf {conf}`" in lines
    assert f"decided    nothing decided yet; start `trimtab run --conf {conf}`" in lines
    assert f"ticked     never: no interval has ended; start `trimtab collect --conf {conf}`" in lines
    assert {path.name for path in conf.parent.iterdir()} == {"trimtab.toml", "broker.conf"}


def test_the_journal_tells_who_leads_what_was_decided_and_what_became_of_it(conf: Path) -> None:
    journal(conf.parent)
    fields = found(status, "--conf", conf)
    assert (fields["epoch"], fields["ticked"]) == (3, T + PERIOD)
    assert fields["last"] == {
        "interval": T + PERIOD,
        "summary": "1 commands",
        "mode": "active",
        "paused": False,
        "stale": True,
        "samples": 2,
        "pulsar": None,
    }
    assert [(each["id"], each["result"] and each["result"]["status"]) for each in fields["commands"]] == [
        (SPLIT.id, None),
        (UNLOAD.id, "failed"),
    ]
    assert set(fields["inFlight"]) == {"c-1", "c-2"}
    assert (fields["judged"], fields["reasons"]) == (T + PERIOD, {"RecentlyUnloaded": 2, "Balanced": 1})
    text = run(status, "--conf", conf).stdout
    assert "active, stale" in text
    assert f"unload {LEFT}  broker-1:8080 -> broker-2:8080: failed: it went elsewhere" in text
    assert f"split {RIGHT}  by range_equally_divide 0xc0000000, then unload: no result yet" in text
    assert "RecentlyUnloaded 2, Balanced 1" in text


@pytest.mark.parametrize("behind", [0, 1, 2])
def test_without_brokers_the_last_sweeps_tell_how_even_the_cluster_is(conf: Path, behind: int) -> None:
    """Records of one millisecond come in any order: the last *behind* sweeps are read before their tick."""
    journal(conf.parent)
    metrics = conf.parent / "log" / "metrics"
    metrics.mkdir(exist_ok=True)
    rates = {"a:8080": 30, "b:8080": 10}
    sweeps = [
        broker_sweep(name, msgRateIn=rate, msgRateOut=0, msgThroughputIn=1, msgThroughputOut=1)
        for name, rate in rates.items()
    ]
    roster = [{"broker": name, "sweepId": f"{name}@{T}"} for name in rates] + [{"broker": "c:8080", "sweepId": None}]
    noise = broker_sweep("a:8080", sweepId="does not count", msgRateIn=1e6)
    spoilt = broker_sweep("d:8080", msgRateIn="many")
    front, late = sweeps[: 2 - behind], sweeps[2 - behind :]
    lines = [*front, noise, tick(T, roster=None), tick(T, roster=roster), *late, spoilt, tick(T + PERIOD, roster=None)]
    (metrics / "0.jsonl").write_bytes(b"\n".join(as_bytes(line) for line in lines))
    even = found(status, "--conf", conf)["imbalance"]
    assert even == {"brokers": 2, "msg_rate": 1.5, "msg_throughput": 1.0, "busiest": "a:8080"}


def test_brokers_that_answer_tell_how_even_the_cluster_is_and_the_others_are_named(
    servers: list[AdminServer], tmp_path: Path
) -> None:
    path = live(tmp_path, servers)
    for server, rate in zip(servers, (90, 10), strict=True):
        server.answers[REPORT] = (200, {"msgRateIn": rate, "msgThroughputIn": 5})
    even = found(status, "--conf", path)["imbalance"]
    assert (even["msg_rate"], even["msg_throughput"], even["busiest"]) == (1.8, 1.0, servers[0].name)
    busiest = (
        f"the busiest of 2 brokers has 1.80 times the average by messages ({servers[0].name}), 1.00 times by bytes"
    )
    assert busiest in run(status, "--conf", path).stdout
    servers[1].answers[REPORT] = (500, {"reason": "broken"})
    assert list(found(status, "--conf", path)["silent"]) == [servers[1].name]


def test_a_cluster_in_which_nothing_flows_is_even() -> None:
    even = imbalance({"a:8080": {}, "b:8080": {}})
    assert even is not None
    assert (even.msg_rate, even.msg_throughput) == (1.0, 1.0)
    assert imbalance({}) is None


def test_a_bundle_has_its_owner_now_its_load_and_the_last_decision_with_the_reason(
    servers: list[AdminServer], tmp_path: Path
) -> None:
    path = live(tmp_path, servers)
    journal(tmp_path)
    owned(servers[1], left=[3, 4])
    fields = found(status, LEFT, "--conf", path)
    assert fields["owner"] == servers[1].name
    assert fields["load"] == {
        "msgRateIn": 7,
        "msgRateOut": 0,
        "msgThroughputIn": 700,
        "msgThroughputOut": 0,
        "topics": 2,
    }
    assert fields["lastCommand"]["id"] == UNLOAD.id
    assert fields["lastCommand"]["result"]["status"] == "failed"
    assert fields["lastCommand"]["why"]["reason"] == "Overloaded"
    assert [each["subject"] for each in fields["verdicts"]] == [LEFT]
    text = run(status, LEFT, "--conf", path).stdout
    assert f"owner      {servers[1].name}, now" in text
    assert "load       2 topics; in 7 msg/s, 700 bytes/s; out 0 msg/s, 0 bytes/s" in text
    assert "because    broker-1:8080: Overloaded (usage 90 % against 60 %)" in text
    assert f"{LEFT}: RecentlyUnloaded" in text


def test_a_bundle_that_nobody_has_is_left_without_an_owner(servers: list[AdminServer], tmp_path: Path) -> None:
    path = live(tmp_path, servers)
    fields = found(status, RIGHT, "--conf", path)
    assert (fields["owner"], fields["load"], fields["lastCommand"]) == (None, {}, None)
    assert "nobody, until a client looks up" in run(status, RIGHT, "--conf", path).stdout


def test_a_range_that_the_namespace_does_not_have_is_no_such_bundle(servers: list[AdminServer], tmp_path: Path) -> None:
    path, quarter = live(tmp_path, servers), "tenant/ns/0x00000000_0x40000000"
    told = run(status, quarter, "--conf", path, exit_code=1).stdout
    assert (
        "now        no such bundle: namespace tenant/ns has 2 bundles, and not 0x00000000_0x40000000; there now:"
        " 0x00000000_0x80000000\n" in told
    )
    assert "nobody" not in told
    fields = json.loads(run(status, quarter, "--conf", path, "--json", exit_code=1).stdout)
    assert (fields["exists"], fields["owner"], fields["load"]) == (False, None, {})


def test_a_namespace_that_does_not_exist_has_no_such_bundle(servers: list[AdminServer], tmp_path: Path) -> None:
    path = live(tmp_path, servers)
    servers[0].answers["/admin/v2/namespaces/demo/other/bundles"] = (404, {"reason": "Namespace does not exist"})
    told = run(status, ELSEWHERE, "--conf", path, exit_code=1).stdout
    assert "no such bundle: the cluster has no namespace demo/other" in told


def test_the_process_that_leads_is_named_with_its_host_and_since_when(conf: Path) -> None:
    leadership = election_system(read_settings(conf)).leadership()
    try:
        assert leadership.acquire(lambda: False)
        leader = found(status, "--conf", conf)["leader"]
        assert (leader["host"], leader["process"]) == (socket.gethostname(), os.getpid())
        lines = run(status, "--conf", conf).stdout.splitlines()
        (told,) = [line for line in lines if line.startswith("leader ")]
        since = utc(leader["sinceMs"])
        assert told.startswith(f"leader     {socket.gethostname()}, process {os.getpid()}, since {since}, ")
        assert f"decided    nothing decided yet; start `trimtab collect --conf {conf}`" in lines
    finally:
        leadership.release()
    assert found(status, "--conf", conf)["leader"] is None


def test_at_80_columns_lines_are_wrapped_between_words_and_no_bundle_is_cut(
    conf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal(conf.parent)
    monkeypatch.chdir(conf.parent)  # a command to copy is on one line, so a long path would be one, too
    app = typer.Typer()
    app.command()(status)
    told = CliRunner().invoke(app, ["--conf", conf.name], env={"COLUMNS": "80"}).stdout
    assert max(map(len, told.splitlines())) <= 80
    for name in (LEFT, RIGHT, "broker-1:8080", "broker-2:8080"):
        assert [line for line in told.splitlines() if name in line.split()], name


def test_without_brokers_only_the_decision_about_a_bundle_is_told(conf: Path) -> None:
    journal(conf.parent)
    fields = found(status, RIGHT, "--conf", conf)
    assert "owner" not in fields
    assert fields["lastCommand"]["id"] == SPLIT.id
    assert "owner      unknown: without a section [pulsar]" in run(status, RIGHT, "--conf", conf).stdout


def test_a_topic_of_a_namespace_that_does_not_exist_has_no_bundle(servers: list[AdminServer], tmp_path: Path) -> None:
    path = live(tmp_path, servers)
    servers[0].answers[BUNDLES] = (404, {"reason": "Namespace does not exist"})
    error = run(lookup, TOPIC, "--live", "--conf", path, exit_code=1).exception
    assert str(error) == f"the cluster has no namespace tenant/ns, so {TOPIC} has no bundle"


def test_a_topic_is_looked_up_on_the_brokers(servers: list[AdminServer], tmp_path: Path) -> None:
    path = live(tmp_path, servers)
    journal(tmp_path)
    owned(servers[0], left=[1], right=[1, 1])
    fields = found(lookup, TOPIC, "--live", "--conf", path)
    assert (fields["bundle"], fields["bundles"], fields["owner"]) == (HERE, 2, servers[0].name)
    assert fields["lastCommand"]["id"] == (UNLOAD.id if HERE == LEFT else SPLIT.id)
    text = run(lookup, TOPIC, "--live", "--conf", path).stdout
    assert f"bundle     {HERE}" in text
    assert f"owner      {servers[0].name}, now" in text
    assert "because" in text


def test_another_clusters_folder_is_refused_and_never_taken_for_ones_own(conf: Path) -> None:
    journal(conf.parent)
    other = conf.with_name("other.toml")
    other.write_text(conf.read_text().replace(f'"{CLUSTER}"', '"other"'))
    for words in (("status",), ("journal",), ("explain",), ("commands", "tail", "--no-follow"), ("pause",)):
        error = CliRunner().invoke(cli.app, [*words, "--conf", str(other)]).exception
        assert isinstance(error, AnotherClusterError), words
        assert re.search(f"is of cluster '{CLUSTER}'.*: give cluster 'other' a folder of its own", str(error))
    assert not (conf.parent / "election").exists()


def test_verdicts_of_another_cluster_are_refused(conf: Path) -> None:
    journal(conf.parent)
    assert last_verdicts(read_settings(conf))[0] == T + PERIOD, "those of an earlier release, which do not say whose"
    settings = read_settings(conf)
    own_verdict_store(settings)
    assert last_verdicts(settings)[0] == T + PERIOD
    other = settings.model_copy(update={"cluster": settings.cluster.model_copy(update={"name": "other"})})
    with pytest.raises(AnotherClusterError, match=r"of its own with journal\.verdicts_path"):
        last_verdicts(other)


def test_a_pace_without_watching_is_refused() -> None:
    result = CliRunner().invoke(cli.app, ["status", "--every", "3"])
    assert (result.exit_code, "--watch" in result.output) == (2, True)


STATS = "/admin/v2/scalable/tenant/ns/orders/stats"


def layout(*segments: tuple[str, str | None, float], sealed: int = 0) -> dict[str, Any]:
    """The statistics of a scalable topic: name, owner and bytes/s in of each segment."""
    listed = {
        str(number): {
            "name": f"segment://tenant/ns/orders/{name}",
            "state": "ACTIVE",
            "load": {"msgRateIn": rate / 100, "byteRateIn": rate, "msgRateOut": 0.0, "byteRateOut": 0.0},
            "ownerBroker": owner,
        }
        for number, (name, owner, rate) in enumerate(segments)
    }
    gone = {f"s{number}": {"name": "x", "state": "SEALED"} for number in range(sealed)}
    return {"layout": {"segments": listed | gone}}


def test_a_scalable_topic_has_the_brokers_of_its_segments_and_how_uneven_they_are(
    servers: list[AdminServer], tmp_path: Path
) -> None:
    one, other = (each.name for each in servers)
    path = live(tmp_path, servers)
    servers[0].answers[STATS] = (
        200,
        layout(("0000-7fff-0", one, 300.0), ("8000-bfff-1", one, 400.0), ("c000-ffff-2", other, 100.0), sealed=3),
    )
    servers[0].answers[f"/admin/v2/clusters/{CLUSTER}/namespaceIsolationPolicies"] = (200, {})
    fields = found(status, "segment://tenant/ns/orders/0000-7fff-0", "--conf", path)
    assert (fields["topic"], fields["segments"], fields["sealed"]) == ("topic://tenant/ns/orders", 3, 3)
    assert fields["unevenness"] == pytest.approx(700 / 400)
    assert [(each["broker"], each["segments"], each["throughput"]) for each in fields["brokers"]] == [
        (one, 2, 700),
        (other, 1, 100),
    ]
    assert [each["keys"] for each in fields["busiest"]] == ["0000-7fff", "8000-bfff", "c000-ffff"]
    text = run(status, "topic://tenant/ns/orders", "--conf", path).stdout
    assert "served by  2 brokers of 2 that may" in text
    assert "1.75" in text


def test_what_a_broker_says_of_a_topic_is_hostile_until_it_is_checked(
    servers: list[AdminServer], tmp_path: Path
) -> None:
    path = live(tmp_path, servers)
    told = layout(*((f"{n % 0xFFFF:04x}-{n % 0xFFFF:04x}-{n}", servers[0].name, 1.0) for n in range(5000)))
    entries = told["layout"]["segments"]
    entries["0"]["name"] = "segment://other/ns/orders/0000-0000-0"
    entries["1"] |= {"ownerBroker": "\x1b[31mred", "load": "none"}
    entries["2"]["load"] = {"byteRateIn": -1, "byteRateOut": "1", "msgRateIn": 1e300, "msgRateOut": None}
    entries["3"] = "nothing"
    servers[0].answers[STATS] = (200, told)
    servers[0].answers[f"/admin/v2/clusters/{CLUSTER}/namespaceIsolationPolicies"] = (200, {})
    fields = found(status, "topic://tenant/ns/orders", "--conf", path)
    assert (fields["segments"], fields["unreadable"]) == (4998, 1)
    assert len(fields["busiest"]) == 1000
    assert "\x1b" not in run(status, "topic://tenant/ns/orders", "--conf", path).stdout


def test_a_topic_that_is_not_scalable_or_not_there_is_said_so(servers: list[AdminServer], tmp_path: Path) -> None:
    path = live(tmp_path, servers)
    servers[0].answers[STATS] = (404, {"reason": "Scalable topic not found"})
    missing = run(status, "topic://tenant/ns/orders", "--conf", path, exit_code=1)
    assert "no such scalable topic" in missing.stdout
    ordinary = run(status, TOPIC, "--conf", path, exit_code=2)
    assert "is not a scalable topic" in " ".join(ordinary.output.replace("│", " ").split())
