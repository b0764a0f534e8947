"""Commands for tests of those who carry them out."""

from typing import Any

from controller.model.decision import Action, Command, Reason, Verdict

T = 1_735_689_600_000
BUNDLE = "tenant/ns/0x40000000_0x80000000"
#: The boundaries of its namespace.
QUARTERS = (0, 0x40000000, 0x80000000, 0xC0000000, 0xFFFFFFFF)
A, B, C = "a:8080", "b:8080", "c:8080"


def unload(bundle: str = BUNDLE, **changes: Any) -> Command:
    """From A to B unless told otherwise."""
    return _command("unload", bundle, {"destination": B, **changes})


def split(bundle: str = BUNDLE, **changes: Any) -> Command:
    """In the middle of BUNDLE unless told otherwise; A owns it."""
    defaults = {"algorithm": "specified_positions_divide", "boundaries": (0x60000000,)}
    return _command("split", bundle, {**defaults, **changes})


def _command(action: Action, bundle: str, changes: dict[str, Any]) -> Command:
    fields: dict[str, Any] = {
        "id": f"{action} {bundle}",
        "cluster": "standalone",
        "interval": T,
        "expires_at_ms": T + 300_000,
        "mode": "active",
        "source": A,
        "why": Verdict(subject=changes.get("source", A), reason=Reason.OVERLOADED),
    }
    return Command(action=action, bundle=bundle, **{**fields, **changes})
