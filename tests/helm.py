"""A real helm for tests: the one on the PATH, or in the folder of what is fetched."""

import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from controller.adapters.disk.jars import FOLDER

CHART: Final = Path(__file__).parents[1] / "deploy" / "helm" / "trimtab"
_PROGRAM: Final = FOLDER / "helm" / "helm"
#: A helm that `go install` built renders for an old version unless it is given one.
_KUBERNETES: Final = ("--kube-version", "1.34.0")
_HOW: Final = "no helm: GOBIN=$PWD/.jars/helm go install helm.sh/helm/v3/cmd/helm@v3.18.6"


def helm(*words: str) -> "subprocess.CompletedProcess[str]":
    """What `helm` *words* answers.  The test is skipped where there is no helm."""
    program = shutil.which("helm") or (str(_PROGRAM) if _PROGRAM.exists() else None)
    if program is None:
        pytest.skip(_HOW)
    return subprocess.run([program, *words], capture_output=True, text=True, timeout=120, check=False)


def rendered(*words: str, release: str = "trimtab", namespace: str = "trimtab") -> list[dict[str, Any]]:
    """The objects of the chart for *release*; *words*: more arguments of `helm template`."""
    done = helm("template", release, str(CHART), "--namespace", namespace, *_KUBERNETES, *words)
    assert done.returncode == 0, done.stderr
    return [each for each in yaml.safe_load_all(done.stdout) if each is not None]
