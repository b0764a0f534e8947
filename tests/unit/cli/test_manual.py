"""Manual pages and completions are what the commands themselves say."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from controller.cli import manual
from controller.cli.app import COMMANDS
from controller.cli.reference import EXIT_CODES


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("manual")
    manual.write(folder)
    return folder


def text_of(page: Path) -> str:
    """What a page shows, roughly: without roff's escapes."""
    return page.read_text(encoding="utf-8").replace("\\-", "-").replace("\\fB", "").replace("\\fR", "")


@pytest.mark.slow
def test_every_command_of_an_installation_has_a_page_and_the_first_page_names_them_all(written: Path) -> None:
    names = {f"trimtab-{name}" for name in COMMANDS if name != "bench"}
    assert {page.stem for page in (written / "man1").iterdir()} == {"trimtab", *names}
    overview = text_of(written / "man1" / "trimtab.1")
    assert [name for name in names if f"{name}(1)" not in overview] == []
    assert [code for code in EXIT_CODES if f".B {code}\n" not in overview] == []


@pytest.mark.slow
def test_a_page_has_the_options_of_its_command(written: Path) -> None:
    page = text_of(written / "man1" / "trimtab-serve.1")
    for option in ("--conf", "--listen", "--metrics", "--test-notification", "--log-format"):
        assert f"{option}" in page
    assert "trimtab incident make" in text_of(written / "man1" / "trimtab-incident.1")


@pytest.mark.slow
def test_the_files_are_the_same_whatever_the_terminal_and_the_language(
    written: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("LANG", "de_DE.UTF-8")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    files = manual.files()
    assert {path: (written / path).read_text(encoding="utf-8") for path in files} == files


def test_nothing_in_a_text_is_a_request_or_an_escape_for_roff() -> None:
    for text in (".so /etc/passwd", "'so x", "a\\fBb", "`x -y` \\n .", "-'`"):
        line = manual._line(text)
        assert not line.startswith((".", "'"))
        assert "\\n" not in line.replace("\\en", "")
        assert "-" not in line.replace("\\-", "")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_groff_warns_of_nothing(written: Path) -> None:
    pages = sorted(map(str, (written / "man1").iterdir()))
    done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", *pages], capture_output=True, check=True, timeout=60)
    assert done.stderr == b""


@pytest.mark.slow
def test_bash_completes_commands_and_options(written: Path) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    script = """
source "$1"
complete -p trimtab > /dev/null
for line in "trimtab sta" "trimtab serve --test-n"; do
  COMP_WORDS=($line); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMPREPLY=()
  _trimtab_completion trimtab
  echo "${COMPREPLY[*]}"
done
"""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        [bash, "-c", script, "bash", str(written / "bash" / "trimtab")],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        env=os.environ | {"PATH": path},
    )
    assert done.stdout.split() == ["status", "--test-notification"]


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_have_a_script_that_asks_trimtab(written: Path, shell: str) -> None:
    [file] = (written / shell).iterdir()
    assert f"_TRIMTAB_COMPLETE=complete_{shell}" in file.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [([], 2, "FOLDER"), (["--help"], 0, "FOLDER"), (["{file}/below"], 2, "{file}"), (["one", "two"], 2, "two")],
)
def test_words_that_name_no_folder_are_refused_with_the_usage(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    code: int,
    text: str,
) -> None:
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["manual", *(word.format(file=file) for word in words)])
    with pytest.raises(SystemExit) as ended:
        manual.main()
    printed = capsys.readouterr()
    assert ended.value.code == code
    assert text.format(file=file) in printed.out + printed.err
    assert list(tmp_path.iterdir()) == [file]
