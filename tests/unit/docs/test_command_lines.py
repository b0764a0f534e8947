"""Every command line in README.md, CONTRIBUTING.md and docs is one that works.

All of trimtab's are parsed by the real command line.  Those that need no server are run, but for most of _WORLDS with
plain pytest; WITH_SERVERS says why the others are not, and which test runs them.
"""

import importlib.util
import re
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import dropwhile
from pathlib import Path
from typing import Any, Final

import pytest
from typer import Context
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

from controller.cli.app import app
from controller.lab.serve import app as servers
from tests.effort import tries
from tests.pages import DOCS, PAGES, ROOT, CommandLine, blocks, command_lines, indented, write_files_of_page

#: Commands of trimtab that need servers: why, and the test that runs them.
WITH_SERVERS: Final = {
    "audit": ("needs a log", "tests/unit/cli/test_audit_command.py"),
    "bench decisions": ("takes minutes", "tests/unit/bench/test_bench_decisions.py"),
    "bench pipeline": ("starts Spark", "tests/integration/test_bench_pipeline.py"),
    "bench recording": ("takes minutes", "tests/unit/bench/test_recorded_day.py"),
    "bench": ("names both benches", "tests/unit/bench/test_bench_decisions.py"),
    "collect": ("needs brokers", "tests/integration/test_collect_on_pulsar.py"),
    "commands tail": ("needs a log", "tests/integration/test_commands_tail.py"),
    "demo": ("starts Spark", "tests/e2e/test_ending.py"),
    "doctor": ("needs brokers, Kafka and ZooKeeper", "tests/integration/test_doctor_on_pulsar.py"),
    "execute": ("needs brokers and a log", "tests/integration/test_execute_on_pulsar.py"),
    "explain": ("needs a log", "tests/unit/cli/test_explain_command.py"),
    "journal": ("needs a log", "tests/unit/cli/test_journal_command.py"),
    "lookup": ("--live needs brokers", "tests/integration/test_doctor_on_pulsar.py"),
    "mode": ("needs ZooKeeper", "tests/unit/adapters/test_controls_outlive.py"),
    "pause": ("needs ZooKeeper", "tests/faults/operations.py"),
    "record": ("needs a log", "tests/unit/cli/test_record_command.py"),
    "apply": ("needs a log", "tests/unit/cli/test_apply_command.py"),
    "controls": ("needs an election", "tests/unit/cli/test_pauses_of_several.py"),
    "proposals list": ("needs an election", "tests/unit/cli/test_proposals_command.py"),
    "proposals show": ("needs an election", "tests/unit/cli/test_proposals_command.py"),
    "proposals make": ("needs an election", "tests/unit/cli/test_proposals_command.py"),
    "proposals refresh": ("needs an election", "tests/unit/cli/test_proposals_command.py"),
    "proposals approve": ("needs an election", "tests/unit/cli/test_proposals_command.py"),
    "proposals reject": ("needs an election", "tests/unit/cli/test_proposals_command.py"),
    "proposals pause": ("needs an election", "tests/unit/cli/test_proposals_command.py"),
    "proposals resume": ("needs an election", "tests/unit/cli/test_proposals_command.py"),
    "proposals stop": ("needs an election", "tests/unit/cli/test_proposals_command.py"),
    "proposals key": ("makes a private key", "tests/unit/cli/test_proposals_command.py"),
    "exclude": ("needs an election", "tests/unit/cli/test_controls_under_a_policy.py"),
    "include": ("needs an election", "tests/unit/cli/test_controls_under_a_policy.py"),
    "release": ("needs an election", "tests/unit/cli/test_apply_command.py"),
    "plan": ("needs a log", "tests/unit/cli/test_plan_command.py"),
    "show-plan": ("needs a plan's file", "tests/unit/cli/test_show_plan_command.py"),
    "replay": ("needs a recording", "tests/unit/cli/test_replay_command.py"),
    "accept-loss": ("needs ZooKeeper", "tests/unit/streaming/test_lost_journal.py"),
    "resume": ("needs ZooKeeper", "tests/faults/operations.py"),
    "run": ("starts Spark, needs a log and ZooKeeper", "tests/e2e/test_two_controllers.py"),
    "status": ("needs a log and ZooKeeper", "tests/integration/test_doctor_on_kafka_and_zookeeper.py"),
    "incident make": ("needs a log", "tests/unit/cli/test_incident_command.py"),
    "incident check": ("needs an incident", "tests/unit/cli/test_incident_command.py"),
    "what-if": ("needs a recording", "tests/unit/cli/test_what_if_command.py"),
    "take-over": ("needs brokers", "tests/integration/test_handover_on_pulsar.py"),
    "hand-back": ("needs brokers", "tests/integration/test_handover_on_pulsar.py"),
    "serve": ("serves until a signal", "tests/integration/test_page_server.py"),
    "stop-all": ("needs a log and ZooKeeper", "tests/integration/test_controls_in_zookeeper.py"),
}
#: With one of these, no server is needed.
_WITHOUT_SERVERS: Final = {"--grants", "--help"}
#: Options of which each ends the command at once: they are left out where a line is only parsed.
_ENDING: Final = {"--help", "--version", "--install-completion", "--show-completion"}
#: Options with which a command is not run here, and why.
_NOT_RUN: Final = {
    "--install-completion": "writes to the files of the reader's shell",
    "--show-completion": "asks which shell has called it",
    "incident.tar": "needs an incident; tests/unit/cli/test_incident_command.py makes one",
    "tuesday": "needs a recording; tests/unit/cli/test_what_if_command.py makes one",
    "--example": "takes seconds; tests/unit/cli/test_rebalance_command.py runs it",
}
#: What trimtab does not bring: Kafka's, ZooKeeper's and Pulsar's own tools, and those of a shell.
_FOREIGN: Final = {
    "CLUSTER=...",
    "acls",
    "acls()",
    "ansible-playbook",
    "apt-get",
    "cd",
    "cp",
    "docker",
    "export",
    "head",
    "helm",
    "journalctl",
    "kill",
    "kubectl",
    "mkdir",
    "less",
    "pip",
    "pip-audit",
    "podman",
    "pre-commit",
    "pulsar-admin",
    "python3",
    "openssl",
    "sed",
    "sha256sum",
    "ssh",
    "skopeo",
    "systemctl",
    "tail",
    "useradd",
    "uv",
    "zk",
    "}",
}
#: Words that stand for something of the reader's.
_STAND_FOR: Final = {
    "NAME": "ThresholdShedder",
    "FILE": "load_report.json",
    "TOPIC": "persistent://acme/orders/created",
    "COMMAND": "run",
}
#: Fewer examples and seeds than by default, which would take half a minute.
_QUICKER: Final = {
    "compare": ("--seeds", "1"),
    "simulate": ("--seeds", "1"),
    "strategies check": ("--examples", "2"),
}
#: `decide` answers 3 where it would move something.
_GOOD: Final = {"decide": {0, 3}}

#: Each once; where pages repeat one, the last place is told.
_ALL: Final = [*{(line.words, line.to_copy): line for page in PAGES for line in command_lines(page)}.values()]


def _is_trimtab(line: CommandLine) -> bool:
    return line.words[0].removeprefix(".venv/bin/") == "trimtab"


#: An application is made into commands once.
_command: Final = cache(get_command)
_TRIMTAB: Final = [line for line in _ALL if _is_trimtab(line)]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as a reader has it, with all that the pages tell to write."""
    folder = tmp_path_factory.mktemp("reader")
    shutil.copytree(ROOT / "conf", folder / "conf")
    shutil.copy(ROOT / "conf" / "scenarios" / "simulated" / "idle-broker.toml", folder / "mine.toml")
    shutil.copy(ROOT / "tests" / "samples" / "load_report_1.json", folder / _STAND_FOR["FILE"])
    (folder / "recording").mkdir()
    shutil.copy(folder / _STAND_FOR["FILE"], folder / "recording")
    write_files_of_page(DOCS / "write_your_own_strategy.md", folder)
    return folder


@pytest.fixture
def folder(written: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a reader, as the current one."""
    monkeypatch.chdir(written)
    monkeypatch.syspath_prepend(written)
    yield written
    for name in ("acme_balance", "acme_balance.one_bundle"):
        sys.modules.pop(name, None)


def _words(line: CommandLine) -> list[str]:
    return [_STAND_FOR.get(word, word) for word in line.words[1:]]


def _parsed(command: Any, name: str, words: list[str], parent: Context | None = None) -> str:
    """Parse *words* as *command* would, and return the names of the commands in them."""
    own = [word for word in words if word not in _ENDING]
    if not own and own != words:
        return ""
    with command.make_context(name, own, parent) as context:
        rest = [*context._protected_args, *context.args]
        if isinstance(command, TyperGroup) and rest:
            below, chosen, others = command.resolve_command(context, rest)
            return f"{below} {_parsed(chosen, str(below), others, context)}".strip()
    return ""


def _named(words: Sequence[str]) -> str:
    """The commands that *words* begin with; an unknown one raises."""
    command: Any = _command(app)
    names = []
    with Context(command) as context:
        for word in words:
            if not isinstance(command, TyperGroup) or word.startswith("-"):
                break
            _, command, _ = command.resolve_command(context, [word])
            names.append(word)
    return " ".join(names)


def _name_alone(line: CommandLine, words: list[str]) -> bool:
    return not line.to_copy and len(words) == len(_named(words).split())


def test_every_block_says_its_language_so_that_no_command_line_is_overlooked() -> None:
    known = {"sh", "text", "toml", "python", "java", "properties", "json", "mermaid", "yaml"}
    for page in PAGES:
        assert indented(page) == [], page.name
        assert [(block.line, block.language) for block in blocks(page) if block.language not in known] == [], page.name


def _named_where_wrong(lines: Iterable[CommandLine], check: Callable[[CommandLine], object]) -> None:
    """*check* each of *lines*; all that it raises for is told together, each with its line."""
    failures: list[Exception] = []
    for line in lines:
        try:
            check(line)
        except Exception as error:
            error.add_note(f"of the command line {line}")
            failures.append(error)
    if failures:
        raise ExceptionGroup(f"{len(failures)} command lines are wrong", failures)


def test_the_command_lines_have_commands_options_and_arguments_that_there_are(folder: Path) -> None:
    def parse(line: CommandLine) -> None:
        words = _words(line)
        assert not _name_alone(line, words) or _named(words) or words == []
        if not _name_alone(line, words):
            _parsed(_command(app), "trimtab", words)

    _named_where_wrong(_TRIMTAB, parse)


#: These play whole worlds: plain pytest runs no line of `compare` and one of `simulate`, scripts/test all of them.
_WORLDS: Final = {"compare": 0, "simulate": 1}


def _tried(lines: Iterable[CommandLine]) -> Iterator[CommandLine]:
    """*lines* without most of those that play worlds, where few tries are made."""
    seen = Counter[str]()
    for line in lines:
        name = _named(_words(line))
        seen[name] += 1
        if name not in _WORLDS or seen[name] <= tries(plain=_WORLDS[name], thorough=1000):
            yield line


#: Those that mean the same run once.
_RUN: Final = [
    *_tried(
        {
            tuple(_words(line)): line
            for line in _TRIMTAB
            if not _name_alone(line, _words(line))
            and not _NOT_RUN.keys() & set(line.words)
            and (_named(_words(line)) not in WITH_SERVERS or _WITHOUT_SERVERS & set(line.words))
        }.values()
    )
]


@pytest.mark.parametrize("line", _RUN, ids=str)
def test_the_command_line_that_needs_no_server_works(
    line: CommandLine, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = _words(line)
    name = _named(words)
    if name == "init":  # it overwrites nothing, and the folder has a conf
        monkeypatch.chdir(tmp_path)
    answer = CliRunner().invoke(app, [*words, *_QUICKER.get(name, ())])
    assert answer.exit_code in _GOOD.get(name, {0}), answer.output
    assert answer.output


def test_the_pages_show_each_kind_of_command_line() -> None:
    assert len(_TRIMTAB) > 40
    assert {"decide", "options", "rebalance", "strategies check", ""} <= {_named(_words(line)) for line in _RUN}


def test_what_needs_servers_is_a_command_and_is_run_by_the_test_that_is_named() -> None:
    for name, (_, test) in WITH_SERVERS.items():
        assert _named(name.split()) == name
        assert (ROOT / test).exists(), (name, test)
        assert name.split()[0].replace("-", "_") in (ROOT / test).read_text(encoding="utf-8"), (name, test)


def test_every_other_command_line_calls_what_there_is(folder: Path) -> None:
    others = [line for line in _ALL if not _is_trimtab(line)]
    assert len(others) > 50
    _named_where_wrong(others, _calls_what_there_is)


def _calls_what_there_is(line: CommandLine) -> None:
    # Variables that are set for the command come first: VARIABLE=value.
    tool, *rest = dropwhile(re.compile(r"[A-Z_]+=(?!\.\.\.)").match, line.words)
    if tool == ".":
        assert (ROOT / rest[0]).exists()
    elif tool in ("scripts/kafka", "scripts/zookeeper", "scripts/pulsar", "scripts/traffic"):
        _parsed(_command(servers), "serve", [tool.removeprefix("scripts/"), *rest])
    elif tool == "scripts/run":
        _parsed(_command(app), "trimtab", ["demo", *rest])
    elif tool.startswith("scripts/"):
        assert (ROOT / tool).stat().st_mode & 0o100
    elif tool == "pytest":
        assert all((ROOT / word).exists() for word in rest if word.startswith("tests/"))
    elif tool == "python":
        assert rest[0] == "-m"
        assert importlib.util.find_spec(rest[1])
    else:
        assert tool in _FOREIGN
