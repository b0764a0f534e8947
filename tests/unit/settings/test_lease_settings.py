"""[election.lease]: a Lease of Kubernetes elects the leader."""

from typing import Any

import pytest
from pydantic import ValidationError

from controller.adapters.kubernetes.api import lease_place
from controller.model.errors import SettingsError
from controller.settings.election import ElectionByFile, ElectionInZooKeeper, LeaseSettings

POD = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def lease(**values: Any) -> LeaseSettings:
    return LeaseSettings.model_validate({"namespace": "pulsar", **values})


def test_without_the_section_no_lease_is_used() -> None:
    election = {"kind": "zookeeper", "hosts": "zk:2181", "path": "/trimtab"}
    assert ElectionInZooKeeper.model_validate(election).lease is None
    found = ElectionInZooKeeper.model_validate({**election, "lease": {}}).lease
    assert found is not None
    assert (found.name, found.seconds) == ("trimtab", 15)


def test_a_lock_on_one_machine_goes_with_no_lease() -> None:
    with pytest.raises(ValidationError, match=r"no \[election\.lease\]"):
        ElectionByFile.model_validate({"kind": "file", "path": "lock", "lease": {}})


@pytest.mark.parametrize(
    "values",
    [
        {"name": "Trimtab"},
        {"name": "a/b"},
        {"name": ""},
        {"name": ".."},
        {"name": "x" * 254},
        {"namespace": "a.b"},
        {"namespace": "a/../b"},
        {"seconds": 1},
        {"seconds": 100_000},
        {"server": "http://api.example.org"},
        {"server": "https://api.example.org/path"},
        {"server": "api:6443"},
        {"server": "https://user:secret@api"},
        {"token": "x"},
    ],
)
def test_what_is_no_lease_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        lease(**values)


@pytest.mark.parametrize(
    ("host", "server"), [("10.96.0.1", "https://10.96.0.1:443"), ("fd00::1", "https://[fd00::1]:443")]
)
def test_a_pod_finds_the_api_server_in_its_environment(host: str, server: str) -> None:
    place = lease_place(lease(), {**POD, "KUBERNETES_SERVICE_HOST": host})
    assert str(place) == f"lease pulsar/trimtab at {server}"


def test_outside_of_a_pod_the_settings_have_to_say_where_the_api_server_is() -> None:
    assert lease_place(lease(server="https://api:6443/"), {}).server == "https://api:6443"
    with pytest.raises(SettingsError, match=r"election\.lease\.server: set it"):
        lease_place(lease(), {})
    with pytest.raises(SettingsError, match=r"election\.lease\.namespace: set it"):
        lease_place(lease(namespace=""), POD)
