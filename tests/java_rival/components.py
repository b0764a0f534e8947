"""What answers random cases line by line: each component's cases, and the jars and the driver that answer them."""

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from controller.adapters.disk import jars
from controller.strategies.rebalance.incremental_cooperative import Release as Assignor
from tests.java_rival.asked import PlanRequest
from tests.java_rival.extensible import transferring
from tests.java_rival.rebalances import rebalances
from tests.java_rival.releases import LOCK, RELEASES, Release

Play = Callable[[Random], Iterator[PlanRequest]]


class Rival(NamedTuple):
    """A driver in ``java``, its class, the jars that it runs with, and the JVM that runs it."""

    driver: str
    main: str
    #: Fetches the jars.
    fetched: Callable[[], list[Path]]
    java: Callable[[], str] = jars.java


def _extensible(release: Release) -> Rival:
    return Rival("ExtensibleCases.java", "ExtensibleCases", release.jars, release.java)


def _connect(release: str) -> Rival:
    main = "org.apache.kafka.connect.runtime.distributed.AssignorCases"
    return Rival("AssignorCases.java", main, lambda: jars.fetch(f"connect-{release}", lock=LOCK))


def _assignor(release: Assignor) -> Play:
    return lambda random: rebalances(release, random)


#: Component -> who answers in Java, and the cases.
COMPONENTS: Final[dict[str, tuple[Rival, Play]]] = {
    **{f"TransferShedder {version}": (_extensible(Release(version)), transferring) for version in RELEASES},
    "IncrementalCooperativeAssignor 2.6.0": (_connect("2.6.0"), _assignor(Assignor.V2_6_0)),
    "IncrementalCooperativeAssignor 2.6.3": (_connect("2.6.3"), _assignor(Assignor.V2_6_3)),
    "IncrementalCooperativeAssignor 3.9.0": (_connect("3.9.0"), _assignor(Assignor.V3_9)),
}
