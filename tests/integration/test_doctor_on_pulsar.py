"""The doctor, `status` and `lookup --live` on a real Pulsar cluster, clean and then with balancing switched on."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import typer
import urllib3
from typer.testing import CliRunner

from controller.adapters.network.waiting import wait_for
from controller.adapters.pulsar.admin import PulsarAdmin
from controller.cli.doctor import doctor
from controller.cli.lookup import lookup
from controller.cli.status import status
from controller.doctor.before_acting import require_broker_balancing_off
from controller.lab.pulsar_server import CLUSTER, PulsarCluster
from controller.model.errors import SettingsError
from controller.settings.trimtab_toml import read_settings
from tests.integration.test_pulsar_cluster import put

pytestmark = pytest.mark.integration

SHEDDING = "loadBalancerSheddingEnabled"


@pytest.fixture
def conf(pulsar: PulsarCluster, tmp_path: Path) -> Path:
    (tmp_path / "broker.conf").write_text("", encoding="utf-8")
    # Brokers find no network card where there is none, or no /sys to find it in.
    capacity = "[[brokers]]\nmatch = '127.0.0.1'\nbandwidth_in_mbits = 1000\nbandwidth_out_mbits = 1000\n"
    (tmp_path / "capacity.toml").write_text(capacity, encoding="utf-8")
    path = tmp_path / "trimtab.toml"
    path.write_text(
        f"""cluster.name = "{CLUSTER}"
log = {{kind = "folder", folder.path = "log"}}
election = {{kind = "file", path = "election"}}
checkpoint.path = "checkpoint"
pulsar.admin_url = ["{pulsar.admin_urls[0]}"]
collector.capacity_overrides = "capacity.toml"
decisions.mode = "active"
""",
        encoding="utf-8",
    )
    return path


@pytest.fixture
def shedding(pulsar: PulsarCluster) -> Iterator[Callable[[], None]]:
    """Switches the brokers' own shedding on, and at the end off again: others use this cluster."""
    yield lambda: switch(pulsar, "true")
    switch(pulsar, "false")


def switch(pulsar: PulsarCluster, value: str) -> None:
    """As pulsar-admin brokers update-dynamic-config does; returns when every broker has heard of it."""
    path = f"/admin/v2/brokers/configuration/{SHEDDING}/{value}"
    answer = urllib3.request("POST", pulsar.admin_urls[0] + path)
    assert answer.status < 300, answer.data
    admin = PulsarAdmin(pulsar.admin_urls, cluster=CLUSTER)
    wait_for(lambda: all(admin.configuration(broker)[SHEDDING] == value for broker in pulsar.brokers), 20, every=0.05)


def run(command: Any, *arguments: object) -> tuple[int, dict[str, Any]]:
    app = typer.Typer()
    app.command()(command)
    answer = CliRunner().invoke(app, [*map(str, arguments), "--json"])
    return answer.exit_code, json.loads(answer.stdout)


def test_a_clean_cluster_is_healthy_until_its_brokers_balance_by_themselves(
    pulsar: PulsarCluster, conf: Path, shedding: Callable[[], None]
) -> None:
    code, answer = run(doctor, "--conf", conf)
    problems = {each["code"]: each for each in answer["findings"] if each["severity"] != "ok"}
    assert set(problems) == {"metrics-not-flowing"}, problems  # nobody collects
    assert (code, answer["healthy"]) == (0, True)
    fine = {each["code"]: each["objects"] for each in answer["findings"] if each["severity"] == "ok"}
    assert sorted(fine["balancing-off"]) == sorted(fine["clocks"]) == sorted(pulsar.brokers)
    assert {"permissions", "cluster-name", "broker-versions", "limits", "load-report-time"} <= set(fine)
    require_broker_balancing_off(read_settings(conf), mode="active")

    shedding()
    code, answer = run(doctor, "--conf", conf)
    (error,) = [each for each in answer["findings"] if each["severity"] == "error"]
    assert (code, error["code"], sorted(error["objects"])) == (1, "balancing-not-off", sorted(pulsar.brokers))
    with pytest.raises(SettingsError, match=f"{SHEDDING}=true"):
        require_broker_balancing_off(read_settings(conf), mode="active")


@pytest.fixture
def rules(pulsar: PulsarCluster) -> Iterator[Callable[[str, object], None]]:
    """Sets what is under a path of the admin API, and deletes it at the end: others use this cluster."""
    paths = list[str]()

    def put_there(path: str, body: object) -> None:
        call(pulsar, "POST", path, body)
        paths.append(path)

    yield put_there
    for path in reversed(paths):
        call(pulsar, "DELETE", path)


def call(pulsar: PulsarCluster, method: str, path: str, body: object = None) -> None:
    headers = {"Content-Type": "application/json"}
    data = None if body is None else json.dumps(body)
    answer = urllib3.request(method, f"{pulsar.admin_urls[0]}/admin/v2{path}", body=data, headers=headers)
    assert answer.status < 300, answer.data


def test_policies_domains_and_groups_that_do_not_fit_the_brokers_are_found(
    pulsar: PulsarCluster, conf: Path, rules: Callable[[str, object], None]
) -> None:
    put(pulsar, "/tenants/lab", {"allowedClusters": [CLUSTER]}, also_there=True)
    namespace = f"lab/doctor-{uuid4().hex[:8]}"
    put(pulsar, f"/namespaces/{namespace}", {"bundles": {"numBundles": 1}, "replication_clusters": [CLUSTER]})
    rules(f"/namespaces/{namespace}/antiAffinity", "doctor-apart")
    first, second, third = pulsar.brokers
    cluster = f"/clusters/{CLUSTER}"
    rules(f"{cluster}/failureDomains/rack-1", {"brokers": [first, f"http://{second}"]})
    rules(f"{cluster}/failureDomains/rack-2", {"brokers": [third]})
    failover = {"policy_type": "min_available", "parameters": {"min_limit": "1", "usage_threshold": "80"}}
    brokers = {"primary": ["127.0.0.1:8080"], "secondary": []}
    # Without unloading: brokers would wait for an owner, and there cannot be one.
    policy = {"namespaces": [namespace], **brokers, "auto_failover_policy": failover, "unload_scope": "none"}
    rules(f"{cluster}/namespaceIsolationPolicies/doctor", policy)

    code, answer = run(doctor, "--conf", conf)
    found = {each["code"]: each for each in answer["findings"] if each["severity"] != "ok"}
    assert code == 1
    assert {name: each["objects"] for name, each in found.items() if name != "metrics-not-flowing"} == {
        "isolation-policy-no-broker": ["doctor"],
        "failure-domain-unknown-broker": [f"http://{second}"],
        "broker-in-no-domain": [second],
        "failure-domains-off": [*sorted(pulsar.brokers), str(conf.with_name("broker.conf"))],
        "anti-affinity-alone": ["doctor-apart"],
    }
    assert "127.0.0.1" in found["isolation-policy-no-broker"]["advice"]


def test_a_load_manager_that_is_not_the_brokers_is_found(pulsar: PulsarCluster, conf: Path) -> None:
    conf.with_name("broker.conf").write_text("loadManagerClassName=ExtensibleLoadManagerImpl\n", encoding="utf-8")
    _, answer = run(doctor, "--conf", conf)
    (error,) = [each for each in answer["findings"] if each["severity"] == "error"]
    assert (error["code"], sorted(error["objects"])) == ("load-manager-not-ours", sorted(pulsar.brokers))


def bundle_of(pulsar: PulsarCluster, namespace: str, topic: str) -> str:
    """The bundle of *topic* by what the brokers say."""
    address = f"{pulsar.admin_urls[0]}/lookup/v2/topic/persistent/{namespace}/{topic}/bundle"
    return f"{namespace}/{urllib3.request('GET', address, redirect=True).data.decode()}"


def test_a_topic_and_its_bundle_are_found_on_the_cluster_and_get_no_owner_by_it(
    pulsar: PulsarCluster, conf: Path
) -> None:
    put(pulsar, "/tenants/lab", {"allowedClusters": [CLUSTER]}, also_there=True)
    namespace = f"lab/doctor-{uuid4().hex[:8]}"
    put(pulsar, f"/namespaces/{namespace}", {"bundles": {"numBundles": 4}, "replication_clusters": [CLUSTER]})
    topic = f"persistent://{namespace}/orders"
    code, found = run(lookup, topic, "--live", "--conf", conf)
    assert (code, found["bundles"], found["owner"]) == (0, 4, None)
    assert run(lookup, topic, "--live", "--conf", conf)[1]["owner"] is None

    admin = PulsarAdmin(pulsar.admin_urls, cluster=CLUSTER)
    put(pulsar, f"/persistent/{namespace}/orders")
    # Pulsar keeps the policies of topics in one of its own, which may lie in the same bundle.
    bundles = [bundle_of(pulsar, namespace, name) for name in ("orders", "__change_events")]
    assert found["bundle"] == bundles[0]
    code, told = run(status, found["bundle"], "--conf", conf)
    assert (code, told["owner"]) == (0, admin.owner(found["bundle"]))
    assert told["owner"] in pulsar.brokers
    assert told["load"]["topics"] <= bundles.count(bundles[0])  # brokers count their topics every few seconds
    even = run(status, "--conf", conf)[1]["imbalance"]
    assert even["brokers"] == 3
