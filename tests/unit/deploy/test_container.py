"""The Dockerfile keeps the rules of a careful image.  No engine runs here: its steps are read, not executed."""

import fnmatch
import json
import re
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from controller.cli.shared.console import DEFAULT_CONF
from tests.supply_chain.materials import ROOT

FILE: Final = ROOT / "deploy" / "container" / "Dockerfile"
_DIGEST: Final = re.compile(r"[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}")


class Step(NamedTuple):
    """An instruction, on one line, and the stage that it is of."""

    stage: int
    name: str
    rest: str


def _steps() -> list[Step]:
    text = re.sub(r"^\s*#.*\n", "", FILE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = re.sub(r"\\\n", " ", text).splitlines()
    steps, stage = [], -1
    for line in filter(None, map(str.strip, lines)):
        name, _, rest = line.partition(" ")
        stage += name == "FROM"
        steps.append(Step(stage, name, " ".join(rest.split())))
    return steps


STEPS: Final = _steps()
LAST: Final = [step for step in STEPS if step.stage == STEPS[-1].stage]


def _of(name: str, steps: list[Step] = STEPS) -> list[str]:
    return [step.rest for step in steps if step.name == name]


def test_every_image_is_pinned_by_its_digest_or_is_an_earlier_stage() -> None:
    (base,) = (rest.removeprefix("BASE=") for rest in _of("ARG") if rest.startswith("BASE="))
    assert _DIGEST.fullmatch(base)
    stages = {"${BASE}"}
    for image, _, name in (rest.partition(" AS ") for rest in _of("FROM")):
        assert image in stages
        stages.add(name)


def test_nothing_is_fetched_without_a_checksum_but_debians_signed_packages() -> None:
    assert _of("ADD") == []
    for run in _of("RUN"):
        assert not re.search(r"\b(curl|wget|git clone)\b", run)
        for install in re.findall(r"pip install [^;]*", run):
            assert "--require-hashes" in install or "--no-index" in install, install


def test_packages_of_debian_leave_no_lists_and_bring_nothing_else() -> None:
    (install,) = (run for run in _of("RUN") if "apt-get install" in run)
    assert "--no-install-recommends" in install
    assert install.endswith("rm -rf /var/lib/apt/lists/*")


def test_each_long_step_ends_at_its_first_error() -> None:
    assert [run for run in _of("RUN") if ";" in run and not run.startswith("set -eu;")] == []


def test_it_runs_as_a_user_without_rights_given_by_number() -> None:
    *_, user = _of("USER", LAST)
    assert re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", user)
    after = LAST[[step.name for step in LAST].index("USER") :]
    assert {step.name for step in after} <= {"USER", "WORKDIR", "EXPOSE", "STOPSIGNAL", "ENTRYPOINT", "CMD"}


def test_signals_reach_trimtab_and_no_shell_stands_between() -> None:
    (entry,) = _of("ENTRYPOINT", LAST)
    assert json.loads(entry) == ["/usr/bin/tini", "--", "trimtab"]
    assert _of("STOPSIGNAL", LAST) == ["SIGTERM"]


def test_commands_find_the_mounted_settings_in_the_working_folder() -> None:
    assert _of("WORKDIR", LAST) == ["/etc/trimtab"]
    assert Path("conf/trimtab.toml") == DEFAULT_CONF


def _ignored(path: str) -> bool:
    lines = Path(f"{FILE}.dockerignore").read_text(encoding="utf-8").split()
    ignored = False
    for line in lines:
        pattern = line.removeprefix("!")
        parts = [path, *map(str, Path(path).parents)]
        if any(fnmatch.fnmatch(part, pattern.removeprefix("**/")) or fnmatch.fnmatch(part, pattern) for part in parts):
            ignored = not line.startswith("!")
    return ignored


def test_what_is_copied_is_there_and_reaches_the_builder() -> None:
    copied = [word for rest in _of("COPY") if not rest.startswith("--from") for word in rest.split()[:-1]]
    assert {"pyproject.toml", "README.md", "requirements.lock", "conf", "controller", "streaming"} <= set(copied)
    assert [word for word in copied if not (ROOT / word).exists() or _ignored(word)] == []


@pytest.mark.parametrize(
    "path", [".git/config", ".jars/x.jar", "conf.secret", "tests/unit/x.py", "streaming/jvm/q.jar"]
)
def test_nothing_else_reaches_the_builder(path: str) -> None:
    assert _ignored(path)
