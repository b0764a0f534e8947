"""Proposals as they are stored: heads, records and contents; and the bytes that a signature of a statement covers."""

import hashlib
import json
import zlib
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import ConfigDict, Field

from controller.model.errors import WireError
from controller.model.proposals import (
    ControlRequest,
    Proposal,
    ProposalKind,
    ProposalRecord,
    ProposalState,
    SignedStatement,
    Statement,
    StatementKind,
)
from controller.wire.base import (
    VERSION,
    Items,
    Millis,
    Name,
    NameOrEmpty,
    Record,
    encode,
    model_for,
    read_object,
    reader,
    refuse_too_large,
    validate,
)
from controller.wire.conversion import from_record, to_record

#: What a signature covers begins with this, so that one of something else is never one of a statement.
DOMAIN: Final = b"trimtab-approval v1\n"
MAX_STATEMENTS: Final = 100
#: Characters of a reason, a title or a detail.
MAX_SENTENCE: Final = 500
#: A head has one statement, a record at most MAX_STATEMENTS, each of 4 KB at most.
MAX_HEAD_BYTES: Final = 16 * 1024
MAX_RECORD_BYTES: Final = 512 * 1024
#: Of a content: as much as a plan's file may have.
MAX_CONTENT_BYTES: Final = 128 * 1024 * 1024
#: As it lies there.
MAX_PACKED_BYTES: Final = 16 * 1024 * 1024
_MAX_VALUES: Final = 1000
_MAX_NUMBER: Final = 1_000_000_000
#: No control characters: it is printed.
_PRINTABLE: Final = r"^[^\x00-\x1f\x7f]*$"

_Hash: TypeAlias = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
_HashOrEmpty: TypeAlias = Annotated[str, Field(pattern="^([0-9a-f]{64})?$")]
_Person: TypeAlias = Annotated[str, Field(min_length=1, max_length=100, pattern=_PRINTABLE)]
_PersonOrEmpty: TypeAlias = Annotated[str, Field(max_length=100, pattern=_PRINTABLE)]
_Sentence: TypeAlias = Annotated[str, Field(max_length=MAX_SENTENCE, pattern=_PRINTABLE)]
_Number: TypeAlias = Annotated[int, Field(ge=0, le=_MAX_NUMBER)]


class _Part(Record):
    """An unknown field is an error: a signature would not cover it."""

    model_config = ConfigDict(extra="forbid")


class StatementRecord(_Part):
    """What a person says about a proposal."""

    kind: Annotated[StatementKind, Field(strict=False)]
    cluster: NameOrEmpty
    subject: _Hash
    """The proposal's hash."""
    certificate: _HashOrEmpty = ""
    """Of a plan: SHA-256 over its certificates."""
    person: _Person
    author: _Person
    """Who proposed it."""
    at_ms: Millis
    expires_at_ms: Millis
    policy: Annotated[str, Field(pattern="^([0-9a-f]{16})?$")] = ""
    """The policy's version; empty where there is no policy."""
    key: _PersonOrEmpty = ""
    """The key that signs: a person's, or a server's."""
    reason: _Sentence = ""


class SignedStatementRecord(_Part):
    """A statement, and the signature of its canonical form."""

    statement: StatementRecord
    signature: Annotated[str, Field(pattern="^([A-Za-z0-9+/]{86}==)?$")] = ""
    """Ed25519, base64."""


class ControlRequestRecord(_Part):
    """A change of the controls that allows more."""

    cluster: Name
    action: Literal["mode", "resume", "release", "include"]
    values: Annotated[Items[Name], Field(max_length=_MAX_VALUES)] = ()
    """The mode; at_ms of each pause that ends; names of brokers; names of bundles and namespaces."""
    at_ms: Millis


class GrantRecord(_Part):
    """A change of the controls, and the statements that allow it."""

    request: ControlRequestRecord
    statements: Annotated[Items[SignedStatementRecord], Field(max_length=MAX_STATEMENTS)] = ()


class ProposalHead(_Part):
    """A proposal, without its content."""

    v: Literal[1] = VERSION
    type: Literal["proposal"] = "proposal"
    hash: _Hash
    kind: Annotated[ProposalKind, Field(strict=False)]
    statement: SignedStatementRecord
    """The author's."""
    moves: _Number = 0
    splits: _Number = 0
    connections: _Number = 0
    title: _Sentence = ""
    size: _Number = 0
    """Bytes of the content, compressed as it is stored."""


class ProgressRecord(_Part):
    """How far carrying it out is."""

    state: Annotated[ProposalState | None, Field(strict=False)] = None
    request: Literal["", "pause", "resume", "stop"] = ""
    step: _Number = 0
    wave: _Number = 0
    waves: _Number = 0
    moves_done: _Number = 0
    moves: _Number = 0
    detail: _Sentence = ""
    by: _PersonOrEmpty = ""
    at_ms: Millis = 0
    holder: _PersonOrEmpty = ""
    holds_until_ms: Millis = 0


class ProposalRecordDocument(_Part):
    """What changes of a proposal."""

    v: Literal[1] = VERSION
    type: Literal["proposal_record"] = "proposal_record"
    statements: Annotated[Items[SignedStatementRecord], Field(max_length=MAX_STATEMENTS)] = ()
    progress: ProgressRecord = ProgressRecord()


_HEADS: Final[dict[str, type[Any]]] = {"proposal": ProposalHead}
_RECORDS: Final[dict[str, type[Any]]] = {"proposal_record": ProposalRecordDocument}


def statement_bytes(statement: Statement) -> bytes:
    """What a signature of *statement* covers; WireError where it is no statement."""
    return DOMAIN + canonical(to_record(StatementRecord, statement))


def canonical(record: Record) -> bytes:
    """*record* as JSON in ASCII with sorted keys and without blanks: the same values always give the same bytes."""
    return json.dumps(record.model_dump(mode="json", by_alias=True), sort_keys=True, separators=(",", ":")).encode()


def hash_of(content: bytes) -> str:
    """The hash of a content that is signed as it is: of a decision and of a change of the controls."""
    return hashlib.sha256(content).hexdigest()


def encode_request(request: ControlRequest) -> bytes:
    """*request* as the content of a proposal; its hash is that of these bytes."""
    return canonical(to_record(ControlRequestRecord, request))


@reader
def parse_request(content: bytes) -> ControlRequest:
    """The request that *content* holds, or WireError."""
    refuse_too_large(content, MAX_RECORD_BYTES)
    return from_record(ControlRequest, validate(ControlRequestRecord, content, read_object(content)))


def encode_head(proposal: Proposal, size: int) -> bytes:
    """*proposal* as it is stored, beside *size* bytes of content; WireError where it cannot be."""
    head = to_record(ProposalHead, proposal).model_copy(update={"size": size})
    return _bounded(encode(head), MAX_HEAD_BYTES)


@reader
def parse_head(value: bytes, key: str) -> tuple[Proposal, int]:
    """The proposal with the hash *key* that *value* holds, and the size of its content; or WireError."""
    refuse_too_large(value, MAX_HEAD_BYTES)
    head: ProposalHead = validate(model_for(read_object(value), _HEADS), value)
    if head.hash != key:
        raise WireError("bad_value", f"it lies at {key[:12]}, and says that it is {head.hash[:12]}")
    if head.size > MAX_PACKED_BYTES:
        raise WireError("too_large", f"{head.size} bytes, allowed: {MAX_PACKED_BYTES}")
    return from_record(Proposal, head), head.size


def encode_proposal_record(record: ProposalRecord) -> bytes:
    """*record* as it is stored; WireError where it cannot be."""
    return _bounded(encode(to_record(ProposalRecordDocument, record)), MAX_RECORD_BYTES)


@reader
def parse_proposal_record(value: bytes) -> ProposalRecord:
    """The record that *value* holds, or WireError."""
    refuse_too_large(value, MAX_RECORD_BYTES)
    return from_record(ProposalRecord, validate(model_for(read_object(value), _RECORDS), value))


def _bounded(value: bytes, max_bytes: int) -> bytes:
    refuse_too_large(value, max_bytes)
    return value


def pack(content: bytes) -> bytes:
    """*content* as it is stored, compressed; WireError where it is too large."""
    refuse_too_large(content, MAX_CONTENT_BYTES)
    packed = zlib.compress(content, 6)
    refuse_too_large(packed, MAX_PACKED_BYTES)
    return packed


@reader
def unpack(packed: bytes) -> bytes:
    """The content that ``pack`` made *packed* of, or WireError; never more than MAX_CONTENT_BYTES of it."""
    refuse_too_large(packed, MAX_PACKED_BYTES)
    stream = zlib.decompressobj()
    content = stream.decompress(packed, MAX_CONTENT_BYTES + 1)
    if len(content) > MAX_CONTENT_BYTES:
        raise WireError("too_large", f"it unpacks to more than {MAX_CONTENT_BYTES} bytes")
    if not stream.eof or stream.unused_data:
        raise WireError("bad_value", "the stored content is incomplete, or something follows it")
    return content


def signed(statement: Statement, signature: str) -> SignedStatement:
    """*statement* with its *signature*; WireError where one of both is none."""
    value = SignedStatement(statement=statement, signature=signature)
    to_record(SignedStatementRecord, value)
    return value
