"""Anonymised recordings: no name is left, and decisions are the same with other names."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.adapters.recordings.manifest import RecordedSettings, recorded_settings
from controller.adapters.recordings.reading import Recording
from controller.adapters.recordings.record_log import Extent, Extents, RecordedTopic, RecordLog, StoredRecord
from controller.adapters.recordings.writing import RecordingWriter
from controller.engine import decide_interval
from controller.log.factory import records_in
from controller.model.controls import Controls
from controller.model.decision import Command
from controller.model.errors import TrimtabError
from controller.model.isolation import BrokerAddresses, Isolation
from controller.model.isolation_policies import isolation_policy
from controller.model.java_regex import Expressions
from controller.model.names import topic_hash
from controller.model.topic_kinds import kind_of
from controller.model.topic_name import parse_topic
from controller.offline.pseudonyms.anonymise import Anonymiser
from controller.offline.pseudonyms.isolation import IsolationPseudonyms
from controller.offline.pseudonyms.names import Pseudonyms
from controller.offline.record import AnonymiserOf, RecordRequest, record
from controller.offline.replay import LogReplay
from controller.settings.trimtab_toml import read_settings
from controller.simulator.cluster import ClusterShape, ModelledCluster
from controller.simulator.encode import arrow_records, topic_records
from tests.modelled_log import played, settings_in
from tests.recordings import SETTINGS, MemoryRecordLog, stored
from tests.records import (
    CLUSTER,
    LEFT,
    T,
    as_bytes,
    broker_load,
    broker_state,
    bundle_data,
    load_report,
    namespace_state,
)  # fmt: skip

pytestmark = pytest.mark.slow

KEY = b"sixteen bytes or more"
_EAGER = "loadBalancerLoadSheddingStrategy=UniformLoadShedder\nmaxUnloadPercentage=0.5\n"
_MORE = f'decisions = {{mode = "active", seed = 5, excluded = ["tenant/ns-9", "{LEFT}"]}}'
#: What the modelled cluster's names have in them.
NAMES = (b"tenant", b"ns-1", b"ns-2", b"ns-3", b"topic-0", b"broker-", b'"demo"')


TOPICS: tuple[RecordedTopic, ...] = ("metrics", "results", "journal")


class KilledError(Exception):
    """In place of kill -9."""


class Dying(MemoryRecordLog):
    """Dies after so many records that are copied; names are gathered from another log."""

    def __init__(self, log: MemoryRecordLog, after: int) -> None:
        super().__init__(log.topics)
        self.after = after

    def read(self, topic: RecordedTopic, extents: Extents) -> Iterator[StoredRecord]:
        for number, each in enumerate(super().read(topic, extents)):
            if number == self.after:
                raise KilledError
            yield each


@pytest.fixture(scope="module")
def conf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = settings_in(tmp_path_factory.mktemp("live"), broker_conf=_EAGER, more=_MORE)
    played(path, 8)
    return path


def anonymiser_of(log: RecordLog, settings: RecordedSettings) -> AnonymiserOf:
    return partial(Anonymiser, log, settings=settings, cluster=CLUSTER, key=KEY)


@pytest.fixture(scope="module")
def recording(conf: Path) -> Path:
    folder, settings = conf.parent / "other", recorded_settings(read_settings(conf))
    log = records_in(conf.parent / "log")
    record(log, folder, RecordRequest(), settings, CLUSTER, anonymiser_of=anonymiser_of(log, settings))
    return folder


def test_no_name_is_left_in_any_byte(conf: Path, recording: Path) -> None:
    found = [path.read_bytes() for path in recording.rglob("*") if path.is_file()]
    log = Recording(recording)
    found += [
        each.value + (each.key or b"") for topic in log.manifest.topics for each in log.read(topic, log.extents(topic))
    ]
    live = b"".join(path.read_bytes() for path in (conf.parent / "log").rglob("*") if path.is_file())
    for name in NAMES:
        assert name in live
        assert not [content for content in found if name in content], name


def test_no_name_is_left_of_a_recording_that_was_killed(conf: Path, tmp_path: Path) -> None:
    """At any time, and it goes on where it was."""
    log, settings = records_in(conf.parent / "log"), recorded_settings(read_settings(conf))
    for after in (0, 30):
        folder, dying = (
            tmp_path / str(after),
            MemoryRecordLog({each: [*log.read(each, log.extents(each))] for each in TOPICS}),
        )
        writer = RecordingWriter(folder, file_records=8)
        with pytest.raises(KilledError):
            record(Dying(dying, after), folder, RecordRequest(), settings, CLUSTER,
                   anonymiser_of=anonymiser_of(log, settings), writer=writer)  # fmt: skip
        kept = (folder / "progress.json").read_bytes()
        assert not [name for name in (*NAMES, CLUSTER.encode()) if name in kept]
        record(dying, folder, RecordRequest(), settings, CLUSTER, anonymiser_of=anonymiser_of(log, settings))
        assert Recording(folder).manifest.anonymised


def test_the_manifest_has_other_names_too(recording: Path) -> None:
    manifest = Recording(recording).manifest
    assert manifest.anonymised
    assert manifest.cluster.startswith("clu-")
    assert [name[:4] for name in manifest.settings.decisions.excluded] == ["ten-", "ten-"]
    assert manifest.settings.decisions.excluded[1].endswith("/0x00000000_0x80000000")
    assert set(manifest.topics) == {"metrics", "results"}


def commands(log: RecordLog, conf: Path, cluster: str) -> Iterator[Command]:
    settings = recorded_settings(read_settings(conf))
    policy = settings.policy(cluster)
    memory = policy.initial_memory(settings.decisions.seed)
    for snapshot in LogReplay(log, settings, policy).snapshots():
        entry = decide_interval([snapshot], memory, Controls(mode="active"), policy)
        memory = entry.memory
        yield from entry.decision.commands


def test_decisions_are_the_same_with_other_names_and_results_belong_to_them(conf: Path, recording: Path) -> None:
    log, other = records_in(conf.parent / "log"), Recording(recording)
    names = Pseudonyms(KEY, brokers=[f"broker-{i}:8080" for i in range(1, 7)])
    found = [*commands(log, conf, CLUSTER)]
    expected = [
        (
            each.interval,
            each.action,
            names.bundle(each.bundle),
            names.broker(each.source),
            names.broker(each.destination),
        )
        for each in found
    ]
    renamed = [*commands(other, conf, other.manifest.cluster)]
    assert [(each.interval, each.action, each.bundle, each.source, each.destination) for each in renamed] == expected
    assert len(expected) > 3
    answered = {json.loads(each.value).get("id") for each in other.read("results", other.extents("results"))} - {None}
    assert answered <= {each.id for each in renamed}
    assert answered


def test_every_kind_of_record_has_other_names_or_nothing() -> None:
    cluster = ModelledCluster(ClusterShape(bundles=6, topics=20), seed=1, name=CLUSTER)
    policy = {"namespaces": ["tenant/.*"], "primary": ["broker-1.*"], "secondary": [], "autoFailoverPolicy": None}
    roster = {"v": 1, "type": "tick", "cluster": CLUSTER, "interval": T, "partitions": {"metrics": 1, "results": 1},
              "roster": [{"broker": "broker-1:8080", "sweepId": "broker-1:8080@1"}]}  # fmt: skip
    values = [
        as_bytes(roster),
        as_bytes(namespace_state(antiAffinityGroup="tenant-group", isolationPolicies=[policy])),
        as_bytes(broker_state(failureDomain="tenant-domain")),
        as_bytes(bundle_data()),
        as_bytes(broker_load()),
        as_bytes(load_report()),
        b'{"tenant":',
        b'{"v":1,"cluster":"tenant-else","type":"tick"}',
        *(value for sweep in cluster.sweeps(T) for _, value in [*arrow_records(sweep), *topic_records(sweep)]),
    ]
    log = MemoryRecordLog(
        {
            "metrics": [
                stored(i, value, at=T, key=b"tenant", headers=(("tenant", b""),)) for i, value in enumerate(values)
            ]
        }
    )
    other = anonymiser_of(log, SETTINGS)(log.extents("metrics"), {}, ())
    renamed = [other.rewrite("metrics", each) for each in log.topics["metrics"]]
    for each in renamed:
        assert not [name for name in (*NAMES, b"topic-0", b"acme") if name in each.value + (each.key or b"")], (
            each.value
        )
        assert each.headers == ()
    assert [each.value for each in renamed].count(b'{"v":1,"type":"removed"}') == 2
    told = json.loads(renamed[1].value)["isolationPolicies"][0]
    assert (len(told["namespaces"]), len(told["primary"]), told["secondary"]) == (1, 1, [])
    assert told["primary"][0].startswith("\\Qb1-host-")


NAME = st.text(st.characters(exclude_characters="/", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=30)


@given(
    st.builds("persistent://{}/{}/{}".format, NAME, NAME, NAME) | st.text(),
    st.sampled_from(["", "-partition-0", "-partition-123"]),
)
def test_a_topic_keeps_its_place_on_the_ring_and_its_partition(name: str, end: str) -> None:
    other = Pseudonyms(KEY).topic(name + end)
    assert topic_hash(other) == topic_hash(name + end)
    assert other.endswith(end)


_SEGMENT = st.builds(
    lambda ends, number: f"{min(ends):04x}-{max(ends):04x}-{number}",
    st.tuples(*[st.integers(0, 0xFFFF)] * 2),
    st.integers(0, 2**63 - 1),
)
_LOCAL = st.sampled_from(["orders", "orders-partition-3", "a/b", "a%2Fb", "0000-ffff-0"]) | NAME


@given(_LOCAL, st.lists(_SEGMENT, min_size=2, max_size=4, unique=True))
def test_a_segment_keeps_its_place_its_range_and_its_number_and_shares_its_topics_name(
    local: str, segments: list[str]
) -> None:
    names = Pseudonyms(KEY)
    given_names = [f"segment://acme/prod/{local}/{segment}" for segment in segments]
    if any(not _is_topic(name) for name in given_names):
        return
    renamed = [names.topic(name) for name in given_names]
    assert [topic_hash(name) for name in renamed] == [topic_hash(name) for name in given_names]
    found = [parse_topic(name) for name in renamed]
    assert [str(each.segment) for each in found] == segments
    assert len({each.local_name for each in found}) == 1, "one topic, one name"
    assert {each.namespace for each in found} == {names.namespace("acme/prod")}
    assert {each.partition_index for each in found} == {parse_topic(given_names[0]).partition_index}
    assert not [name for name in renamed if "acme" in name or "orders" in name]
    # The digits at the end bring it to another place.
    [topic] = {each.local_name[:14] for each in found}
    whole = parse_topic(names.topic(f"topic://acme/prod/{local}"))
    assert (whole.domain, whole.local_name[:14]) == ("topic", topic)
    assert whole.position == topic_hash(f"topic://acme/prod/{local}")


def _is_topic(name: str) -> bool:
    try:
        return str(parse_topic(name)) == name
    except TrimtabError:
        return False


def test_names_differ_by_key_and_are_the_same_for_one_key() -> None:
    one, same, other = Pseudonyms(KEY), Pseudonyms(KEY), Pseudonyms(KEY[::-1])
    for name in ("a/b", "a/c", "pulsar/broker:8080", "sla-monitor/us/broker:8080"):
        assert one.namespace(name) == same.namespace(name) != other.namespace(name)
    assert one.namespace("pulsar/system") == "pulsar/system"
    assert one.namespace("a/b").split("/")[0] == one.namespace("a/c").split("/")[0]
    assert one.namespace("a/b").split("/")[1] != one.namespace("c/b").split("/")[1]


def test_brokers_that_are_known_keep_their_order_and_their_ports() -> None:
    brokers = [f"host-{i}:8080" for i in range(12)]
    names = Pseudonyms(KEY, brokers=brokers)
    renamed = [names.broker(each) for each in sorted(brokers)]
    assert renamed == sorted(renamed)
    assert all(each.endswith(":8080") for each in renamed)


def test_a_policy_that_thousands_of_namespaces_name_is_read_once_and_stays_short() -> None:
    policy = {"namespaces": ["tenant/.*"], "primary": ["broker-1.*"], "secondary": [], "autoFailoverPolicy": None}
    values = [as_bytes(namespace_state(namespace=f"tenant/ns-{i}", isolationPolicies=[policy])) for i in range(50)]
    log = MemoryRecordLog({"metrics": [stored(i, value, at=T) for i, value in enumerate(values)]})
    with patch("controller.offline.pseudonyms.isolation.Expressions", wraps=Expressions) as matching:
        other = anonymiser_of(log, SETTINGS)(log.extents("metrics"), {}, ())
        renamed = [other.rewrite("metrics", each).value for each in log.topics["metrics"]]
    assert matching.call_count <= 6
    assert max(map(len, renamed)) < 1000


@pytest.mark.parametrize("match_ids", [False, True])
@pytest.mark.parametrize("primary", ["h", "h:80", "h:8.", "i|h:81", "(?:i|h:80)", "h:(?>8|80)"])
def test_expressions_match_the_same_brokers_of_one_host_under_their_pseudonyms(primary: str, match_ids: bool) -> None:
    brokers = ["h:80", "h:81", "i:80"]
    names = Pseudonyms(KEY, brokers=brokers)
    policy = {"namespaces": ["acme/ns"], "primary": [primary], "secondary": []}
    renamed = IsolationPseudonyms(names, brokers, ["acme/ns"]).policy(policy)

    def primary_of(policy: Mapping[str, Any], brokers: Sequence[str]) -> tuple[list[bool], list[bool]]:
        read, addresses = isolation_policy(policy), BrokerAddresses.of(brokers, match_ids=match_ids)
        rules = Isolation((read,))
        return rules.of_brokers(read.primary, addresses).tolist(), rules.reserved(addresses).tolist()

    assert primary_of(renamed, [names.broker(each) for each in brokers]) == primary_of(policy, brokers)


def test_an_expression_that_is_not_understood_stays_one() -> None:
    policy = {"namespaces": ["tenant/ns", "tenant/(?U)x"], "primary": [r"(a)\1"], "secondary": []}
    log = MemoryRecordLog({"metrics": [stored(0, as_bytes(namespace_state(isolationPolicies=[policy])), at=T)]})
    other = anonymiser_of(log, SETTINGS)(log.extents("metrics"), {}, ())
    told = json.loads(other.rewrite("metrics", log.topics["metrics"][0]).value)["isolationPolicies"][0]
    assert [bool(Expressions([each]).refused) for each in told["namespaces"]] == [False, True]
    assert [bool(Expressions([each]).refused) for each in told["primary"]] == [True]


def test_the_journal_is_read_of_the_time_that_is_recorded(tmp_path: Path) -> None:
    minute = 60_000
    records = [stored(i, at=T + i * minute) for i in range(200)]
    log = MemoryRecordLog({"metrics": records, "journal": records})
    with patch.object(log, "read", wraps=log.read) as read:
        wanted = RecordRequest(from_ms=T + 100 * minute, to_ms=T + 120 * minute)
        record(log, tmp_path / "new", wanted, SETTINGS, CLUSTER, anonymiser_of=anonymiser_of(log, SETTINGS))
    assert [call.args for call in read.call_args_list if call.args[0] == "journal"] == [
        ("journal", {0: Extent(39, 120)})
    ]


def test_a_namespace_without_a_tenant_has_another_name(tmp_path: Path) -> None:
    log = MemoryRecordLog({"metrics": [stored(0, as_bytes(namespace_state(namespace="acme")), at=T)]})
    record(log, tmp_path / "new", RecordRequest(), SETTINGS, CLUSTER, anonymiser_of=anonymiser_of(log, SETTINGS))
    new = Recording(tmp_path / "new")
    (renamed,) = new.read("metrics", new.extents("metrics"))
    assert json.loads(renamed.value)["namespace"].startswith("nsp-")


@pytest.mark.parametrize(
    "name",
    ["acme://a/b/c", "persistent://a", "http://acme/x/y/z", "acme", "segment://acme/b/c/3fff-0000-0",
     "topic://acme/b/ ", "segment://a/b/c/acme-3fff-0", "segment://a/b/c/0000-3fff-acme", "segment://a/b/acme"],
)  # fmt: skip
def test_a_topic_whose_name_is_none_is_replaced_whole(name: str) -> None:
    other = Pseudonyms(KEY).topic(name)
    assert "acme" not in other
    assert topic_hash(other) == topic_hash(name)


@pytest.mark.parametrize(
    "name",
    [
        "non-persistent://a/b/c",
        "non-persistent://a/x/b/c-partition-7",
        "non-persistent://odd",
        "persistent://a/b/c",
        "segment://a/b/c/0000-7fff-0",
        "odd",
    ],
)
def test_a_topic_stays_persistent_or_not(name: str) -> None:
    other = Pseudonyms(KEY).topic(name)
    assert (kind_of(other), topic_hash(other)) == (kind_of(name), topic_hash(name))
