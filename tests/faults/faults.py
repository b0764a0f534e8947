"""The faults.  Each is inflicted on a site in the middle of its work, and undone; the rest is for the site to do."""

import signal
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, cast

from controller.adapters.process.failpoints import newest_versions, torn_commits
from controller.adapters.pulsar.admin import PulsarAdmin
from controller.lab.pulsar_server import CLUSTER
from controller.lab.servers import KafkaServer, ZooKeeperServer
from streaming.assembly import Assembly
from tests.faults.clock import eventually, now_ms
from tests.faults.disk import Disk
from tests.faults.hostile import forged_command, forged_records, poisoned
from tests.faults.kafka_brokers import SecondBroker
from tests.faults.operations import added_partitions, backlog, offline_partition, pause_takeover
from tests.faults.processes import Life
from tests.faults.pulsar import Act
from tests.faults.site import SESSION_SECONDS, Site

_EX_TEMPFAIL = 75
#: So that faults do not always meet the same step.
_LATER_EACH_TIME_SECONDS = 0.17
_TRIES = 20
#: Of a namespace as the lab's brokers create it.
_BUNDLES = ("0x00000000_0x40000000", "0x40000000_0x80000000", "0x80000000_0xc0000000", "0xc0000000_0xffffffff")


class Around(NamedTuple):
    """What a site stands on, and how long it is taken away."""

    kafka: KafkaServer
    zookeeper: ZooKeeperServer
    second: SecondBroker
    kafka_away_seconds: float = 60.0
    zookeeper_away_seconds: float = SESSION_SECONDS + 2.0
    #: A day.
    backlog_intervals: int = 1_440


@dataclass(frozen=True, kw_only=True)
class Fault:
    """*inflict* gets the site, its surroundings and the number of the run; it returns the recovery, seconds."""

    name: str
    #: What is done, and from when to when recovery is measured.
    what: str
    inflict: Callable[[Site, Around, int], float]
    #: Whether it is another thing at another moment of the site's work.
    depends_on_the_moment: bool = True


def kill(site: Site, _: Around, nth: int) -> float:
    """kill -9 of the leader."""
    _busy(site, nth)
    leader = site.leader()
    at = now_ms()
    leader.kill()
    return _decided_again(site, at)


def hang(site: Site, _: Around, nth: int) -> float:
    """SIGSTOP of the leader for longer than its session, then SIGCONT."""
    _busy(site, nth)
    leader = site.leader()
    at = now_ms()
    leader.hang()
    recovery = _decided_again(site, at)
    leader.resume()
    _ended_with(leader, _EX_TEMPFAIL)
    return recovery


def _ended_with(leader: Life, expected: int) -> None:
    code = leader.exit_code(60)
    assert code == expected, f"exit code {code}, not {expected}:\n{leader.last_words()}"


def hang_in_state_commit(site: Site, _: Around, __: int) -> float:
    """The same, while one shard's state is written and another's is not."""
    leader = site.leader()
    at = _hang_while_torn(site)
    recovery = _decided_again(site, at)
    leader.resume()
    _ended_with(leader, _EX_TEMPFAIL)
    return recovery


def zookeeper_away(site: Site, around: Around, nth: int) -> float:
    """ZooKeeper stopped, and started again."""
    _busy(site, nth)
    around.zookeeper.stop()
    try:
        time.sleep(around.zookeeper_away_seconds)
    finally:
        around.zookeeper.start()
    return _decided_again(site, now_ms())


def kafka_away(site: Site, around: Around, nth: int) -> float:
    """Kafka killed, and started again."""
    _busy(site, nth)
    around.kafka.stop(signal.SIGKILL)
    try:
        time.sleep(around.kafka_away_seconds)
    finally:
        around.kafka.start()
    return _decided_again(site, now_ms())


def executor_killed(site: Site, _: Around, __: int) -> float:
    """An executor killed when the broker has done what it was told and not yet said so."""
    killed: list[tuple[int, str]] = []

    def kill_it(entrance: int, act: Act) -> None:
        killed.append((now_ms(), act.bundle))
        site.executors[entrance].life.kill()

    site.pulsar.on_act = kill_it
    interval = site.publish()
    commands = site.wait_for_decision(interval).entry.decision.commands
    eventually(lambda: bool(killed), "an executor acts")
    [(at, bundle)] = killed
    [command] = [command.id for command in commands if command.bundle == bundle]
    eventually(lambda: site.answer(command) is not None, "another executor answers")
    answered = site.answer(command)
    assert answered is not None
    # Real brokers may have given the bundle to another one: that there was a move is not seen then.
    assert answered.result.status in ("already_done", *(() if site.pulsar.obeys else ("unknown",))), answered.result
    return (answered.at_ms - at) / 1000


def journal_disk_full(site: Site, disk: Disk) -> float:
    """The disk of the journal full, and room made on it again."""
    life = site.controllers[0].life
    with disk.full(life.pid):
        interval = site.publish()
        eventually(lambda: not life.is_alive(), "the controller gives up")
        assert life.exit_code(1) != 0
        assert site.decision(interval) is None
    at = now_ms()
    return (site.wait_for_decision(interval).at_ms - at) / 1000


def _once(name: str, what: str, inflict: Callable[[Site, Around, int], float]) -> Fault:
    """A fault that is the same thing at every moment."""
    return Fault(name=name, what=what, inflict=inflict, depends_on_the_moment=False)


FAULTS = (
    Fault(name="kill", what="`kill -9` of the leader", inflict=kill),
    Fault(name="hang", what="SIGSTOP of the leader until another leads, then SIGCONT", inflict=hang),
    _once("hang-in-state-commit", "the same inside a state commit", hang_in_state_commit),
    Fault(name="zookeeper-away", what="ZooKeeper stopped and started", inflict=zookeeper_away),
    Fault(name="kafka-away", what="Kafka killed and started", inflict=kafka_away),
    _once("executor-killed", "an executor killed between act and answer", executor_killed),
    _once("poison", "records that nobody can use, of every kind, in every topic", poisoned),
    _once("forged-records", "a made-up broker, records from the future, a second roster", forged_records),
    _once("forged-command", "an unload of the next epoch that names a thief's address", forged_command),
    _once("pause-takeover", "`trimtab pause`, then `kill -9` of the leader", pause_takeover),
    _once("added-partitions", "two partitions more for the metrics topic", added_partitions),
    _once("offline-partition", "a dead-letter partition without a leader", offline_partition),
    _once("backlog", "a day of intervals while both controllers are down", backlog),
)
DISK_FULL = "journal-disk-full"


def log_moves(site: Site, _: Around, nth: int) -> float:
    """All bundles of the log's own namespace unloaded."""
    log = site.settings.log.pulsar
    assert log is not None
    _busy(site, nth)
    at = now_ms()
    with closing(PulsarAdmin(log.admin_url, cluster=CLUSTER)) as admin:
        for bundle in _BUNDLES:
            admin.unload(f"{log.namespace}/{bundle}")
    return _decided_again(site, at)


_BY_NAME = {fault.name: fault for fault in FAULTS}
_LOG_MOVES = Fault(name="log-moves", what="the bundles of the log's own namespace unloaded", inflict=log_moves)
#: Those that are inflicted on a site whose log is in Pulsar as well, and one that only Pulsar has.
FAULTS_ON_PULSAR = (
    *(_BY_NAME[name] for name in ("kill", "hang", "hang-in-state-commit", "executor-killed")),
    _LOG_MOVES,
)
#: Those of them that CI has time for.
QUICK_ON_PULSAR = (_BY_NAME["kill"], _BY_NAME["executor-killed"], _LOG_MOVES)
#: Those that the extended tests inflict on a site whose commands real brokers carry out.
ON_REAL_BROKERS = tuple(_BY_NAME[name] for name in ("kill", "hang", "executor-killed"))
#: They need nothing around the site.
NOTHING_AROUND = cast(Around, None)


def _busy(site: Site, nth: int) -> None:
    """An interval, and a moment later."""
    site.publish()
    time.sleep(nth * _LATER_EACH_TIME_SECONDS % 1.0)


def _decided_again(site: Site, at_ms: int) -> float:
    """Seconds from *at_ms* until the journal has an interval that was not published before now."""
    interval = site.publish()
    return (site.wait_for_decision(interval).at_ms - at_ms) / 1000


def _hang_while_torn(site: Site) -> int:
    """Hang the leader inside a state commit; returns when, epoch ms."""
    operator = Path(Assembly(site.settings).checkpoint) / "state" / "0"
    leader = site.leader()
    for _ in range(_TRIES):
        hung_at = _hang_at_a_commit(site, operator, leader)
        time.sleep(0.1)
        if len(set(newest_versions(operator).values())) > 1:
            return hung_at
        # Too late: all of it was written.
        leader.resume()
        site.come_to_rest()
    raise AssertionError(f"in {_TRIES} tries no state commit was met")


def _hang_at_a_commit(site: Site, operator: Path, leader: Life) -> int:
    """Publish until a look meets a state commit, which takes milliseconds, and the leader hangs; returns when."""
    tree, torn, hung_at = leader.tree(), torn_commits(operator), list[int]()

    def hang_at_once() -> None:
        next(torn)
        leader.hang(tree)
        hung_at.append(now_ms())

    threading.Thread(target=hang_at_once, daemon=True).start()
    for _ in range(_TRIES):
        interval = site.publish()
        eventually(lambda: bool(hung_at) or site.decision(interval) is not None, "decided, or hung")  # noqa: B023
        if hung_at:
            return hung_at[0]
        site.come_to_rest()
    raise AssertionError(f"in {_TRIES} tries no state commit was met")
