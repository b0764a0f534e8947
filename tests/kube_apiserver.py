"""A real API server of Kubernetes with its etcd, on loopback: for the manifests, and for the election by a Lease.

``python -m tests.kube_apiserver`` builds both from their Go modules into the folder of what is fetched; it takes some
twenty minutes of a processor.  Tests are skipped where neither that was done nor both are on the PATH.
"""

import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, Final
from urllib.error import URLError
from urllib.request import urlopen

import pytest
import yaml

from controller.adapters.disk.jars import FOLDER
from controller.adapters.process.tied_child import foreign, tied_child
from controller.lab.servers import free_port
from tests.helm import program

_KUBERNETES, _ETCD = "v1.36.3", "v3.6.13"
_FOLDER: Final = FOLDER / "kubernetes"
_HOW: Final = "no kube-apiserver and etcd: python -m tests.kube_apiserver builds them"
_START_SECONDS: Final = 120.0
_TOKEN: Final = "admin-token"
#: Of the API server's module, which names them by folders of its own.
_STAGED: Final = re.findall(
    r"\S+",
    """
    api apiextensions-apiserver apimachinery apiserver cli-runtime client-go cloud-provider cluster-bootstrap
    code-generator component-base component-helpers controller-manager cri-api cri-client cri-streaming
    csi-translation-lib dynamic-resource-allocation endpointslice externaljwt kms kube-aggregator
    kube-controller-manager kube-proxy kube-scheduler kubectl kubelet metrics mount-utils pod-security-admission
    sample-apiserver sample-cli-plugin sample-controller streaming
    """,
)


def _program(name: str) -> str | None:
    return shutil.which(name) or (str(_FOLDER / name) if (_FOLDER / name).exists() else None)


@dataclass(frozen=True, kw_only=True)
class ApiServer:
    """Where it answers, and how kubectl reaches it as somebody who may do everything."""

    url: str
    authority: Path
    kubeconfig: Path
    pid: int

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """It answers nothing until the block ends."""
        os.kill(self.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.pid, signal.SIGCONT)

    def kubectl(self, *words: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        """What `kubectl` *words* answers."""
        command = [program("kubectl"), "--kubeconfig", str(self.kubeconfig), *words]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=120, check=False)

    def done(self, *words: str, stdin: str = "") -> str:
        """The same, which has to succeed."""
        found = self.kubectl(*words, stdin=stdin)
        assert found.returncode == 0, found.stderr
        return found.stdout

    def apply(self, objects: list[Any], *words: str) -> str:
        """`kubectl apply` of *objects*."""
        return self.done("apply", *words, "-f", "-", stdin="---\n".join(map(yaml.safe_dump, objects)))


@contextmanager
def api_server() -> Iterator[ApiServer]:
    """One for the length of a block."""
    etcd, apiserver = _program("etcd"), _program("kube-apiserver")
    if etcd is None or apiserver is None:
        pytest.skip(_HOW)
    with TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        log = stack.enter_context((folder / "log").open("wb"))
        store, peer, port = (free_port() for _ in range(3))
        urls = [f"http://127.0.0.1:{each}" for each in (store, peer)]
        words = [
            "--data-dir",
            str(folder / "etcd"),
            "--listen-client-urls",
            urls[0],
            "--advertise-client-urls",
            urls[0],
        ]
        words += ["--listen-peer-urls", urls[1], "--initial-advertise-peer-urls", urls[1]]
        words += ["--initial-cluster", f"default={urls[1]}", "--unsafe-no-fsync"]
        _start(stack, [etcd, *words], log)
        key = folder / "accounts.key"
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True, timeout=60)
        (folder / "tokens.csv").write_text(f'{_TOKEN},admin,1,"system:masters"\n', encoding="utf-8")
        words = [f"--etcd-servers={urls[0]}", f"--cert-dir={folder / 'certs'}", "--bind-address=127.0.0.1"]
        words += [f"--secure-port={port}", "--service-cluster-ip-range=10.96.0.0/24", "--authorization-mode=RBAC"]
        words += [f"--token-auth-file={folder / 'tokens.csv'}", f"--service-account-key-file={key}"]
        words += [f"--service-account-signing-key-file={key}", "--service-account-issuer=https://kubernetes.default"]
        pid = _start(stack, [apiserver, *words], log)
        url, authority = f"https://127.0.0.1:{port}", folder / "certs" / "apiserver.crt"
        _wait_until_ready(url, folder / "log")
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(_kubeconfig(url, authority), encoding="utf-8")
        yield ApiServer(url=url, authority=authority, kubeconfig=kubeconfig, pid=pid)


def _start(stack: ExitStack, words: list[str], log: IO[bytes]) -> int:
    child = tied_child(foreign(words), stdout=log, stderr=log, environment=os.environ, new_session=True)
    return stack.enter_context(child).pid


def _wait_until_ready(url: str, log: Path) -> None:
    ends = time.monotonic() + _START_SECONDS
    while True:
        try:
            with urlopen(f"{url}/readyz", timeout=2, context=ssl._create_unverified_context()):
                return
        except (URLError, OSError):
            assert time.monotonic() < ends, log.read_text(encoding="utf-8", errors="replace")[-2000:]
            time.sleep(0.2)


def _kubeconfig(url: str, authority: Path) -> str:
    context = {"cluster": "test", "user": "admin"}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": url, "certificate-authority": str(authority)}}],
            "users": [{"name": "admin", "user": {"token": _TOKEN}}],
            "contexts": [{"name": "test", "context": context}],
        }
    )


def build() -> None:
    """Build both programs from their modules, by the Go that is on the PATH."""
    staged = "".join(
        f"replace k8s.io/{each} => k8s.io/{each} {_KUBERNETES.replace('v1', 'v0', 1)}\n" for each in _STAGED
    )
    programs = {
        "etcd": ("go.etcd.io/etcd/server/v3", f"require go.etcd.io/etcd/server/v3 {_ETCD}\n"),
        "kube-apiserver": (
            "k8s.io/kubernetes/cmd/kube-apiserver",
            f"require k8s.io/kubernetes {_KUBERNETES}\n{staged}",
        ),
    }
    # Without a version it calls itself v0.0.0, and refuses clients.
    flags = f"-s -w -X k8s.io/component-base/version.gitVersion={_KUBERNETES}"
    _FOLDER.mkdir(parents=True, exist_ok=True)
    for name, (package, requires) in programs.items():
        with TemporaryDirectory() as folder:
            Path(folder, "go.mod").write_text(f"module local/{name}\n\ngo 1.26\n\n{requires}", encoding="utf-8")
            words = ["go", "build", "-mod=mod", "-trimpath", "-ldflags", flags, "-o", str(_FOLDER / name), package]
            subprocess.run(words, cwd=folder, check=True, timeout=7200)


if __name__ == "__main__":
    build()
