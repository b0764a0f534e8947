"""PeakShedder: ``shedder`` decides.

``situation`` says which brokers are to give bundles, ``filling`` to which idle ones, ``patience`` whether now, and
``worth`` whether a plan is worth its moves.  ``sparing`` leaves brokers below their limit as they are.
``destinations`` asks the filters.  ``rest_of_plan`` goes on with a plan of earlier rounds.  ``promises`` looks at moves
later, ``undoing`` takes one back.  ``advice`` finds bundles that no move can help, ``told`` makes verdicts.
"""

from controller.strategies.shedding.peak_shedder.shedder import PeakShedder

__all__ = ["PeakShedder"]
