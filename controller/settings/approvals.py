"""The section [approvals]: who may propose and approve what moves bundles, and by which keys that is known."""

import hashlib
import json
import unicodedata
from collections.abc import Iterator
from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import AfterValidator, Field, model_validator

from controller.model.lookalikes import as_it_looks
from controller.model.proposals import CONTROLLER, ProposalKind
from controller.settings.section import PathText, Section
from controller.wire.ed25519 import public_key

#: A week, in minutes.
_WEEK: Final = 7 * 24 * 60
_MOST_KEYS: Final = 1000
_VERSION_DIGITS: Final = 16


def _public_key(text: str) -> str:
    public_key(text)
    return text


#: An Ed25519 public key, base64 of its 32 bytes.
PublicKeyText: TypeAlias = Annotated[str, AfterValidator(_public_key)]
#: A person, a server or a controller: it is printed, and part of what is signed.
_Name: TypeAlias = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f]+$")]
_Names: TypeAlias = Annotated[tuple[_Name, ...], Field(strict=False)]
#: Public keys by name.
PublicKeys: TypeAlias = Annotated[dict[_Name, PublicKeyText], Field(max_length=_MOST_KEYS)]
_May: TypeAlias = Literal["propose", "approve"]


def same_person(name: str) -> str:
    """*name* in the form in which persons are compared: by what is seen of it, whatever its case, script and encoding.

    It is NFKC_Casefold of the Unicode Standard (section 3.13), which leaves out what is invisible, such as a zero-width
    space, with Latin letters for those that look like them; white space as in RFC 8266.
    """
    folded = as_it_looks(unicodedata.normalize("NFKC", name)).casefold()
    return " ".join(unicodedata.normalize("NFKC", as_it_looks(folded)).split())


class PersonSettings(Section):
    """A person who signs with a key of her own."""

    key: PublicKeyText
    """The public key, as `trimtab proposals key` prints it: Ed25519, 32 bytes in base64."""
    may: Annotated[tuple[_May, ...], Field(strict=False)] = ("propose", "approve")
    """What the person may do: "propose", "approve"; also where a server signs for the person."""
    also: _Names = ()
    """Other names of the same person, such as the one on the page: nobody approves what she proposed under another
    name."""


class VouchingServerSettings(Section):
    """A `trimtab serve` whose page says who approves: it signs for persons with the role approver."""

    key: PublicKeyText
    """The public key of its [web] signing_key_file."""
    people: _Names = ()
    """The persons that it may sign for.  Empty: everybody whom it gives the role."""


class ApprovalSettings(Section):
    """Who has to approve what moves bundles.  Without keys and servers nobody has to, and no approval is signed."""

    required: Annotated[int, Field(ge=0, le=20)] = 1
    """Approvals that a proposal needs, by persons other than its author.  0: it needs its author's signature alone."""
    free_moves: Annotated[int, Field(ge=0)] = 0
    """A plan or a decision of at most this many moves and splits needs no approval.  0: each needs one, unless
    free_connections is set.  Where both are set, both hold."""
    free_connections: Annotated[int, Field(ge=0)] = 0
    """A plan or a decision that makes at most this many producers and consumers reconnect needs no approval.  0: each
    needs one, unless free_moves is set."""
    expires_minutes: Annotated[int, Field(ge=1, le=_WEEK)] = 24 * 60
    """How long a proposal of a plan, and an approval, counts.  A plan has to be carried out by then."""
    decision_minutes: Annotated[int, Field(ge=1, le=_WEEK)] = 60
    """Mode approve: how long a decision waits for its approval."""
    controls_minutes: Annotated[int, Field(ge=1, le=24 * 60)] = 60
    """How long a proposal to resume, to release a broker, or to set a mode that moves more, counts."""
    scope: Annotated[str, Field(max_length=100)] = ""
    """Any text, such as "production", that tells this cluster from another one of the same name and with the same keys:
    it is part of the policy, so approvals for one of them do not count for the other."""
    keys: Annotated[dict[_Name, PersonSettings], Field(max_length=_MOST_KEYS)] = Field(default_factory=dict)
    """Person -> key."""
    servers: Annotated[dict[_Name, VouchingServerSettings], Field(max_length=_MOST_KEYS)] = Field(default_factory=dict)
    """Name of a server -> its key.  Whoever controls that server can approve in the name of the persons it may sign
    for; name none if that is not acceptable."""
    controllers: PublicKeys = Field(default_factory=dict)
    """Name -> public key of a controller: Ed25519, base64 of its 32 bytes.  With one or more, `trimtab execute` refuses
    every command that none of them has signed.  docs/executor.md says what this protects from."""
    controller_key_file: PathText | None = None
    """The private key with which `trimtab run` signs its commands: Ed25519, PEM in PKCS#8, readable by trimtab's user
    alone.  Only controllers need it; it is not part of the policy."""

    @property
    def controller_keys(self) -> tuple[bytes, ...]:
        """The public keys whose commands executors carry out; empty: those of everybody."""
        return tuple(map(public_key, self.controllers.values()))

    @property
    def demanded(self) -> bool:
        """Whether approvals are demanded: there is a key that can sign."""
        return bool(self.keys or self.servers)

    @property
    def version(self) -> str:
        """The policy's version: it changes with every change of the policy.  "": nothing is demanded."""
        if not self.demanded:
            return ""
        policy = self.model_dump(mode="json", exclude={"controller_key_file"})
        encoded = json.dumps(policy, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(encoded.encode()).hexdigest()[:_VERSION_DIGITS]

    def life_ms(self, kind: ProposalKind) -> int:
        """How long a proposal of *kind*, and an approval of it, counts at most."""
        match kind:
            case ProposalKind.PLAN:
                minutes = self.expires_minutes
            case ProposalKind.DECISION:
                minutes = self.decision_minutes
            case ProposalKind.CONTROL:
                minutes = self.controls_minutes
        return minutes * 60_000

    def may(self, person: str) -> tuple[str, ...]:
        """What *person* may do, whoever signs for her."""
        own = self.names_of(person)
        return next((each.may for name, each in self.keys.items() if same_person(name) in own), ("propose", "approve"))

    def names_of(self, person: str) -> frozenset[str]:
        """All names of *person*, as ``same_person`` writes them."""
        own = same_person(person)
        for name, each in self.keys.items():
            names = frozenset(map(same_person, (name, *each.also)))
            if own in names:
                return names
        return frozenset((own,))

    def is_same(self, one: str, other: str) -> bool:
        """Whether both names are those of one person."""
        return bool(self.names_of(one) & self.names_of(other))

    @model_validator(mode="after")
    def _tells_everybody_apart(self) -> Self:
        by_key, by_name = dict[str, str](), dict[str, str]()
        for path, key in self._keys():
            if key in by_key:
                raise ValueError(f"{by_key[key]} and {path} have the same key, so they are one: give each its own")
            by_key[key] = path
        for path, name in self._persons():
            person = same_person(name)
            if person in by_name:
                raise ValueError(f"{by_name[person]} and {path} are names of one person or server: give each its own")
            if person == CONTROLLER:
                raise ValueError(f"{path}: {CONTROLLER!r} is the name of the controllers themselves: choose another")
            by_name[person] = path
        return self

    def _keys(self) -> Iterator[tuple[str, str]]:
        yield from ((f"keys.{name}", each.key) for name, each in self.keys.items())
        yield from ((f"servers.{name}", each.key) for name, each in self.servers.items())
        yield from ((f"controllers.{name}", key) for name, key in self.controllers.items())

    def _persons(self) -> Iterator[tuple[str, str]]:
        for name, each in self.keys.items():
            names = {same_person(known): known for known in (*each.also, name)}
            yield from ((f"keys.{name}", known) for known in names.values())
        yield from ((f"servers.{name}", name) for name in self.servers)
