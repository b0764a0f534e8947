"""``scripts/release VERSION``: make all files of a release from the commit that is checked out.  Publishes nothing.

The same commit gives the same bytes, whoever makes them, in which folder and on which day: everything is made from what
`git archive` writes, and has the time of the commit.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Final

import typer
import yaml

from controller.adapters.disk import jars
from controller.adapters.disk.places import CACHE
from controller.cli import manual
from controller.cli.shared.common_options import own_version
from controller.model.errors import SettingsError, TrimtabError
from controller.settings.signing_key import read_signing_key
from tests.supply_chain.archives import pack, tree
from tests.supply_chain.bill import bill
from tests.supply_chain.environment import HOME, write_environment
from tests.supply_chain.image import write_image
from tests.supply_chain.materials import ROOT
from tests.supply_chain.provenance import sign, statement, write_checksums
from tests.supply_chain.system_packages import write_system_packages

_VERSION: Final = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+")
_UNRELEASED: Final = "Unreleased"
#: Of what runs while a release is made.  The rest of the caller's environment decides nothing.
_KEPT: Final = ("PATH", "HOME", "JAVA_HOME", "LD_LIBRARY_PATH", jars.MIRROR)


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """What is released."""

    version: str
    commit: str
    #: Of the commit, in seconds since 1970.
    time: int
    #: What git archive wrote.
    sources: Path
    #: Where the files of the release go.
    out: Path

    def file(self, ending: str) -> Path:
        """The path of the file with *ending* in the release."""
        return self.out / f"trimtab-{self.version}{ending}"

    def run(self, *words: str) -> None:
        """Run Python with *words* in the sources; TrimtabError with its output where it fails."""
        done = subprocess.run(
            [sys.executable, *words], cwd=self.sources, env=self._environment(), capture_output=True, text=True
        )
        if done.returncode:
            raise TrimtabError(f"python {' '.join(words)} failed:\n{done.stdout}{done.stderr}")

    def _environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        fixed = {
            "LC_ALL": "C.UTF-8",
            "NO_MKDOCS_2_WARNING": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONHASHSEED": "0",
            "SOURCE_DATE_EPOCH": str(self.time),
            "TZ": "UTC",
            CACHE: str(jars.FOLDER),
        }
        return kept | fixed


def main(
    version: Annotated[str, typer.Argument(help="MAJOR.MINOR.PATCH, as pyproject.toml has it.")],
    out: Annotated[Path | None, typer.Option(help="A new folder.", show_default="dist/VERSION")] = None,
    key: Annotated[
        Path | None, typer.Option(help="Sign with this Ed25519 key, PEM in PKCS#8.", show_default="no signature")
    ] = None,
    draft: Annotated[
        bool, typer.Option("--draft", help="Where CHANGELOG.md has no section of the version, take Unreleased.")
    ] = False,
    system_packages: Annotated[
        bool, typer.Option("--packages/--no-packages", help="Make deb and rpm, too, which takes minutes.")
    ] = True,
    image: Annotated[
        bool,
        typer.Option("--image", help="Make the container image, too: on Debian 12, of packages that apt fetches."),
    ] = False,
) -> None:
    """Make all files of a release from the commit that is checked out, and publish nothing."""
    os.umask(0o022)
    folder = (out or ROOT / "dist" / version).absolute()
    try:
        signing_key = None if key is None else read_signing_key(key, "--key")
        wrong = list(problems(version, ROOT, is_draft=draft))
        if wrong:
            raise SettingsError("this is not ready to be released:\n" + "\n".join(f"  {each}" for each in wrong))
        with new_folder(folder), TemporaryDirectory(prefix="trimtab-release-") as scratch:
            release = exported(version, Path(scratch), folder)
            make(release, Path(scratch))
            used = make_whole(release, Path(scratch), system_packages=system_packages, image=image)
            provenance = release.file(".provenance.json")
            made = statement(folder.iterdir(), version, release.commit, release.sources, used)
            provenance.write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")
            sums = write_checksums(folder)
            if signing_key is not None:
                sign(signing_key, sums, provenance)
    except (TrimtabError, OSError) as error:  # as of a disk that is full
        sys.exit(f"release: {error}")
    for path in sorted(folder.iterdir()):
        typer.echo(f"{path.stat().st_size:>12,} {path.name}")
    typer.echo(f"in {folder}; nothing was published")


@contextmanager
def new_folder(folder: Path) -> Iterator[None]:
    """Make *folder*, and remove it where the block fails: half a release is none.  SettingsError where it is there."""
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise SettingsError(f"{folder}: there is such a file or folder already: choose another --out") from None
    try:
        yield
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def problems(version: str, root: Path, *, is_draft: bool = False) -> Iterator[str]:
    """Why *version* cannot be made from the checkout *root*, and what to do about each."""
    if not _VERSION.fullmatch(version):
        yield f"version {version!r}: expected MAJOR.MINOR.PATCH, such as 0.1.0"
        return
    changed = _git(root, "status", "--porcelain")
    if changed:
        yield f"files differ from the commit, so that it does not say what is released; commit them first:\n{changed}"
    tagged = _git(root, "tag", "--list", f"v{version}") and _git(root, "rev-parse", f"v{version}^{{commit}}")
    if tagged and tagged != _git(root, "rev-parse", "HEAD"):
        yield f"v{version} is the tag of {tagged[:12]}, which is not checked out: git checkout v{version}"
    for place, found in _versions(root).items():
        if found != version:
            yield f"{place} is {found}: set it to {version}"
    if not (root / "tests" / "published" / version).is_dir():
        yield f"tests/published/{version} is missing: python -m tests.published writes it"
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    if not release_notes(text, version, is_draft=is_draft):
        yield f'CHANGELOG.md has no section "## {version}": rename "## {_UNRELEASED}", or use --draft'


def release_notes(changelog: str, version: str, *, is_draft: bool = False) -> str:
    """The section of *version* in *changelog*; of a draft, else Unreleased.  Empty where there is none."""
    for heading in (version, _UNRELEASED) if is_draft else (version,):
        found = re.search(
            rf"^## {re.escape(heading)}(?![\w.-])[^\n]*\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL
        )
        if found:
            return f"# trimtab {version}\n\n{found[1].strip()}\n"
    return ""


def exported(version: str, scratch: Path, out: Path) -> Release:
    """The release of the commit that is checked out, with its sources below *scratch*."""
    sources, archive = scratch / "sources", scratch / "sources.tar"
    # Without the caller's settings of git, which may give other modes to files.
    _git(ROOT, "-c", "tar.umask=0022", "archive", "--format=tar", "-o", str(archive), "HEAD")
    with tarfile.open(archive) as opened:
        opened.extractall(sources)
    commit, time = _git(ROOT, "show", "-s", "--format=%H %ct", "HEAD").split()
    return Release(version=version, commit=commit, time=int(time), sources=sources, out=out)


def make(release: Release, scratch: Path) -> None:
    """Write all files of *release* but what says where they came from."""
    _write_context(release)
    _write_chart(release, scratch)
    _write_site(release, scratch)
    _write_manual(release, scratch)
    release.file(".cdx.json").write_text(json.dumps(bill(), indent=2) + "\n", encoding="utf-8")
    text = (release.sources / "CHANGELOG.md").read_text(encoding="utf-8")
    notes = release_notes(text, release.version, is_draft=True)
    release.file("-notes.md").write_text(notes, encoding="utf-8")
    _write_sdist(release, scratch)
    release.run("-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", str(release.out), ".")


def make_whole(release: Release, scratch: Path, *, system_packages: bool, image: bool) -> list[Path]:
    """Write the packages of distributions and the image, from what ``make`` left in *scratch*.

    Returns the files from elsewhere that are part of them.
    """
    if not (system_packages or image):
        return []
    root, used = scratch / "root", list[Path]()
    write_environment(root, next(release.out.glob("*.whl")), release.run)
    for path in (release.file(".cdx.json"), release.sources / "LICENSE", release.sources / "NOTICE"):
        shutil.copy(path, root / HOME.relative_to("/"))
    if image:
        target, commit, time = release.file("-image.oci.tar"), release.commit, release.time
        used = write_image(target, root, scratch, version=release.version, commit=commit, time=time)
    if system_packages:
        write_system_packages(
            root,
            sources=release.sources,
            manual=scratch / "manual",
            target=release.out,
            version=release.version,
            time=release.time,
        )
    return used


def _write_context(release: Release) -> None:
    """The folder in which `docker build` makes the image."""
    container = release.sources / "deploy" / "container"
    lines = (container / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    files = tree(container, "deploy/container/")
    for name in (line.removeprefix("!") for line in lines if line.startswith("!")):
        path = release.sources / name
        files |= {name: path} | (tree(path, f"{name}/") if path.is_dir() else {})
    pack(release.file("-image-context.tar.gz"), files, release.time)


def _write_chart(release: Release, scratch: Path) -> None:
    chart = scratch / "chart" / "trimtab"
    shutil.copytree(release.sources / "deploy" / "helm" / "trimtab", chart)  # its links become files
    # Helm's own `package` gives each file the time of the day.
    pack(release.file("-chart.tgz"), tree(chart.parent), release.time)


def _write_site(release: Release, scratch: Path) -> None:
    site = scratch / "site"
    release.run("-m", "mkdocs", "build", "--quiet", "--strict", "-f", "conf/mkdocs.yml", "-d", str(site))
    pack(release.file("-site.tar.gz"), tree(site, "trimtab-site/"), release.time)


def _write_manual(release: Release, scratch: Path) -> None:
    manual.write(scratch / "manual")
    pack(release.file("-manual.tar.gz"), tree(scratch / "manual", "trimtab-manual/"), release.time)


def _write_sdist(release: Release, scratch: Path) -> None:
    made, unpacked = scratch / "sdist", scratch / "unpacked"
    release.run("-c", f"from streaming.jvm import backend; backend.build_sdist({str(made)!r})")
    (archive,) = made.iterdir()
    with tarfile.open(archive) as opened:
        opened.extractall(unpacked)
    pack(release.out / archive.name, tree(unpacked), release.time)


def _versions(root: Path) -> dict[str, str]:
    """Where a version stands -> which one."""
    chart = yaml.safe_load((root / "deploy" / "helm" / "trimtab" / "Chart.yaml").read_text(encoding="utf-8"))
    base = yaml.safe_load((root / "deploy" / "kubernetes" / "kustomization.yaml").read_text(encoding="utf-8"))
    return {
        "version in pyproject.toml": tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"][
            "version"
        ],
        "the installed trimtab": own_version(),
        "version in deploy/helm/trimtab/Chart.yaml": str(chart["version"]),
        "appVersion in deploy/helm/trimtab/Chart.yaml": str(chart["appVersion"]),
        "newTag in deploy/kubernetes/kustomization.yaml": str(base["images"][0]["newTag"]),
    }


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True)
    if done.returncode:
        raise SettingsError(f"git {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout.strip()


if __name__ == "__main__":
    app = typer.Typer(add_completion=False)
    app.command()(main)
    app(prog_name="scripts/release")
