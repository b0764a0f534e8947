"""The chart, rendered by helm: valid for Kubernetes, and the same as the kustomize base."""

import re
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from controller.settings.trimtab_toml import read_settings
from tests.helm import CHART, helm, rendered
from tests.unit.deploy.test_kubernetes import KUSTOMIZATION, OBJECTS

pytestmark = pytest.mark.integration

#: Arguments of each value set.
_SETS = {
    "default": (),
    **{path.stem.removesuffix("-values"): ("--values", str(path)) for path in (CHART / "ci").glob("*-values.yaml")},
}
#: Kinds that Kubernetes itself does not know.
_OF_THE_OPERATOR = {"ServiceMonitor", "PrometheusRule"}
#: Labels that the chart adds, for several releases in one namespace and as is usual for charts.
_ADDED_LABELS = {
    "app.kubernetes.io/instance",
    "app.kubernetes.io/managed-by",
    "app.kubernetes.io/part-of",
    "app.kubernetes.io/version",
    "helm.sh/chart",
}


def by_name(objects: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(each["kind"], each["metadata"]["name"]): each for each in objects}


@pytest.mark.parametrize("words", _SETS.values(), ids=_SETS)
def test_every_object_of_a_value_set_is_what_kubernetes_knows(words: tuple[str, ...]) -> None:
    schemas = pytest.importorskip("kubernetes_validate", reason="comes with the next requirements.lock")
    objects = rendered(*words)
    assert len(by_name(objects)) == len(objects) > 5
    for each in objects:
        assert each["apiVersion"]
        if each["kind"] not in _OF_THE_OPERATOR:
            schemas.validate(each, schemas.latest_version(), strict=True)


@pytest.mark.parametrize("words", _SETS.values(), ids=_SETS)
def test_helm_finds_nothing_wrong_with_the_chart(words: tuple[str, ...]) -> None:
    done = helm("lint", "--strict", str(CHART), *words)
    assert done.returncode == 0, done.stdout + done.stderr


def test_by_default_it_is_the_kustomize_base() -> None:
    chart, base = by_name(rendered()), by_name(OBJECTS)
    config = chart.pop(("ConfigMap", "trimtab-settings"))
    del base["Namespace", "trimtab"]  # helm makes the namespace, or finds it
    assert chart.keys() == base.keys()
    for key, each in base.items():
        # Labels of the objects themselves differ, those of pods and selectors do not.
        assert _comparable(chart[key] | {"metadata": {}}) == _comparable(each | {"metadata": {}}), key
    (generated,) = KUSTOMIZATION["configMapGenerator"]
    folder = CHART.parents[1] / "kubernetes"
    settings = [folder / name for name in generated["files"]]
    assert config["data"] == {path.name: path.read_text(encoding="utf-8") for path in settings}


def _comparable(each: Any) -> Any:
    """*each* without what a chart adds, and with the image that kustomize puts in."""
    if isinstance(each, dict):
        if {"key", "operator", "values"} <= each.keys() and each["key"] in _ADDED_LABELS:
            return None
        (image,) = KUSTOMIZATION["images"]
        changed = {"image": f"{image['newName']}:{image['newTag']}"} if each.get("image") == image["name"] else {}
        left_out = {*_ADDED_LABELS, "checksum/settings", "imagePullPolicy"}
        values = {key: _comparable(value) for key, value in (each | changed).items() if key not in left_out}
        if values.get("type") == "ClusterIP":  # what a Service without a type is
            del values["type"]
        # A label or an annotation that was added alone leaves an empty one behind.
        return {key: value for key, value in values.items() if value != {} or key not in ("labels", "annotations")}
    if isinstance(each, list):
        return [value for item in each if (value := _comparable(item)) is not None]
    return each


def test_two_releases_in_a_namespace_have_nothing_in_common() -> None:
    east, west = (by_name(rendered(release=name)) for name in ("east", "west"))
    assert not east.keys() & west.keys()
    selectors = [
        {str(each["spec"]["selector"]["matchLabels"]) for (kind, _), each in objects.items() if kind == "Deployment"}
        for objects in (east, west)
    ]
    assert not selectors[0] & selectors[1]


def test_settings_are_taken_as_they_are_and_a_change_of_them_restarts_the_processes(tmp_path: Path) -> None:
    texts = ['# {{ .Values }}\n[cluster]\nname = "a"\n', '# {{ .Values }}\n[cluster]\nname = "b"\n']
    checksums = []
    for text in texts:
        (tmp_path / "trimtab.toml").write_text(text, encoding="utf-8")
        objects = by_name(rendered("--set-file", f"settings.trimtab={tmp_path / 'trimtab.toml'}"))
        assert objects["ConfigMap", "trimtab-settings"]["data"]["trimtab.toml"] == text
        pods = objects["Deployment", "trimtab-executor"]["spec"]["template"]
        checksums.append(pods["metadata"]["annotations"]["checksum/settings"])
    assert checksums[0] != checksums[1]


def test_the_example_settings_are_those_that_trimtab_reads(tmp_path: Path) -> None:
    data = by_name(rendered())["ConfigMap", "trimtab-settings"]["data"]
    for folder in ("conf", "secrets"):
        (tmp_path / folder).mkdir()
    for name, text in data.items():
        (tmp_path / "conf" / name).write_text(text, encoding="utf-8")
    for secret in re.findall(r'"\.\./secrets/([\w.-]+)"', data["trimtab.toml"]):
        (tmp_path / "secrets" / secret).write_text("secret", encoding="utf-8")
    assert read_settings(tmp_path / "conf" / "trimtab.toml").decisions.mode == "dry_run"


def test_alerts_of_the_chart_are_those_of_conf_and_lead_to_the_readers_docs() -> None:
    objects = by_name(rendered(*_SETS["operator"]))
    rules = objects["PrometheusRule", "trimtab"]["spec"]["groups"]
    text = (CHART / "files" / "trimtab.rules.yml").read_text(encoding="utf-8")
    text = text.replace("https://trimtab.example.org/docs", "https://docs.example.com/trimtab")
    assert rules == yaml.safe_load(text)["groups"]
    [endpoint] = objects["ServiceMonitor", "trimtab"]["spec"]["endpoints"]
    assert re.fullmatch("trimtab.*", endpoint["relabelings"][0]["replacement"])


def test_what_is_watched_is_every_process_once() -> None:
    objects = by_name(rendered(*_SETS["operator"]))
    service = objects["Service", "trimtab-metrics"]
    selector = service["spec"]["selector"].items()
    deployments = [each for (kind, _), each in objects.items() if kind == "Deployment"]
    assert all(selector <= each["spec"]["template"]["metadata"]["labels"].items() for each in deployments)
    monitor = objects["ServiceMonitor", "trimtab"]["spec"]["selector"]["matchLabels"].items()
    services = {name: each["metadata"]["labels"].items() for (kind, name), each in objects.items() if kind == "Service"}
    assert [name for name, labels in services.items() if monitor <= labels] == ["trimtab-metrics"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--set", "colector.replicas=1"), "colector"),
        (("--set", "page.ingress.enabled=true"), "host"),
        (("--set", "collector.replicas=0"), "replicas"),
    ],
)
def test_helm_refuses_a_mistake_by_the_schema(words: tuple[str, ...], why: str) -> None:
    done = helm("template", "trimtab", str(CHART), *words)
    assert done.returncode != 0
    assert why in done.stderr


def test_the_package_holds_files_and_no_links(tmp_path: Path) -> None:
    done = helm("package", str(CHART), "--destination", str(tmp_path))
    assert done.returncode == 0, done.stderr
    [package] = tmp_path.glob("*.tgz")
    with tarfile.open(package) as archive:
        members = {each.name: each for each in archive.getmembers()}
    assert members["trimtab/files/trimtab.rules.yml"].isreg()
    assert all(each.isreg() for each in members.values())
