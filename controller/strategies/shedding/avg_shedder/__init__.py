"""AvgShedder: ``shedder`` decides, ``pairs`` keeps the pairs of brokers and how often each was hit."""

from controller.strategies.shedding.avg_shedder.shedder import AvgShedder

__all__ = ["AvgShedder"]
