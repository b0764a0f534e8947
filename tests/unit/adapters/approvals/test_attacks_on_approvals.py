"""Attacks on approvals: whoever has all rights to ZooKeeper and the log, but no key, moves nothing, and is named."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from typing import Any, Final

import numpy as np
import pytest

from controller.adapters.approvals.approved import ApprovedProposals
from controller.adapters.approvals.background import T, at_once
from controller.adapters.approvals.control_changes import enact_approved, propose_resume
from controller.adapters.approvals.granted import INCLUDE, MODE, RELEASE, RESUME, GrantedControls
from controller.adapters.approvals.in_force import Approvals
from controller.adapters.approvals.making import (
    Signer,
    approve,
    enact,
    grant_of,
    propose_control,
    propose_decision,
    propose_plan,
    reject,
    signer_of,
)
from controller.adapters.controls_in_force import ControlsInForce
from controller.adapters.election.memory import MemoryProposals
from controller.adapters.election.proposals import change_record
from controller.model.controls import (
    Choice,
    Controls,
    DecisionApproval,
    Drained,
    ExcludedName,
    OperatorControls,
    OrderedMove,
    Orders,
    Pause,
)
from controller.model.errors import ControlsUnreachableError, ProposalRefusedError
from controller.model.proposals import Grant, ProposalRecord, SignedStatement, Statement, StatementKind
from controller.planning.objective import disturbance
from controller.planning.plans.plan import DRAIN, RESTART, PlanKind
from controller.planning.plans.plan_steps import PlanLimits, empty_step
from controller.planning.plans.waves import WaveLimits
from controller.settings.approvals import ApprovalSettings
from controller.settings.maintenance import Maintenance
from controller.settings.standing_controls import StandingControls
from controller.wire.controls import encode_controls, parse_controls
from controller.wire.plan import certificate_hash, encode_plan, parse_plan
from controller.wire.proposals import encode_head, pack, parse_head
from tests.plans import plan_of, some_problem
from tests.proposals import NOW, key_of, policy, signed_by

CLUSTER: Final = "demo"
MINUTE: Final = 60_000
POLICY: Final = policy()
_PROBLEM: Final = some_problem(16, 0.4)
PLAN: Final = plan_of(
    replace(_PROBLEM, disturbance=disturbance(_PROBLEM.connections, np.arange(len(_PROBLEM.owner), dtype=np.float64))),
    [empty_step(_PROBLEM, [0], PlanLimits(waves=WaveLimits(max_moves=3), effort=1000))],
)
CONTENT: Final = encode_plan(PLAN)
HASH: Final = parse_plan(CONTENT)[1]


def move(number: int = 0) -> OrderedMove:
    planned = PLAN.steps[0].moves[number]
    names = PLAN.brokers
    return OrderedMove(
        bundle=PLAN.bundles[planned.bundle], source=names[planned.source], destination=names[planned.destination]
    )


ORDERS: Final = Orders(
    plan=HASH,
    step=1,
    wave=1,
    waves=1,
    moves=(move(),),
    checked_at=NOW,
    expires_at_ms=NOW + 24 * 60 * MINUTE,
    holder="mallory",
    by="mallory",
)


def by(name: str, under: ApprovalSettings = POLICY) -> Signer:
    return signer_of(key_of(name), under, CLUSTER)


class ControlsInMemory:
    """ControlStore, in bytes as the others have them.  Whoever has all rights writes ``value``."""

    def __init__(self) -> None:
        self.controls, self.number = OperatorControls(), -1
        self.is_away = False

    def read(self) -> tuple[OperatorControls, int]:
        if self.is_away:
            raise ControlsUnreachableError("away")
        return parse_controls(encode_controls(self.controls)), self.number

    def write(self, controls: OperatorControls, version: int) -> bool:
        if version != self.number:
            return False
        self.controls, self.number = controls, self.number + 1
        return True

    def version(self) -> int:
        return self.number

    def epoch(self) -> int:
        return 0

    def raise_epoch(self, epoch: int) -> None: ...

    def close(self) -> None: ...


class Site:
    """A controller, the stores, and the clock."""

    def __init__(self, under: ApprovalSettings = POLICY, mode: str = "active") -> None:
        self.policy, self.mode, self.now_ms = under, mode, NOW
        self.proposals, self.store = MemoryProposals(), ControlsInMemory()
        self.controller = self.new_controller(None)

    def new_controller(self, before: Controls | None, under: ApprovalSettings | None = None) -> ControlsInForce:
        """One that begins to lead, and finds *before* in the journal."""
        demanded = under or self.policy
        approvals = Approvals(
            granted=GrantedControls(demanded, cluster=CLUSTER, mode=self.mode),
            proposals=ApprovedProposals(demanded, self.proposals, cluster=CLUSTER, work=at_once),
            mode=self.mode,
        )
        standing = StandingControls(mode=self.mode, paused=False, stale_after_ms=MINUTE, maintenance=Maintenance())
        controller = ControlsInForce(standing, self.store, lambda: self.now_ms, approvals)
        controller.go_on_from(before)
        return controller

    def at(self, minutes: int = 0) -> Controls:
        self.now_ms = NOW + minutes * MINUTE
        return self.controller.at(self.now_ms)

    def forge(self, **changes: Any) -> None:
        """What somebody with all rights to the store does."""
        self.store.controls = replace(self.store.controls, **changes)

    def propose(self, author: str = "ada", *approvers: str) -> None:
        propose_plan(self.proposals, by(author, self.policy), CONTENT, now_ms=self.now_ms)
        for name in approvers:
            approve(self.proposals, by(name, self.policy), HASH, now_ms=self.now_ms)

    def control(self, action: str, *values: str, author: str = "ada", approver: str = "bob", at: int = 0) -> Grant:
        """An approved change of the controls."""
        now_ms = NOW + at * MINUTE
        stored = propose_control(self.proposals, by(author, self.policy), action, values, now_ms=now_ms)
        key = stored.proposal.hash
        approve(self.proposals, by(approver, self.policy), key, now_ms=now_ms)
        return grant_of(self.proposals, key, self.policy, CLUSTER, now_ms)

    def add_statement(self, statement: SignedStatement) -> None:
        change_record(
            self.proposals,
            HASH,
            lambda stored: ProposalRecord(statements=(*stored.record.statements, statement)),
        )


@pytest.fixture
def site() -> Site:
    return Site()


def refused(controls: Controls) -> str:
    """Why the orders are not obeyed."""
    assert controls.orders is None
    (why,) = controls.not_approved
    assert f"plan {HASH[:12]}, handed over by mallory, is not approved: " in why
    return why


# ---- plans ----


def test_a_plan_that_another_person_approved_is_obeyed(site: Site) -> None:
    site.propose("ada", "bob")
    site.forge(orders=ORDERS)
    controls = site.at()
    assert (controls.orders, controls.not_approved) == (ORDERS, ())


def test_a_plan_that_nobody_proposed_is_refused(site: Site) -> None:
    site.forge(orders=ORDERS)
    assert "it was not proposed" in refused(site.at())


def test_a_plan_that_waits_is_refused_and_obeyed_once_it_is_approved(site: Site) -> None:
    site.propose()
    site.forge(orders=ORDERS)
    assert "it has 0 of 1 approvals" in refused(site.at())
    approve(site.proposals, by("bob"), HASH, now_ms=NOW)
    assert site.at(1).orders == ORDERS


def test_nobody_approves_what_she_proposed(site: Site) -> None:
    site.propose("ada")
    with pytest.raises(ProposalRefusedError, match=r"ada has proposed .* another person has to approve it"):
        approve(site.proposals, by("ada"), HASH, now_ms=NOW)
    own = approval("ada")
    site.add_statement(own)
    site.forge(orders=ORDERS)
    assert "ada has proposed it, so the approval does not count" in refused(site.at())


def test_nobody_approves_what_she_proposed_under_another_name() -> None:
    keys = {"ada": {"key": key_of("ada").public_text, "also": ["ada@example.org"]}}
    servers = {"page": {"key": key_of("page").public_text}}
    site = Site(ApprovalSettings.model_validate({"keys": keys, "servers": servers}))
    site.propose("ada")
    for name in ("ada", "Ada", "ADA@example.org"):
        page = Signer(person=name, policy=site.policy, cluster=CLUSTER, key_name="page", key=key_of("page"))
        with pytest.raises(ProposalRefusedError, match="has proposed"):
            approve(site.proposals, page, HASH, now_ms=NOW)
    page = Signer(person="bob", policy=site.policy, cluster=CLUSTER, key_name="page", key=key_of("page"))
    approve(site.proposals, page, HASH, now_ms=NOW)
    site.forge(orders=ORDERS)
    assert site.at().orders == ORDERS


def approval(person: str, signer: str = "", **changes: Any) -> SignedStatement:
    """That *person* approves PLAN, which ada proposed; signed with the key of *signer*."""
    statement = Statement(
        kind=StatementKind.APPROVE,
        cluster=CLUSTER,
        subject=HASH,
        certificate=certificate_hash(PLAN),
        person=person,
        author="ada",
        at_ms=NOW,
        expires_at_ms=NOW + 60 * MINUTE,
        policy=POLICY.version,
        key=person,
    )
    return signed_by(signer or person, replace(statement, **changes))


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        (approval("bob", "mallory"), "signature that is not one of the key of bob: it was forged"),
        (approval("mallory"), "signed with the key 'mallory', which is not in"),
        (approval("carol", "bob", key="bob"), "signed with the key of bob"),
        (replace(approval("bob"), signature=""), "it was forged"),
        (
            replace(approval("bob"), statement=replace(approval("bob").statement, expires_at_ms=NOW + 999 * MINUTE)),
            "it was forged, or changed since",
        ),
        (approval("bob", subject="0" * 64), "is about 000000000000, and this is"),
        (approval("bob", cluster="other"), "is for cluster 'other'"),
        (approval("bob", certificate="0" * 64), "is about another certificate"),
        (approval("bob", author="carol"), "is about a proposal of carol"),
        (approval("bob", policy="0123456789abcdef"), "was made under policy 0123456789abcdef"),
        (approval("bob", at_ms=NOW - 9 * MINUTE, expires_at_ms=NOW), "expired 0 s ago"),
        (approval("bob", at_ms=NOW + 9 * MINUTE), "540 s ahead of this host's clock"),
        (approval("bob", kind=StatementKind.PROPOSE), "0 of 1 approvals"),
    ],
)
def test_a_forged_or_replayed_approval_is_refused_and_named(site: Site, statement: SignedStatement, why: str) -> None:
    site.propose("ada")
    site.add_statement(statement)
    site.forge(orders=ORDERS)
    assert why in refused(site.at())


def test_one_person_who_approves_twice_is_one_approval() -> None:
    site = Site(policy(required=2))
    site.propose("ada", "bob")
    with pytest.raises(ProposalRefusedError, match="bob has approved"):
        approve(site.proposals, by("bob", site.policy), HASH, now_ms=NOW)
    bob = site.proposals.read(HASH).record.statements[0]  # type: ignore[union-attr]
    site.add_statement(bob)
    site.forge(orders=ORDERS)
    assert "it has 1 of 2 approvals, by bob" in refused(site.at())
    approve(site.proposals, by("carol", site.policy), HASH, now_ms=NOW)
    assert site.at(1).orders == ORDERS


def test_who_may_only_propose_does_not_approve() -> None:
    keys = {name: {"key": key_of(name).public_text} for name in ("ada", "bob")}
    keys["bob"]["may"] = ["propose"]  # type: ignore[assignment]
    site = Site(ApprovalSettings.model_validate({"keys": keys}))
    site.propose("ada")
    with pytest.raises(ProposalRefusedError, match="bob may not approve"):
        approve(site.proposals, by("bob", site.policy), HASH, now_ms=NOW)


def test_an_approval_of_a_plan_is_none_of_a_changed_one(site: Site) -> None:
    site.propose("ada", "bob")
    changed = replace(PLAN, ceiling=0.99)
    head, _, record, version = site.proposals.entries[HASH]
    site.proposals.entries[HASH] = (head, pack(encode_plan(changed)), record, version)
    site.forge(orders=ORDERS)
    assert "was changed: its hash is" in refused(site.at())


@pytest.mark.parametrize(
    ("action", "changes"),
    [
        ("plan", {"title": "empty another broker"}),
        ("plan", {"moves": 1}),
        ("plan", {"connections": 0}),
        ("plan", {"splits": 1}),
        ("mode", {"title": "release a:8080"}),
        ("decision", {"moves": 1}),
        ("decision", {"title": "1 unload"}),
    ],
)
def test_what_people_read_of_a_proposal_is_what_is_in_it(site: Site, action: str, changes: dict[str, Any]) -> None:
    """The head has no signature: somebody who may write the store could have others approve what they do not read."""
    if action == "plan":
        site.propose("ada")
        key = HASH
    elif action == "mode":
        key = propose_control(site.proposals, by("ada"), MODE, ("active",), now_ms=NOW).proposal.hash
    else:
        moves = [["acme/orders/0x00000000_0xffffffff", "a:8080", "b:8080"]] * 2
        content = json.dumps({"cluster": CLUSTER, "interval": 1, "splits": [], "unloads": moves}).encode()
        said: dict[str, Any] = {"moves": 2, "title": "2 unloads"}
        key = propose_decision(
            site.proposals, content, cluster=CLUSTER, now_ms=NOW, expires_at_ms=NOW + MINUTE, **said
        ).proposal.hash
    head, packed, record, version = site.proposals.entries[key]
    proposal, size = parse_head(head, key)
    site.proposals.entries[key] = (encode_head(replace(proposal, **changes), size), packed, record, version)
    with pytest.raises(ProposalRefusedError, match=r"the head of proposal .* was changed"):
        approve(site.proposals, by("bob"), key, now_ms=NOW)
    site.proposals.entries[key] = (head, packed, record, version)
    approve(site.proposals, by("bob"), key, now_ms=NOW)


def test_a_false_certificate_is_refused_by_the_controller_itself(site: Site) -> None:
    fields = json.loads(CONTENT)
    fields["plan"]["steps"][0]["certificate"]["reached"] /= 2
    head, _, record, version = _proposed_unchecked(site)
    site.proposals.entries[HASH] = (head, pack(json.dumps(fields).encode()), record, version)
    site.forge(orders=ORDERS)
    assert "is refused" in refused(site.at()) or "was changed" in refused(site.at())


def _proposed_unchecked(site: Site) -> tuple[bytes, bytes, bytes, int]:
    site.propose("ada", "bob")
    return site.proposals.entries[HASH]


@pytest.mark.parametrize(
    "moves",
    [
        (replace(move(), destination=move().source),),
        (move(), replace(move(1), bundle="acme/other/0x00000000_0xffffffff")),
        (replace(move(), source="elsewhere:8080"),),
    ],
)
def test_moves_that_are_not_in_the_approved_plan_are_refused(site: Site, moves: tuple[OrderedMove, ...]) -> None:
    site.propose("ada", "bob")
    site.forge(orders=replace(ORDERS, moves=moves))
    assert "is not in its step" in refused(site.at())
    site.forge(orders=replace(ORDERS, step=2, moves=()))
    assert "it has no step 2" in refused(site.at(1))


def test_an_approval_ends_with_its_time_though_the_store_does_not_answer(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.propose("ada", "bob")
    site.forge(orders=ORDERS)
    assert site.at().orders == ORDERS

    def away(_: str) -> None:
        raise ControlsUnreachableError("away")

    monkeypatch.setattr(site.proposals, "read", away)
    assert site.at(1).orders == ORDERS
    site.forge(orders=replace(ORDERS, expires_at_ms=NOW + 9999 * MINUTE))
    assert "it has expired" in refused(site.at(24 * 60 + 1))


def test_orders_whose_time_ends_between_the_interval_and_its_decision_are_verified(site: Site) -> None:
    """The simulation found that these were obeyed unverified: they hold in T, and no longer by the clock."""
    site.forge(orders=replace(ORDERS, expires_at_ms=NOW + 100))
    site.now_ms = NOW + 15_000
    assert "it was not proposed" in refused(site.controller.at(NOW))


def test_a_controller_with_another_policy_refuses_and_names_both(site: Site) -> None:
    site.propose("ada", "bob")
    site.forge(orders=ORDERS)
    older = site.new_controller(None, policy(["ada", "bob"]))
    why = refused(older.at(NOW))
    assert POLICY.version in why
    assert policy(["ada", "bob"]).version in why


def test_a_statement_of_another_cluster_of_the_same_name_counts_only_where_the_policies_are_the_same() -> None:
    """Pulsar's clusters are often called "standalone" or "pulsar-cluster"; a test cluster may have the same persons."""
    grants = {
        scope: Site(policy(scope=scope), mode="dry_run").control(MODE, "active") for scope in ("production", "test")
    }
    for scope, mode in (("production", "active"), ("test", "dry_run")):
        site = Site(policy(scope="production"), mode="dry_run")
        enacted(site, grants[scope], lambda now: replace(now, mode=mode_choice("active")))
        assert site.at().mode == mode, scope
    assert any("was made under policy" in each for each in site.at().not_approved)


def test_an_approval_by_a_clock_that_is_ahead_counts_once_it_is_that_time_and_no_longer_than_the_policy_says() -> None:
    site = Site(mode="approve")
    key = propose_decision(site.proposals, b"{}", cluster=CLUSTER, now_ms=NOW, expires_at_ms=NOW + 59 * MINUTE)
    approve(site.proposals, by("bob"), key.proposal.hash, now_ms=NOW + 10 * MINUTE)
    assert [len(site.at(minute).approved) for minute in (0, 8, 9, 58, 59)] == [0, 0, 1, 1, 0]


def test_an_approval_by_a_clock_that_is_far_behind_does_not_count() -> None:
    site = Site(mode="approve")
    key = propose_decision(site.proposals, b"{}", cluster=CLUSTER, now_ms=NOW, expires_at_ms=NOW + 59 * MINUTE)
    approve(site.proposals, by("bob"), key.proposal.hash, now_ms=NOW - 61 * MINUTE)
    assert site.at().approved == ()
    approve(site.proposals, by("carol"), key.proposal.hash, now_ms=NOW)
    assert site.at(1).approved != ()


@pytest.mark.parametrize("other", ["b\u043eb", "BOB", "bob\u200b", " bob ", "\u202ebob", "\uff42ob"])
def test_two_names_that_look_the_same_are_one_approver(other: str) -> None:
    site = Site(
        ApprovalSettings.model_validate({"required": 2, "servers": {"page": {"key": key_of("page").public_text}}})
    )

    def page(name: str) -> Signer:
        return Signer(person=name, policy=site.policy, cluster=CLUSTER, key_name="page", key=key_of("page"))

    propose_plan(site.proposals, page("ada"), CONTENT, now_ms=NOW)
    approve(site.proposals, page("bob"), HASH, now_ms=NOW)
    with pytest.raises(ProposalRefusedError, match="has approved"):
        approve(site.proposals, page(other), HASH, now_ms=NOW)
    forged = replace(approval(other).statement, policy=site.policy.version, key="page")
    site.add_statement(signed_by("page", forged))
    site.forge(orders=ORDERS)
    assert "it has 1 of 2 approvals, by bob" in refused(site.at())


def test_what_somebody_rejected_is_refused(site: Site) -> None:
    site.propose("ada", "bob")
    reject(site.proposals, by("carol"), HASH, now_ms=NOW)
    site.forge(orders=ORDERS)
    assert "carol has rejected it" in refused(site.at())


def test_a_small_plan_needs_its_author_alone() -> None:
    moves = len(PLAN.steps[0].moves)
    for limits, is_free in (
        ({"free_moves": moves}, True),
        ({"free_moves": moves - 1}, False),
        ({"free_moves": moves, "free_connections": 1}, False),
        ({"free_connections": 1_000_000}, True),
        ({"required": 0}, True),
    ):
        site = Site(policy(**limits))  # type: ignore[arg-type]
        site.propose("ada")
        site.forge(orders=ORDERS)
        assert (site.at().orders is not None) is is_free, limits
        head, packed, record, version = site.proposals.entries[HASH]
        site.proposals.entries[HASH] = (head.replace(b'"moves":', b'"moves":0,"x":'), packed, record, version)
    forged = Site(policy(required=0))
    forged.forge(orders=ORDERS)
    assert "it was not proposed" in refused(forged.at())


def test_a_plan_is_parsed_once_however_long_it_is_carried_out(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.propose("ada", "bob")
    site.forge(orders=ORDERS)
    read, calls = site.proposals.content, list[str]()

    def counted(key: str) -> bytes:
        calls.append(key)
        return read(key)

    monkeypatch.setattr(site.proposals, "content", counted)
    for minute in range(5):
        assert site.at(minute).orders == ORDERS
    assert calls == [HASH]


def test_a_plan_is_obeyed_though_other_work_takes_the_place_of_its_verification(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In mode approve decisions are looked for before each result of a large plan is fetched."""
    site.propose("ada", "bob")
    read, calls = site.proposals.content, list[str]()

    def counted(key: str) -> bytes:
        calls.append(key)
        return read(key)

    def too_late(key: object, work: Callable[[], T]) -> T | None:
        before = len(calls)
        result = work()
        return result if len(calls) == before else None

    monkeypatch.setattr(site.proposals, "content", counted)
    proposals = ApprovedProposals(POLICY, site.proposals, cluster=CLUSTER, work=too_late)
    assert proposals.why_not(ORDERS, NOW) == "its proposal is being read and checked"
    assert proposals.why_not(ORDERS, NOW) == ""
    assert calls == [HASH]


# ---- mode, resume, release ----

ADA_PAUSED: Final = Pause(by="ada", reason="upgrade", at_ms=NOW - 5)


def mode_choice(value: str) -> Choice:
    return Choice(value=value, reason="", by="mallory", at_ms=NOW)


def test_a_mode_in_which_more_moves_needs_approval_and_one_in_which_less_moves_none() -> None:
    site = Site(mode="dry_run")
    site.forge(mode=mode_choice("active"))
    controls = site.at()
    assert controls.mode == "dry_run"
    assert controls.not_approved == ("mode active, set by mallory, is not approved: dry_run stays in force",)
    site.forge(mode=mode_choice("observe"))
    assert (site.at(1).mode, site.at(1).not_approved) == ("observe", ())
    # Back up to the settings' own mode is more again.
    site.forge(mode=None)
    assert site.at(2).mode == "observe"


def enacted(site: Site, grant: Grant, change: Callable[[OperatorControls], OperatorControls]) -> None:
    enact(site.store, grant, change)


def test_an_approved_mode_is_in_force_and_stays_after_a_takeover_and_after_its_life() -> None:
    site = Site(mode="dry_run")
    grant = site.control(MODE, "active")
    enacted(site, grant, lambda now: replace(now, mode=mode_choice("active")))
    assert (site.at().mode, site.at().not_approved) == ("active", ())
    later = site.at(3 * 24 * 60)
    assert later.mode == "active"
    site.controller = site.new_controller(later)
    assert site.at(4 * 24 * 60).mode == "active"


def test_an_old_document_that_is_restored_is_not_obeyed() -> None:
    site = Site(mode="dry_run")
    enacted(site, site.control(MODE, "active"), lambda now: replace(now, mode=mode_choice("active")))
    assert site.at().mode == "active"
    old = site.store.controls
    site.forge(mode=replace(mode_choice("observe"), at_ms=NOW + MINUTE))
    assert site.at(1).mode == "observe"
    site.store.controls = old
    assert site.at(2).mode == "observe"
    assert any("is older than the last one that was obeyed" in each for each in site.at(2).not_approved)
    site.controller = site.new_controller(site.at(3))
    assert site.at(4).mode == "observe"


@pytest.mark.parametrize(
    "forge",
    [
        lambda grant: replace(grant, statements=()),
        lambda grant: replace(grant, statements=grant.statements[:1]),
        lambda grant: replace(grant, request=replace(grant.request, values=("active",))),
        lambda grant: replace(grant, request=replace(grant.request, at_ms=NOW + 1)),
        lambda grant: replace(grant, request=replace(grant.request, cluster="other")),
    ],
)
def test_a_forged_grant_is_not_obeyed(forge: Callable[[Grant], Grant]) -> None:
    site = Site(mode="observe")
    forged = forge(site.control(MODE, "dry_run"))
    value = forged.request.values[0]
    enacted(site, forged, lambda now: replace(now, mode=mode_choice(value)))
    controls = site.at()
    assert controls.mode == "observe"
    assert any(f"mode {value} is not obeyed" in each for each in controls.not_approved)


def test_a_grant_is_not_obeyed_after_its_life() -> None:
    site = Site(mode="dry_run")
    enacted(site, site.control(MODE, "active"), lambda now: replace(now, mode=mode_choice("active")))
    controls = site.at(61)
    assert controls.mode == "dry_run"
    assert any("it has expired" in each for each in controls.not_approved)


def test_a_forged_journal_does_not_raise_the_mode() -> None:
    site = Site(mode="dry_run")
    site.forge(mode=mode_choice("active"))
    grant = replace(site.control(MODE, "active"), statements=())
    for granted in ((), (grant,), (replace(grant, request=replace(grant.request, values=())),)):
        site.controller = site.new_controller(Controls(mode="active", granted=granted))
        assert site.at().mode == "dry_run"


def test_a_pause_that_vanishes_or_is_shortened_stands_until_its_end_is_approved(site: Site) -> None:
    site.forge(pauses=(ADA_PAUSED,))
    assert site.at().paused
    for changed in ((), (replace(ADA_PAUSED, until_ms=NOW + 1),)):
        site.forge(pauses=changed, resumed_ms=NOW + MINUTE)
        controls = site.at(1)
        assert (controls.paused, ADA_PAUSED in controls.pauses) == (True, True)
        assert "the pause of ada: upgrade was ended without approval: it stands" in controls.not_approved
    site.controller = site.new_controller(site.at(2))
    assert site.at(3).paused
    grant = site.control(RESUME, str(ADA_PAUSED.at_ms), at=3)
    enacted(site, grant, lambda now: replace(now, pauses=(), resumed_ms=grant.request.at_ms))
    controls = site.at(4)
    assert (controls.paused, controls.resumed_ms, controls.not_approved) == (False, NOW + 3 * MINUTE, ())


def test_what_stood_while_the_controls_were_destroyed_stands_after_a_takeover(site: Site) -> None:
    drained = (Drained(broker="a:8080", by="ada", at_ms=NOW),)
    excluded = (ExcludedName(name="acme/orders", by="ada", reason="", at_ms=NOW),)
    site.forge(pauses=(ADA_PAUSED,), drained=drained, excluded=excluded)
    before = site.at()
    site.controller = site.new_controller(before)
    site.store.is_away = True
    unknown = site.at(1)
    assert unknown.unknown
    site.store.is_away, site.store.controls = False, OperatorControls()
    site.controller = site.new_controller(unknown)
    controls = site.at(2)
    assert (controls.paused, controls.pauses, controls.drained) == (True, (ADA_PAUSED,), ("a:8080",))
    assert controls.excluded == ("acme/orders",)


def test_a_pause_that_somebody_removed_is_ended_by_an_approved_resume_and_a_later_one_is_not(site: Site) -> None:
    site.forge(pauses=(ADA_PAUSED,))
    site.at()
    site.forge(pauses=())
    assert site.at(1).paused
    propose_resume(site.proposals, by("ada"), pauses=(), now_ms=NOW + MINUTE, reason="")
    (stored,) = site.proposals.read_all().proposals
    approve(site.proposals, by("bob"), stored.proposal.hash, now_ms=NOW + MINUTE)
    later = Pause(by="carol", reason="", at_ms=NOW + 2 * MINUTE)
    site.forge(pauses=(later,))
    key = stored.proposal.hash
    enact_approved(site.proposals, site.store, key, POLICY, CLUSTER, now_ms=NOW + 2 * MINUTE)
    assert site.at(3).pauses == (later,)


def test_the_end_of_one_pause_is_not_that_of_another(site: Site) -> None:
    bob = Pause(by="bob", reason="", at_ms=NOW - 3)
    site.forge(pauses=(ADA_PAUSED, bob))
    site.at()
    enacted(site, site.control(RESUME, str(ADA_PAUSED.at_ms)), lambda now: replace(now, pauses=()))
    assert site.at(1).pauses == (bob,)


def test_what_is_excluded_is_included_by_an_approved_request_alone_and_not_pushed_out_by_others(site: Site) -> None:
    def forged(*names: str) -> None:
        site.forge(excluded=tuple(ExcludedName(name=name, by="mallory", reason="", at_ms=NOW) for name in names))

    forged("z/real", "z/other")
    assert site.at().excluded == ("z/other", "z/real")
    enacted(site, site.control(INCLUDE, "z/other"), lambda now: replace(now, excluded=()))
    controls = site.at(1)
    assert controls.excluded == ("z/real",)
    assert "z/real: included without approval, so still excluded" in controls.not_approved
    for number in range(5):
        forged(*(f"a/{number}-{each:03}" for each in range(100)))
        excluded = site.at(2 + number).excluded
        assert "z/real" in excluded
        assert len(excluded) <= 100


def test_a_drained_broker_is_released_by_an_approved_release_alone(site: Site) -> None:
    site.forge(drained=(Drained(broker="a:8080", by="ada", at_ms=NOW), Drained(broker="b:8080", by="ada", at_ms=NOW)))
    assert site.at().drained == ("a:8080", "b:8080")
    enacted(site, site.control(RELEASE, "a:8080"), lambda now: replace(now, drained=()))
    controls = site.at(1)
    assert controls.drained == ("b:8080",)
    assert "b:8080: released without approval, so still drained" in controls.not_approved
    site.controller = site.new_controller(controls)
    assert site.at(2).drained == ("b:8080",)


def test_controls_that_cannot_be_read_forget_nothing() -> None:
    site = Site(mode="dry_run")
    enacted(site, site.control(MODE, "active"), lambda now: replace(now, mode=mode_choice("active")))
    last = site.at()
    site.controller = site.new_controller(last)
    site.store.is_away = True
    assert site.at(1).unknown
    site.store.is_away = False
    assert site.at(2).mode == "active"


def test_a_flood_of_statements_keeps_nobody_out(site: Site) -> None:
    site.propose("ada")
    numbers: Iterator[int] = count()
    flood = tuple(approval("mallory", at_ms=NOW - next(numbers)) for _ in range(100))
    change_record(site.proposals, HASH, lambda _: ProposalRecord(statements=flood))
    approve(site.proposals, by("bob"), HASH, now_ms=NOW)
    site.forge(orders=ORDERS)
    assert site.at().orders == ORDERS


# ---- decisions in mode approve ----


def test_a_decision_is_approved_by_signed_statements_alone() -> None:
    site = Site(mode="approve")
    content = b'{"cluster":"demo","interval":1,"splits":[],"unloads":[]}'
    stored = propose_decision(site.proposals, content, cluster=CLUSTER, now_ms=NOW, expires_at_ms=NOW + 30 * MINUTE)
    key = stored.proposal.hash
    site.forge(approvals=(DecisionApproval(decision=key, by=("mallory",), at_ms=NOW),))
    assert site.at().approved == ()
    change_record(
        site.proposals, key, lambda _: ProposalRecord(statements=(approval("mallory", subject=key, author="trimtab"),))
    )
    assert site.at(1).approved == ()
    approve(site.proposals, by("bob"), key, now_ms=NOW)
    assert site.at(2).approved == (DecisionApproval(decision=key, by=("bob",), at_ms=NOW),)
    assert site.at(31).approved == ()
    reject(site.proposals, by("ada"), key, now_ms=NOW, reason="not now")
    (rejection,) = site.at(3).rejected
    assert (rejection.decision, rejection.by, rejection.reason) == (key, "ada", "not now")
    assert site.at(3).approved == ()


def test_a_controller_cannot_approve_what_it_decided() -> None:
    site = Site(mode="approve")
    stored = propose_decision(site.proposals, b"{}", cluster=CLUSTER, now_ms=NOW, expires_at_ms=NOW + MINUTE)
    own = Signer(person="trimtab", policy=site.policy, cluster=CLUSTER, key_name="ada", key=key_of("ada"))
    with pytest.raises(ProposalRefusedError):
        approve(site.proposals, own, stored.proposal.hash, now_ms=NOW)


def test_without_a_policy_everything_is_as_it_was() -> None:
    site = Site()
    standing = StandingControls(mode="dry_run", paused=False, stale_after_ms=MINUTE, maintenance=Maintenance())
    site.forge(mode=mode_choice("active"), orders=ORDERS)
    controls = ControlsInForce(standing, site.store, lambda: NOW).at(NOW)
    assert (controls.mode, controls.orders, controls.not_approved, controls.granted) == ("active", ORDERS, (), ())
    assert b"grants" not in encode_controls(site.store.controls)


# ---- how long statements count, and for whom a server signs ----


def test_nobody_extends_the_life_of_a_proposal_beyond_the_policy(site: Site) -> None:
    """kubelet-csr-approver had to add such a bound: whoever signs must not choose how long it counts."""
    site.propose("ada", "bob")
    stored = site.proposals.read(HASH)
    assert stored is not None
    year = NOW + 365 * 24 * 60 * MINUTE
    own = replace(stored.proposal.statement.statement, expires_at_ms=year)
    site.proposals.remove(HASH)
    site.proposals.add(replace(stored.proposal, statement=signed_by("ada", own)), CONTENT, now_ms=NOW)
    site.add_statement(approval("bob", expires_at_ms=year))
    site.forge(orders=replace(ORDERS, expires_at_ms=year))
    for minutes in (0, 24 * 60 + 1):
        assert "counts for more than 1440 minutes, which [approvals] does not allow for a plan" in refused(
            site.at(minutes)
        )


def test_an_approval_of_a_decision_ends_in_time_though_its_head_was_changed() -> None:
    site = Site(mode="approve")
    stored = propose_decision(
        site.proposals, b"{}", cluster=CLUSTER, now_ms=NOW, expires_at_ms=NOW + 7 * 24 * 60 * MINUTE
    )
    approve(site.proposals, by("bob"), stored.proposal.hash, now_ms=NOW)
    assert len(site.at(59).approved) == 1
    assert site.at(60).approved == ()


def test_who_may_only_propose_does_not_approve_on_the_page() -> None:
    keys = {name: {"key": key_of(name).public_text} for name in ("ada", "bob")}
    keys["bob"] |= {"may": ["propose"], "also": ["bob@example.org"]}  # type: ignore[dict-item]
    servers = {"page": {"key": key_of("page").public_text}}
    site = Site(ApprovalSettings.model_validate({"keys": keys, "servers": servers}))
    site.propose("ada")
    for name in ("bob", "Bob@example.org"):
        page = Signer(person=name, policy=site.policy, cluster=CLUSTER, key_name="page", key=key_of("page"))
        with pytest.raises(ProposalRefusedError, match=f"{name} may not approve"):
            approve(site.proposals, page, HASH, now_ms=NOW)


# ---- what was in force is not forgotten ----


@pytest.mark.parametrize(
    ("settings", "lower"), [("dry_run", "approve"), ("observe", "approve"), ("observe", "dry_run")]
)
def test_a_mode_that_was_lowered_stays_though_that_of_the_settings_is_lower(settings: str, lower: str) -> None:
    site = Site(mode=settings)
    enacted(site, site.control(MODE, "active"), lambda now: replace(now, mode=mode_choice("active")))
    assert site.at().mode == "active"
    site.forge(mode=replace(mode_choice(lower), at_ms=NOW + MINUTE))
    for minute in range(1, 4):
        controls = site.at(minute)
        assert (controls.mode, controls.not_approved) == (lower, ())
    site.controller = site.new_controller(controls)
    assert site.at(4).mode == lower
    site.forge(mode=mode_choice("active"))
    assert site.at(5).mode == lower


def test_a_forged_lowering_is_not_believed_beyond_the_mode_that_was_approved() -> None:
    site = Site(mode="observe")
    grant = site.control(MODE, "dry_run")
    forged = Grant(request=replace(grant.request, values=("active",)))
    site.forge(mode=mode_choice("active"))
    for granted in ((grant, forged), (forged, grant), (forged,)):
        site.controller = site.new_controller(Controls(mode="active", granted=granted))
        assert site.at(1).mode in ("observe", "dry_run")


def test_a_flood_of_pauses_does_not_end_one_that_stands(site: Site) -> None:
    """Pauses that soon end by themselves must not take the place of one that does not."""
    flood = tuple(Pause(by=f"mallory-{n}", reason="", at_ms=NOW - 9, until_ms=NOW + 5 * MINUTE) for n in range(20))
    site.forge(pauses=flood)
    site.at()
    site.forge(pauses=(*flood[1:], ADA_PAUSED))
    assert ADA_PAUSED in site.at(1).pauses
    site.forge(pauses=())
    assert ADA_PAUSED in site.at(2).pauses
    assert site.at(6).paused


def test_what_is_remembered_of_a_flood_of_drains_is_bounded(site: Site) -> None:
    site.forge(drained=(Drained(broker="a:8080", by="ada", at_ms=NOW),))
    site.at()
    for flood in range(3):
        names = (f"{flood}-{n}:8080" for n in range(1000))
        site.forge(drained=tuple(Drained(broker=name, by="mallory", at_ms=NOW) for name in names))
        controls = site.at(1 + flood)
        assert "a:8080" in controls.drained
        assert len(controls.drained) <= 1000


def test_statements_that_do_not_count_are_not_journalled() -> None:
    site = Site(mode="dry_run")
    grant = site.control(MODE, "active")
    junk = tuple(approval("mallory", at_ms=NOW - n) for n in range(25))
    padded = replace(grant, statements=(*grant.statements, *junk, grant.statements[1]))
    enacted(site, padded, lambda now: replace(now, mode=mode_choice("active")))
    controls = site.at()
    assert (controls.mode, controls.granted) == ("active", (grant,))
    refused_grants = tuple(
        replace(padded, request=replace(grant.request, at_ms=NOW + n), statements=junk) for n in range(20)
    )
    site.forge(grants=refused_grants)
    assert sum(map(len, site.at(1).not_approved)) < 40_000


def test_a_mode_that_was_approved_later_than_it_was_proposed_stays_in_force() -> None:
    site = Site(mode="dry_run")
    stored = propose_control(site.proposals, by("ada"), MODE, ("active",), now_ms=NOW)
    key, later = stored.proposal.hash, NOW + 30 * MINUTE
    approve(site.proposals, by("bob"), key, now_ms=later)
    grant = grant_of(site.proposals, key, site.policy, CLUSTER, later)
    enacted(site, grant, lambda now: replace(now, mode=mode_choice("active")))
    for minute in (31, 32, 33, 999):
        controls = site.at(minute)
        assert (controls.mode, controls.not_approved) == ("active", ())
    site.controller = site.new_controller(controls)
    assert site.at(1000).mode == "active"


# ---- releases by an approved plan ----


def begun(site: Site, kind: PlanKind, *approvers: str) -> Orders:
    """The orders, without moves, of an approved plan of this *kind*, whose broker is drained."""
    content = encode_plan(replace(PLAN, kind=kind))
    key = parse_plan(content)[1]
    propose_plan(site.proposals, by("ada"), content, now_ms=NOW)
    for name in approvers:
        approve(site.proposals, by(name), key, now_ms=NOW)
    orders = replace(ORDERS, plan=key, moves=())
    site.forge(orders=orders, drained=tuple(Drained(broker=name, by="ada", at_ms=NOW) for name in PLAN.brokers[:2]))
    assert site.at().drained == PLAN.brokers[:2]
    return orders


def test_an_approved_rolling_restart_releases_the_brokers_that_its_step_empties_and_no_other(site: Site) -> None:
    begun(site, RESTART, "bob")
    site.forge(drained=())
    controls = site.at(1)
    assert controls.drained == PLAN.brokers[1:2]
    assert controls.not_approved == (f"{PLAN.brokers[1]}: released without approval, so still drained",)
    site.forge(orders=None)
    assert site.at(2).drained == PLAN.brokers[1:2]


@pytest.mark.parametrize(("kind", "approvers"), [(DRAIN, ["bob"]), (RESTART, [])])
def test_a_drain_and_a_plan_that_is_not_approved_release_nothing(
    site: Site, kind: PlanKind, approvers: list[str]
) -> None:
    begun(site, kind, *approvers)
    site.forge(drained=())
    assert site.at(1).drained == PLAN.brokers[:2]


@pytest.mark.parametrize("ends", ["its orders end", "its approval expires"])
def test_a_rolling_restart_releases_nothing_once_it_is_over(site: Site, ends: str) -> None:
    orders, expired = begun(site, RESTART, "bob"), ends == "its approval expires"
    site.forge(drained=(), orders=orders if expired else None)
    assert site.at(25 * 60 if expired else 1).drained == PLAN.brokers[:2]
