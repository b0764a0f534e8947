"""What the doctor says of the Lease that elects the leader."""

from collections.abc import Iterator

import pytest

from controller.adapters.kubernetes.leadership import require_rights
from controller.doctor.facts import LeaseFacts
from controller.model.errors import AccessDeniedError, AnotherClusterError
from tests.doctor import only, problems
from tests.fake_kubernetes import FakeKubernetes, fake_kubernetes

PLACE = "lease trimtab/trimtab at https://10.96.0.1:443"


@pytest.fixture
def api() -> Iterator[FakeKubernetes]:
    with fake_kubernetes() as server:
        yield server


@pytest.mark.parametrize(
    ("facts", "code"),
    [
        (LeaseFacts(place=PLACE, error="no answer"), "lease-unreachable"),
        (LeaseFacts(place=PLACE, error="403", is_forbidden=True), "lease-forbidden"),
        (LeaseFacts(place=PLACE, error="east's", is_of_another=True), "lease-of-another-cluster"),
    ],
)
def test_a_lease_that_cannot_be_used_is_an_error(facts: LeaseFacts, code: str) -> None:
    found = only(lease=facts)
    assert (found.code, found.severity, found.objects) == (code, "error", (PLACE,))


def test_a_lease_that_can_be_used_and_none_at_all_are_fine() -> None:
    assert problems(lease=LeaseFacts(place=PLACE)) == []
    assert problems(lease=None) == []


@pytest.mark.parametrize("there", [True, False])
def test_looking_at_the_rights_changes_nothing(api: FakeKubernetes, there: bool) -> None:
    if there:
        api.store("trimtab", {"metadata": {}, "spec": {"holderIdentity": "x"}})
    before = dict(api.leases)
    require_rights(api.api(), "demo")
    assert api.leases == before
    assert api.requests[-1][1].endswith("?dryRun=All")


@pytest.mark.parametrize("method", ["GET", "POST", "PUT"])
def test_a_right_that_is_missing_is_found(api: FakeKubernetes, method: str) -> None:
    if method == "PUT":
        api.store("trimtab", {"metadata": {}, "spec": {}})
    api.fails = lambda asked: 403 if asked == method else 0
    with pytest.raises(AccessDeniedError, match="the account needs get, create and update of leases"):
        require_rights(api.api(), "demo")


def test_the_lease_of_another_cluster_is_found(api: FakeKubernetes) -> None:
    api.store("trimtab", {"metadata": {"annotations": {"trimtab/cluster": "east"}}, "spec": {}})
    with pytest.raises(AnotherClusterError):
        require_rights(api.api(), "demo")
