"""The manifests are valid for Kubernetes, and agree with each other and with what trimtab does."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from typer.main import get_command

from controller.cli.app import app
from controller.settings.trimtab_toml import Settings, read_settings
from streaming.spark.session import spark_options
from tests.supply_chain.materials import ROOT
from tests.unit.deploy.test_container import LAST
from tests.unit.deploy.test_systemd import ENDS_WITHIN

FOLDER: Final = ROOT / "deploy" / "kubernetes"
KUSTOMIZATION: Final[dict[str, Any]] = yaml.safe_load((FOLDER / "kustomization.yaml").read_text(encoding="utf-8"))


def _all() -> Iterator[dict[str, Any]]:
    for name in KUSTOMIZATION["resources"]:
        yield from yaml.safe_load_all((FOLDER / name).read_text(encoding="utf-8"))


OBJECTS: Final = list(_all())
DEPLOYMENTS: Final = {each["metadata"]["name"]: each for each in OBJECTS if each["kind"] == "Deployment"}
ROLES: Final = {
    "trimtab-collector": "collect",
    "trimtab-controller": "run",
    "trimtab-executor": "execute",
    "trimtab-page": "serve",
}


def _of(kind: str) -> dict[str, dict[str, Any]]:
    return {each["metadata"]["name"]: each for each in OBJECTS if each["kind"] == kind}


def _pod(name: str) -> dict[str, Any]:
    pod: dict[str, Any] = DEPLOYMENTS[name]["spec"]["template"]["spec"]
    return pod


def _container(name: str) -> dict[str, Any]:
    (container,) = _pod(name)["containers"]
    return dict(container)


@pytest.mark.parametrize("each", OBJECTS, ids=lambda each: f"{each['kind']} {each['metadata']['name']}")
def test_the_object_is_what_kubernetes_knows(each: dict[str, Any]) -> None:
    schemas = pytest.importorskip("kubernetes_validate", reason="comes with the next requirements.lock")
    schemas.validate(each, schemas.latest_version(), strict=True)


def test_every_file_is_used() -> None:
    assert {path.name for path in FOLDER.glob("*.yaml")} == {*KUSTOMIZATION["resources"], "kustomization.yaml"}
    (settings,) = KUSTOMIZATION["configMapGenerator"]
    assert {FOLDER / name for name in settings["files"]} == set((FOLDER / "settings").iterdir())


def test_each_process_has_two_replicas_of_which_one_at_a_time_may_be_missing() -> None:
    assert DEPLOYMENTS.keys() == ROLES.keys() == _of("PodDisruptionBudget").keys()
    for name, deployment in DEPLOYMENTS.items():
        labels = deployment["spec"]["selector"]["matchLabels"]
        assert labels == deployment["spec"]["template"]["metadata"]["labels"]
        assert deployment["spec"]["replicas"] == 2
        assert deployment["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}
        budget = _of("PodDisruptionBudget")[name]["spec"]
        assert (budget["maxUnavailable"], budget["selector"]["matchLabels"]) == (1, labels)


@pytest.mark.parametrize(("name", "command"), ROLES.items())
def test_the_container_starts_a_command_of_trimtab_with_options_that_there_are(name: str, command: str) -> None:
    words = list(_container(name)["args"])
    assert words[0] == command
    table: Any = get_command(app)
    with table.make_context("trimtab", words) as context:
        _, chosen, rest = table.resolve_command(context, [*context._protected_args, *context.args])
        assert chosen.make_context(command, rest, context).params["metrics"] == "0.0.0.0:9640"


@pytest.mark.parametrize("name", ROLES)
def test_probes_ask_what_trimtab_answers_where_it_listens(name: str) -> None:
    container = _container(name)
    port = container["ports"][0]
    assert container["args"][-1] == f"0.0.0.0:{port['containerPort']}"
    probed = {probe: container[f"{probe}Probe"]["httpGet"] for probe in ("startup", "liveness", "readiness")}
    assert {each["port"] for each in probed.values()} == {port["name"]}
    assert [each["path"] for each in probed.values()] == ["/healthz", "/healthz", "/readyz"]
    assert _pod(name)["terminationGracePeriodSeconds"] > ENDS_WITHIN


@pytest.mark.parametrize("name", ROLES)
def test_the_container_has_no_rights(name: str) -> None:
    pod, container = _pod(name), _container(name)
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    users = {pod["securityContext"][key] for key in ("runAsUser", "runAsGroup", "fsGroup")}
    assert [f"{user}:{user}" for user in users] == [step.rest for step in LAST if step.name == "USER"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod["automountServiceAccountToken"] is False
    assert _of("ServiceAccount")[pod["serviceAccountName"]]["automountServiceAccountToken"] is False
    assert not {"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"} & {each["kind"] for each in OBJECTS}
    assert container["resources"]["limits"]["memory"] == container["resources"]["requests"]["memory"]


@pytest.mark.parametrize("name", ROLES)
def test_each_mount_has_a_volume_and_secrets_are_files_of_the_process_alone(name: str) -> None:
    volumes = {volume["name"]: volume for volume in _pod(name)["volumes"]}
    mounts = {mount["name"]: mount for mount in _container(name)["volumeMounts"]}
    assert volumes.keys() == mounts.keys()
    assert volumes["secrets"]["secret"] == {"secretName": name, "defaultMode": 0o440}
    assert mounts["settings"]["mountPath"] == "/etc/trimtab/conf"
    assert "env" not in _container(name)


def test_only_the_controllers_have_the_state_and_share_it() -> None:
    with_state = {name for name in ROLES if "state" in {volume["name"] for volume in _pod(name)["volumes"]}}
    assert with_state == {"trimtab-controller"}
    assert _of("PersistentVolumeClaim")["trimtab-state"]["spec"]["accessModes"] == ["ReadWriteMany"]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """As the pods read them."""
    text = (FOLDER / "settings" / "trimtab.toml").read_text(encoding="utf-8")
    (tmp_path / "conf").mkdir()
    (tmp_path / "secrets").mkdir()
    for secret in re.findall(r'"\.\./secrets/([\w.-]+)"', text):
        (tmp_path / "secrets" / secret).write_text("secret")
    (tmp_path / "conf" / "trimtab.toml").write_text(text)
    return read_settings(tmp_path / "conf" / "trimtab.toml")


def test_the_settings_are_read_and_lie_where_the_pods_have_files(settings: Settings) -> None:
    assert settings.checkpoint.path.startswith(
        next(each["mountPath"] for each in _container("trimtab-controller")["volumeMounts"] if each["name"] == "state")
    )
    assert settings.decisions.mode == "dry_run"
    cores = _container("trimtab-controller")["resources"]["requests"]["cpu"]
    assert settings.spark.master == f"local[{cores}]"


def test_beside_the_heap_of_sparks_jvm_the_controllers_have_two_gigabytes(settings: Settings) -> None:
    heap = spark_options(settings.spark.shuffle_partitions, settings.spark.conf, ())["spark.driver.memory"]
    limit = _container("trimtab-controller")["resources"]["limits"]["memory"]
    assert int(heap.removesuffix("g")) + 2 <= int(limit.removesuffix("Gi"))


def test_nothing_reaches_the_pods_but_who_reads_the_metrics() -> None:
    everyone = _of("NetworkPolicy")["trimtab"]["spec"]
    labels = everyone["podSelector"]["matchLabels"].items()
    assert all(labels <= each["spec"]["template"]["metadata"]["labels"].items() for each in DEPLOYMENTS.values())
    assert everyone["policyTypes"] == ["Ingress", "Egress"]
    (ingress,) = everyone["ingress"]
    assert [port["port"] for port in ingress["ports"]] == [9640]
    assert all(rule.get("ports") for each in _of("NetworkPolicy").values() for rule in each["spec"].get("egress", ()))


def test_browsers_reach_the_page_alone_and_where_it_listens() -> None:
    (rule,) = _of("NetworkPolicy")["trimtab-page"]["spec"]["ingress"]
    assert [port["port"] for port in rule["ports"]] == [9680]
    assert "0.0.0.0:9680" in _container("trimtab-page")["args"]
    (port,) = _of("Service")["trimtab-page"]["spec"]["ports"]
    assert {each["name"]: each["containerPort"] for each in _container("trimtab-page")["ports"]}[
        port["targetPort"]
    ] == 9680


def test_the_page_has_tls_and_somebody_may_look(settings: Settings) -> None:
    assert settings.web.tls is not None
    assert settings.web.somebody_may_look
    assert settings.web.anonymous is None


def test_every_process_reaches_a_log_in_pulsar_as_well_as_one_in_kafka() -> None:
    ports = {port["port"] for rule in _of("NetworkPolicy")["trimtab"]["spec"]["egress"] for port in rule["ports"]}
    assert {9092, 9093, 6650, 6651, 8080, 8443} <= ports


def test_the_image_has_the_version_of_this_release() -> None:
    (image,) = KUSTOMIZATION["images"]
    assert image["name"] == _container("trimtab-controller")["image"]
    assert f'version = "{image["newTag"]}"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
