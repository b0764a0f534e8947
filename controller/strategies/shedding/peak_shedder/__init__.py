"""PeakShedder: ``shedder`` decides.

``pools`` says which brokers share load.  ``situation`` says which brokers are to give bundles, ``filling`` to which
idle ones, ``patience`` whether now, and ``worth`` whether a plan is worth it.  ``destinations`` asks the filters.
``promises`` looks at moves later.  ``advice`` finds bundles that no move can help, ``told`` makes verdicts.
"""

from controller.strategies.shedding.peak_shedder.shedder import PeakShedder

__all__ = ["PeakShedder"]
