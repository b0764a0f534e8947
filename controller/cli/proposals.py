"""``trimtab proposals``: what waits for approval, who approved it, and how far it is."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Final, NamedTuple, TypeAlias

import typer

from controller.adapters.approvals.contents import VerifiedContent, plan_content
from controller.adapters.approvals.control_changes import enact_approved
from controller.adapters.approvals.making import Signer, propose_plan, verified
from controller.adapters.approvals.making import approve as add_approval
from controller.adapters.approvals.making import reject as add_rejection
from controller.adapters.approvals.requests import (
    ProposalRequest,
    pause_proposal,
    resume_proposal,
    stop_proposal,
)
from controller.adapters.election import changes
from controller.adapters.election.changes import ControlsChange
from controller.adapters.election.proposals import ProposalStore, require
from controller.adapters.election.systems import ElectionSystem
from controller.adapters.long_work import long_work
from controller.adapters.outages import Part
from controller.cli.controls import By, ReasonOption, choice_of
from controller.cli.shared import failures
from controller.cli.shared.answers import show as show_answer
from controller.cli.shared.arguments import now_ms
from controller.cli.shared.console import DEFAULT_CONF, Conf, json_option
from controller.cli.shared.option_groups import grouped
from controller.cli.shared.output_file import require_writable
from controller.cli.shared.reachable import require as require_parts
from controller.cli.shared.signing import (
    SHORTEST_APPROVED,
    SHORTEST_ID,
    KeyOption,
    proposal_with,
    refuse_no_id,
    signer_with,
)
from controller.cli.texts.proposals import print_detail, print_proposal, print_proposals
from controller.log.elections import election_system
from controller.model.controls import Choice
from controller.model.errors import ProposalRefusedError, TrimtabError
from controller.model.proposals import ENDED, ProposalKind, ProposalState, StoredProposal
from controller.model.proposed import ProposedDecision
from controller.offline.plans.plan_file import read_plan_bytes, refuse_other_cluster
from controller.offline.plans.proposal_hold import step_to_do
from controller.offline.plans.proposal_view import TOLERANCE, decision_answer, proposal_answer, proposal_detail
from controller.offline.plans.repair import repaired
from controller.offline.plans.source import source_of_log
from controller.offline.plans.waiting_decision import (
    decision_lines,
    propose_waiting,
    usage_lines,
    waiting_decision,
)
from controller.settings.signing_key import read_signing_key
from controller.settings.trimtab_toml import Settings, read_settings
from controller.wire.answers.proposals import KeyAnswer, ProposalAnswer, ProposalDetailAnswer, statement_answers
from controller.wire.ed25519 import SigningKey
from controller.wire.plan import encode_plan

app = typer.Typer(
    help="What waits for approval: propose, approve, reject, and see how far it is.", no_args_is_help=True
)

#: Intervals of the log that are read for averages, as `trimtab apply` does.
_INTERVALS: Final = 30

_Id: TypeAlias = Annotated[
    str, typer.Argument(metavar="ID", help=f"Its first {SHORTEST_ID} digits or more.", show_default=False)
]
_WholeId: TypeAlias = Annotated[
    str, typer.Argument(metavar="ID", help=f"Its first {SHORTEST_APPROVED} digits or more.", show_default=False)
]


@dataclass(frozen=True, kw_only=True)
class _Doing:
    """Who does something with a proposal, why, where, and how the proposal is printed then."""

    reason: ReasonOption = ""
    by: By = ""
    conf: Conf = DEFAULT_CONF
    as_json: Annotated[bool, json_option("answer.proposal")] = False

    def choice(self, value: str = "") -> Choice:
        """*value* as chosen now by this person."""
        return choice_of(value, self.reason, self.by)


class _Stores(NamedTuple):
    """What a command works on."""

    settings: Settings
    system: ElectionSystem
    proposals: ProposalStore


@contextmanager
def _stores(conf: Path, *parts: Part) -> Iterator[_Stores]:
    settings = read_settings(conf)
    require_parts(settings, Part.ELECTION, *parts)
    system = election_system(settings)
    with closing(system.proposals()) as proposals:
        yield _Stores(settings, system, proposals)


@app.callback()
def proposals() -> None:
    """What waits for approval: propose, approve, reject, and see how far it is (docs/approvals.md)."""


@app.command("list")
def list_proposals(
    every: Annotated[bool, typer.Option("--all", help="Those that have ended, too.")] = False,
    conf: Conf = DEFAULT_CONF,
    as_json: Annotated[bool, json_option("answer.proposal", each="proposal")] = False,
) -> None:
    """List the proposals that wait or are carried out, the oldest first.

    A list says what the proposals say of themselves; `trimtab proposals show` verifies what is in one.
    """
    with _stores(conf) as stores:
        settings, _, store = stores
        stored = store.read_all()
        answers = [proposal_answer(each, settings, now_ms()) for each in stored.proposals]
        decision = _waiting(stores)
        if decision is not None and decision.hash not in {each.id for each in answers}:
            answers.append(_decision_answer(stores, decision))
    for key, why in stored.unreadable.items():
        failures.say(f"proposal {key[:12]} cannot be read: {why}")
    rows = [each for each in answers if every or each.state not in ENDED]
    if not rows and not as_json:
        failures.say("no proposal waits")
    show_answer(rows, lambda out: print_proposals(out, rows), as_json=as_json)


@app.command()
def show(
    proposal: _Id,
    now: Annotated[
        bool, typer.Option("--now/--no-now", help="Compare it with the cluster as it is now, by the log.")
    ] = True,
    conf: Conf = DEFAULT_CONF,
    as_json: Annotated[bool, json_option("answer.proposal_detail")] = False,
) -> None:
    """Print what is in a proposal, verified; who said what about it; and whether it can still be carried out.

    "still valid": the cluster is as the plan says. "needs repair": it is not, and `trimtab proposals refresh` makes a
    new one of what is left. "void": nothing of it is left to do, or possible.

    Exit codes: 0 printed; 1 there is no such proposal; 2 an option or the settings are invalid.
    """
    with _stores(conf) as stores, long_work("checking the proposal"):
        settings, _, store = stores
        source = partial(source_of_log, settings, before=_INTERVALS) if now else None
        decision = _waiting_with(stores, proposal, SHORTEST_ID)
        if decision is not None:
            answer = _decision_detail(stores, decision)
        else:
            answer = proposal_detail(store, proposal_with(store, proposal), settings, now_ms(), source)
    show_answer(answer, lambda out: print_detail(out, answer, conf), as_json=as_json)


@app.command()
@grouped
def make(
    file: Annotated[
        Path, typer.Argument(metavar="PLAN", help="The file that `trimtab plan` wrote.", show_default=False)
    ],
    key: KeyOption = None,
    *,
    doing: _Doing,
) -> None:
    """Propose a plan: it is stored with its certificate, and waits for as many approvals as [approvals] demands.

    Exit codes: 0 proposed; 1 the store cannot be reached; 2 the plan, the key or an option is refused.
    """
    with _stores(doing.conf) as stores:
        content = read_plan_bytes(file)
        with long_work("checking the plan"):
            checked = plan_content(content, str(file))
        if checked.plan is not None:
            refuse_other_cluster(checked.plan, stores.settings, doing.conf)
        signer = signer_with(stores.settings, key, doing.choice().by)
        _propose(stores, signer, content, doing, checked)


@app.command()
@grouped
def refresh(
    proposal: _Id,
    key: KeyOption = None,
    *,
    doing: _Doing,
) -> None:
    """Propose what is left of a plan anew, for the cluster as it is now.  It has a hash and approvals of its own.

    The old proposal stays as it is.

    Exit codes: 0 proposed; 1 nothing is left, or possible; 2 the key or an option is refused.
    """
    with _stores(doing.conf, Part.LOG) as stores:
        settings, _, store = stores
        signer = signer_with(settings, key, doing.choice().by)
        stored = proposal_with(store, proposal)
        plan = verified(store, stored).plan
        if plan is None:
            raise ProposalRefusedError(f"proposal {proposal} is no plan: it cannot be made anew")
        step = step_to_do(stored.record.progress, len(plan.steps), None)
        with long_work("planning"):
            source = source_of_log(settings, before=_INTERVALS)
            planned = repaired(plan, step - 1, source, tolerance=TOLERANCE)
        if not any(each.moves for each in planned.plan.steps):
            raise TrimtabError(f"nothing of proposal {proposal} is left to do, or possible")
        _propose(stores, signer, encode_plan(planned.plan), doing)


@app.command()
@grouped
def approve(
    proposal: _WholeId,
    key: KeyOption = None,
    *,
    doing: _Doing,
) -> None:
    """Approve a proposal, once its content was verified.  Nobody approves what they proposed themselves.

    The approval is for exactly this hash and certificate, under the policy of these settings, until the proposal
    expires. A change of the controls (mode, resume, release) is made by the approval that completes it; a plan is
    carried out by `trimtab apply --proposal ID`.

    Exit codes: 0 approved; 1 there is no such proposal; 2 the approval would not count, or an option is invalid.
    """
    with _stores(doing.conf) as stores:
        signer = signer_with(stores.settings, key, doing.choice().by)
        if _decided(stores, proposal, SHORTEST_APPROVED, changes.decision_approved, doing):
            return
        stored = proposal_with(stores.proposals, proposal, shortest=SHORTEST_APPROVED)
        with long_work("checking the proposal"):
            standing = add_approval(
                stores.proposals, signer, stored.proposal.hash, now_ms=now_ms(), reason=doing.reason
            )
        if standing.state is ProposalState.APPROVED and stored.proposal.kind is ProposalKind.CONTROL:
            _enact(stores, stored.proposal.hash)
        _tell(stores, require(stores.proposals, stored.proposal.hash), doing)


@app.command()
@grouped
def reject(
    proposal: _Id,
    key: KeyOption = None,
    *,
    doing: _Doing,
) -> None:
    """Reject a proposal that nobody has begun to carry out: it cannot be approved any more.

    Exit codes: 0 rejected; 1 there is no such proposal; 2 the rejection would not count, or an option is invalid.
    """
    with _stores(doing.conf) as stores:
        signer = signer_with(stores.settings, key, doing.choice().by)
        if _decided(stores, proposal, SHORTEST_ID, changes.decision_rejected, doing):
            return
        stored = proposal_with(stores.proposals, proposal)
        add_rejection(stores.proposals, signer, stored.proposal.hash, now_ms=now_ms(), reason=doing.reason)
        _tell(stores, require(stores.proposals, stored.proposal.hash), doing)


@app.command()
@grouped
def pause(proposal: _Id, doing: _Doing) -> None:
    """Hand over no more moves of a proposal until `trimtab proposals resume`; strategies stay held back.

    The moves in force are taken back at once. Commands that were issued are finished. It holds over restarts of
    `trimtab apply`.
    """
    _request(pause_proposal, proposal, doing)


@app.command()
@grouped
def resume(proposal: _Id, doing: _Doing) -> None:
    """Go on with a proposal that was paused; `trimtab apply --proposal ID` has to run."""
    _request(resume_proposal, proposal, doing)


@app.command()
@grouped
def stop(proposal: _Id, doing: _Doing) -> None:
    """End a proposal that is being carried out, for good.  Commands that were issued are finished.

    `trimtab proposals refresh` proposes what is left; `trimtab stop-all` also stops commands that were issued.
    """
    _request(stop_proposal, proposal, doing)


@app.command()
def key(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The private key's: a new file, with --public an old one.")
    ],
    name: Annotated[str, typer.Option(help="Your name in [approvals.keys].", show_default="your user name")] = "",
    public: Annotated[bool, typer.Option("--public", help="Make no key: print the public one of the file.")] = False,
    as_json: Annotated[bool, json_option("answer.proposal_key")] = False,
) -> None:
    """Make a private key that only you can read, and print the lines that name it in the settings.

    Controllers, servers and people have keys of the same form: Ed25519, PEM in PKCS#8.

    Exit codes: 0 made; 2 the file is there already, or cannot be written.
    """
    if public:
        made = read_signing_key(file, "FILE")
    else:
        require_writable(file, "FILE")
        made = SigningKey.new()
        try:
            with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as new:
                new.write(made.pem)
        except OSError as error:
            raise TrimtabError(f"{file}: {error.strerror}") from error
    person = choice_of("", "", name).by
    lines = [f"[approvals.keys.{json.dumps(person)}]", f'key = "{made.public_text}"']
    answer = KeyAnswer(file=str(file), public_key=made.public_text)
    show_answer(answer, lambda _: typer.echo("\n".join(lines)), as_json=as_json)


def _waiting(stores: _Stores) -> ProposedDecision | None:
    """The decision that waits in mode approve; None where none does, or the log cannot be read."""
    settings = stores.settings
    with closing(stores.system.controls()) as controls:
        mode = controls.read()[0].mode_in_force(settings.decisions.mode)
    if mode != "approve":
        return None
    try:
        return waiting_decision(settings)
    except TrimtabError as error:
        failures.say(f"whether a decision waits for approval is not known: {error}")
        return None


def _waiting_with(stores: _Stores, text: str, shortest: int) -> ProposedDecision | None:
    """The decision that waits, if *text*, of *shortest* digits or more, begins its id."""
    refuse_no_id(text, shortest)
    decision = _waiting(stores)
    return decision if decision is not None and decision.hash.startswith(text) else None


def _decided(
    stores: _Stores, proposal: str, shortest: int, how: Callable[[Choice], ControlsChange], doing: _Doing
) -> bool:
    """Approve or reject the decision that waits, if *proposal* means it and nothing has to be signed.

    Where something has to be, it is stored as a proposal, which is approved like any other one.
    """
    decision = _waiting_with(stores, proposal, shortest)
    if decision is None:
        return False
    if stores.settings.approvals.demanded:
        propose_waiting(stores.proposals, decision, now_ms())
        return False
    with closing(stores.system.controls()) as controls:
        changes.change_controls(controls, how(doing.choice(decision.hash)))
    _show(_decision_answer(stores, decision), doing)
    return True


def _decision_answer(stores: _Stores, decision: ProposedDecision) -> ProposalAnswer:
    """*decision*, which is not in the store: without keys its approvals lie in the controls."""
    with closing(stores.system.controls()) as controls:
        return decision_answer(decision, stores.settings, controls.read()[0], now_ms())


def _decision_detail(stores: _Stores, decision: ProposedDecision) -> ProposalDetailAnswer:
    in_store = stores.proposals.read(decision.hash)
    answer = proposal_answer(in_store, stores.settings, now_ms()) if in_store else _decision_answer(stores, decision)
    return ProposalDetailAnswer(
        **answer.model_dump(by_alias=False),
        statements=statement_answers(in_store)[1:] if in_store else [],
        plan=None,
        drift=None,
        content=[*decision_lines(decision.content), *usage_lines(decision)],
    )


def _enact(stores: _Stores, key: str) -> None:
    """Make the change of the controls that the proposal *key* asks for."""
    settings = stores.settings
    with closing(stores.system.controls()) as controls:
        enact_approved(stores.proposals, controls, key, settings.approvals, settings.cluster.name, now_ms=now_ms())


def _propose(
    stores: _Stores, signer: Signer, content: bytes, doing: _Doing, checked: VerifiedContent | None = None
) -> None:
    stored = propose_plan(stores.proposals, signer, content, now_ms=now_ms(), reason=doing.reason, checked=checked)
    _tell(stores, stored, doing)


def _request(how: ProposalRequest, proposal: str, doing: _Doing) -> None:
    with _stores(doing.conf) as stores, closing(stores.system.controls()) as controls:
        stored, made = proposal_with(stores.proposals, proposal), doing.choice()
        changed = how(
            stores.proposals, controls, stored.proposal.hash, by=made.by, reason=made.reason, now_ms=made.at_ms
        )
        _tell(stores, changed, doing)


def _tell(stores: _Stores, stored: StoredProposal, doing: _Doing) -> None:
    _show(proposal_answer(stored, stores.settings, now_ms()), doing)


def _show(answer: ProposalAnswer, doing: _Doing) -> None:
    show_answer(answer, lambda out: print_proposal(out, answer), as_json=doing.as_json)
