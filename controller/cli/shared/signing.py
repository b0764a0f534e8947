"""Options and helpers of the commands that propose and approve: the person's key, and the proposal meant."""

import re
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from controller.adapters.approvals.making import Signer, signer_of
from controller.adapters.election.proposals import ProposalStore, no_proposal
from controller.model.errors import NothingFoundError, ProposalRefusedError
from controller.model.proposals import StoredProposal
from controller.settings.signing_key import read_signing_key
from controller.settings.trimtab_toml import Settings

#: Digits of an id that are enough to look at a proposal, and to approve one: there are other plans with the same first
#: few digits, and somebody could look for one.
SHORTEST_ID: Final = 8
SHORTEST_APPROVED: Final = 32

KeyOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--key",
        metavar="FILE",
        help="Your private key, where [approvals] demands signatures: `trimtab proposals key` makes one.",
        show_default=False,
    ),
]


def signer_with(settings: Settings, key: Path | None, person: str) -> Signer:
    """Who signs with the private key in the file *key*; without a policy, *person*, without a signature.

    ProposalRefusedError where the policy demands a key that is not given, or does not know this one.
    """
    policy, cluster = settings.approvals, settings.cluster.name
    refuse_unused_key(settings, key)
    if not policy.demanded:
        return Signer(person=person, policy=policy, cluster=cluster)
    if key is None:
        raise ProposalRefusedError(
            "[approvals] demands your signature: give your private key with --key FILE; `trimtab proposals key` makes"
            " one"
        )
    return signer_of(read_signing_key(key, "--key"), policy, cluster)


def refuse_unused_key(settings: Settings, key: Path | None) -> None:
    """Raise BadParameter where *key* is given, and these settings have nothing signed: a person would think it was."""
    if key is not None and not settings.approvals.demanded:
        raise typer.BadParameter("the settings have no [approvals.keys], so nothing is signed", param_hint="--key")


def refuse_no_id(text: str, shortest: int) -> None:
    """Raise BadParameter where *text* is not the begin of an id, with *shortest* digits or more."""
    if not re.fullmatch(rf"[0-9a-f]{{{shortest},64}}", text):
        why = f"give {shortest} of the 64 digits (0-9, a-f) or more; `trimtab proposals show` prints all of them"
        raise typer.BadParameter(why, param_hint="ID")


def proposal_with(store: ProposalStore, text: str, *, shortest: int = SHORTEST_ID) -> StoredProposal:
    """The proposal whose id begins with *text*; NothingFoundError where there is none, or more than one."""
    refuse_no_id(text, shortest)
    matches = [each for each in store.read_all().proposals if each.proposal.hash.startswith(text)]
    if not matches:
        raise no_proposal(text)
    if len(matches) > 1:
        raise NothingFoundError(f"{len(matches)} proposals begin with {text}: give more digits")
    return matches[0]
