"""What people do: the product's own commands, on the simulated log and election."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import patch

import typer

from controller.adapters.approvals.contents import verified_content
from controller.adapters.approvals.control_changes import (
    enact_approved,
    needs_approval,
    propose_include,
    propose_mode,
    propose_release,
    propose_resume,
)
from controller.adapters.approvals.making import Signer, approve, propose_plan, reject, signer_of
from controller.adapters.election import changes
from controller.adapters.election.proposals import change_record, require
from controller.cli import controls
from controller.cli.controls import Mode
from controller.log.journal_reading import JournalReader
from controller.log.system import LogSystem
from controller.model.controls import Choice, OrderedMove, Orders
from controller.model.errors import TrimtabError
from controller.model.proposals import ControlRequest, Grant, ProposalKind, StatementKind, StoredProposal
from controller.model.proposed import ProposedDecision
from controller.offline.plans.applying import PlanRun
from controller.offline.plans.moves import named_moves
from controller.offline.plans.planner import PlanRequest, planned_cluster
from controller.offline.plans.source import source_of_log
from controller.offline.plans.waiting_decision import propose_waiting
from controller.planning.plans.plan import Plan
from controller.wire.plan import encode_plan, hash_of
from controller.wire.proposals import encode_request
from controller.wire.proposals import hash_of as content_hash
from tests.proposals import key_of, signed_by
from tests.simulation.processes import Site, now_ms
from tests.simulation.standins import ids

#: The package has a function of this name.
_apply: Final = import_module("controller.cli.apply")
#: Modules that open log or election, or ask whether they are there.
_OPENERS: Final[Sequence[tuple[str, Sequence[str]]]] = (
    ("controller.cli.controls", ("election_system", "read_settings", "require", "show")),
    ("controller.cli.controls", ("require_broker_balancing_off",)),
    ("controller.log.fencing", ("log_system",)),
    ("controller.log.recent", ("log_system",)),
    ("controller.offline.plans.progress", ("log_system",)),
    ("controller.offline.plans.source", ("log_system",)),
)
_NOWHERE: Final = Path("trimtab.toml")
#: Of so many of the controls' last documents one is restored.
_RECENT: Final = 12


@contextmanager
def commands_on(site: Site) -> Iterator[None]:
    """Have the commands find *site*, and print nothing."""
    system = LogSystem(site.log, site.settings, where="the simulation")
    election: Any = SimpleNamespace(controls=lambda: site.election.controls_store())
    answers = {
        "log_system": lambda _: system,
        "election_system": lambda _: election,
        "read_settings": lambda _: site.settings,
    }
    with ExitStack() as stack:
        for module, names in _OPENERS:
            for name in names:
                stack.enter_context(patch(f"{module}.{name}", answers.get(name, lambda *_, **__: None)))
        stack.enter_context(patch.object(typer, "echo", lambda *_, **__: None))
        stack.enter_context(patch.object(_apply, "uuid", SimpleNamespace(uuid4=ids(site.world.sim))))
        yield


def pause() -> None:
    """``trimtab pause``."""
    controls.pause(_NOWHERE, "", "ada", "", as_json=True)


def resume(site: Site, *, surely: bool = False, late: bool = False) -> None:
    """``trimtab resume --all``; where that needs approval, somebody gives it, *surely*, *late* or perhaps."""
    if not site.settings.approvals.demanded:
        controls.resume(_NOWHERE, "", "ada", None, every=True, as_json=True)
        return
    pauses = site.election.controls_store().read()[0].pauses_at(now_ms())
    _grant(site, partial(propose_resume, pauses=pauses), surely=surely, late=late)


def mode(site: Site, value: str, *, surely: bool = False) -> None:
    """``trimtab mode``; where that needs approval, somebody gives it, *surely* or not."""
    policy, settings_mode = site.settings.approvals, site.settings.decisions.mode
    stored = site.election.controls_store().read()[0] if policy.demanded else None
    if stored is not None and needs_approval(policy, stored, value, settings_mode):
        _grant(site, partial(propose_mode, mode=value), surely=surely)
    else:
        controls.mode(Mode(value), _NOWHERE, "", "bob", as_json=True)


def drain(site: Site, broker: str) -> None:
    """Somebody drains *broker* on the page."""
    made = changes.choice_by("bob", "", now_ms())
    changes.change_controls(site.election.controls_store(), changes.drained(made, [broker]))


def exclude(site: Site, name: str) -> None:
    """``trimtab exclude``."""
    made = changes.choice_by("bob", "", now_ms())
    changes.change_controls(site.election.controls_store(), changes.excluded(made, [name]))


def include(site: Site, name: str) -> None:
    """``trimtab include``."""
    if site.settings.approvals.demanded:
        _grant(site, partial(propose_include, names=(name,)))
    else:
        made = changes.choice_by("ada", "", now_ms())
        changes.change_controls(site.election.controls_store(), changes.included(made, [name]))


def release(site: Site, broker: str) -> None:
    """``trimtab release``; where that needs approval, somebody gives it or not."""
    if site.settings.approvals.demanded:
        _grant(site, partial(propose_release, brokers=(broker,)))
        return
    made = changes.choice_by("ada", "", now_ms())
    changes.change_controls(site.election.controls_store(), changes.released(made, [broker]))


def _grant(site: Site, propose: Callable[..., StoredProposal], *, surely: bool = False, late: bool = False) -> None:
    """ada proposes a change of the controls; bob approves it in time, late or never, which makes it."""
    store, policy, cluster = site.election.proposal_store(), site.settings.approvals, site.policy.cluster
    chance = 0.5 if surely else 0.9 if late else site.world.sim.random.random()
    stored = propose(store, signer_of(key_of("ada"), policy, cluster), now_ms=now_ms(), reason="")
    key, proposal = stored.proposal.hash, stored.proposal
    if chance < 0.15:
        return
    if chance > 0.8:
        site.world.sim.sleep(site.world.sim.random.uniform(60.0, 400.0))
    approve(store, signer_of(key_of("bob"), policy, cluster), key, now_ms=now_ms())
    action, *values = proposal.title.split()
    at_ms = proposal.statement.statement.at_ms
    site.world.note(
        "granted", outcome=action, content=" ".join(values), interval=at_ms, expires_at=proposal.expires_at_ms
    )
    enact_approved(store, site.election.controls_store(), key, policy, cluster, now_ms=now_ms())
    if late and site.world.sim.random.random() < 0.5:
        site.world.sim.at(site.world.sim.now + 1.0, lambda: site.person(partial(strip, site), "mallory"))


def strip(site: Site) -> None:
    """Somebody removes what stands against moves, and leaves the grants that lie there."""
    changes.change_controls(
        site.election.controls_store(), lambda now: replace(now, pauses=(), drained=(), excluded=())
    )


def tamper(site: Site) -> None:
    """Somebody who may write everything, but has no key, has the controls allow more.

    He sets the mode and removes pauses, drained brokers and exclusions, with a grant that he signs in others' names or
    without one; or restores a document that lay there before.
    """
    chance, store = site.world.sim.random, site.election.controls_store()
    if site.world.documents and chance.random() < 0.6:
        restore(site)
        return
    grants = tuple(
        _forged_grant(site, *asked) for asked in (("mode", "active"), ("resume", "*")) if chance.random() < 0.5
    )
    active = Choice(value="active", reason="", by="bob", at_ms=now_ms())
    changes.change_controls(
        store,
        lambda now: replace(now, mode=active, pauses=(), drained=(), excluded=(), resumed_ms=now_ms(), grants=grants),
    )


def restore(site: Site) -> None:
    """Somebody puts a document back that lay there before."""
    if site.world.documents:
        older = site.world.sim.random.choice(site.world.documents[-_RECENT:])
        changes.change_controls(site.election.controls_store(), lambda _: older)


def _forged_grant(site: Site, action: str, value: str) -> Grant:
    """A change of the controls that ada proposes and bob approves, neither with their keys."""
    policy, cluster, at_ms = site.settings.approvals, site.policy.cluster, now_ms()
    request = ControlRequest(cluster=cluster, action=action, values=(value,), at_ms=at_ms)
    said = Signer(person="ada", policy=policy, cluster=cluster, key_name="ada").statement(
        StatementKind.PROPOSE, content_hash(encode_request(request)), now_ms=at_ms, expires_at_ms=at_ms + 60_000
    )
    approval = replace(said, kind=StatementKind.APPROVE, person="bob", key="bob")
    return Grant(request=request, statements=tuple(signed_by("mallory", each) for each in (said, approval)))


def rule(site: Site, *, late: bool = False) -> None:
    """Somebody looks at the decision that waits, and approves it, now or once it has expired; or rejects it.

    *late*: always once it has expired.
    """
    store, newest = site.election.controls_store(), JournalReader(site.log(), site.policy.cluster).end().head.last
    decision, chance = None if newest is None else newest.memory.proposed, site.world.sim.random.random()
    if decision is None:
        return
    rejects = chance < 0.2 and not late
    if late or chance > 0.6:
        site.world.sim.sleep(1.5 * (decision.expires_at_ms - decision.interval) / 1000)
    if site.settings.approvals.demanded:
        _rule_signed(site, decision, rejects=rejects, forges=0.2 < chance < 0.35)
        return
    made = changes.choice_by("eve", "", now_ms(), decision.hash)
    changes.change_controls(store, (changes.decision_rejected if rejects else changes.decision_approved)(made))


def _rule_signed(site: Site, decision: ProposedDecision, *, rejects: bool, forges: bool) -> None:
    """bob approves *decision*, or rejects it; or somebody forges his approval."""
    store = site.election.proposal_store()
    propose_waiting(store, decision, now_ms())
    if forges:
        _forge_approval(site, decision.hash)
        return
    bob = signer_of(key_of("bob"), site.settings.approvals, site.policy.cluster)
    (reject if rejects else approve)(store, bob, decision.hash, now_ms=now_ms())
    if not rejects:
        site.world.note("decision-approved", content=decision.hash)


def stop_all(site: Site) -> None:
    """``trimtab stop-all``."""
    site.world.note("stopping-all")
    controls.stop_all(_NOWHERE, "stop-all", "ada", as_json=True)
    site.world.note("all-stopped", epoch=max(each.epoch for each in site.world.trace if each.kind == "epoch"))


def apply(site: Site) -> None:
    """``trimtab plan`` with two moves, and ``trimtab apply`` of it, as long as its process runs."""
    chance, owners = site.world.sim.random, site.cluster.owners
    bundles = chance.sample(sorted(bundle for bundle, owner in owners.items() if owner), 2)
    others = {bundle: [each for each in site.cluster.active() if each != owners[bundle]] for bundle in bundles}
    source = source_of_log(site.settings, before=2)
    named = tuple((bundle, chance.choice(others[bundle])) for bundle in bundles)
    plan = planned_cluster(source, PlanRequest(named=named, wave_moves=1)).plan
    if not plan.steps:
        return
    if site.settings.approvals.demanded and not _propose(site, plan):
        return
    store = site.election.controls_store()
    made = Choice(value="", reason="", by="eve", at_ms=now_ms())
    around = _apply._surroundings(site.settings, _NOWHERE, store, 2, made, quiet=True)
    try:
        PlanRun(plan=plan, sha256=hash_of(plan), number=0, around=around, tolerance=100.0).run()
    except TrimtabError as error:
        site.world.note("plan-halted", content=str(error)[:200])


def _propose(site: Site, plan: Plan) -> bool:
    """ada proposes *plan*; bob approves it in time, late or never, or somebody forges his approval.

    Whether somebody carries it out then, approved or not.
    """
    store, policy, cluster = site.election.proposal_store(), site.settings.approvals, site.policy.cluster
    chance, sha256 = site.world.sim.random.random(), hash_of(plan)
    propose_plan(store, signer_of(key_of("ada"), policy, cluster), encode_plan(plan), now_ms=now_ms())
    if chance < 0.3:
        _forge_approval(site, sha256)
    elif chance < 0.9:
        if chance > 0.7:
            site.world.sim.sleep(150.0)
        approve(store, signer_of(key_of("bob"), policy, cluster), sha256, now_ms=now_ms())
        stored = store.read(sha256)
        assert stored is not None
        moves = "|".join(
            f"unload {move.bundle} {move.destination} {move.source}"
            for step in plan.steps
            for wave in named_moves(plan, step)
            for move in wave
        )
        expires_at = stored.proposal.expires_at_ms
        site.world.note("plan-approved", content=sha256, expires_at=expires_at, outcome=moves)
    return not 0.4 < chance < 0.7


def _forge_approval(site: Site, key: str) -> None:
    """Somebody who may write everything, but has no key, approves the proposal *key* as bob."""
    store = site.election.proposal_store()
    stored = require(store, key)
    statement = replace(stored.proposal.statement.statement, kind=StatementKind.APPROVE, person="bob", key="bob")
    forged = signed_by("mallory", statement)
    change_record(store, key, lambda now: replace(now.record, statements=(*now.record.statements, forged)))


def forge(site: Site) -> None:
    """Somebody who may write everything, but has no key, hands moves over: in the name of a plan that was proposed, its
    own or others."""
    chance, owners = site.world.sim.random, site.cluster.owners
    bundles = chance.sample(sorted(bundle for bundle, owner in owners.items() if owner), 2)
    others = {bundle: [each for each in site.cluster.active() if each != owners[bundle]] for bundle in bundles}
    proposals = site.election.proposal_store()
    stored = [each for each in proposals.read_all().proposals if each.proposal.kind is ProposalKind.PLAN]
    plan = stored[-1].proposal.hash if stored and chance.random() < 0.8 else "0f" * 32
    moves = tuple(
        OrderedMove(bundle=each, source=str(owners[each]), destination=chance.choice(others[each])) for each in bundles
    )
    if plan != "0f" * 32 and chance.random() < 0.5:
        moves = tuple(sorted(verified_content(stored[-1].proposal, proposals.content(plan)).moves[0], key=str))
    orders = Orders(
        plan=plan,
        step=1,
        wave=1,
        waves=1,
        moves=moves,
        checked_at=now_ms() - 60_000,
        expires_at_ms=now_ms() + 300_000,
        holder="mallory",
        by="mallory",
    )
    changes.change_controls(site.election.controls_store(), lambda now: replace(now, orders=orders))
    site.world.note("forged", content=plan)
