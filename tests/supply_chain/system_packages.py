"""The packages of Debian and RPM: the environment under /opt/trimtab, the unit, manual pages and completions."""

import os
import platform
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any, Final

import yaml

from controller.model.errors import TrimtabError
from tests.supply_chain.archives import compressed
from tests.supply_chain.environment import HOME, PYTHON

FORMATS: Final = ("deb", "rpm")
#: The same processor by the names of Go, which nfpm translates for each format.
_MACHINES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
#: Java 17 or newer without a screen: any of these.
_JAVA: Final = {
    "deb": "openjdk-17-jre-headless | openjdk-21-jre-headless | java17-runtime-headless",
    "rpm": "java-headless >= 1:17",
}
_USERS: Final = {"deb": "passwd", "rpm": "shadow-utils"}
_ZSH: Final = {"deb": "usr/share/zsh/vendor-completions", "rpm": "usr/share/zsh/site-functions"}


def write_system_packages(root: Path, *, sources: Path, manual: Path, target: Path, version: str, time: int) -> None:
    """Write a package of each format to the folder *target*, of the environment below *root*."""
    _write_documents(root, sources, manual)
    for path in [root, *root.rglob("*")]:
        os.utime(path, (time, time), follow_symlinks=False)
    for form in FORMATS:
        settings = root.with_name(f"{form}.yaml")
        settings.write_text(yaml.safe_dump(_settings(form, root, sources, manual, version)), encoding="utf-8")
        words = [_nfpm(), "package", "--config", str(settings), "--packager", form, "--target", f"{target}/"]
        environment = {"PATH": os.environ["PATH"], "SOURCE_DATE_EPOCH": str(time)}
        done = subprocess.run(words, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise TrimtabError(f"nfpm made no {form}:\n{done.stdout}{done.stderr}")


def _nfpm() -> str:
    program = Path(sysconfig.get_path("scripts")) / "nfpm"
    if not program.exists():
        raise TrimtabError(f"{program} is missing: source scripts/env, which installs requirements.lock")
    return str(program)


def _write_documents(root: Path, sources: Path, manual: Path) -> None:
    documents = root / "usr" / "share" / "doc" / "trimtab"
    documents.mkdir(parents=True)
    shutil.copy(sources / "LICENSE", documents / "copyright")
    shutil.copy(sources / "docs" / "licences.md", documents)
    pages = root / "usr" / "share" / "man" / "man1"
    pages.mkdir(parents=True)
    for page in sorted((manual / "man1").iterdir()):
        with (pages / f"{page.name}.gz").open("wb") as out, compressed(out) as zipped:
            zipped.write(page.read_bytes())


def _settings(form: str, root: Path, sources: Path, manual: Path, version: str) -> dict[str, Any]:
    """The configuration of nfpm for the format *form*."""
    machine = platform.machine()
    return {
        "name": "trimtab",
        "version": version,
        "release": "1",
        "arch": _MACHINES.get(machine, machine),
        "section": "admin",
        "maintainer": "The maintainers of trimtab <trimtab@example.org>",
        "description": "External load-balance controller for Apache Pulsar\nIt decides where bundles go, and says why.",
        "license": "Apache-2.0",
        "depends": [PYTHON, _JAVA[form], _USERS[form]],
        "recommends": ["ca-certificates"],
        "contents": _contents(form, root, sources, manual),
        "scripts": {
            "postinstall": str(sources / "deploy" / "packages" / "after-install.sh"),
            "preremove": str(sources / "deploy" / "packages" / "before-remove.sh"),
            "postremove": str(sources / "deploy" / "packages" / "after-remove.sh"),
        },
        "deb": {"compression": "zstd"},
        "rpm": {"compression": "zstd", "buildhost": "trimtab", "group": "Unspecified"},
    }


def _contents(form: str, root: Path, sources: Path, manual: Path) -> list[dict[str, Any]]:
    files = {
        "usr/lib/systemd/system/trimtab@.service": sources / "deploy" / "systemd" / "trimtab@.service",
        "usr/share/bash-completion/completions/trimtab": manual / "bash" / "trimtab",
        f"{_ZSH[form]}/_trimtab": manual / "zsh" / "_trimtab",
        "usr/share/fish/vendor_completions.d/trimtab.fish": manual / "fish" / "trimtab.fish",
    }
    return [
        {"src": str(root / "opt"), "dst": str(HOME.parent), "type": "tree"},
        {"src": str(root / "usr"), "dst": "/usr", "type": "tree"},
        {"src": f"{HOME}/bin/trimtab", "dst": "/usr/bin/trimtab", "type": "symlink"},
        {"dst": "/etc/trimtab", "type": "dir"},
        *({"src": str(path), "dst": f"/{name}", "file_info": {"mode": 0o644}} for name, path in files.items()),
    ]
