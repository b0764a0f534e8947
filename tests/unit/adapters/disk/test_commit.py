"""The commit that `trimtab --version` names, in a package, in a checkout and elsewhere."""

import subprocess
from pathlib import Path

import pytest

from controller.adapters.disk.commit import FILE, commit, named_in_the_file

_PLACEHOLDER = "$Format:%H$\n"
_SHA = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The file of a checkout in *tmp_path*, which no repository of git has."""
    made = tmp_path / "sources" / "controller" / FILE.name
    made.parent.mkdir(parents=True)
    made.write_text(_PLACEHOLDER, encoding="utf-8")
    return made


def _git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=someone", "-c", "user.email=someone@example.com")
    asked = subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, text=True, check=True)
    return asked.stdout.strip()


def _commit_all(folder: Path) -> str:
    _git(folder, "init", "-q")
    _git(folder, "add", "-A")
    _git(folder, "commit", "-qm", "all")
    return _git(folder, "rev-parse", "HEAD")


@pytest.mark.parametrize(("text", "expected"), [(_SHA, _SHA[:12]), ("0123456789ab-dirty", "0123456789ab-dirty")])
def test_a_package_has_its_commit_in_a_file(file: Path, text: str, expected: str) -> None:
    file.write_text(f"{text}\n", encoding="utf-8")
    assert commit(file) == expected


def test_sources_without_a_repository_do_not_know_their_commit(file: Path) -> None:
    assert commit(file) == ""
    with named_in_the_file(file):
        assert file.read_text(encoding="utf-8") == _PLACEHOLDER


def test_a_package_whose_file_is_missing_or_is_no_text_does_not_know_its_commit(file: Path) -> None:
    file.write_bytes(b"\xff\xfe")
    assert commit(file) == ""
    file.unlink()
    assert commit(file) == ""


@pytest.mark.slow
def test_a_checkout_asks_git_and_says_where_files_differ(file: Path) -> None:
    sha = _commit_all(file.parents[1])
    assert commit(file) == sha[:12]
    (file.parent / "a.py").write_text("", encoding="utf-8")
    assert commit(file) == sha[:12]  # a file that git does not know is not part of what is built
    file.write_text(f"{_PLACEHOLDER}\n", encoding="utf-8")
    assert commit(file) == f"{sha[:12]}-dirty"


@pytest.mark.slow
def test_a_repository_further_up_is_not_that_of_the_sources(file: Path) -> None:
    _commit_all(file.parents[2])
    assert commit(file) == ""


@pytest.mark.slow
def test_what_is_built_from_a_checkout_has_the_commit_and_the_checkout_stays_as_it_was(file: Path) -> None:
    sha = _commit_all(file.parents[1])

    def build() -> None:
        with named_in_the_file(file):
            raise RuntimeError(file.read_text(encoding="utf-8"))

    with pytest.raises(RuntimeError, match=f"^{sha[:12]}\n$"):
        build()
    assert file.read_text(encoding="utf-8") == _PLACEHOLDER


@pytest.mark.slow
def test_an_archive_of_git_has_the_commit(file: Path) -> None:
    root = file.parents[1]
    (root / ".gitattributes").write_bytes((FILE.parents[1] / ".gitattributes").read_bytes())
    sha = _commit_all(root)
    archived = _git(root, "archive", "HEAD", "--format=tar", f"--prefix={root.parent}/out/", "-o", "../out.tar")
    assert archived == ""
    subprocess.run(["tar", "-xPf", "out.tar"], cwd=root.parent, check=True)
    assert commit(root.parent / "out" / "controller" / FILE.name) == sha[:12]
