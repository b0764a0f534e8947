"""The incremental cooperative protocol.

``assignor`` answers a rebalance.  Its rules: ``lost_work`` (what a member that left was running), ``revocation`` (how
much members give up) and ``dealing`` (who gets what is free).  ``leader`` has the releases and the leader's memory.
"""

from controller.strategies.rebalance.incremental_cooperative.assignor import IncrementalCooperativeAssignor
from controller.strategies.rebalance.incremental_cooperative.leader import LeaderMemory, Release
from controller.strategies.rebalance.incremental_cooperative.lost_work import Compared, Settled, compared, settled

__all__ = [
    "Compared",
    "IncrementalCooperativeAssignor",
    "LeaderMemory",
    "Release",
    "Settled",
    "compared",
    "settled",
]
