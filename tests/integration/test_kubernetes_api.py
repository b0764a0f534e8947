"""On a real API server: the election by a Lease with the rights of its Role, and every manifest that we ship.

No kubelet runs here, so nothing starts; objects are checked, defaulted and admitted as on a cluster.
"""

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml

from controller.adapters.folder.controls import FileControls
from controller.adapters.kubernetes.api import LeaseApi, LeasePlace
from controller.adapters.kubernetes.leadership import LeaseLeadership, leader_of, require_rights
from controller.model.errors import AccessDeniedError, LeadershipLostError
from controller.model.leadership import Leader
from tests.contracts.leadership import Contender, LeadershipContract, patience
from tests.helm import CHART, rendered
from tests.kube_apiserver import ApiServer, api_server
from tests.unit.deploy.test_kubernetes import FOLDER

pytestmark = pytest.mark.integration

SECONDS = 2.0
NAMESPACE = "trimtab"
NAMESPACE_OBJECT = yaml.safe_load((FOLDER / "namespace.yaml").read_text(encoding="utf-8"))
#: Kinds of the Prometheus operator, which is not there.
_OF_THE_OPERATOR = {"ServiceMonitor", "PrometheusRule"}
_SETS = {
    "default": (),
    **{path.stem.removesuffix("-values"): ("--values", str(path)) for path in (CHART / "ci").glob("*-values.yaml")},
    "lease": ("--set", "lease.enabled=true"),
}


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    with api_server() as started:
        started.apply([NAMESPACE_OBJECT])
        yield started


@pytest.fixture(scope="module")
def token(server: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That of the account which the component `lease` gives its Role."""
    server.apply(
        kustomized(server, tmp_path_factory.mktemp("lease"), "components: [lease]\n", "ServiceAccount", "Role")
    )
    return token_of(server, tmp_path_factory.mktemp("token") / "token", "trimtab")


def token_of(server: ApiServer, file: Path, account: str) -> Path:
    file.write_text(server.done("--namespace", NAMESPACE, "create", "token", account), encoding="utf-8")
    return file


def kustomized(server: ApiServer, folder: Path, more: str = "", *kinds: str) -> list[Any]:
    """The objects of the kustomize base with *more* lines; of *kinds* alone, which also names the bindings of roles."""
    shutil.copytree(FOLDER, folder, dirs_exist_ok=True)
    with (folder / "kustomization.yaml").open("a", encoding="utf-8") as file:
        file.write(more)
    objects = list(yaml.safe_load_all(server.done("kustomize", str(folder))))
    return [each for each in objects if not kinds or each["kind"].removesuffix("Binding") in kinds]


def api(server: ApiServer, token: Path, name: str = "trimtab") -> LeaseApi:
    place = LeasePlace(
        server=server.url,
        namespace=NAMESPACE,
        name=name,
        token_file=str(token),
        trust_certs=str(server.authority),
    )
    return LeaseApi(place, answer_seconds=SECONDS)


@pytest.fixture
def contender(server: ApiServer, token: Path, tmp_path: Path) -> Iterator[Callable[[], LeaseLeadership]]:
    """One more contender; the Lease is deleted before, as its Role knows one name alone."""
    server.done("--namespace", NAMESPACE, "delete", "lease", "trimtab", "--ignore-not-found")
    made = list[LeaseLeadership]()

    def make() -> LeaseLeadership:
        epochs = FileControls(tmp_path, cluster="demo")
        made.append(LeaseLeadership(api(server, token), cluster="demo", seconds=SECONDS, epochs=epochs))
        return made[-1]

    yield make
    for each in made:
        each.release()


class TestLeaseLeadershipOnARealApiServer(LeadershipContract):
    @pytest.fixture
    def contender(self, contender: Callable[[], LeaseLeadership]) -> Contender:
        return contender

    @pytest.fixture
    def leader(self, server: ApiServer, token: Path) -> Callable[[], Leader | None]:
        return lambda: leader_of(api(server, token), "demo")


def test_a_leader_that_dies_is_replaced_and_its_epoch_is_passed(contender: Callable[[], LeaseLeadership]) -> None:
    first, second = contender(), contender()
    assert first.acquire(patience())
    assert first.claim(0) == 1
    first._end.set()  # its renewals end, as where the process is gone
    began = time.monotonic()
    assert second.acquire(patience())
    assert time.monotonic() - began > SECONDS / 2
    assert second.claim(0) == 2
    with pytest.raises(LeadershipLostError):
        first.check()


@pytest.mark.parametrize(
    "words",
    [
        ["delete", "lease", "trimtab"],
        ["annotate", "lease", "trimtab", "trimtab/epoch-"],
        ["patch", "lease", "trimtab", "--type=merge", "--patch", '{"spec": {"holderIdentity": "someone"}}'],
    ],
    ids=lambda words: words[0],
)
def test_what_a_person_does_to_the_lease_ends_the_leadership(
    server: ApiServer, contender: Callable[[], LeaseLeadership], words: list[str]
) -> None:
    first = contender()
    assert first.acquire(patience())
    first.claim(0)
    server.done("--namespace", NAMESPACE, *words)
    with pytest.raises(LeadershipLostError):
        first.check()
    assert first.acquire(patience())
    assert first.claim(0) == 2


def test_the_role_lets_the_account_use_this_lease_and_no_other(server: ApiServer, token: Path, tmp_path: Path) -> None:
    server.done("--namespace", NAMESPACE, "delete", "lease", "trimtab", "--ignore-not-found")
    require_rights(api(server, token), "demo")
    with pytest.raises(AccessDeniedError, match="cannot get resource"):
        require_rights(api(server, token, "another"), "demo")
    server.done("--namespace", NAMESPACE, "create", "serviceaccount", name := f"stranger-{uuid4().hex[:8]}")
    with pytest.raises(AccessDeniedError, match="cannot get resource"):
        require_rights(api(server, token_of(server, tmp_path / "token", name)), "demo")
    answer = server.kubectl("auth", "can-i", "--list", "--token", token.read_text(), "--namespace", NAMESPACE)
    assert "pods" not in answer.stdout
    assert "secrets" not in answer.stdout


@pytest.mark.parametrize("more", ["", "components: [lease]\n"], ids=["base", "lease"])
def test_the_kustomize_base_is_accepted_and_applying_it_again_changes_nothing(
    server: ApiServer, tmp_path: Path, more: str
) -> None:
    objects = kustomized(server, tmp_path, more)
    server.apply(objects, "--server-side", "--dry-run=server")
    server.apply(objects, "--server-side", "--force-conflicts")
    # Warnings are about what a cluster will not run, as pods that its namespace does not admit.
    found = server.kubectl("diff", "--server-side", "--force-conflicts", "-f", "-", stdin=yaml.safe_dump_all(objects))
    assert (found.returncode, found.stdout, found.stderr) == (0, "", "")


@pytest.mark.parametrize("words", _SETS.values(), ids=_SETS)
def test_every_value_set_of_the_chart_is_accepted(server: ApiServer, words: tuple[str, ...]) -> None:
    objects = [each for each in rendered(*words) if each["kind"] not in _OF_THE_OPERATOR]
    server.apply([{**NAMESPACE_OBJECT, "metadata": {**NAMESPACE_OBJECT["metadata"], "name": "charts"}}])
    namespaced = [{**each, "metadata": {**each["metadata"], "namespace": "charts"}} for each in objects]
    text = server.apply(namespaced, "--server-side", "--force-conflicts", "--dry-run=server", "--warnings-as-errors")
    assert len(text.splitlines()) == len(namespaced)


def test_pods_of_the_base_are_admitted_as_restricted(server: ApiServer, tmp_path: Path) -> None:
    """The pods themselves, which no controller makes here."""
    objects = kustomized(server, tmp_path)
    server.apply([each for each in objects if each["kind"] == "ServiceAccount"])
    for each in objects:
        if each["kind"] == "Deployment":
            pod = {**each["spec"]["template"], "apiVersion": "v1", "kind": "Pod"}
            pod["metadata"] = {**pod["metadata"], "name": each["metadata"]["name"], "namespace": NAMESPACE}
            server.apply([pod], "--dry-run=server")
            text = yaml.safe_dump({**pod, "spec": {**pod["spec"], "hostNetwork": True}})
            assert "violates PodSecurity" in server.kubectl("apply", "--dry-run=server", "-f", "-", stdin=text).stderr
