"""``trimtab proposals`` and ``trimtab apply --proposal``, as two people use them."""

import json
import stat
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
import typer
from typer.testing import CliRunner, Result

from controller.cli.apply import apply
from controller.cli.proposals import app as proposals
from controller.log.elections import election_system
from controller.model.errors import (
    NothingFoundError,
    PlanRefusedError,
    ProposalRefusedError,
    SettingsError,
    TrimtabError,
)
from controller.offline.plans.plan_file import read_plan_bytes
from controller.offline.plans.planner import PlanRequest, planned_cluster
from controller.planning.plans.plan import DRAIN
from controller.settings.trimtab_toml import read_settings
from controller.wire.ed25519 import SigningKey
from controller.wire.plan import encode_plan, hash_of, parse_plan
from tests.live_cluster import QUIET, SETTINGS, LiveCluster
from tests.modelled_log import settings_in
from tests.proposals import key_of

pytestmark = pytest.mark.slow

BROKER = "broker-1:8080"
PEOPLE = ("ada", "bob", "carol")
POLICY = "\n".join(
    [
        *(f'approvals.keys.{name}.key = "{key_of(name).public_text}"' for name in PEOPLE),
        'approvals.keys.carol.may = ["approve"]',
    ]
)


class Site:
    """A modelled cluster, a plan for it, and the private keys of people."""

    def __init__(self, folder: Path, more: str, *, broker_conf: str = QUIET, mode: str = "active") -> None:
        self.folder = folder
        settings = SETTINGS.replace('"active"', f'"{mode}"')
        self.live = LiveCluster(settings_in(folder, broker_conf=broker_conf, more=f"{settings}{more}\n"))
        asked = PlanRequest(
            kind=DRAIN, brokers=(BROKER,), text=f"drain {BROKER}", wave_moves=2, wave_moves_per_broker=2
        )
        self.plan = planned_cluster(self.live.source(), asked).plan
        self.file = folder / "plan.json"
        self.file.write_bytes(encode_plan(self.plan))
        self.id = hash_of(self.plan)
        for name in PEOPLE:
            (folder / f"{name}.pem").write_bytes(key_of(name).pem)

    def key(self, name: str) -> list[str]:
        return ["--key", str(self.folder / f"{name}.pem")]

    def run(self, *words: object, command: Any = proposals) -> Result:
        app = command
        if command is not proposals:
            app = typer.Typer()
            app.command()(command)
        conf = [] if "key" in words[:1] else ["--conf", str(self.folder / "trimtab.toml")]
        return CliRunner().invoke(app, [*map(str, words), *conf])

    def said(self, *words: object) -> Any:
        result = self.run(*words, "--json")
        assert result.exit_code == 0, (result.output, result.exception)
        return json.loads(result.stdout)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    site = Site(tmp_path, POLICY)
    monkeypatch.setattr("time.time_ns", lambda: site.live.interval * 1_000_000)
    return site


def refusal(result: Result) -> str:
    assert isinstance(result.exception, ProposalRefusedError), (result.output, result.exception)
    return str(result.exception)


def test_one_proposes_and_another_approves(site: Site) -> None:
    made = site.said("make", site.file, *site.key("ada"), "--reason", "new kernel")
    assert (made["id"], made["state"], made["author"], made["required"]) == (site.id, "pending", "ada", 1)
    listed = site.run("list")
    assert all(text in listed.stdout for text in (site.id[:12], "pending", "ada", f"drain {BROKER}"))
    approved = site.said("approve", site.id, *site.key("bob"), "--reason", "checked")
    assert (approved["state"], approved["approvedBy"]) == ("approved", ["bob"])
    shown = site.said("show", site.id[:8])
    assert [(each["person"], each["kind"], each["reason"]) for each in shown["statements"]] == [
        ("ada", "propose", "new kernel"),
        ("bob", "approve", "checked"),
    ]
    assert shown["drift"]["verdict"] == "still valid"
    assert shown["drift"]["movesLeft"] == shown["plan"]["moves"] == len(site.plan.moves)


def test_what_is_shown_has_the_plan_its_approvals_and_the_command_that_comes_next(site: Site) -> None:
    site.said("make", site.file, *site.key("ada"))
    text = site.run("show", site.id[:12]).stdout
    assert "Whose clients reconnect" in text
    assert "0 of 1; author: ada" in text
    assert f"trimtab proposals approve {site.id}" in text
    assert "-o plan.json" not in text
    site.said("approve", site.id, *site.key("bob"))
    assert f"trimtab apply --proposal {site.id[:12]}" in site.run("show", site.id[:12]).stdout


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["make", "FILE"], "demands your signature: give your private key with --key FILE"),
        (["make", "FILE", "--by", "ada"], "demands your signature"),
        (["make", "FILE", "--key", "carol"], "carol may not propose"),
        (["make", "FILE", "--key", "stranger"], "is not in [approvals.keys]"),
        (["approve", "ID"], "demands your signature"),
        (["approve", "ID", "--key", "ada"], "ada has proposed"),
        (["approve", "ID", "--key", "stranger"], "is not in [approvals.keys]"),
        (["reject", "ID", "--by", "bob"], "demands your signature"),
        (["refresh", "ID"], "demands your signature"),
        (["pause", "ID"], "nobody has begun to carry out"),
    ],
)
def test_what_the_policy_does_not_allow_is_refused_by_name(site: Site, words: list[str], why: str) -> None:
    (site.folder / "stranger.pem").write_bytes(SigningKey.new().pem)
    if words[0] != "make":
        site.said("make", site.file, *site.key("ada"))
    places = {"FILE": str(site.file), "ID": site.id} | {
        name: str(site.folder / f"{name}.pem") for name in (*PEOPLE, "stranger") if "--key" in words
    }
    assert why in refusal(site.run(*(places.get(word, word) for word in words)))


def test_a_rejected_proposal_can_be_made_again_and_not_be_approved(site: Site) -> None:
    site.said("make", site.file, *site.key("ada"))
    assert site.said("reject", site.id[:12], *site.key("bob"))["state"] == "rejected"
    assert "is rejected" in refusal(site.run("approve", site.id, *site.key("carol")))


def test_an_approval_names_enough_of_the_hash(site: Site) -> None:
    site.said("make", site.file, *site.key("ada"))
    assert site.run("approve", site.id[:31], *site.key("bob")).exit_code == 2
    assert site.run("show", site.id[:7]).exit_code == 2
    assert isinstance(site.run("show", "0" * 8).exception, NothingFoundError)
    assert site.said("approve", site.id[:32], *site.key("bob"))["state"] == "approved"


def test_a_proposal_whose_content_was_changed_is_shown_as_rejected_and_cannot_be_approved(site: Site) -> None:
    site.said("make", site.file, *site.key("ada"))
    store = election_system(read_settings(site.folder / "trimtab.toml")).proposals()
    stored = store.read(site.id)
    assert stored is not None
    asked = PlanRequest(kind=DRAIN, brokers=("broker-2:8080",), text="another")
    other = planned_cluster(site.live.source(), asked).plan
    store.remove(site.id)
    store.add(stored.proposal, encode_plan(other), now_ms=site.live.interval)
    shown = site.said("show", site.id)
    assert shown["state"] == "rejected"
    assert any("was changed" in flaw for flaw in shown["flaws"])
    assert "was changed" in refusal(site.run("approve", site.id, *site.key("bob")))
    assert "was changed" in refusal(site.run("--proposal", site.id, command=apply))


def test_drift_is_named_and_a_refreshed_proposal_has_a_hash_and_approvals_of_its_own(site: Site) -> None:
    site.said("make", site.file, *site.key("ada"))
    site.said("approve", site.id, *site.key("bob"))
    move = site.plan.steps[0].moves[0]
    bundle, planned = site.plan.bundles[move.bundle], site.plan.brokers[move.destination]
    elsewhere = next(name for name in site.plan.brokers if name not in (BROKER, planned))
    site.live.hand(bundle, BROKER, elsewhere)
    site.live.advance()
    site.live.advance()
    drift = site.said("show", site.id)["drift"]
    assert drift["verdict"] == "needs repair"
    assert any(bundle in text and elsewhere in text for text in drift["changed"])
    new = site.said("refresh", site.id[:12], *site.key("bob"))
    assert (new["state"], new["author"], new["approvedBy"]) == ("pending", "bob", [])
    assert new["id"] != site.id
    assert site.said("show", new["id"])["drift"]["verdict"] == "still valid"
    for left in site.live.bundles_on(BROKER):
        site.live.hand(left, BROKER, elsewhere)
    site.live.advance()
    site.live.advance()
    assert site.said("show", new["id"])["drift"]["verdict"] == "void"
    result = site.run("refresh", new["id"], *site.key("ada"))
    assert isinstance(result.exception, TrimtabError)


@pytest.mark.parametrize("command", ["make", "apply"])
def test_what_is_proposed_is_what_was_checked_although_the_file_is_replaced_meanwhile(
    site: Site, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    asked = PlanRequest(kind=DRAIN, brokers=("broker-2:8080",), text="another")
    other = planned_cluster(site.live.source(), asked).plan

    def and_replaced(read: Callable[[Path], Any]) -> Callable[[Path], Any]:
        def read_and_replaced(file: Path) -> Any:
            found = read(file)
            file.write_bytes(encode_plan(other))
            return found

        return read_and_replaced

    monkeypatch.setattr("controller.cli.proposals.read_plan_bytes", and_replaced(read_plan_bytes))
    monkeypatch.setattr("controller.cli.apply.read_plan_bytes", and_replaced(read_plan_bytes))
    if command == "make":
        site.said("make", site.file, *site.key("ada"))
    else:
        site.run(site.file, "--hash", site.id, *site.key("ada"), command=apply)
    assert site.said("list")["id"] == site.id


def test_a_file_that_is_no_plan_is_not_proposed(site: Site) -> None:
    site.file.write_text("{}")
    assert isinstance(site.run("make", site.file, *site.key("ada")).exception, PlanRefusedError)


def test_controllers_obey_proposals_alone_so_a_plan_without_one_is_not_applied(site: Site) -> None:
    words = [site.file, "--hash", site.id]
    assert "demands your signature" in refusal(site.run(*words, command=apply))
    result = site.run(*words, *site.key("ada"), command=apply)  # proposes it; nobody has approved it, and nobody leads
    assert isinstance(result.exception, TrimtabError)
    assert site.said("show", site.id)["state"] == "pending"
    assert site.live.controls.orders is None


def test_a_proposal_and_a_file_do_not_go_together(site: Site) -> None:
    assert site.run(site.file, "--proposal", site.id, command=apply).exit_code == 2
    assert site.run("--proposal", site.id, "--check", command=apply).exit_code == 2
    assert site.run(command=apply).exit_code == 2


@pytest.mark.parametrize("more", [["--check"], ["--repair", "-o", "new.json"], []])
def test_a_key_is_refused_where_apply_signs_nothing(site: Site, more: list[str]) -> None:
    what = [site.file, "--hash", site.id, *more] if more else ["--proposal", site.id]
    result = site.run(*what, *site.key("ada"), command=apply)
    assert result.exit_code == 2
    assert "nothing is signed" in " ".join(result.output.split())


def test_a_plan_is_verified_once_before_it_is_proposed(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    checked = Mock(side_effect=parse_plan)
    monkeypatch.setattr("controller.adapters.approvals.contents.parse_plan", checked)
    site.said("make", site.file, *site.key("ada"))
    checked.assert_called_once()


def test_a_plan_is_verified_once_where_it_is_proposed_and_applied_and_again_where_other_bytes_lie_there(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked = Mock(side_effect=parse_plan)
    monkeypatch.setattr("controller.adapters.approvals.contents.parse_plan", checked)
    words = [site.file, "--hash", site.id, *site.key("ada")]
    assert "no controller runs" in str(site.run(*words, command=apply).exception)
    checked.assert_called_once()
    site.file.write_bytes(site.file.read_bytes() + b"\n")
    site.run(*words, command=apply)
    assert checked.call_count == 3


def test_a_key_is_made_for_its_owner_alone_and_never_overwritten(site: Site) -> None:
    file = site.folder / "dora.pem"
    printed = site.run("key", file, "--name", "dora").stdout.splitlines()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert printed == ['[approvals.keys."dora"]', f'key = "{SigningKey.of_pem(file.read_bytes()).public_text}"']
    assert isinstance(site.run("key", file).exception, SettingsError)
    assert site.run("key", file, "--public", "--name", "dora").stdout.splitlines() == printed


def test_without_keys_in_the_settings_nothing_is_signed_and_names_are_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(tmp_path, "")
    monkeypatch.setattr("time.time_ns", lambda: site.live.interval * 1_000_000)
    site.said("make", site.file, "--by", "ada")
    assert "another person has to approve it" in refusal(site.run("approve", site.id, "--by", "Ada"))
    assert site.said("approve", site.id, "--by", "bob")["approvedBy"] == ["bob"]
    assert site.run("approve", site.id, *site.key("carol")).exit_code == 2


def carry_out(site: Site, monkeypatch: pytest.MonkeyPatch, *words: object) -> Result:
    """``trimtab apply`` beside a controller: an interval passes when it sleeps."""
    clock = SimpleNamespace(sleep=lambda _: site.live.advance(), strftime=time.strftime, gmtime=time.gmtime)
    monkeypatch.setattr("controller.cli.apply.time", clock)
    monkeypatch.setattr("controller.adapters.folder.election.FileElection.leader", lambda _: "a controller")
    return site.run(*words, "--tolerance", 100, command=apply)


def test_what_two_people_agreed_on_is_carried_out_by_controllers_that_demand_it(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.said("make", site.file, *site.key("ada"))
    refused = carry_out(site, monkeypatch, "--proposal", site.id)
    assert "it has 0 of 1 approvals" in refusal(refused)
    site.said("approve", site.id, *site.key("bob"))
    paused = list[int]()

    def pause() -> None:
        if not paused and site.live.commands:
            assert site.said("pause", site.id[:12], "--by", "bob")["state"] == "paused"
            paused.append(len(site.live.commands))
        elif paused and len(paused) < 6:
            assert len(site.live.commands) == paused[0]
            paused.append(paused[0])
        elif len(paused) == 6:
            assert site.said("resume", site.id[:12], "--by", "ada")["state"] == "applying"
            paused.append(0)

    site.live.meanwhile = pause
    done = carry_out(site, monkeypatch, "--proposal", site.id)
    assert done.exit_code == 0, (done.output, done.exception)
    assert len(paused) == 7
    assert site.live.bundles_on(BROKER) == []
    shown = site.said("show", site.id)
    assert (shown["state"], shown["movesDone"], shown["drift"]) == ("done", len(site.plan.moves), None)
    assert [(each.action, each.by) for each in site.live.controls.history if each.action != "apply"] == [
        ("pause-plan", "bob"),
        ("resume-plan", "ada"),
    ]
    assert "is done" in refusal(carry_out(site, monkeypatch, "--proposal", site.id))


def test_what_was_begun_and_nobody_carries_out_says_so(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.said("make", site.file, *site.key("ada"))
    site.said("approve", site.id, *site.key("bob"))
    told = list[str]()

    def look() -> None:
        if site.live.commands and not told:
            told.append(site.run("show", site.id, "--no-now").stdout)
            raise TrimtabError("the log is away")

    site.live.meanwhile = look
    assert carry_out(site, monkeypatch, "--proposal", site.id).exit_code != 0
    assert "no process, at present" not in told[0]
    shown = site.said("show", site.id, "--no-now")
    assert (shown["state"], shown["heldUntil"]) == ("applying", 0)
    assert "no process, at present" in site.run("show", site.id, "--no-now").stdout


DECIDES = "loadBalancerLoadSheddingStrategy=UniformLoadShedder\nmaxUnloadPercentage=0.5\n"


@pytest.fixture
def deciding(tmp_path: Path, request: pytest.FixtureRequest) -> Site:
    """A cluster whose strategies wait for approval of what they decide."""
    site = Site(tmp_path, request.param, broker_conf=DECIDES, mode="approve")
    for _ in range(30):
        if site.live.decided[-1].entry.memory.proposed is not None:
            return site
        site.live.advance()
    raise AssertionError("the strategies decided nothing")


@pytest.mark.parametrize("deciding", ["", POLICY], indirect=True, ids=["unsigned", "signed"])
@pytest.mark.parametrize("agree", [True, False])
def test_a_decision_that_waits_is_listed_and_approved_or_rejected(
    deciding: Site, agree: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time_ns", lambda: deciding.live.interval * 1_000_000)
    decision = deciding.live.decided[-1].entry.memory.proposed
    assert decision is not None
    who = deciding.key("bob") if deciding.live.settings.approvals.demanded else ["--by", "bob"]
    listed = deciding.said("list")
    assert (listed["id"], listed["kind"], listed["state"], listed["author"]) == (
        decision.hash,
        "decision",
        "pending",
        "trimtab",
    )
    shown = deciding.said("show", decision.hash[:12])
    assert len(shown["content"]) >= len(decision.commands)
    said = deciding.said("approve" if agree else "reject", decision.hash, *who)
    assert said["state"] == ("approved" if agree else "rejected")
    before = len(deciding.live.commands)
    for _ in range(3):
        deciding.live.advance()
    issued = deciding.live.commands[before:]
    assert {each.bundle for each in issued} <= {each.bundle for each in decision.commands}
    assert bool(issued) == agree


@pytest.mark.parametrize("deciding", ["", POLICY], indirect=True, ids=["unsigned", "signed"])
def test_too_few_digits_are_not_the_decision_that_waits(deciding: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time_ns", lambda: deciding.live.interval * 1_000_000)
    decision = deciding.live.decided[-1].entry.memory.proposed
    assert decision is not None
    who = deciding.key("bob") if deciding.live.settings.approvals.demanded else ["--by", "bob"]
    for words in (["approve", ""], ["approve", decision.hash[:31]], ["reject", ""], ["reject", decision.hash[:7]]):
        refused = deciding.run(*words, *who)
        assert refused.exit_code == 2
        assert "of the 64 digits" in refused.output
    assert deciding.run("show", "").exit_code == 2
    assert deciding.said("list")["state"] == "pending"
    assert deciding.said("approve", decision.hash[:32], *who)["state"] == "approved"
