"""What a run is made of."""

from dataclasses import dataclass
from typing import Final

from tests.simulation.world import Fault

#: Of an interval, seconds.
PERIOD: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """The same one gives the same run."""

    seed: int
    #: Those in which faults come; a few calm ones follow.
    intervals: int = 30
    #: Whether the log appends atomically, as Kafka, or one record after the other, as Pulsar and files.
    atomic: bool = True
    partitions: int = 2
    controllers: int = 2
    collectors: int = 2
    executors: int = 2
    #: Parts of the query's state.
    shards: int = 2
    #: Whether plans, and changes of the controls that allow more, need approvals: ada proposes, bob approves.
    approvals: bool = False
    #: Whether the election lies in the log, and not in a modelled ZooKeeper.
    elects_on_log: bool = False
    faults: tuple[Fault, ...] = ()
