"""What an interval makes of strategies' choices, a person's plan, and the decision that waits for approval."""

from dataclasses import dataclass, replace

from controller.cycle.approval import Chosen, about_waiting, approved_commands, is_free, proposed
from controller.cycle.approval_check import DecisionCheck
from controller.cycle.checked import remembered
from controller.cycle.commands import Issuing
from controller.cycle.guardrails.budgets import Ledger
from controller.cycle.protected import ProtectedBundles
from controller.cycle.splitting import Splits, splits_of
from controller.cycle.unloading import Unloads, unloads_of
from controller.model.decision import Command, Unload, UsageOutlook, Verdict
from controller.model.load import ClusterView
from controller.model.memory import Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What is issued in an interval, and why the rest is not."""

    #: After it, without what was held back.
    memory: Memory
    commands: tuple[Command, ...]
    #: The shedder's unloads among them.
    own: tuple[Unload, ...]
    verdicts: tuple[Verdict, ...]
    #: Commands that guardrails hold back; those that wait for approval are not among them.
    held_back: int
    #: The budgets as strategies saw them.
    ledger: Ledger
    outlook: UsageOutlook | None


def made_of(check: DecisionCheck, refusal: Verdict | None) -> Made:
    """What is issued in the interval of *check*; nothing if there is a *refusal*.

    In mode approve strategies are asked on a copy of the budgets, for what they choose is not issued.
    """
    controls, approving = check.issuing.controls, approved_commands(check, refusal)
    plan = controls.orders is not None and controls.orders.hold_at(check.view.as_of_ms)
    asks, check = controls.mode == "approve", check._replace(memory=approving.memory)
    trial = check.issuing._replace(ledger=check.issuing.ledger.copy()) if asks else check.issuing
    ledger = check.issuing.ledger if plan else trial.ledger
    splits, unloads = _by_strategies(check, trial, plan=plan, refused=refusal is not None)
    commands, memory = (*splits.commands, *unloads.commands), unloads.memory
    verdicts, nothing = (*approving.verdicts, *splits.verdicts, *unloads.verdicts), refusal is not None
    held_back = ledger.held_back + (len(commands) if nothing else 0)
    if asks and not nothing:
        by_plan = unloads.commands if unloads.by_plan else ()
        chosen = Chosen(commands=commands[: len(commands) - len(by_plan)], outlook=unloads.outlook)
        may_propose = not (plan or approving.commands or memory.proposed)
        decision, about = proposed(check, chosen) if may_propose and chosen.commands else (None, ())
        nothing = bool(chosen.commands) and not (decision is not None and is_free(decision, chosen, check.issuing))
        commands = (*approving.commands, *(by_plan if nothing else commands))
        if nothing and decision is not None:
            memory, about = replace(memory, proposed=decision), (*about, about_waiting(decision))
        verdicts = (*verdicts, *about)
    return Made(
        memory=_as_issued(check.memory, memory, splits, unloads, nothing=nothing),
        commands=() if refusal is not None else commands,
        own=() if nothing else unloads.issued,
        verdicts=verdicts,
        held_back=held_back,
        ledger=ledger,
        outlook=unloads.outlook,
    )


def _by_strategies(check: DecisionCheck, trial: Issuing, *, plan: bool, refused: bool) -> tuple[Splits, Unloads]:
    """What strategies choose within the budgets of *trial*; a *plan* in force uses those of *check*."""
    view, protected, memory = check.view, check.protected, check.memory
    # What a person rejected binds strategies, and no person's plan.
    unrejected = protected.and_rejected(memory.rejected) if memory.rejected else protected
    splits = splits_of(view, unrejected, memory, trial)
    issuing, protected = (check.issuing, protected) if plan else (trial, unrejected)
    return splits, _unloads_after(splits, view, protected, issuing, refused=refused)


def _unloads_after(
    splits: Splits, view: ClusterView, protected: ProtectedBundles, issuing: Issuing, *, refused: bool
) -> Unloads:
    """The unloads of the interval once *splits* are decided; *refused*: nothing may be issued."""
    # Brokers unload the parts of these bundles right after the split.  A dry run splits none.
    parts_leave = (c.bundle for c in splits.commands if c.unload_after_split and c.mode == "active" and not refused)
    not_split = protected.and_split(command.bundle for command in splits.commands)
    return unloads_of(replace(view, splitting=frozenset(parts_leave)), not_split, splits.memory, issuing)


def _as_issued(before: Memory, after: Memory, splits: Splits, unloads: Unloads, *, nothing: bool) -> Memory:
    """The memory *after* the strategies' decisions, without their choices that were held back.

    Held back is what budgets refuse, or everything if *nothing* may be issued.
    """
    held_back, issued = list(unloads.held_back), list(unloads.issued)
    unsplit = set(splits.held_back)
    if nothing:
        held_back, issued = [*issued, *held_back], []
        unsplit |= {command.bundle for command in splits.commands}
    split, shedder = after.split, after.shedder
    if unsplit:
        split = remembered(split, "revert_unissued_splits", before.split, unsplit)
    if held_back:
        shedder = remembered(shedder, "revert_unissued", before.shedder, held_back, issued)
    return replace(
        after,
        split=split,
        shedder=shedder,
        # Brokers that joined or left are handled again once commands may be issued.
        membership=before.membership if nothing or unloads.moves_held_back else after.membership,
    )
