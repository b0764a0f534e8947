"""The forms of what people do with proposals, and of the plan that they propose."""

from collections.abc import Mapping
from typing import Final

from controller.web.views.formats import BrokerNames, clock, whole
from controller.web.views.forms import ActionForm, Choices
from controller.wire.answers.proposals import ProposalAnswer
from controller.wire.readable import counted

_BUTTONS: Final = {
    "approve": "Approve this hash",
    "reject": "Reject",
    "refresh": "Plan it anew",
    "apply": "Carry it out",
    "pause": "Pause",
    "resume": "Go on",
    "stop": "Stop it",
}
_TITLES: Final = {
    "approve": "Approve",
    "reject": "Reject",
    "refresh": "Refresh",
    "apply": "Apply",
    "pause": "Pause",
    "resume": "Resume",
    "stop": "Stop",
}
_TEXTS: Final = {
    "reject": "It can then not be approved or carried out any more. Whoever wants it has to propose it anew.",
    "refresh": "What is left of it is planned anew, for the cluster as it is now. The result is a proposal of its own,"
    " with a hash and approvals of its own; you are its author. This one stays as it is.",
    "apply": "Its waves are handed to the controllers one by one, and each is checked against the cluster before."
    " Strategies unload nothing meanwhile. Guardrails and windows stay in force.",
    "pause": "No more of its moves are handed over until somebody resumes it. What is issued is finished. Strategies"
    " stay held back.",
    "resume": "The rest of its waves is handed over, as far as the cluster still is as the plan says.",
    "stop": "What is issued is finished, the rest is never issued, and it cannot be resumed: refresh it instead. A"
    " broker that it empties stays drained until it is released.",
}
#: Maximum moves of a wave; "" for what `trimtab plan` takes by itself.
_WAVES: Final = tuple(
    ("" if n == 20 else str(n), f"at most {counted(n, 'move')}, {(n + 1) // 2} off a broker")
    for n in (20, 1, 2, 4, 10, 50, 100)
)
_OWN: Final = (("", "as the load shows"), ("cpu", "no: the hosts do other work; spread by message rate"))
_KINDS: Final = (("balance", "spread the load"), ("drain", "empty brokers"), ("move", "move bundles"))


def proposal_form(action: str, answer: ProposalAnswer, now_ms: int) -> ActionForm:
    """The form of *action* on the proposal of *answer*."""
    return ActionForm(
        path=f"/proposals/{answer.id}/{action}",
        title=f"{_TITLES[action]}: {answer.title or answer.id[:12]}",
        text=_approve_text(answer) if action == "approve" else _TEXTS[action],
        button=_BUTTONS[action],
        is_danger=action in ("stop", "reject"),
        hash=answer.id if action in ("approve", "apply") else "",
        terms=_terms(answer, now_ms) if action in ("approve", "apply") else (),
    )


def _approve_text(answer: ProposalAnswer) -> str:
    size = f"{counted(answer.moves, 'move')}"
    splits = f" and {counted(answer.splits, 'split')}" if answer.splits else ""
    if answer.kind == "control":
        return "This change takes effect with the last approval that it needs. You bind your name to exactly this:"
    return (
        f"{size}{splits}. {whole(answer.connections)} producers and consumers reconnect. You bind your name to exactly"
        " this, and to nothing else:"
    )


def _terms(answer: ProposalAnswer, now_ms: int) -> tuple[tuple[str, str], ...]:
    with_you = min(answer.required, len(answer.approved_by) + 1)
    made = [("Author", answer.author)]
    if answer.state == "pending":
        made.append(("With you", f"{with_you} of {counted(answer.required, 'approval')}"))
    if answer.kind == "plan":
        made.append(
            ("Certificate", "verified again before your approval is stored, by a checker that made no part of it")
        )
    return (*made, ("Expires", f"{clock(answer.expires_at, now_ms)} UTC"))


def plan_form(values: Mapping[str, str], names: BrokerNames) -> ActionForm:
    """The form of a plan, with the *values* that the address or the form before had."""
    kind = values.get("kind", "")
    fields = [
        Choices(name="kind", label="What for", kind="select", options=_KINDS, chosen=frozenset({kind or "balance"})),
        Choices(
            name="brokers",
            label="Brokers to be emptied, a line each",
            kind="lines",
            chosen=frozenset(filter(None, (values.get("brokers", ""),))),
        ),
        Choices(
            name="moves",
            label="Bundles to be moved, each as BUNDLE=BROKER on a line",
            kind="lines",
            chosen=frozenset(filter(None, (values.get("moves", ""),))),
        ),
        Choices(
            name="own",
            label="Does CPU follow the bundles?",
            kind="select",
            options=_OWN,
            chosen=frozenset({values.get("own", "")}),
        ),
        Choices(
            name="waveMoves",
            label="Each wave has",
            kind="select",
            options=_WAVES,
            chosen=frozenset({values.get("waveMoves", "")}),
        ),
    ]
    title = "Propose a plan"
    if kind == "drain" and values.get("brokers"):
        title = f"Propose to empty {names.label(values['brokers'])}"
    return ActionForm(
        path="/proposals/new",
        title=title,
        text="The plan is made for the cluster as it is now, with waves and a certificate that a checker verifies, and"
        " is proposed under your name. Nothing moves before it is approved and applied.",
        button="Plan and propose",
        choices=tuple(fields),
    )
