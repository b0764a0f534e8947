"""The systemd unit agrees with what trimtab does: its commands, its exit codes, and how it ends."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from controller.adapters.disk.places import CACHE
from controller.cli.app import COMMANDS
from controller.cli.main import UNTIL_TOLD
from controller.cli.reference import EXIT_CODES
from tests.supply_chain.materials import ROOT

UNIT: Final = ROOT / "deploy" / "systemd" / "trimtab@.service"
#: Exit codes of a service that a person must mend; a restart would end the same way.
FOR_A_PERSON: Final = {2}
#: docs/internals.md: every command ends within so many seconds after SIGTERM.
ENDS_WITHIN: Final = 3


def _option(name: str) -> str:
    (value,) = re.findall(rf"^{name}=(.*)$", UNIT.read_text(encoding="utf-8"), re.MULTILINE)
    return str(value)


def test_it_restarts_after_every_failure_but_those_that_a_person_must_mend() -> None:
    assert _option("Restart") == "on-failure"
    assert {int(code) for code in _option("RestartPreventExitStatus").split()} == FOR_A_PERSON
    assert _option("StartLimitIntervalSec") == "0"
    assert {1, 70, 75, 77} <= EXIT_CODES.keys() - FOR_A_PERSON
    for code in (70, 75):
        assert "start it again" in EXIT_CODES[code]
    for code in FOR_A_PERSON:
        assert "must fix it" in EXIT_CODES[code]


def test_its_watchdog_hears_of_the_process_that_trimtab_is() -> None:
    assert int(_option("WatchdogSec")) >= 30
    assert _option("NotifyAccess") == "main"
    assert "AF_UNIX" in _option("RestrictAddressFamilies")


def test_it_waits_until_trimtab_has_ended_and_signals_trimtab_alone() -> None:
    assert int(_option("TimeoutStopSec")) > ENDS_WITHIN
    assert _option("KillMode") == "mixed"


def test_it_starts_the_commands_that_run_until_they_are_told_to_end() -> None:
    assert _option("ExecStart").split()[1:3] == ["%i", "--conf"]
    (named,) = re.findall(r"systemctl enable --now (.*)", UNIT.read_text(encoding="utf-8"))
    commands = {name.removeprefix("trimtab@") for name in named.split()}
    assert commands == {"collect", "run", "execute", "serve"}
    assert commands <= set(UNTIL_TOLD) & COMMANDS.keys()


def test_what_it_may_write_to_is_where_trimtab_writes() -> None:
    assert _option("Environment") == f"{CACHE}=/var/cache/trimtab"
    assert (_option("CacheDirectory"), _option("StateDirectory")) == ("trimtab", "trimtab")
    assert _option("ProtectSystem") == "strict"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_finds_nothing_wrong(tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text(encoding="utf-8").replace("/opt/trimtab/bin/trimtab", "/bin/true"), encoding="utf-8")
    run = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")
