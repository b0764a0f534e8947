"""PeakShedder: ``shedder`` decides, ``destinations`` asks the filters, ``advice`` finds bundles that are too large."""

from controller.strategies.shedding.peak_shedder.shedder import PeakShedder

__all__ = ["PeakShedder"]
