"""``trimtab mode``, ``resume``, ``release`` and ``pause`` where [approvals] demands signatures."""

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from controller.adapters.approvals.granted import GrantedControls
from controller.adapters.election.changes import change_controls
from controller.cli import controls
from controller.cli.proposals import app as proposals
from controller.log.elections import election_system
from controller.model.controls import Controls, Drained, OperatorControls
from controller.model.errors import ProposalRefusedError
from controller.settings.trimtab_toml import read_settings
from tests.proposals import key_of

NOW = 1_700_000_000_000
PEOPLE = ("ada", "bob")
SETTINGS = """
cluster.name = "standalone"
log.kind = "folder"
log.folder.path = "log"
election.kind = "file"
election.path = "election"
checkpoint.path = "checkpoint"
decisions.mode = "observe"
"""


class Site:
    """Settings with keys, and the controls."""

    def __init__(self, folder: Path, more: str = "") -> None:
        keys = "\n".join(f'approvals.keys.{name}.key = "{key_of(name).public_text}"' for name in PEOPLE)
        self.conf = folder / "trimtab.toml"
        self.conf.write_text(f"{SETTINGS}{keys}\n{more}", encoding="utf-8")
        for name in PEOPLE:
            (folder / f"{name}.pem").write_bytes(key_of(name).pem)
        self.settings = read_settings(self.conf)

    def key(self, name: str) -> list[str]:
        return ["--key", str(self.conf.parent / f"{name}.pem")]

    def run(self, command: Any, *words: object) -> Result:
        app = command
        if not isinstance(command, typer.Typer):
            app = typer.Typer()
            app.command()(command)
        return CliRunner().invoke(app, [*map(str, words), "--conf", str(self.conf)])

    def said(self, command: Any, *words: object) -> Any:
        result = self.run(command, *words, "--json")
        assert result.exit_code == 0, (result.output, result.exception)
        return json.loads(result.stdout)

    @property
    def stored(self) -> OperatorControls:
        with closing(election_system(self.settings).controls()) as store:
            return store.read()[0]

    def change(self, **changes: Any) -> None:
        with closing(election_system(self.settings).controls()) as store:
            change_controls(store, lambda now: replace(now, **changes))

    def obeyed(self, before: Controls | None = None) -> OperatorControls:
        """What controllers of these settings obey."""
        granted = GrantedControls(self.settings.approvals, cluster="standalone", mode=self.settings.decisions.mode)
        return granted.obeyed(self.stored, before, NOW).controls


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setattr("time.time_ns", lambda: NOW * 1_000_000)
    return Site(tmp_path)


def test_a_mode_in_which_more_moves_is_set_by_the_approval_of_another_person(site: Site) -> None:
    proposal = site.said(controls.mode, "dry_run", *site.key("ada"), "--reason", "try it")["proposal"]
    assert site.stored.mode is None
    approved = site.said(proposals, "approve", proposal, *site.key("bob"))
    assert approved["state"] == "done"
    assert site.stored.mode is not None
    assert (site.stored.mode.value, site.stored.mode.by, site.stored.mode.reason) == ("dry_run", "ada", "try it")
    assert site.obeyed().mode == site.stored.mode
    assert [(each.action, each.by) for each in site.stored.history] == [("mode", "ada")]


def test_a_mode_in_which_less_moves_needs_nobody(site: Site) -> None:
    proposal = site.said(controls.mode, "dry_run", *site.key("ada"))["proposal"]
    site.said(proposals, "approve", proposal, *site.key("bob"))
    assert "proposal" not in {k for k, v in site.said(controls.mode, "observe").items() if v is not None}
    assert site.stored.mode_in_force("observe") == "observe"


def test_a_mode_that_somebody_wrote_without_a_signature_can_be_approved_still(site: Site) -> None:
    site.said(controls.mode, "observe")
    site.change(mode=replace(site.stored.mode, value="dry_run"))  # type: ignore[type-var]
    assert site.obeyed().mode_in_force("observe") == "observe"
    proposal = site.said(controls.mode, "dry_run", *site.key("ada"))["proposal"]
    site.said(proposals, "approve", proposal, *site.key("bob"))
    assert site.obeyed().mode_in_force("observe") == "dry_run"


def test_without_a_key_nothing_that_allows_more_is_changed_and_the_error_says_what_is_missing(site: Site) -> None:
    site.said(controls.pause)
    site.change(drained=(Drained(broker="broker-1:8080", by="ada", at_ms=NOW),))
    before = site.stored
    for command, *words in ((controls.mode, "dry_run"), (controls.resume, "--all"), (controls.release, "--all")):
        result = site.run(command, *words)
        assert isinstance(result.exception, ProposalRefusedError), (words, result.output, result.exception)
        assert "give your private key with --key FILE" in str(result.exception)
    assert site.stored == before


def test_everybody_may_pause_and_ending_a_pause_is_approved(site: Site) -> None:
    site.said(controls.pause, "--by", "ada")
    proposal = site.said(controls.resume, *site.key("ada"), "--of", "ada")["proposal"]
    assert len(site.stored.pauses) == 1
    site.said(proposals, "approve", proposal, *site.key("bob"))
    assert not site.stored.pauses
    assert site.stored.resumed_ms == NOW
    assert site.obeyed().pauses == ()


def test_a_pause_that_came_after_the_request_to_resume_stands(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.said(controls.pause, "--by", "ada")
    proposal = site.said(controls.resume, *site.key("ada"), "--all")["proposal"]
    monkeypatch.setattr("time.time_ns", lambda: (NOW + 1000) * 1_000_000)
    site.said(controls.pause, "--by", "carol", "--reason", "wait")
    site.said(proposals, "approve", proposal, *site.key("bob"))
    assert [each.by for each in site.stored.pauses] == ["carol"]


def test_a_drained_broker_is_released_once_that_is_approved(site: Site) -> None:
    site.change(drained=tuple(Drained(broker=f"broker-{n}:8080", by="ada", at_ms=NOW) for n in (1, 2)))
    proposal = site.said(controls.release, "broker-1:8080", *site.key("ada"))["proposal"]
    assert len(site.stored.drained) == 2
    site.said(proposals, "approve", proposal, *site.key("bob"))
    assert [each.broker for each in site.stored.drained] == ["broker-2:8080"]


def test_everybody_may_exclude_and_including_is_approved(site: Site) -> None:
    assert site.said(controls.exclude, "acme/orders", "acme/other", "--reason", "migration")["excluded"] == [
        "acme/orders",
        "acme/other",
    ]
    for wrong in ("acme/*", "acme", "acme/orders/0x0_0x1"):
        assert site.run(controls.exclude, wrong).exit_code == 2
    before = Controls(mode="observe", excluded=("acme/orders", "acme/other"))
    proposal = site.said(controls.include, "acme/orders", *site.key("ada"))["proposal"]
    assert len(site.stored.excluded) == 2
    site.said(proposals, "approve", proposal, *site.key("bob"))
    assert [each.name for each in site.stored.excluded] == ["acme/other"]
    assert [each.name for each in site.obeyed(before).excluded] == ["acme/other"]
    site.change(excluded=())
    assert [each.name for each in site.obeyed(before).excluded] == ["acme/other"], "no grant names it"


def test_where_no_broker_is_drained_there_is_nothing_to_propose(site: Site) -> None:
    assert site.said(controls.release, "--all", *site.key("ada")) == {"cluster": "standalone", "drained": []}
    assert site.run(proposals, "list").stdout == ""


def test_nobody_approves_their_own_request(site: Site) -> None:
    proposal = site.said(controls.mode, "dry_run", *site.key("ada"))["proposal"]
    result = site.run(proposals, "approve", proposal, *site.key("ada"))
    assert isinstance(result.exception, ProposalRefusedError)
    assert site.stored.mode is None


def test_where_no_approval_is_required_the_authors_signature_is_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time_ns", lambda: NOW * 1_000_000)
    site = Site(tmp_path, "approvals.required = 0\n")
    site.said(controls.mode, "dry_run", *site.key("ada"))
    assert site.obeyed().mode_in_force("observe") == "dry_run"
