"""Leadership by a Lease of Kubernetes, against an API server that is played."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from controller.adapters.folder.controls import FileControls
from controller.adapters.kubernetes.api import KubernetesUnreachableError, LeaseApi
from controller.adapters.kubernetes.leadership import LeaseLeadership, leader_of
from controller.adapters.network.waiting import wait_for
from controller.model.errors import (
    AccessDeniedError,
    AnotherClusterError,
    LeadershipLostError,
    StateError,
    TrimtabError,
)
from controller.model.leadership import Leader
from tests.contracts.leadership import Contender, LeadershipContract, after, patience
from tests.fake_kubernetes import FakeKubernetes, fake_kubernetes

pytestmark = pytest.mark.slow

SECONDS = 1.0
#: A leader that is not replaced while a test looks at it.
LONG = 60.0


@pytest.fixture
def api() -> Iterator[FakeKubernetes]:
    with fake_kubernetes() as server:
        yield server


@pytest.fixture
def lead(api: FakeKubernetes, tmp_path: Path) -> Iterator[Callable[..., LeaseLeadership]]:
    """One more contender."""
    made = list[LeaseLeadership]()

    def make(seconds: float = SECONDS, cluster: str = "demo", lease: LeaseApi | None = None) -> LeaseLeadership:
        epochs = FileControls(tmp_path, cluster="demo")
        made.append(LeaseLeadership(lease or api.api(), cluster=cluster, seconds=seconds, epochs=epochs))
        return made[-1]

    yield make
    for each in made:
        each.release()


class TestLeaseLeadership(LeadershipContract):
    @pytest.fixture
    def contender(self, lead: Callable[..., LeaseLeadership]) -> Contender:
        return lead

    @pytest.fixture
    def leader(self, api: FakeKubernetes) -> Callable[[], Leader | None]:
        return lambda: leader_of(api.api(), "demo")


def test_a_lease_is_renewed_while_its_holder_lives(lead: Callable[..., LeaseLeadership]) -> None:
    first, second = lead(), lead()
    assert first.acquire(patience())
    first.claim(0)
    ends = time.monotonic() + 2 * SECONDS
    assert not second.acquire(lambda: time.monotonic() > ends)
    first.check()


@pytest.mark.parametrize("refused", ["POST", "PUT"])
def test_who_finds_the_lease_changed_by_others_each_time_does_not_ask_without_a_pause(
    api: FakeKubernetes, lead: Callable[..., LeaseLeadership], refused: str
) -> None:
    if refused == "PUT":
        api.store("trimtab", {"metadata": {}, "spec": {}})
    api.fails = lambda method: 409 if method == refused else 0
    ends = time.monotonic() + SECONDS
    assert not lead().acquire(lambda: time.monotonic() > ends)
    assert len(api.requests) <= 20


def test_a_holder_that_is_silent_is_replaced_after_it_has_given_up_itself(
    api: FakeKubernetes, lead: Callable[..., LeaseLeadership]
) -> None:
    first, second, lost_at = lead(), lead(), list[float]()
    assert first.acquire(patience())
    first.claim(0)
    # The first one's renewals do not arrive any more.
    api.fails = lambda method: 500 if method == "PUT" and not lost_at else 0

    def look() -> bool:
        if first.lost() and not lost_at:
            lost_at.append(time.monotonic())
        return False

    assert second.acquire(lambda: look() or patience()())
    assert lost_at
    with pytest.raises(LeadershipLostError):
        first.check()
    assert first.lost()
    assert second.claim(0) == 2


def test_a_leader_whose_renewal_is_answered_too_late_does_not_lead_again_by_itself(
    api: FakeKubernetes, lead: Callable[..., LeaseLeadership]
) -> None:
    first, waits = lead(), threading.Event()
    assert first.acquire(patience())
    api.before = lambda method: method == "PUT" and waits.wait(10.0)
    wait_for(first.lost, 10.0, every=0.01)
    waits.set()
    time.sleep(SECONDS)
    assert first.lost()
    with pytest.raises(LeadershipLostError):
        first.check()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda api: api.edit(holderIdentity="someone"), "held by someone"),
        (lambda api: api.edit(holderIdentity=""), "held by nobody"),
        (lambda api: api.edit(holderIdentity=7), "held by nobody"),
        (lambda api: api.edit(annotations={"trimtab/cluster": "demo", "trimtab/epoch": "9"}), "is not 1"),
        (lambda api: api.edit(annotations={}), "is not 1"),
        (lambda api: api.edit(annotations="?"), "is not 1"),
        (lambda api: api.leases.clear(), "was deleted"),
    ],
)
def test_a_lease_that_somebody_edits_ends_the_leadership(
    api: FakeKubernetes, lead: Callable[..., LeaseLeadership], change: Callable[[FakeKubernetes], None], why: str
) -> None:
    first = lead(LONG)
    assert first.acquire(patience())
    first.claim(0)
    change(api)
    with pytest.raises(LeadershipLostError, match=why):
        first.check()
    assert first.lost()


def test_edits_that_do_not_concern_the_election_end_nothing(
    api: FakeKubernetes, lead: Callable[..., LeaseLeadership]
) -> None:
    first = lead()
    assert first.acquire(patience())
    first.claim(0)
    labelled = {**api.leases["trimtab"]["metadata"]["annotations"], "owner": "team"}
    api.edit(annotations=labelled, leaseTransitions=0, acquireTime=None)
    time.sleep(SECONDS)
    first.check()
    assert first.claim(0) == 2
    assert api.leases["trimtab"]["metadata"]["annotations"]["owner"] == "team"


@pytest.mark.parametrize("lost", ["the lease was deleted", "the epoch was removed", "the transitions were set back"])
def test_the_epoch_grows_whatever_is_done_to_the_lease(
    api: FakeKubernetes, lead: Callable[..., LeaseLeadership], lost: str
) -> None:
    first, second = lead(), lead()
    assert first.acquire(patience())
    assert first.claim(4) == 5
    if lost == "the lease was deleted":
        api.leases.clear()
    elif lost == "the epoch was removed":
        api.edit(annotations={"trimtab/cluster": "demo"}, holderIdentity="")
    else:
        api.edit(leaseTransitions=0, holderIdentity="")
    assert second.acquire(patience())
    assert second.claim(0) == 6


def test_stop_all_ends_the_leadership_by_the_epoch_beside_the_controls(
    lead: Callable[..., LeaseLeadership], tmp_path: Path
) -> None:
    first = lead(LONG)
    assert first.acquire(patience())
    first.claim(0)
    FileControls(tmp_path, cluster="demo").raise_epoch(7)
    with pytest.raises(LeadershipLostError, match="epoch 7 has begun"):
        first.check()
    assert first.acquire(patience())
    assert first.claim(0) == 8


@pytest.mark.parametrize("epoch", ["x", "", "-1", "9" * 30])
def test_an_epoch_that_is_none_is_named_with_what_to_do(
    api: FakeKubernetes, lead: Callable[..., LeaseLeadership], epoch: str
) -> None:
    first = lead(LONG)
    assert first.acquire(patience())
    api.edit(annotations={"trimtab/cluster": "demo", "trimtab/epoch": epoch})
    with pytest.raises(StateError, match="kubectl annotate lease trimtab trimtab/epoch-"):
        first.claim(0)


def test_one_of_many_at_once_leads(lead: Callable[..., LeaseLeadership]) -> None:
    contenders, leading = [lead() for _ in range(5)], list[LeaseLeadership]()
    threads = [
        threading.Thread(target=lambda each=each: leading.append(each) if each.acquire(after(3)) else None)
        for each in contenders
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(leading) == 1
    leading[0].check()


def test_a_lease_of_another_cluster_is_refused(api: FakeKubernetes, lead: Callable[..., LeaseLeadership]) -> None:
    assert lead(LONG).acquire(patience())
    with pytest.raises(AnotherClusterError, match=r"elects the leader of cluster 'demo', not of 'other'.*another name"):
        lead(cluster="other").acquire(patience())
    with pytest.raises(AnotherClusterError):
        leader_of(api.api(), "other")


def test_a_lease_that_another_program_holds_is_waited_for(
    api: FakeKubernetes, lead: Callable[..., LeaseLeadership]
) -> None:
    api.store("trimtab", {"metadata": {}, "spec": {"holderIdentity": "x", "leaseDurationSeconds": 2}})
    began, first = time.monotonic(), lead()
    assert first.acquire(patience())
    assert time.monotonic() - began >= 2.0


@pytest.mark.parametrize(
    "spec", [None, "?", {}, {"holderIdentity": None, "leaseTransitions": -1}, {"leaseDurationSeconds": "soon"}]
)
def test_a_lease_with_any_content_can_be_taken(
    api: FakeKubernetes, lead: Callable[..., LeaseLeadership], spec: Any
) -> None:
    api.store("trimtab", {"metadata": {}, "spec": spec})
    assert leader_of(api.api(), "demo") is None
    first = lead()
    assert first.acquire(patience())
    found = leader_of(api.api(), "demo")
    assert found is not None
    assert found.host == socket.gethostname()


@pytest.mark.parametrize(
    ("holder", "host", "process"),
    [
        ("pod-1_7_x", "pod-1", 7),
        ("pod-1_d1b7", "pod-1", 0),
        ("a_b_7_x", "a_b", 7),
        (f"pod-1_{'9' * 5000}_x", "pod-1", 0),
        ("pod-1_٧_x", "pod-1", 0),
        ("x" * 100_000, "", 0),
        ("pod\x1b[31m_7_x", "", 0),
    ],
    ids=["ours", "of client-go", "with a line", "a long number", "other digits", "long", "not printable"],
)
def test_whatever_holds_the_lease_is_shown_as_a_process(
    api: FakeKubernetes, holder: str, host: str, process: int
) -> None:
    times = {"acquireTime": "0001-01-01T00:00:00Z", "renewTime": "2999-01-01T00:00:00Z", "leaseDurationSeconds": 15}
    api.store("trimtab", {"metadata": {}, "spec": {"holderIdentity": holder, **times}})
    assert leader_of(api.api(), "demo") == Leader(host=host, process=process, since_ms=0)


@pytest.mark.parametrize(("status", "error"), [(403, AccessDeniedError), (401, AccessDeniedError), (500, None)])
def test_an_api_server_that_refuses_at_first_is_named(
    api: FakeKubernetes, lead: Callable[..., LeaseLeadership], status: int, error: type[TrimtabError] | None
) -> None:
    api.fails = lambda _: status
    with pytest.raises(error or KubernetesUnreachableError, match=f"lease pulsar/trimtab.*{status} refused"):
        lead().acquire(patience())


def test_an_api_server_that_goes_away_while_another_one_leads_is_waited_for(
    api: FakeKubernetes, lead: Callable[..., LeaseLeadership]
) -> None:
    first, second, failing = lead(), lead(), iter(range(10))
    assert first.acquire(patience())
    assert not second.acquire(after(1))
    first.release()
    api.fails = lambda _: 503 if next(failing, None) is not None else 0
    assert second.acquire(patience())


def test_what_is_agreed_on_is_what_the_first_one_proposed(lead: Callable[..., LeaseLeadership]) -> None:
    first, second = lead(), lead()
    assert first.acquire(patience())
    agreement = first.agreement("checkpoint")
    assert "trimtab/agreed-checkpoint of lease pulsar/trimtab" in agreement.where
    assert agreement.propose("a") == "a"
    first.release()
    assert second.acquire(patience())
    assert second.agreement("checkpoint").propose("b") == "a"


def test_an_answer_that_is_lost_leads_to_no_second_leader(
    api: FakeKubernetes, lead: Callable[..., LeaseLeadership]
) -> None:
    """The update was made, and its answer never came: the next try finds that it was."""
    first = lead(LONG)
    assert first.acquire(patience())
    answered, lose = api.answer, [True]

    def lost(method: str, path: str, query: str, body: Any) -> tuple[int, Any]:
        found = answered(method, path, query, body)
        if method == "PUT" and lose:
            lose.clear()
            return 500, {"message": "etcd timed out"}
        return found

    api.answer = lost  # type: ignore[method-assign]
    with pytest.raises(LeadershipLostError, match="etcd timed out"):
        first.claim(0)
    assert first.acquire(patience())
    assert first.claim(0) == 2
    first.check()


def test_the_token_is_read_for_each_request(api: FakeKubernetes, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("one\n")
    lease = api.api(token)
    api.demands = "Bearer one"
    assert lease.read() is None
    api.demands = "Bearer two"
    with pytest.raises(AccessDeniedError):
        lease.read()
    token.write_text("two")
    assert lease.read() is None


@pytest.mark.parametrize("content", [None, "", "a\nb", "é"])
def test_a_token_that_is_none_is_never_sent(api: FakeKubernetes, tmp_path: Path, content: str | None) -> None:
    token = tmp_path / "token"
    if content is not None:
        token.write_text(content, encoding="utf-8")
    with pytest.raises(AccessDeniedError, match=r"election\.lease\.token_file"):
        api.api(token).read()
    assert api.requests == []


def test_a_leader_that_ends_does_not_lead_any_more_when_it_gives_the_lease_back(
    api: FakeKubernetes, lead: Callable[..., LeaseLeadership]
) -> None:
    first, seen = lead(LONG), list[bool]()
    assert first.acquire(patience())
    api.before = lambda method: seen.append(first.lost()) if method == "PUT" else None
    first.release()
    assert seen == [True]
    assert api.leases["trimtab"]["spec"]["holderIdentity"] == ""


def test_a_holder_with_a_longer_duration_of_its_own_is_not_replaced_before_that(
    api: FakeKubernetes, lead: Callable[..., LeaseLeadership]
) -> None:
    patient, hasty = lead(4 * SECONDS), lead(SECONDS)
    assert patient.acquire(patience())
    api.fails = lambda method: 500 if method == "PUT" else 0
    ends = time.monotonic() + 2 * SECONDS
    assert not hasty.acquire(lambda: time.monotonic() > ends)
    assert not patient.lost()
