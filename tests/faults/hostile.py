"""What may lie on the topics of a site that nobody of ours wrote: records that nobody can use, and forged ones."""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import cycle

from controller.adapters.kafka.writer import Producer
from controller.lab.pulsar_server import CLUSTER
from controller.model.names import namespace_of
from controller.simulator.cluster import ModelledSweep
from controller.simulator.encode import json_records
from controller.wire.commands import command_event
from tests.bombs import Part, append, batch
from tests.commands import unload
from tests.faults.clock import eventually, now_ms
from tests.faults.poison import poison
from tests.faults.site import Site

#: Long after every record is appended, epoch ms: the year 2100.
_FUTURE_MS = 4_102_444_800_000
_THIEF_BROKER = "thief.example:8080"


def _bombs() -> tuple[bytes, ...]:
    """Record batches of 30, 250 and 200 KB that unpack to far more."""
    return (
        batch([Part(size=900 << 20)], "zstd"),
        batch([Part(size=7 << 20)] * 1000, "zstd"),
        batch([Part(size=200 << 20)], "gzip"),
    )


def poisoned(site: Site, _: object, __: int) -> float:
    """Every kind of poison in the metrics, results and commands topics, in the middle of an interval's sweeps.

    So are batches that unpack to more than a process has; of these some lie in the journal, too.
    """
    lives, before = _lives(site), site.log.dead_letters()
    values, bombs = list[bytes](), _bombs()
    topics = (site.kafka.metrics_topic, site.kafka.results_topic, site.kafka.commands_topic)

    def pour(sweeps: Sequence[ModelledSweep]) -> None:
        values.extend(each.value for each in poison(CLUSTER, sweeps[0]))
        partitions = cycle(range(2))
        for topic in topics:
            _write(site, topic, [(next(partitions), value) for value in values])
        for topic in (*topics, site.kafka.journal_topic):
            for bomb in bombs:
                append(site.kafka.bootstrap, topic, 0, bomb)

    at = now_ms()
    interval = site.publish(pour)
    recovery = (site.wait_for_decision(interval).at_ms - at) / 1000
    wanted = before + 2 * (len(values) + len(bombs))
    eventually(lambda: site.log.dead_letters() >= wanted, f"there are {wanted} dead letters")
    assert site.log.dead_letters() == wanted, "a dead letter for each record of metrics and results, and no more"
    assert _lives(site) == lives, "no process ended"
    return recovery


def forged_records(site: Site, _: object, __: int) -> float:
    """A made-up broker's sweep, records from the future, and a roster in a partition that has none."""

    def forge(sweeps: Sequence[ModelledSweep]) -> None:
        text = next(json_records(sweeps[0]))[1]
        fields, interval = json.loads(text), sweeps[0].interval
        made_up = fields | {"broker": _THIEF_BROKER, "sweepId": "forged"}
        from_the_future = made_up | {"lastUpdate": _FUTURE_MS}
        namespace = namespace_of(fields["bundleStats"][0]["bundle"])
        state = {"v": 1, "type": "namespace_state", "cluster": CLUSTER, "namespace": namespace}
        roster = [{"broker": _THIEF_BROKER, "sweepId": "forged"}]
        tick = {"v": 1, "type": "tick", "cluster": CLUSTER, "interval": interval}
        records = [
            made_up,
            from_the_future,
            fields | {"lastUpdate": _FUTURE_MS, "sweepId": "forged"},
            state | {"version": 2**62, "boundaries": ["0x00000000", "0xffffffff"]},
            tick | {"partitions": {"metrics": 2, "results": 2}, "roster": roster},
        ]
        _write(site, site.kafka.metrics_topic, [(1, json.dumps(each).encode()) for each in records])

    at = now_ms()
    interval = site.publish(forge)
    decided = site.wait_for_decision(interval)
    bundles, brokers = len(site.pulsar.cluster.bundle_loads()), len(site.pulsar.cluster.brokers)
    assert f"{bundles} bundles on {brokers} brokers" in decided.entry.decision.summary
    for command in decided.entry.decision.commands:
        assert {command.source, command.destination} <= set(site.pulsar.cluster.brokers)
    return (decided.at_ms - at) / 1000


def forged_command(site: Site, _: object, nth: int) -> float:
    """An unload of the next epoch that names a thief's address: answered failed, and nobody is called but brokers."""
    with _thief() as (address, calls):
        bundles = sorted(site.pulsar.cluster.bundle_loads())
        brokers, owner = site.pulsar.cluster.brokers, site.pulsar.cluster.owner(bundles[1])
        at = now_ms()
        forged = [
            unload(bundle, id=f"forged {at} {nth}", cluster=CLUSTER, expires_at_ms=_FUTURE_MS, **between)
            for nth, (bundle, between) in enumerate(
                [
                    (bundles[0], {"source": address, "destination": brokers[0]}),
                    (bundles[0], {"source": address, "destination": brokers[0], "mode": "dry_run"}),
                    (bundles[1], {"source": owner, "destination": address}),
                ]
            )
        ]
        epoch = site.leaders_epoch() + 1
        events = [command_event(each, epoch, at) for each in forged]
        site.forged |= {command.id for command in forged}
        _write(site, site.kafka.commands_topic, [(nth % 2, event) for event in events])
        for command in forged:
            eventually(lambda: site.answer(command.id) is not None, "the forged command is answered")  # noqa: B023
            answered = site.answer(command.id)
            assert answered is not None
            assert answered.result.status == "failed", answered.result
        assert not calls, f"{address} was called: {calls}"
        recovery = (now_ms() - at) / 1000
    # The forged epoch is the next leader's own: from then on nothing is fenced.
    site.leader().kill()
    return recovery


@contextmanager
def _thief() -> Iterator[tuple[str, list[str]]]:
    """A server that is no broker, and what it was asked."""
    calls: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            calls.append(f"{self.command} {self.path}, authorization {self.headers.get('Authorization')}")
            self.send_response(204)
            self.end_headers()

        do_GET = do_PUT = do_POST = do_DELETE = _answer  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Not to the output."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=[0.05], daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}", calls
    finally:
        server.shutdown()
        server.server_close()


def _lives(site: Site) -> list[int]:
    return [len(service.lives) for service in (*site.controllers, *site.executors)]


def _write(site: Site, topic: str, records: Sequence[tuple[int, bytes]]) -> None:
    """These values, each into the partition beside it, as anybody could write them."""
    producer = Producer(site.kafka.bootstrap)
    for partition, value in records:
        producer.send(topic, value, partition=partition)
    producer.flush()
