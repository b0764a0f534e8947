"""TransferShedder: the extensible load manager's shedder.

``shedder`` has the options and decides.  ``rounds`` plans one round on what the brokers reported: ``load_stats`` pairs
the brokers, ``exchange`` picks the bundles of a pair.  ``reports`` makes the brokers' reports from a view, and
``verdicts`` says what came of a round.
"""

from controller.strategies.shedding.transfer_shedder.exchange import Exchange, Gate, Move, Refused, TopBundle
from controller.strategies.shedding.transfer_shedder.load_stats import BrokerLoads, Readiness
from controller.strategies.shedding.transfer_shedder.rounds import Attempt, LoadStore, Round
from controller.strategies.shedding.transfer_shedder.shedder import TransferShedder

__all__ = [
    "Attempt",
    "BrokerLoads",
    "Exchange",
    "Gate",
    "LoadStore",
    "Move",
    "Readiness",
    "Refused",
    "Round",
    "TopBundle",
    "TransferShedder",
]
