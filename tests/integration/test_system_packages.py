"""The packages of Debian and RPM under dpkg and rpm: installed, upgraded, removed, installed again.

They hold an environment of one file, so that it takes seconds; test_release.py installs those of a release.
"""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.supply_chain.materials import ROOT
from tests.supply_chain.system_packages import FORMATS, write_system_packages

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to change into a copy of this system"),
]

_SCRIPT: Final = ROOT / "tests" / "installs" / "packages.sh"
_PROGRAMS: Final = {"deb": "dpkg", "rpm": "rpm"}
_RELOAD: Final = "systemctl daemon-reload"
_STOP: Final = "systemctl disable --now trimtab@run.service"
#: What stays when a package goes.
_OPERATORS: Final = {"/etc/trimtab/conf", "/var/lib/trimtab"}
_CACHE: Final = "/var/cache/trimtab"


def _packages(folder: Path, version: str, marker: str) -> dict[str, Path]:
    """A package of each format, of an environment that holds the file *marker*."""
    root, manual, out = folder / "root", folder / "manual", folder / "out"
    program = root / "opt" / "trimtab" / "bin" / "trimtab"
    for path in (program, program.parents[1] / marker, *(manual / name for name in _MANUAL)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    out.mkdir()
    write_system_packages(root, sources=ROOT, manual=manual, target=out, version=version, time=1_700_000_000)
    return {path.suffix.removeprefix("."): path for path in out.iterdir()}


_MANUAL: Final = ("man1/trimtab.1", "bash/trimtab", "zsh/_trimtab", "fish/trimtab.fish")


@pytest.fixture(scope="module")
def old_and_new(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Path]]:
    """The packages of two versions, by their format."""
    made = [_packages(tmp_path_factory.mktemp(name), f"0.1.{nth}", name) for nth, name in enumerate(("old", "new"))]
    return {form: (made[0][form], made[1][form]) for form in FORMATS}


def _life(form: str, old: Path, new: Path) -> dict[str, set[str]]:
    """What is there after each step of packages.sh, and what was asked of systemd."""
    if shutil.which(_PROGRAMS[form]) is None:
        pytest.skip(f"needs {_PROGRAMS[form]}")
    words = ["unshare", "--mount", "--net", "sh", str(_SCRIPT), form, str(old), str(new)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    if "mount" in done.stderr:
        pytest.skip(f"needs a file system over another one: {done.stderr}")
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    steps = [step.splitlines() for step in done.stdout.split("== ")[1:]]
    return {step[0]: set(step[1:]) for step in steps}


@pytest.mark.parametrize("form", FORMATS)
def test_an_upgrade_stops_no_service_and_a_removal_leaves_what_is_the_operators(
    old_and_new: dict[str, tuple[Path, Path]], form: str
) -> None:
    life = _life(form, *old_and_new[form])
    programs = {"/opt/trimtab", "/usr/bin/trimtab"}
    assert life["installed"] == programs | _OPERATORS | {"/opt/trimtab/old", _CACHE, _RELOAD}
    assert life["upgraded"] == programs | _OPERATORS | {"/opt/trimtab/new", _CACHE, _RELOAD}
    assert _STOP in life["removed"]
    # Debian keeps what is not a file of the package until the package is purged; RPM knows no such difference.
    assert life["removed"] - {_STOP, _RELOAD} == _OPERATORS | ({_CACHE} if form == "deb" else set())
    if form == "deb":
        assert life["purged"] - {_RELOAD} == _OPERATORS
    assert life["installed again"] == programs | _OPERATORS | {"/opt/trimtab/new", _RELOAD}
