"""What a controller signs of a command, and whether an executor may believe it.

A signature covers all that an executor acts on, and the epoch: it holds for no other cluster, leadership, bundle,
broker or deadline.  It does not cover what only people read (reason, explanation), nor the time of the envelope.
"""

import json
from collections.abc import Collection, Sequence
from typing import Final

from controller.model.decision import Command
from controller.wire.commands import SplitEvent, UnloadEvent, to_command
from controller.wire.ed25519 import SIGNATURE_CHARACTERS, SigningKey, signed_by_any

#: No signature of anything else begins like this.
_DOMAIN: Final = b"trimtab-command v1\n"


def signed_bytes(command: Command, epoch: int) -> bytes:
    """What is signed of *command*, issued under leadership *epoch*: the domain, then JSON with sorted keys in ASCII."""
    content = {
        "action": command.action,
        "algorithm": command.algorithm,
        "boundaries": list(command.boundaries),
        "bundle": command.bundle,
        "cluster": command.cluster,
        "destination": command.destination,
        "epoch": epoch,
        "expiresAt": command.expires_at_ms,
        "id": command.id,
        "interval": command.interval,
        "mode": command.mode,
        "source": command.source,
        "unloadAfterSplit": command.unload_after_split,
    }
    return _DOMAIN + json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


def signatures_of(commands: Sequence[Command], epoch: int, key: SigningKey | None) -> list[str]:
    """The signature of each of *commands* by *key*; nothing without one."""
    return [] if key is None else [key.sign(signed_bytes(command, epoch)) for command in commands]


def joined(signatures: Sequence[str], parts: int) -> list[bytes]:
    """*signatures* as *parts* texts of about the same length; empty ones where there are none."""
    share = -(-len(signatures) // parts)
    return ["".join(signatures[at * share : (at + 1) * share]).encode() for at in range(parts)]


def separated(text: bytes, number: int) -> list[str]:
    """The last *number* signatures in *text*, which ``joined`` made; none where it has fewer."""
    signatures = text[-number * SIGNATURE_CHARACTERS :].decode("ascii", "replace") if number else ""
    if len(signatures) != number * SIGNATURE_CHARACTERS:
        return []
    return [signatures[at : at + SIGNATURE_CHARACTERS] for at in range(0, len(signatures), SIGNATURE_CHARACTERS)]


def why_not_believed(event: UnloadEvent | SplitEvent, keys: Collection[bytes]) -> str:
    """Why the command in *event* is not one of a controller with one of the public *keys*; "" where it is.

    Without any *keys* every command is believed.
    """
    if not keys:
        return ""
    if not event.signature:
        return "it is not signed, and [approvals.controllers] names who signs"
    if signed_by_any(keys, signed_bytes(to_command(event), event.epoch), event.signature):
        return ""
    return "no key in [approvals.controllers] made its signature"
