"""``trimtab lookup``: boundaries given, or read from a folder log, and the owner there."""

import json
from pathlib import Path
from typing import Any

import pytest

from controller.cli.lookup import lookup
from controller.model.errors import SettingsError, TrimtabError
from controller.model.names import BundleName, default_boundaries, find_bundle, topic_hash
from tests.command_runs import runner_of
from tests.records import (
    CLUSTER,
    LEFT,
    PERIOD,
    RIGHT,
    T,
    as_bytes,
    broker_load,
    broker_sweep,
    bundle_stats,
    load_report,
    namespace_state,
    tick,
)

run = runner_of(lookup)

TOPIC = "persistent://tenant/ns/orders"
#: Where it lies, with two bundles.
HERE, THERE = (LEFT, RIGHT) if topic_hash(TOPIC) < 0x80000000 else (RIGHT, LEFT)
ONE, TWO = "broker-1:8080", "broker-2:8080"
HALVES = ["0x00000000", "0x80000000", "0xffffffff"]


def found(*arguments: object) -> dict[str, Any]:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


def refused(*arguments: object) -> str:
    result = run(*arguments)
    assert isinstance(result.exception, TrimtabError)
    return str(result.exception)


def sweep(broker: str, *bundles: str, interval: int = T, **changed: Any) -> dict[str, Any]:
    stats = [bundle_stats(bundle) for bundle in bundles]
    given = {"sweepId": f"{broker}@{interval}", "bundleStats": stats} | changed
    return broker_sweep(broker, interval=interval, **given)


def ticked(interval: int, **sweeps: str | None) -> dict[str, Any]:
    names = {"one": ONE, "two": TWO}
    return tick(interval, roster=[{"broker": names[key], "sweepId": sweep_id} for key, sweep_id in sweeps.items()])


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A folder log; ``write`` appends a file of records to it."""
    (tmp_path / "log" / "metrics").mkdir(parents=True)
    return tmp_path / "log"


def write(log: Path, *records: Any) -> None:
    metrics = log / "metrics"
    lines = [record if isinstance(record, bytes) else as_bytes(record) for record in records]
    name = f"{len([*metrics.iterdir()]):015d}-000000.jsonl"
    (metrics / name).write_bytes(b"".join(line + b"\n" for line in lines))


def conf(tmp_path: Path, log: str, broker_conf: str = "") -> Path:
    (tmp_path / "broker.conf").write_text(broker_conf)
    path = tmp_path / "trimtab.toml"
    path.write_text(
        f"""
        cluster.name = "{CLUSTER}"
        log = {log}
        election = {{kind = "file", path = "election"}}
        checkpoint.path = "checkpoint"
        """,
        encoding="utf-8",
    )
    return path


FOLDER = '{kind = "folder", folder.path = "log"}'


def test_hash_bundle_and_namespace_of_a_new_namespace() -> None:
    result = run("orders", "--bundles", 4)
    assert result.exit_code == 0
    assert result.stdout == (
        "topic      persistent://public/default/orders\n"
        "namespace  public/default, 4 bundles\n"
        f"hash       0x{topic_hash('persistent://public/default/orders'):08x}"
        f" ({topic_hash('persistent://public/default/orders')})\n"
        f"bundle     {bundle_of('persistent://public/default/orders', 4)}\n"
    )


def bundle_of(topic: str, bundles: int) -> BundleName:
    return BundleName("public/default", *find_bundle(default_boundaries(bundles), topic_hash(topic)))


def test_as_json_it_is_one_object() -> None:
    assert found("orders", "--bundles", 1) == {
        "topic": "persistent://public/default/orders",
        "namespace": "public/default",
        "hash": topic_hash("persistent://public/default/orders"),
        "position": f"0x{topic_hash('persistent://public/default/orders'):08x}",
        "bundle": "public/default/0x00000000_0xffffffff",
        "bundles": 1,
    }


@pytest.mark.parametrize(
    "inside", [lambda bundles: bundles, lambda bundles: {"replication_clusters": [], "bundles": bundles}]
)
def test_boundaries_are_read_as_pulsars_admin_gives_them(tmp_path: Path, inside: Any) -> None:
    path = tmp_path / "bundles.json"
    path.write_text(json.dumps(inside({"boundaries": HALVES, "numBundles": 2})))
    assert found(TOPIC, "--boundaries", path)["bundle"] == HERE


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[]", "not_json: expected an object, found list"),
        ("{", "not_json"),
        ("{}", "boundaries"),
        ('{"bundles": 3}', "boundaries"),
        ('{"boundaries": ["0x00000000", "0x8"]}', "boundaries.1"),
        ('{"boundaries": ["0x00000000", "0x80000000"]}', "from 0x00000000 to 0xffffffff"),
    ],
)
def test_a_file_that_holds_no_boundaries_is_refused_with_what_it_should_hold(
    tmp_path: Path, text: str, why: str
) -> None:
    path = tmp_path / "bundles.json"
    path.write_text(text)
    refusal = refused(TOPIC, "--boundaries", path)
    assert refusal.startswith(f"{path}: ")
    assert why in refusal
    assert "GET /admin/v2/namespaces/{tenant}/{namespace}/bundles" in refusal


def test_the_last_state_of_the_namespace_in_a_log_counts(log: Path) -> None:
    write(log, namespace_state(boundaries=["0x00000000", "0xffffffff"], version=1))
    write(log, namespace_state(boundaries=HALVES, version=2), namespace_state(namespace="tenant/ns-other"))
    write(log, ticked(T, one=None))
    answer = found(TOPIC, "--log", log)
    assert (answer["bundle"], answer["owner"], answer["asOf"]) == (HERE, None, T)


def test_the_owner_is_whose_sweep_counts_for_the_last_interval(log: Path) -> None:
    write(log, namespace_state(), sweep(ONE, HERE), sweep(TWO, THERE), ticked(T, one=f"{ONE}@{T}", two=f"{TWO}@{T}"))
    assert found(TOPIC, "--log", log)["owner"] == ONE
    later = T + PERIOD
    write(
        log,
        sweep(ONE, HERE, interval=later, sweepId="does not count"),
        sweep(TWO, HERE, THERE, interval=later),
        ticked(later, one=None, two=f"{TWO}@{later}"),
    )
    # Not ticked yet: it may not be whole.
    write(log, sweep(ONE, HERE, interval=later + PERIOD))
    result = run(TOPIC, "--log", log)
    assert result.stdout.splitlines()[-1] == f"owner      {TWO}, as of 2025-01-01T00:01:00Z"


def test_a_broker_that_had_it_before_does_not_count(log: Path) -> None:
    write(log, namespace_state(), sweep(ONE, HERE), ticked(T, one=f"{ONE}@{T}"))
    later = T + PERIOD
    write(log, sweep(ONE, THERE, interval=later), ticked(later, one=f"{ONE}@{later}"))
    last = run(TOPIC, "--log", log).stdout.splitlines()[-1]
    assert last == "owner      none: no broker lists the bundle, as of 2025-01-01T00:01:00Z"


def test_of_two_that_list_it_the_later_then_the_higher_name_has_it(log: Path) -> None:
    roster = {"one": f"{ONE}@{T}", "two": f"{TWO}@{T}"}
    write(
        log,
        namespace_state(),
        sweep(ONE, HERE, lastUpdate=T - 1),
        sweep(TWO, HERE, lastUpdate=T - 2),
        ticked(T, **roster),
    )
    assert found(TOPIC, "--log", log)["owner"] == ONE
    later = T + PERIOD
    roster = {"one": f"{ONE}@{later}", "two": f"{TWO}@{later}"}
    write(log, sweep(TWO, HERE, interval=later), sweep(ONE, HERE, interval=later), ticked(later, **roster))
    assert found(TOPIC, "--log", log)["owner"] == TWO


def test_load_reports_tell_of_owners_too(log: Path) -> None:
    totals = next(iter(load_report()["lastStats"].values()))
    report = load_report(lastUpdate=T - 5, lastStats={HERE: totals})
    write(log, namespace_state(), broker_load(broker=ONE, report=report), ticked(T, one=None))
    answer = found(TOPIC, "--log", log)
    assert (answer["owner"], answer["asOf"]) == (ONE, T - 5)


def test_a_log_without_ticks_has_its_latest_sweep(log: Path) -> None:
    write(log, namespace_state(), sweep(TWO, HERE), sweep(ONE, HERE, interval=T + PERIOD))
    assert found(TOPIC, "--log", log)["owner"] == ONE


def test_records_that_cannot_be_used_and_other_clusters_are_passed_over(log: Path) -> None:
    write(log, namespace_state(), sweep(ONE, HERE), ticked(T, one=f"{ONE}@{T}"))
    foreign = namespace_state(cluster="other", boundaries=["0x00000000", "0xffffffff"])
    write(log, b'{"type": "namespace_state", tenant/ns', namespace_state(boundaries=["0x1"]), foreign)
    assert found(TOPIC, "--log", log, "--cluster", CLUSTER)["bundle"] == HERE
    assert found(TOPIC, "--log", log)["bundles"] == 1
    assert found(TOPIC, "--log", log, "--cluster", "other")["owner"] is None


def test_boundaries_that_are_given_go_before_those_of_the_log(log: Path) -> None:
    write(log, sweep(ONE, HERE), ticked(T, one=f"{ONE}@{T}"))
    assert "holds no namespace_state of tenant/ns" in refused(TOPIC, "--log", log)
    answer = found(TOPIC, "--log", log, "--bundles", 2)
    assert (answer["bundle"], answer["owner"]) == (HERE, ONE)


def test_the_settings_name_folder_cluster_and_assignment(log: Path, tmp_path: Path) -> None:
    write(log, namespace_state(), sweep(ONE, HERE), ticked(T, one=f"{ONE}@{T}"))
    write(log, namespace_state(cluster="other", boundaries=["0x00000000", "0xffffffff"]))
    assert found(TOPIC, "--conf", conf(tmp_path, FOLDER))["owner"] == ONE
    round_robin = conf(tmp_path, FOLDER, "topicBundleAssignmentStrategy=RoundRobinTopicBundleAssigner\n")
    bundles = [found(f"{TOPIC}-partition-{i}", "--conf", round_robin)["bundle"] for i in range(4)]
    assert bundles[:2] == bundles[2:]
    assert {*bundles} == {LEFT, RIGHT}


def test_a_log_in_kafka_is_not_asked_where_the_bundles_are_given(tmp_path: Path) -> None:
    settings = conf(tmp_path, '{kind = "kafka", kafka.bootstrap = "127.0.0.1:1"}')
    answer = found(TOPIC, "--conf", settings, "--bundles", 2)
    assert answer["bundle"] == HERE
    assert "owner" not in answer


def test_without_settings_the_environment_says_how_topics_are_assigned(monkeypatch: pytest.MonkeyPatch) -> None:
    topics = [f"{TOPIC}-partition-{number}" for number in range(4)]
    hashed = [found(topic, "--bundles", 4)["bundle"] for topic in topics]
    monkeypatch.setenv("PULSAR_PREFIX_topicBundleAssignmentStrategy", "RoundRobinTopicBundleAssigner")
    in_turn = [found(topic, "--bundles", 4)["bundle"] for topic in topics]
    assert len({*in_turn}) == 4
    assert in_turn != hashed


def test_live_needs_settings_with_pulsar_and_nothing_that_is_given(
    tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(TOPIC, "--live")
    assert isinstance(result.exception, SettingsError)
    assert "conf/trimtab.toml" in str(result.exception)
    settings = conf(tmp_path, FOLDER)
    assert run(TOPIC, "--live", "--conf", settings, "--bundles", 2).exit_code == 2
    result = run(TOPIC, "--live", "--conf", settings)
    assert isinstance(result.exception, SettingsError)
    assert "[pulsar]" in str(result.exception)


def test_a_folder_without_a_log_is_refused(tmp_path: Path) -> None:
    assert "holds no log" in refused(TOPIC, "--log", tmp_path)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["orders"], "--bundles"),
        (["orders", "--bundles", "0"], "--bundles"),
        (["orders", "--bundles", "4", "--boundaries", __file__], "not both"),
        (["orders", "--boundaries", "nothing.json"], "nothing.json"),
    ],
)
def test_what_is_missing_or_contradicts_itself_is_a_usage_error(arguments: list[str], why: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert why in result.output


def test_what_is_no_topic_is_refused() -> None:
    result = run("a/b", "--bundles", 4)
    assert result.exit_code == 2
    assert "'a/b' is not a topic" in result.output


def test_a_segment_is_looked_up_by_its_whole_name_and_names_its_scalable_topic() -> None:
    """Where Pulsar 5.0.1 had it: tests/samples/scalable/topics.json."""
    answer = found("segment://t1/sc/s1/8000-bfff-2", "--bundles", 4)
    assert answer["bundle"] == "t1/sc/0x80000000_0xc0000000"
    assert (answer["scalableTopic"], answer["segment"], answer["keyHashes"]) == ("topic://t1/sc/s1", 2, "0x8000-0xbfff")
    assert (
        "segment    2 of topic://t1/sc/s1, key hashes 0x8000-0xbfff\n"
        in run("segment://t1/sc/s1/8000-bfff-2", "--bundles", 4).output
    )


def test_a_scalable_topic_is_looked_up_by_its_own_name_and_its_segments_are_pointed_to() -> None:
    answer = found("topic://t1/sc/s1", "--bundles", 4)
    assert answer["hash"] == topic_hash("topic://t1/sc/s1")
    assert (answer["scalableTopic"], "segment" in answer) == ("topic://t1/sc/s1", False)
    assert "segments   each in a bundle of its own" in run("topic://t1/sc/s1", "--bundles", 4).output


def test_a_segment_without_a_possible_range_is_refused() -> None:
    result = run("segment://t1/sc/s1/ffff-0000-2", "--bundles", 4)
    assert result.exit_code == 2
    assert "is not a segment" in result.output
