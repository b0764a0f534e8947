"""Looks up the optional protocols that a strategy implements: see ``controller.strategies.protocols``.

A strategy may wrap another one, to check it or to record its answers.  So nothing asks a strategy by ``isinstance``:
the wrapper would hide what the wrapped strategy can do.
"""

from functools import lru_cache
from typing import Any


def capability(strategy: object, protocol: Any) -> Any:
    """*strategy*, or the strategy that it wraps at any depth, that has *protocol*; None: none of them has.

    Of type *protocol*, or None.  mypy takes no protocol as a ``type[C]``, so callers say what they get.
    """
    layer: Any = strategy
    while layer is not None:
        if _has(layer.__class__, protocol):
            return layer
        layer = getattr(layer, "wrapped", None)
    return None


@lru_cache(maxsize=256)
def _has(kind: type, protocol: Any) -> bool:
    """Whether *kind* has all members of *protocol*.

    Cached, since ``isinstance`` of a protocol takes longer than most filters.
    """
    members = {*getattr(protocol, "__annotations__", {}), *vars(protocol)}
    return all(hasattr(kind, name) for name in members if not name.startswith("_"))
