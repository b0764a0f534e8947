"""What several memories need to revert choices that were held back."""

from collections.abc import Collection, Mapping
from typing import TypeVar

from controller.model.decision import Unload

V = TypeVar("V")


def idle_unloads(withheld: Collection[Unload], issued: Collection[Unload]) -> list[Unload]:
    """Those of *withheld* whose source gave nothing, as none of *issued* has it."""
    gave = {unload.source for unload in issued}
    return [unload for unload in withheld if unload.source not in gave]


def restored(before: Mapping[str, V], after: Mapping[str, V], names: Collection[str]) -> dict[str, V]:
    """*after*, but with what *before* has of *names*."""
    return {**after, **{name: before[name] for name in sorted(names) if name in before}}
