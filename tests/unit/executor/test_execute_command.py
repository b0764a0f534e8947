"""`trimtab execute`: what the process does if its inbox fails."""

import threading
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import Mock

import pytest

from controller.adapters.pulsar.admin import PulsarAdmin
from controller.cli import execute as execute_cli
from controller.log.files.log import FolderLog
from controller.log.inbox import Delivery, Inbox
from controller.log.port import TakenOverError
from controller.model.errors import TrimtabError
from controller.settings.trimtab_toml import Settings, read_settings

CONF = """
cluster.name = "standalone"
log = { kind = "folder", folder.path = "log" }
election = { kind = "file", path = "election" }
checkpoint.path = "checkpoint"
[pulsar]
"""


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setattr(execute_cli, "_AGAIN_SECONDS", 0.0)
    conf = tmp_path / "trimtab.toml"
    conf.write_text(CONF)
    return read_settings(conf)


class Failing(Inbox):
    """Is taken over by another executor the first time that something is wanted of it."""

    closed = 0

    def poll(self, most: int, timeout_seconds: float) -> list[Delivery]:
        raise TakenOverError(f"no {most} events within {timeout_seconds} s")

    def close(self) -> None:
        super().close()
        Failing.closed += 1


def work(settings: Settings, inboxes: Sequence[type[Inbox] | TrimtabError], monkeypatch: pytest.MonkeyPatch) -> int:
    """Works on *inboxes* one after the other, the last one till its first look; returns how many were opened."""
    until, opened = threading.Event(), 0

    def open_next() -> Inbox:
        nonlocal opened
        inbox = inboxes[opened]
        opened += 1
        if opened == len(inboxes):
            until.set()
        if isinstance(inbox, TrimtabError):
            raise inbox
        assert settings.log.folder is not None
        log = FolderLog(Path(settings.log.folder.path), cluster="standalone")
        return inbox(log, group="executors", cluster="standalone")

    monkeypatch.setattr(execute_cli, "log_system", lambda _: Mock(inbox=open_next))
    execute_cli.execute_until(settings, PulsarAdmin(["http://127.0.0.1:1"], cluster="standalone"), until)
    return opened


def test_an_executor_that_was_replaced_or_lost_its_log_starts_anew(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Failing.closed
    assert work(settings, [Failing, TrimtabError("Kafka is away"), Failing, Inbox], monkeypatch) == 4
    assert Failing.closed - before == 2


def test_an_executor_that_cannot_even_begin_says_why_and_ends(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(TrimtabError, match="no such topic"):
        work(settings, [TrimtabError("no such topic"), Inbox], monkeypatch)
