"""scripts/release: two releases of a commit are the same bytes, and what they hold is installed as users do it.

artifacts/installs has a transcript of each install.
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path
from typing import Final

import pytest

from controller.adapters.disk.jars import FOLDER
from controller.adapters.disk.places import CACHE
from controller.wire.ed25519 import SigningKey
from tests.helm import helm
from tests.installs.image import UnpackedImage
from tests.supply_chain.materials import ROOT

pytestmark = [pytest.mark.integration, pytest.mark.extended]

_VERSION: Final = version("trimtab")
#: Another user, another day, if the host has what it takes: a test as root may make namespaces.
_OTHERS: Final = (
    *(("faketime", "-f", "+400d") if shutil.which("faketime") else ()),
    *(("unshare", "--user", "--map-user=12345", "--map-group=12345") if os.geteuid() == 0 else ()),
)
#: It is made of Debian 12's packages, by whichever apt is here.
_IS_DEBIAN_12: Final = "bookworm" in Path("/etc/os-release").read_text(encoding="utf-8")
_IMAGE: Final = ("--image",) if _IS_DEBIAN_12 else ()
_OTHER_ENVIRONMENT: Final = {
    "COLUMNS": "40",
    "HOME": "/nonexistent",
    "LC_ALL": "tr_TR.UTF-8",
    "PYTHONHASHSEED": "7",
    "SOURCE_DATE_EPOCH": "1",
    "TZ": "Asia/Kathmandu",
    "USER": "somebody",
}


def _clone(folder: Path) -> Path:
    """A clean clone of the commit that is tested."""
    subprocess.run(["git", "clone", "-q", str(ROOT), str(folder)], check=True)
    return folder


def _release(clone: Path, *before: str, umask: int = 0o022, **environment: str) -> Path:
    """What scripts/release runs, in the environment of the tests."""
    out, key = clone.parent / "release", clone.parents[1] / "key.pem"
    words = [*before, sys.executable, "-m", "tests.supply_chain.release", _VERSION, "--draft"]
    env = os.environ | {CACHE: str(FOLDER)} | environment
    words += ["--out", str(out), "--key", str(key), *_IMAGE]
    done = subprocess.run(words, cwd=clone, env=env, umask=umask, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a release of the commit that is checked out."""
    folder = tmp_path_factory.mktemp("releases")
    (folder / "key.pem").write_bytes(SigningKey.new().pem)
    return _release(_clone(folder / "one" / "clone"))


def test_it_is_the_same_in_another_folder_for_another_user_and_locale_and_on_another_day(release: Path) -> None:
    clone = _clone(release.parents[1] / "an other one" / "with a longer name")
    other = _release(clone, *_OTHERS, umask=0o077, **_OTHER_ENVIRONMENT, LOCPATH=str(_locales(clone.parent)))
    names = sorted(path.name for path in release.iterdir())
    assert names == sorted(path.name for path in other.iterdir())
    assert len(names) > 10
    assert [name for name in names if (release / name).read_bytes() != (other / name).read_bytes()] == []


def _locales(folder: Path) -> Path:
    """A folder with the locale of _OTHER_ENVIRONMENT, if this host has its source: Debian's package locales."""
    target = folder / "locales"
    target.mkdir()
    if shutil.which("localedef"):
        words = ["localedef", "-i", "tr_TR", "-f", "UTF-8", str(target / _OTHER_ENVIRONMENT["LC_ALL"])]
        subprocess.run(words, capture_output=True, check=False)
    return target


def test_what_sha256sum_and_openssl_say_of_it(release: Path) -> None:
    public = _output("openssl", "pkey", "-in", "../../key.pem", "-pubout", at=release)
    (release.parent / "public.pem").write_bytes(public)
    assert b"FAILED" not in _output("sha256sum", "--check", "--strict", "SHA256SUMS", at=release)
    verify = "openssl pkeyutl -verify -pubin -inkey ../public.pem -rawin -in SHA256SUMS -sigfile SHA256SUMS.sig"
    assert b"Verified Successfully" in _output(*verify.split(), at=release)


def _output(*words: str, at: Path) -> bytes:
    done = subprocess.run(words, cwd=at, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_nothing_of_it_names_the_folder_that_it_was_made_in(release: Path) -> None:
    for archive in release.glob("*gz"):
        with tarfile.open(archive) as opened:
            contents = {each.name: opened.extractfile(each) for each in opened if each.isreg()}
            found = [name for name, file in contents.items() if file and str(release.parent).encode() in file.read()]
        assert found == []


def test_helm_takes_the_chart(release: Path) -> None:
    chart = str(release / f"trimtab-{_VERSION}-chart.tgz")
    assert helm("lint", "--strict", chart).returncode == 0
    done = helm("template", "trimtab", chart, "--kube-version", "1.34.0")
    assert done.returncode == 0, done.stderr
    assert f"/trimtab:{_VERSION}" in done.stdout


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_finds_nothing_wrong_with_the_units_of_the_package(release: Path) -> None:
    (deb,), root = release.glob("*.deb"), release.parent / "root"
    _output("dpkg-deb", "--extract", str(deb), str(root), at=release)
    for target in ("basic", "multi-user", "network-online", "shutdown", "sysinit"):
        (root / "usr" / "lib" / "systemd" / "system" / f"{target}.target").write_text("[Unit]\n", encoding="utf-8")
    words = ["systemd-analyze", "verify", "--man=no", f"--root={root}", "trimtab@run.service"]
    run = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("debootstrap") is None, reason="needs root and debootstrap: scripts/bare"
)
@pytest.mark.parametrize(("kind", "ending"), [("deb", ".deb"), ("rpm", ".rpm"), ("wheel", ".whl"), ("pipx", ".whl")])
def test_it_is_installed_in_a_bare_debian_and_decides_within_two_minutes(
    kind: str, ending: str, release: Path, tmp_path: Path
) -> None:
    (file,) = release.glob(f"*{ending}")
    (tmp_path / file.name).symlink_to(file)
    shutil.copy(ROOT / "tests" / "installs" / "install.sh", tmp_path)
    words = [str(ROOT / "scripts" / "bare"), "--cache", str(FOLDER / "bare"), "--files", str(tmp_path)]
    words += ["sh", "-x", "install.sh", kind]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    _keep(kind, done.stdout)
    assert done.returncode == 0, done.stdout
    assert _says_its_version(done.stdout)
    assert f"OK {kind}" in done.stdout.splitlines()
    # On a machine that does nothing else this is more than it takes.
    (seconds,) = re.findall(r"^\d+ s, (\d+) s of processor time: .* demo ", done.stdout, re.MULTILINE)
    assert int(seconds) <= 120


@pytest.mark.skipif(os.geteuid() != 0 or not _IS_DEBIAN_12, reason="needs root and Debian 12: the image is made of it")
def test_the_image_decides_without_root_on_a_read_only_file_system(release: Path, tmp_path: Path) -> None:
    image = UnpackedImage.of(release / f"trimtab-{_VERSION}-image.oci.tar", tmp_path)
    assert image.config["User"] == "10001:10001"
    told, demo = image.run("--version"), image.run("demo", "--intervals", "3", "--folder", "/tmp/demo")
    _keep("image", f"{told.stdout}\n{demo.stdout}")
    assert (told.returncode, demo.returncode) == (0, 0), (told.stdout, demo.stdout)
    assert _says_its_version(told.stdout)
    known = "import ssl; print(ssl.create_default_context().cert_store_stats()['x509_ca'])"
    assert int(image.run("-c", known, program="/opt/trimtab/bin/python").stdout) > 100, "authorities that TLS trusts"
    refused = image.run("demo", "--intervals", "1")
    assert refused.returncode == 1
    assert "Read-only file system; choose another folder with --folder" in refused.stdout


def _keep(kind: str, transcript: str) -> None:
    file = ROOT / "artifacts" / "installs" / f"{kind}.txt"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(transcript, encoding="utf-8")


def _says_its_version(transcript: str) -> bool:
    commit = _output("git", "rev-parse", "--short=12", "HEAD", at=ROOT).decode().strip()
    return f"trimtab {_VERSION} (commit {commit}, Spark {version('pyspark')})" in transcript
