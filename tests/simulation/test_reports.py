"""What broke other systems, by public reports, as schedules: nothing is lost, done twice or wrong here.

Each schedule reaches what was reported: with the safeguard against it taken away, the oracle finds it.
"""

from dataclasses import replace

import pytest

from tests.simulation.faults import LEADER
from tests.simulation.planted import in_place
from tests.simulation.run import play
from tests.simulation.schedule import Schedule
from tests.simulation.world import Fault

pytestmark = pytest.mark.slow

ATOMIC = Schedule(seed=1, intervals=12)
FOLLOWED = replace(ATOMIC, atomic=False)


def at(kind: str, target: str, point: str, seconds: float = 0.0, **more: object) -> Fault:
    """A fault at the first such effect after two intervals."""
    return Fault(kind=kind, at=150.0, target=target, point=point, seconds=seconds, **more)  # type: ignore[arg-type]


REPORTS = {
    # The election was away for longer than a session, and the old leader believed that it still led.
    "CURATOR-696, druid 16411: two leaders after an outage of the election": (
        ATOMIC,
        (Fault(kind="outage", at=179.0, point="election both", seconds=15.0),),
        None,
    ),
    # It stood still between its last look at the election and its write.
    "CURATOR-460: a leader that stood still writes once another one leads": (
        ATOMIC,
        (at("pause", LEADER, "commit journal", 30.0),),
        "fence-skipped",
    ),
    # All sessions ended at once, and nobody stood for election again.
    "fluss 4382, helix 2815, CURATOR-202: nobody leads once all sessions have ended": (
        ATOMIC,
        tuple(
            Fault(kind="expire", at=150.0 + 60 * time, target=f"controller-{number}")
            for time in range(3)
            for number in (1, 2)
        ),
        None,
    ),
    # The sink had stored a batch, the driver died before Spark noted that, and the batch ran again.
    "paimon 9666: a batch that runs again is stored twice": (
        ATOMIC,
        (at("crash", LEADER, "spark commit"),),
        "interval-decided-again",
    ),
    # The commit of the last batch is there, and the process that wrote it was told that it is not.
    "azure-event-hubs-spark 431: a restart reads again what a committed batch has read": (
        ATOMIC,
        (at("lose", LEADER, "spark commit", when="after"),),
        None,
    ),
    # The outcome of a write was never learned.
    "posthog 76100: a decision whose answer was lost": (
        FOLLOWED,
        (at("lose", LEADER, "append journal", when="after"),),
        "nothing-completed",
    ),
    # A request was late, and arrived when a newer producer had begun.
    "KAFKA-14053, KAFKA-9666: a write that arrives after its writer was fenced": (
        ATOMIC,
        (at("delay", LEADER, "commit journal", 35.0, then=Fault(kind="expire", at=1.0, target=LEADER)),),
        "fence-skipped",
    ),
    # A member that the group has removed goes on writing beside the one that has its partitions.
    "KAFKA-12693: a member that stood still answers beside its successor": (
        ATOMIC,
        tuple(at("pause", f"executor-{number}", "finish claim", 25.0) for number in (1, 2)),
        "claims-not-checked",
    ),
    # A process died between what it stored for itself and what others read.
    "KAFKA-5132: what follows from a stored decision never comes": (
        FOLLOWED,
        tuple(at("crash", f"executor-{number}", "append results") for number in (1, 2)),
        "results-not-completed",
    ),
    # Each looked at its own lease only, and the leader's had ended.
    "posthog 76100: an executor that waits for a broker acts for a leader that is replaced": (
        replace(ATOMIC, executors=1),
        (at("delay", "executor-1", "brokers ask", 17.0, then=Fault(kind="crash", at=0.5, target=LEADER)),),
        "newer-epoch-not-looked-for",
    ),
    # The commit of a transaction timed out at its client, and was applied later.
    "librdkafka 5423 (KIP-890): a request that its client has given up is carried out later": (
        ATOMIC,
        tuple(
            Fault(kind="late", at=130.0 + 60 * nth, target=who, point=point, seconds=4.0 + nth)
            for who, point in (
                (LEADER, "commit journal"),
                ("executor-1", "finish claim"),
                ("executor-2", "store claim"),
            )
            for nth in range(3)
        ),
        None,
    ),
    # The broker went on with it.
    "pulsar 13276, 22136: an unload that timed out is carried out all the same": (
        replace(ATOMIC, controllers=1, executors=1),
        tuple(
            Fault(kind="late", at=130.0 + 60 * nth, target="executor-1", point="brokers act", seconds=3.0 + 0.3 * nth)
            for nth in range(10)
        ),
        "call-under-way-sent-again",
    ),
    # Both commands returned, and one of them changed nothing.
    "juicefs 7534, vespa 20299: of two changes at the same time one is lost": (
        replace(ATOMIC, controllers=1, executors=1),
        tuple(Fault(kind="crowd", at=130.0 + 150 * time) for time in range(4)),
        "change-lost-to-another",
    ),
    # Who takes over does not complete what the one before has begun in some partitions.
    "kafka 2849: markers lie in some partitions only once their writer has died": (
        replace(FOLLOWED, seed=2, controllers=1, executors=1),
        tuple(
            Fault(kind="crash", at=130.0, target=f"collector-{number}", point="append results", when="after")
            for number in (1, 2)
        ),
        "tick-before-not-completed",
    ),
    # A document that lay there before comes back, with what was agreed on then.
    "etcd 13883, weaviate 10706: what was taken back is in force again after a restore": (
        replace(ATOMIC, seed=3, intervals=30, executors=1, approvals=True),
        tuple(Fault(kind="turnover", at=130.0 + 620 * time) for time in range(3)),
        "old-grant-obeyed",
    ),
}


@pytest.mark.parametrize("report", REPORTS)
def test_what_was_reported_of_others_is_survived_and_would_be_seen(report: str) -> None:
    schedule, faults, bug = REPORTS[report]
    schedule = replace(schedule, faults=faults)
    assert play(schedule).findings == []
    if bug is not None:
        with in_place(bug):
            assert play(schedule).findings != []
