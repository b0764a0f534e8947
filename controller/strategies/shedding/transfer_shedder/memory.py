"""What TransferShedder remembers."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import ClassVar, Self

from controller.model.decision import Unload
from controller.model.strategy_memory import DryRunMoves, Renaming, StrategyMemory, renamed
from controller.strategies.common.unissued import idle_unloads
from controller.strategies.common.usage_history import shifted


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferHistory(StrategyMemory):
    """What TransferShedder remembers; all mappings are by broker name."""

    kind: ClassVar[str] = "transfer_history"
    #: Consecutive rounds in which the load was uneven.
    hit_count: int = 0
    #: Smoothed weighted usage (fraction), smoothed bytes/s in + out, and T of the last data, epoch ms.
    weighted_max_ema: Mapping[str, float] = field(default_factory=dict)
    msg_throughput_ema: Mapping[str, float] = field(default_factory=dict)
    updated_at_ms: Mapping[str, int] = field(default_factory=dict)
    #: When the broker's last unload was done, epoch ms, kept during its cool-down; older entries have the T before it.
    recently_unloaded_brokers: Mapping[str, int] = field(default_factory=dict)
    #: Digest of the bundles that the broker owned; older entries have none.
    bundles: Mapping[str, str] = field(default_factory=dict)

    def revert_unissued(self, before: Self, withheld: Collection[Unload], issued: Collection[Unload]) -> Self:
        """No cool-down for brokers that gave nothing; where nobody gave anything, the hit count before."""
        idle = {unload.source for unload in idle_unloads(withheld, issued)}
        if not idle:
            return self
        settling = {name: t for name, t in self.recently_unloaded_brokers.items() if name not in idle}
        settling |= {name: t for name, t in before.recently_unloaded_brokers.items() if name in idle}
        hits = self.hit_count if issued else before.hit_count
        return replace(self, hit_count=hits, recently_unloaded_brokers=settling)

    def forget_dry_run(self, moves: DryRunMoves) -> Self:
        """Brokers that gave nothing have nothing to settle after."""
        cooling = {name: t for name, t in self.recently_unloaded_brokers.items() if name not in moves.idle_sources}
        return replace(self, recently_unloaded_brokers=cooling)

    def shift_usage(self, shares: Mapping[str, float]) -> Self:
        """The averages of usage, off by *shares*."""
        return replace(self, weighted_max_ema=shifted(self.weighted_max_ema, shares))

    def with_names(self, names: Renaming) -> Self:
        """Other names of brokers, and no digests: those of other names are not known."""
        values = {each.name: renamed(getattr(self, each.name), names) for each in fields(self)}
        return replace(self, **{**values, "bundles": {}})
