"""What people do: the product's own commands, on the simulated log and election."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import patch

import typer

from controller.adapters.approvals.contents import verified_content
from controller.adapters.approvals.making import approve, propose_plan, signer_of
from controller.adapters.election import changes
from controller.adapters.election.proposals import change_record, require
from controller.cli import controls
from controller.cli.controls import Mode
from controller.log.journal_reading import JournalReader
from controller.log.system import LogSystem
from controller.model.controls import Choice, OrderedMove, Orders
from controller.model.errors import TrimtabError
from controller.model.proposals import StatementKind
from controller.offline.plans.applying import PlanRun
from controller.offline.plans.moves import named_moves
from controller.offline.plans.planner import PlanRequest, planned_cluster
from controller.offline.plans.source import source_of_log
from controller.planning.plans.plan import Plan
from controller.wire.plan import encode_plan, hash_of
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


def resume() -> None:
    """``trimtab resume --all``."""
    controls.resume(_NOWHERE, "", "ada", None, every=True, as_json=True)


def mode(value: str) -> None:
    """``trimtab mode``."""
    controls.mode(Mode(value), _NOWHERE, "", "bob", as_json=True)


def rule(site: Site, *, late: bool = False) -> None:
    """Somebody looks at the decision that waits, and approves it, now or once it has expired; or rejects it.

    *late*: always once it has expired.
    """
    store, newest = site.election.controls_store(), [*JournalReader(site.log(), site.policy.cluster).entries()][-1:]
    decision, chance = newest[0].memory.proposed if newest else None, site.world.sim.random.random()
    if decision is None:
        return
    made = changes.choice_by("eve", "", now_ms(), decision.hash)
    rules = changes.decision_rejected if chance < 0.2 and not late else changes.decision_approved
    if late or chance > 0.6:
        site.world.sim.sleep(1.5 * (decision.expires_at_ms - decision.interval) / 1000)
    changes.change_controls(store, rules(made))


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
    stored = proposals.read_all().proposals
    plan = chance.choice([each.proposal.hash for each in stored] or ["0f" * 32])
    moves = tuple(
        OrderedMove(bundle=each, source=str(owners[each]), destination=chance.choice(others[each])) for each in bundles
    )
    if stored and chance.random() < 0.6:
        plan = stored[-1].proposal.hash
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
