"""Proposals, statements and policies for tests: persons with keys, and what they sign."""

import json
from collections.abc import Sequence
from functools import cache
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from controller.model.proposals import (
    CONTROLLER,
    Proposal,
    ProposalKind,
    SignedStatement,
    Statement,
    StatementKind,
)
from controller.settings.approvals import ApprovalSettings
from controller.wire.ed25519 import SigningKey
from controller.wire.proposals import hash_of, statement_bytes

CLUSTER: Final = "standalone"
NOW: Final = 1_700_000_000_000
HOUR: Final = 3_600_000


@cache
def key_of(name: str) -> SigningKey:
    """The key of the person, or the server, *name*: always the same."""
    return SigningKey(Ed25519PrivateKey.from_private_bytes(name.encode().ljust(32, b"-")[:32]))


def policy(names: Sequence[str] = ("ada", "bob", "carol"), **more: object) -> ApprovalSettings:
    """A policy with the keys of *names*."""
    keys = {name: {"key": key_of(name).public_text} for name in names}
    return ApprovalSettings.model_validate({"keys": keys, **more})


def signed_by(name: str, statement: Statement) -> SignedStatement:
    """*statement*, signed with the key of *name*, whatever it says about who signs it."""
    return SignedStatement(statement=statement, signature=key_of(name).sign(statement_bytes(statement)))


def decision_content(number: int = 0, size: int = 0) -> bytes:
    """A content that is like no other one: the *number*-th, with about *size* bytes that cannot be compressed."""
    filler = "".join(hash_of(b"%d %d" % (number, at)) for at in range(size // 64))
    return json.dumps({"cluster": CLUSTER, "number": number, "filler": filler}).encode()


def decision(content: bytes, *, at_ms: int = NOW, author: str = CONTROLLER, expires_at_ms: int = 0) -> Proposal:
    """A proposal of *content*, a decision."""
    statement = Statement(
        kind=StatementKind.PROPOSE,
        cluster=CLUSTER,
        subject=hash_of(content),
        person=author,
        author=author,
        at_ms=at_ms,
        expires_at_ms=expires_at_ms or at_ms + HOUR,
    )
    return Proposal(
        hash=hash_of(content),
        kind=ProposalKind.DECISION,
        statement=SignedStatement(statement=statement),
        moves=2,
        title="2 moves",
    )
