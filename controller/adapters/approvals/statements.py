"""Statements of persons about proposals: signing one, and why one does not count."""

from functools import lru_cache
from typing import Final

from controller.model.errors import ProposalRefusedError
from controller.model.proposals import SignedStatement, Statement, StatementKind
from controller.settings.approvals import ApprovalSettings
from controller.wire.ed25519 import SigningKey, public_key, signed_by_any
from controller.wire.proposals import statement_bytes

#: A statement may be so much ahead of this host's clock.
CLOCK_MS: Final = 60_000
#: Signatures whose check is remembered: of MAX_PROPOSALS with several approvals each.  A statement has 4 KB at most.
_MAX_VERIFIED: Final = 1024
#: What a person needs in ``may`` to say it.  Everybody may reject: that moves nothing.
_NEEDS: Final = {StatementKind.PROPOSE: "propose", StatementKind.APPROVE: "approve"}


def sign(statement: Statement, policy: ApprovalSettings, key: SigningKey | None) -> SignedStatement:
    """*statement* with the signature of *key*; ``statement.key`` names it.

    Unsigned where *policy* demands nothing.  ProposalRefusedError where the controllers would not believe it.
    """
    if not policy.demanded:
        return SignedStatement(statement=statement)
    if key is None:
        raise ProposalRefusedError(
            "the policy of [approvals] demands a signature: name your private key with --key FILE;"
            " `trimtab proposals key` makes one"
        )
    signed = SignedStatement(statement=statement, signature=key.sign(statement_bytes(statement)))
    why = flaw_of(signed, policy, cluster=statement.cluster, now_ms=statement.at_ms)
    if why:
        raise ProposalRefusedError(why)
    return signed


def flaw_of(signed: SignedStatement, policy: ApprovalSettings, *, cluster: str, now_ms: int) -> str:
    """Why *signed* does not count under *policy* at *now_ms*; "" where it does.

    It does not look at what the statement is about, except at the cluster.
    """
    statement = signed.statement
    who = f"the statement of {statement.person} ({statement.kind})"
    if statement.cluster != cluster:
        return f"{who} is for cluster {statement.cluster!r}, and this one is {cluster!r}"
    if statement.at_ms > now_ms + CLOCK_MS:
        return f"{who} is of a time {(statement.at_ms - now_ms) // 1000} s ahead of this host's clock"
    if statement.expires_at_ms <= now_ms:
        return f"{who} expired {(now_ms - statement.expires_at_ms) // 1000} s ago"
    return _flaw_of_signature(signed, policy, who) if policy.demanded else ""


def _flaw_of_signature(signed: SignedStatement, policy: ApprovalSettings, who: str) -> str:
    statement = signed.statement
    if statement.policy != policy.version:
        return (
            f"{who} was made under policy {statement.policy or 'none'}, and the one in force here is {policy.version}:"
            " the sections [approvals] of both settings differ, or one was changed since"
        )
    person, server = policy.keys.get(statement.key), policy.servers.get(statement.key)
    if person is not None:
        public = person.key
        if statement.person != statement.key:
            return f"{who} is signed with the key of {statement.key}"
    elif server is not None:
        public = server.key
        if server.people and not any(policy.is_same(statement.person, each) for each in server.people):
            return f"{statement.key} may not sign for {statement.person}, by approvals.servers.{statement.key}.people"
    else:
        return f"{who} is signed with the key {statement.key!r}, which is not in [approvals]"
    if statement.kind in _NEEDS and _NEEDS[statement.kind] not in policy.may(statement.person):
        return f"{statement.person} may not {statement.kind}, by `may` in approvals.keys"
    if not _is_signed_with(public, signed):
        return f"{who} has a signature that is not one of the key of {statement.key}: it was forged, or changed since"
    return ""


@lru_cache(_MAX_VERIFIED)
def _is_signed_with(public: str, signed: SignedStatement) -> bool:
    """Whether the private key of *public* made the signature.

    The answer is remembered: lists of proposals, and each interval, ask for the same statements again.
    """
    return signed_by_any((public_key(public),), statement_bytes(signed.statement), signed.signature)
