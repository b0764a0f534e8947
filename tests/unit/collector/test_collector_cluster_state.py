"""What is read of the cluster besides its load: one failure is one namespace's, and policies do not fail open."""

import json
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import pytest

from controller.adapters.pulsar.admin import PulsarAdmin, PulsarError
from controller.aggregate.policies import policies_of
from controller.collector.cluster_state import ClusterState, Reading
from controller.model.errors import TrimtabError
from controller.model.policies import Policies
from controller.model.records import NamespaceState
from controller.wire.metrics import BundleData, NamespaceStateRecord
from tests.fake_pulsar import CLUSTER, SAMPLES, FakeBroker, FakePulsar, fake_pulsar

T, PERIOD = 1_795_233_660_000, 60_000
ALL = ["lab/ns-0", "lab/ns-1", "lab/ns-2"]
POLICY: dict[str, Any] = {
    "namespaces": ["lab/ns-1"],
    "primary": ["127.0.0.1"],
    "secondary": [],
    "auto_failover_policy": {"parameters": {"min_limit": "1", "usage_threshold": "80"}, "policy_type": "min_available"},
    "unload_scope": "none",
}
POLICIES = "namespaceIsolationPolicies"


@pytest.fixture
def pulsar() -> Iterator[FakePulsar]:
    with fake_pulsar(3) as pulsar:
        yield pulsar


def state_of(
    pulsar: FakePulsar, *, seconds: float = 5.0, stored: "Stored | None" = None, at_once: int = 8
) -> ClusterState:
    admin = PulsarAdmin(pulsar.urls[:1], cluster=CLUSTER, connect_seconds=30, read_seconds=30, connections=8)
    return ClusterState(admin, CLUSTER, stored, most_at_once=at_once, seconds=seconds)


def first(pulsar: FakePulsar) -> FakeBroker:
    """Whom all is asked of."""
    return pulsar.brokers[0]


def namespaces(found: Reading) -> dict[str, NamespaceStateRecord]:
    return {state.namespace: state for state in found.states if isinstance(state, NamespaceStateRecord)}


def test_a_namespace_that_cannot_be_read_does_not_affect_others_and_is_logged_once(
    pulsar: FakePulsar, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    state = state_of(pulsar)
    first(pulsar).broken = "ns-1/bundles"
    for i in range(3):
        assert list(namespaces(state.read(T + i * PERIOD, whole=i == 0))) == ["lab/ns-0", "lab/ns-2"]
    [told] = [record.message for record in caplog.records if "cannot read" in record.message]
    assert "cannot read 1 part of" in told
    assert "lab/ns-1: " in told
    assert "503" in told
    assert not [record for record in caplog.records if "can be read again" in record.message]
    first(pulsar).broken = "nothing"
    assert list(namespaces(state.read(T + 3 * PERIOD, whole=False))) == ALL
    assert caplog.records[-1].message == "all parts of the cluster's state can be read again"


@pytest.mark.parametrize("path", ["ns-1/bundles", "ns-1/antiAffinity"])
def test_an_answer_that_hangs_costs_one_namespace(pulsar: FakePulsar, path: str) -> None:
    state = state_of(pulsar, seconds=1.0)
    first(pulsar).silent = path
    begun = time.monotonic()
    assert list(namespaces(state.read(T, whole=True))) == ["lab/ns-0", "lab/ns-2"]
    assert time.monotonic() - begun < 10  # not as long as the broker hangs
    first(pulsar).silent = "nothing"
    assert list(namespaces(state.read(T + PERIOD, whole=True))) == ALL


def test_an_answer_that_hangs_keeps_no_thread_from_the_next_reading(pulsar: FakePulsar) -> None:
    state = state_of(pulsar, seconds=0.5, at_once=1)
    first(pulsar).silent = "ns-0/bundles"
    assert namespaces(state.read(T, whole=True)) == {}
    first(pulsar).silent, state.seconds = "nothing", 20.0
    assert list(namespaces(state.read(T + PERIOD, whole=True))) == ALL


def test_namespaces_are_read_side_by_side(pulsar: FakePulsar, monkeypatch: pytest.MonkeyPatch) -> None:
    pulsar.more = [f"lab/more-{i}" for i in range(61)]
    state = state_of(pulsar)
    boundaries = PulsarAdmin.boundaries

    two = threading.Barrier(2)

    def meet_another(self: PulsarAdmin, namespace: str) -> tuple[int, ...]:
        # Raises, and the namespace is not read, where no second call is under way at the same time.
        two.wait(timeout=10)
        return boundaries(self, namespace)

    monkeypatch.setattr(PulsarAdmin, "boundaries", meet_another)
    assert len(namespaces(state.read(T, whole=True))) == 64


def test_an_error_is_told_by_its_text_and_one_that_nobody_foresaw_with_its_type(
    pulsar: FakePulsar, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(self: PulsarAdmin, namespace: str) -> tuple[int, ...]:
        raise PulsarError("no such place") if namespace == "lab/ns-0" else ValueError("odd")

    monkeypatch.setattr(PulsarAdmin, "boundaries", fail)
    state_of(pulsar).read(T, whole=True)
    [told] = [record.message for record in caplog.records if "cannot read" in record.message]
    assert "lab/ns-0: no such place" in told
    assert "lab/ns-1: ValueError('odd')" in told


def test_of_more_namespaces_than_a_reading_asks_for_each_has_its_turn_with_its_group(
    pulsar: FakePulsar, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("controller.collector.cluster_state._MOST_NAMESPACES", 2)
    pulsar.more = ["lab/more-0", "lab/more-1"]
    state = state_of(pulsar)
    read = [sorted(namespaces(state.read(T + i * PERIOD, whole=i == 0))) for i in range(3)]
    assert read == [pulsar.more, ALL[:2], ["lab/more-0", "lab/ns-2"]]
    assert "namespaces: 3 of 5 are left for the next reads" in caplog.text
    asked = [path.split("/")[-2] for path in first(pulsar).asked if path.endswith("antiAffinity")]
    assert sorted(asked) == ["more-0", "more-1", "ns-0", "ns-1", "ns-2"], "of each once, though only one was whole"


def test_another_anti_affinity_group_is_known_from_the_next_whole_reading_on(
    pulsar: FakePulsar, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = "apart"
    monkeypatch.setattr(PulsarAdmin, "anti_affinity_group", lambda _admin, _namespace: group)
    state = state_of(pulsar)

    def known(interval: int, *, whole: bool) -> set[str | None]:
        return {each.anti_affinity_group for each in namespaces(state.read(interval, whole=whole)).values()}

    assert known(T, whole=True) == {"apart"}
    group = "far apart"
    assert known(T + PERIOD, whole=False) == {"apart"}, "groups seldom change, so they are not asked for each time"
    assert known(T + 2 * PERIOD, whole=True) == {"far apart"}


def test_a_policy_of_segments_is_read_with_the_whole_and_kept_where_it_cannot_be_read(
    pulsar: FakePulsar, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: dict[str, Any] = {"lab/ns-0": {"splitMsgRateInThreshold": 40.0}, "lab/ns-1": PulsarError("no", status=403)}

    def policy(_: PulsarAdmin, namespace: str) -> dict[str, Any]:
        answer = answers.get(namespace, {})
        if isinstance(answer, PulsarError):
            raise answer
        return dict(answer)

    monkeypatch.setattr(PulsarAdmin, "auto_scale_policy", policy)
    state = state_of(pulsar)

    def known(interval: int, *, whole: bool) -> list[dict[str, Any] | None]:
        found = namespaces(state.read(interval, whole=whole))
        policies = [found[name].auto_scale_policy for name in ALL]
        return [None if each is None else each.overrides for each in policies]

    assert known(T, whole=True) == [{"splitMsgRateInThreshold": 40.0}, None, None]
    answers = {"lab/ns-0": PulsarError("no", status=500), "lab/ns-2": {"enabled": False}}
    assert known(T + PERIOD, whole=False) == [{"splitMsgRateInThreshold": 40.0}, None, None]
    assert known(T + 2 * PERIOD, whole=True) == [{"splitMsgRateInThreshold": 40.0}, None, {"enabled": False}]


def test_brokers_before_5_0_are_asked_for_such_a_policy_once_or_twice_and_not_for_each_namespace(
    pulsar: FakePulsar,
) -> None:
    state = state_of(pulsar, at_once=1)
    assert [each.auto_scale_policy for each in namespaces(state.read(T, whole=True)).values()] == [None] * 3
    asked = [path for path in first(pulsar).asked if path.endswith("scalableTopicAutoScalePolicy")]
    assert len(asked) == 1


def test_a_namespace_that_was_deleted_and_is_there_again_is_asked_for_its_group(
    pulsar: FakePulsar, monkeypatch: pytest.MonkeyPatch
) -> None:
    group, pulsar.more = "apart", ["lab/more"]
    monkeypatch.setattr(PulsarAdmin, "anti_affinity_group", lambda _admin, _namespace: group)
    state = state_of(pulsar)
    assert namespaces(state.read(T, whole=True))["lab/more"].anti_affinity_group == "apart"
    group, pulsar.more = "far apart", []
    state.read(T + PERIOD, whole=False)
    pulsar.more = ["lab/more"]
    found = namespaces(state.read(T + 2 * PERIOD, whole=False))
    assert (found["lab/more"].anti_affinity_group, found["lab/ns-0"].anti_affinity_group) == ("far apart", "apart")


def test_namespaces_that_a_reading_did_not_come_to_come_first_in_the_next(
    pulsar: FakePulsar, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, boundaries = list[str](), PulsarAdmin.boundaries

    def note(self: PulsarAdmin, namespace: str) -> tuple[int, ...]:
        begun.append(namespace)
        return boundaries(self, namespace)

    monkeypatch.setattr(PulsarAdmin, "boundaries", note)
    admin = PulsarAdmin(pulsar.urls[:1], cluster=CLUSTER)
    state = ClusterState(admin, CLUSTER, None, most_at_once=1, seconds=20.0)
    first(pulsar).broken = "ns-2/bundles"
    state.read(T, whole=True)
    state.read(T + PERIOD, whole=False)
    assert begun == [*ALL, "lab/ns-2", "lab/ns-0", "lab/ns-1"]


@pytest.mark.slow
def test_many_unreadable_namespaces_are_summarised(pulsar: FakePulsar, caplog: pytest.LogCaptureFixture) -> None:
    pulsar.more = [f"lab/more-{i}" for i in range(200)]
    first(pulsar).broken = "/bundles"
    assert namespaces(state_of(pulsar).read(T, whole=True)) == {}
    [told] = [record.message for record in caplog.records if "cannot read" in record.message]
    assert "cannot read 203 parts of" in told
    assert "and 198 more" in told
    assert len(told) < 3000


def test_without_policies_no_namespace_is_published_and_with_old_ones_they_stay(pulsar: FakePulsar) -> None:
    state = state_of(pulsar)
    pulsar.policies = {"p": POLICY}
    first(pulsar).broken = POLICIES
    assert namespaces(state.read(T, whole=True)) == {}
    first(pulsar).broken = "nothing"
    found = namespaces(state.read(T + PERIOD, whole=False))
    assert list(found) == ALL, "asked again before everything is due"
    assert found["lab/ns-1"].isolation_policies == (POLICY,)
    first(pulsar).broken = POLICIES
    found = namespaces(state.read(T + 2 * PERIOD, whole=True))
    assert [each.isolation_policies for each in found.values()] == [None, (POLICY,), None]
    pulsar.policies = {}
    first(pulsar).broken = "nothing"
    assert namespaces(state.read(T + 3 * PERIOD, whole=False))["lab/ns-1"].isolation_policies is None


def known_of(records: Mapping[str, NamespaceStateRecord]) -> Policies:
    """What a controller makes of *records*."""
    states = [
        NamespaceState(namespace=name, version=1, boundaries=(), isolation_policies=record.isolation_policies or ())
        for name, record in records.items()
    ]
    return policies_of(states, ())


@pytest.mark.parametrize("others", [3, 200])
def test_a_namespace_that_cannot_be_read_is_not_free_of_a_policy_that_is_new_however_long_its_list_is(
    pulsar: FakePulsar, others: int
) -> None:
    """Its own record is older.  As a namespace without a policy its bundles went to brokers that the policy forbids."""
    state = state_of(pulsar)
    known = namespaces(state.read(T, whole=True))
    new = POLICY | {"namespaces": [*(f"acme/orders-{number}" for number in range(others)), *ALL[:2], "lab/.*-2"]}
    pulsar.policies = {"new": new}
    for broken in ("ns-1/bundles", "ns-2/bundles"):
        first(pulsar).broken = broken
        known = known | namespaces(state.read(T + PERIOD, whole=True))
        assert [known_of(known).isolation_of(name) is not None for name in ALL] == [True, True, True]
    first(pulsar).broken = "nothing"
    pulsar.policies = {"new": new | {"namespaces": new["namespaces"][:-1]}}
    known = known | namespaces(state.read(T + 2 * PERIOD, whole=True))
    assert [known_of(known).isolation_of(name) is not None for name in ALL] == [True, True, False]


@pytest.mark.parametrize("others", [0, 200])
def test_a_policy_for_a_namespace_alone_that_cannot_be_read_holds_for_it_and_for_no_other(
    pulsar: FakePulsar, others: int
) -> None:
    state = state_of(pulsar)
    known = namespaces(state.read(T, whole=True))
    alone = POLICY | {"namespaces": [*(f"acme/orders-{number}" for number in range(others)), "lab/ns-1"]}
    pulsar.policies = {"alone": alone, "of another": POLICY | {"namespaces": ["lab/ns-2"]}}
    first(pulsar).broken = "ns-1/bundles"
    known = known | namespaces(state.read(T + PERIOD, whole=True))
    policies = known_of(known)
    assert [policies.isolation_of(name) is not None for name in ALL] == [False, True, True]
    own = policies.isolation_of("lab/ns-1")
    assert own is not None
    assert own.primary == tuple(POLICY["primary"])
    assert [len(record.isolation_policies or ()) for record in known.values()] == [1, 0, 1]
    first(pulsar).broken = "nothing"
    read = namespaces(state.read(T + 2 * PERIOD, whole=True))
    assert [len(record.isolation_policies or ()) for record in read.values()] == [0, 1, 1], "its own record has it"


def test_a_policy_that_cannot_be_read_is_published_for_the_namespaces_that_it_names_and_logged_once(
    pulsar: FakePulsar, caplog: pytest.LogCaptureFixture
) -> None:
    # As a later Pulsar may have them.
    odd = POLICY | {"auto_failover_policy": {"policy_type": "most_available"}}
    state = state_of(pulsar)
    pulsar.policies = {"odd": odd}
    for i in range(2):
        found = namespaces(state.read(T + i * PERIOD, whole=i == 0))
        assert [each.isolation_policies for each in found.values()] == [None, (odd,), None]
    [told] = [record.message for record in caplog.records]
    assert "odd: isolation policy of lab/ns-1: policy_type 'most_available' is unknown" in told
    assert "bundles that they name stay where they are" in told


@pytest.mark.parametrize("odd", ["text", {"namespaces": "lab/ns-1"}, {"namespaces": [1]}])
def test_a_policy_of_another_form_might_name_any_namespace(pulsar: FakePulsar, odd: Any) -> None:
    pulsar.policies = {"odd": odd, "p": POLICY}
    found = namespaces(state_of(pulsar).read(T, whole=True))
    published = odd if isinstance(odd, dict) else {"unreadable": odd}
    assert [each.isolation_policies for each in found.values()] == [(published,), (published, POLICY), (published,)]


def test_of_many_policies_that_cannot_be_read_the_log_names_one_their_number_and_the_consequence(
    pulsar: FakePulsar, caplog: pytest.LogCaptureFixture
) -> None:
    pulsar.policies = {name: POLICY | {"namespaces": []} for name in "abcdefg"}
    state_of(pulsar).read(T, whole=True)
    [told] = [record.message for record in caplog.records]
    assert "namespaces must list regular expressions; and 6 more; bundles that they name stay where they are" in told


def test_policies_that_were_once_read_count_until_they_are_read_anew(pulsar: FakePulsar) -> None:
    state = state_of(pulsar)
    pulsar.policies = {"p": POLICY}
    state.read(T, whole=True)
    for broken in ("nothing", POLICIES, POLICIES):
        first(pulsar).broken = broken
        found = namespaces(state.read(T + PERIOD, whole=True))
        assert found["lab/ns-1"].isolation_policies == (POLICY,)


def test_tenants_that_cannot_be_listed_have_the_namespaces_of_before(
    pulsar: FakePulsar, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = state_of(pulsar)
    first(pulsar).broken = "/admin/v2/tenants"
    with pytest.raises(PulsarError, match="503"):
        state.read(T, whole=True)
    first(pulsar).broken = "nothing"
    state.read(T, whole=True)
    first(pulsar).broken = "/admin/v2/tenants"
    assert list(namespaces(state.read(T + PERIOD, whole=True))) == ALL
    first(pulsar).broken = "nothing"
    monkeypatch.setattr(PulsarAdmin, "namespaces", _refuse)
    assert list(namespaces(state.read(T + 2 * PERIOD, whole=True))) == ALL


def _refuse(_: PulsarAdmin, tenant: str) -> tuple[str, ...]:
    raise PulsarError(f"{tenant} is not told", status=500)


def test_an_unreachable_leader_broker_does_not_stop_the_reading(pulsar: FakePulsar) -> None:
    state = state_of(pulsar)
    leader = state.read(T, whole=True).leader
    first(pulsar).broken = "leaderBroker"
    found = state.read(T + PERIOD, whole=True)
    assert (found.leader, list(namespaces(found))) == (leader, ALL)


def test_the_leader_is_named_by_its_url_where_an_older_broker_says_no_more(pulsar: FakePulsar) -> None:
    answers = first(pulsar).reply

    def reply(path: str) -> tuple[int, Any]:
        return (200, {"serviceUrl": "http://broker-1:8080"}) if "leaderBroker" in path else answers(path)

    first(pulsar).reply = reply  # type: ignore[method-assign]
    assert state_of(pulsar).leader() == "broker-1:8080"


def test_during_an_election_there_is_no_leader(pulsar: FakePulsar, monkeypatch: pytest.MonkeyPatch) -> None:
    state = state_of(pulsar)
    assert state.read(T, whole=True).leader == first(pulsar).name

    def nobody(_: PulsarAdmin) -> str:
        raise PulsarError("no leader", status=404)

    monkeypatch.setattr(PulsarAdmin, "leader", nobody)
    found = state.read(T + PERIOD, whole=True)
    assert (found.leader, list(namespaces(found))) == ("", ALL)


class Stored:
    """Pulsar's metadata store: some namespaces fail."""

    def __init__(self, *failing: str) -> None:
        self.failing, self.asked = failing, list[str]()

    def of_namespace(self, namespace: str, skip: Collection[str]) -> Mapping[str, tuple[str, bytes]]:
        self.asked.append(namespace)
        if namespace in self.failing:
            raise TrimtabError("ZooKeeper is away")
        averages = json.dumps(json.loads((SAMPLES / "bundle_data.json").read_bytes())).encode()
        found = {f"{namespace}/0x00000000_0x40000000": ("bundle_data", averages)}
        return {bundle: each for bundle, each in found.items() if bundle not in skip}

    def close(self) -> None:
        pass


def stored_bundles(found: Reading) -> list[str]:
    return [state.bundle for state in found.states if isinstance(state, BundleData)]


def test_stored_averages_of_one_namespace_that_cannot_be_read_cost_the_others_nothing(pulsar: FakePulsar) -> None:
    found = state_of(pulsar, stored=Stored("lab/ns-1")).read(T, whole=True)
    assert list(namespaces(found)) == ALL
    assert [bundle.rpartition("/")[0] for bundle in stored_bundles(found)] == ["lab/ns-0", "lab/ns-2"]


def test_stored_averages_that_cannot_be_used_are_left_out_and_told_in_one_line(
    pulsar: FakePulsar, caplog: pytest.LogCaptureFixture
) -> None:
    class Odd(Stored):
        def of_namespace(self, namespace: str, skip: Collection[str]) -> Mapping[str, tuple[str, bytes]]:
            odd = {
                f"{namespace}/0x{start:x}0000000_0x{start + 1:x}0000000": ("bundle_data", b"{}") for start in range(9)
            }
            return {**odd, **super().of_namespace(namespace, skip)}

    found = state_of(pulsar, stored=Odd()).read(T, whole=True)
    assert len(stored_bundles(found)) == len(ALL)
    [told] = [record.message for record in caplog.records]
    assert "stored averages: 27 cannot be used, one of lab/ns-2/0x80000000_0x90000000: " in told


def test_a_metadata_store_that_is_away_is_left_alone_until_the_next_reading(pulsar: FakePulsar) -> None:
    pulsar.more = [f"lab/more-{i}" for i in range(20)]
    store = Stored(*ALL, *pulsar.more)
    assert len(namespaces(state_of(pulsar, stored=store).read(T, whole=True))) == 23
    assert len(store.asked) == 3


def test_stored_averages_of_known_bundles_are_not_read_again(pulsar: FakePulsar) -> None:
    state = state_of(pulsar, stored=Stored())
    bundles = stored_bundles(state.read(T, whole=True))
    assert len(bundles) == 3
    assert stored_bundles(state.read(T + PERIOD, whole=True, known_bundles=frozenset(bundles[1:]))) == bundles[:1]


def test_boundaries_that_are_none_are_one_namespaces_failure(pulsar: FakePulsar) -> None:
    pulsar.boundaries = ("0x00000000", "0x00000000")
    assert namespaces(state_of(pulsar).read(T, whole=True)) == {}


def test_no_more_stored_averages_are_read_at_once_than_there_is_room_for(
    pulsar: FakePulsar, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controller.collector.cluster_state._MOST_BUNDLES", 2)
    stored = Stored()
    state = state_of(pulsar, stored=stored)
    state.read(T, whole=True)
    assert stored.asked == ALL[:2]
    state.read(T + PERIOD, whole=True)
    assert stored.asked == [*ALL[:2], ALL[2], ALL[0]], "in turn"
