"""The first and the last line of the log of `trimtab run`, `collect` and `execute`."""

import logging
import os
from pathlib import Path

import pytest

from controller.cli.shared import service_log
from controller.cli.shared.common_options import own_version

_CONF = """
[cluster]
name = "lab"
[decisions]
mode = "active"
[executor]
dry_run = true
[web]
writes = true
"""


@pytest.fixture
def conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Path:
    caplog.set_level(logging.INFO)
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "trimtab.toml").write_text(_CONF)
    monkeypatch.chdir(tmp_path)
    return Path("conf/trimtab.toml")


@pytest.mark.parametrize(
    ("words", "role", "mode"),
    [
        (["run"], "controller", "active unless `trimtab mode` has set another"),
        (["--quiet", "execute"], "executor", "dry_run"),
        (["collect", "--once"], "collector", "once"),
        (["collect", "--dry-run", "--conf=conf/trimtab.toml"], "collector", "dry_run"),
        (["serve"], "page", "with changes by people"),
    ],
)
def test_the_first_line_says_version_role_cluster_and_mode(
    words: list[str], role: str, mode: str, conf: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert service_log.first_line(words)
    assert caplog.messages == [
        f"trimtab {own_version()} starts as {role} of cluster lab, mode {mode}, settings {conf}, pid {os.getpid()}"
    ]


@pytest.mark.parametrize("words", [[], ["status"], ["run", "--help"], ["--version"], ["options", "run"]])
def test_other_commands_have_none(words: list[str], conf: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert not service_log.first_line(words)
    assert not caplog.messages


def test_settings_that_cannot_be_read_are_left_to_the_command(conf: Path, caplog: pytest.LogCaptureFixture) -> None:
    conf.write_text("[cluster")
    assert service_log.first_line(["run", "--conf", str(conf)])
    assert "cluster unknown" in caplog.text


def test_the_last_line_says_that_it_is_done(conf: Path, caplog: pytest.LogCaptureFixture) -> None:
    service_log.last_line(0)
    assert caplog.messages == ["ended: done, exit code 0"]
