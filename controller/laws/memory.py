"""Laws of a strategy's memory: it can be stored in the journal, and implements what the cycle calls."""

import json
from collections.abc import Callable
from hashlib import blake2b
from typing import Any, Final

import numpy as np

from controller.cycle.checked import failed_predictions, remembered
from controller.cycle.stored_memory import UnreadableMemoryError, read_memory, stored, unstorable
from controller.model.load import ClusterView
from controller.model.names import BundleName, parse_bundle
from controller.model.strategy_memory import DryRunMoves, StrategyMemory

#: Of every strategy that remembers something.
MEMORY_LAW: Final = "What it remembers can be journalled and read back, and holds no true name once it has other names."
#: Some strategies remember nothing before they have seen the same for some rounds.
_ROUNDS: Final = 3


class _OtherNames:
    """Other names for all."""

    def broker(self, name: str) -> str:
        """Another name for a broker."""
        return name and f"other-{blake2b(name.encode(), digest_size=4).hexdigest()}"

    def namespace(self, name: str) -> str:
        """Another name for a namespace."""
        return f"{self.broker(name)}/other"

    def bundle(self, name: str) -> str:
        """Another name for a bundle."""
        parts = parse_bundle(name)
        return str(BundleName(self.namespace(parts.namespace), parts.lower, parts.upper))


def memory_flaw(
    strategy: Any, view: ClusterView, decide: Callable[[Any, ClusterView, Any], tuple[Any, Any]]
) -> str | None:
    """What is wrong with the memory of *strategy*, a shedder or a split policy, which *decide* asks; else None."""
    memory = strategy.initial_memory()
    flaw = unstorable(type(memory))
    for _ in range(_ROUNDS):
        before = memory
        decision, memory = decide(strategy, view, before)
        chosen = tuple(getattr(decision, "unloads", ()))
        bundles = {each.bundle for each in (*chosen, *getattr(decision, "splits", ()))}
        brokers = {*view.brokers.names[:1]}
        ends = {(each.source, each.destination) for each in chosen}
        for after in (
            memory,
            remembered(memory, "keep_brokers", view.brokers.names[1:]),
            remembered(memory, "revert_unissued", before, chosen, ()),
            remembered(memory, "revert_unissued_splits", before, bundles),
            remembered(memory, "invalidate_predictions", bundles, brokers),
            remembered(memory, "forget_dry_run", DryRunMoves(bundles, ends, {each.source for each in chosen})),
            remembered(memory, "shift_usage", dict.fromkeys(view.brokers.names, 0.01)),
        ):
            flaw = flaw or _storage_flaw(after)
        failed_predictions(memory, view.as_of_ms)
        flaw = flaw or _names_flaw(remembered(memory, "with_names", _OtherNames()), view)
    return flaw


def _storage_flaw(memory: StrategyMemory) -> str | None:
    written = stored(memory)
    try:
        read = stored(read_memory(type(memory), json.loads(json.dumps(written))))
    except UnreadableMemoryError as error:
        return f"what it remembers cannot be read back: {error}"
    return None if read == written else f"it remembers {written}, and {read} is read back"


def _names_flaw(renamed: StrategyMemory, view: ClusterView) -> str | None:
    """Which true name is left in a memory with other names; None: none is."""
    written = json.dumps(stored(renamed))
    owned = np.flatnonzero(view.bundles.owned)
    names = {*view.brokers.names, *(view.bundles.names[row] for row in owned)}
    leaked = next((name for name in sorted(names) if json.dumps(name) in written), None)
    return None if leaked is None else f"{leaked} is left in its memory with other names: see with_names"
