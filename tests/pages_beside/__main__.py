"""``python -m tests.pages_beside``: what the controller takes with three ``trimtab serve`` beside it, and with none.

A real Kafka, a real ``trimtab run`` that decides on a modelled cluster, and three servers, each with a page open: as in
a browser, the page is loaded anew whenever the server's stream of events says so.  In every second block the servers
stand still (SIGSTOP); the first intervals of a block do not count.  Printed are, for each block, the medians of the
CPU seconds that the controller's processes take for an interval and of its time from tick to decision; then the ratios
of the medians of all intervals, and of the pairs.  Left out: what the browser itself takes.
"""

import html
import os
import re
import signal
import statistics
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from http.client import HTTPException
from itertools import chain
from pathlib import Path
from tempfile import mkdtemp
from typing import Final, NamedTuple
from urllib.request import urlopen

from controller.adapters.process.process_tree import usage
from controller.bench.logs import InKafka, MeasuredLog
from controller.lab.processes import Processes
from controller.lab.servers import free_port, kafka_server
from controller.simulator.cluster import ClusterShape, ModelledCluster
from controller.simulator.encode import FORMS, namespace_record

_CLUSTER: Final = "beside"
_FORM: Final = "broker_sweep_arrow"
_SHAPE: Final = ClusterShape(brokers=60, bundles=1_000, topics=10_000)
_PERIOD_SECONDS: Final = 6
_SERVERS: Final = 3
#: Intervals before the first block: Java compiles what is hot.
_WARM_UP: Final = 30
#: Intervals of a block that count, and those before them that do not: the servers read what they missed.
_COUNTED: Final = 6
_SETTLE: Final = 2
_SUM: Final = "trimtab_tick_to_decision_seconds_sum"
_COUNT: Final = "trimtab_tick_to_decision_seconds_count"


class _Interval(NamedTuple):
    cpu_seconds: float
    latency_seconds: float


class _OpenPage:
    """The first page of a server as a browser keeps it open: each event that has news loads it anew."""

    def __init__(self, port: int) -> None:
        self._site = f"http://127.0.0.1:{port}"
        self._events = urlopen(self._site + self._load(), timeout=60)
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def _load(self) -> str:
        """Load the page; returns the address of its events."""
        with urlopen(f"{self._site}/", timeout=60) as answer:
            found = re.search(r'data-events="([^"]+)"', answer.read().decode())
        assert found is not None, "the page has no stream of events"
        return html.unescape(found[1])

    def _follow(self) -> None:
        with suppress(OSError, HTTPException, ValueError):  # the server ends with the block
            for line in self._events:
                if line.startswith(b"data:"):
                    self._load()


class _Site:
    """A controller on a log in Kafka, and a cluster whose load is published."""

    def __init__(self, folder: Path, bootstrap: str) -> None:
        self._log: MeasuredLog = InKafka(bootstrap).log(_FORM, 2, _CLUSTER)
        self._cluster = ModelledCluster(_SHAPE, seed=1, name=_CLUSTER)
        self._metrics, self._folder = free_port(), folder
        (folder / "broker.conf").write_text("")
        self.conf = self._settings(bootstrap, "trimtab", f'metrics.controller = "127.0.0.1:{self._metrics}"')
        self._interval_ms = 0

    def _settings(self, bootstrap: str, name: str, more: str) -> Path:
        topics = ("metrics", "results", "commands", "journal", "dead_letters", "summaries")
        names = "\n".join(f'{each}_topic = "{_FORM}-{each}"' for each in topics)
        path = self._folder / f"{name}.toml"
        path.write_text(
            f"""cluster = {{ name = "{_CLUSTER}", broker_conf = "broker.conf", pulsar = "4.0" }}
intervals = {{ period_seconds = {_PERIOD_SECONDS}, shards = 4 }}
checkpoint.path = "checkpoint"
election = {{ kind = "file", path = "election" }}
decisions.mode = "dry_run"
guardrails.brokers_balance_unknown = "ignore"
{more}
[spark]
master = "local[2]"
shuffle_partitions = 1
[log]
kind = "kafka"
[log.kafka]
bootstrap = "{bootstrap}"
partitions = 2
{names}
"""
        )
        return path

    @contextmanager
    def pages(self, bootstrap: str) -> Iterator[list[int]]:
        """Within the block servers run, each with a page open; yields their process groups."""
        with ExitStack() as stack:
            groups = []
            for number in range(_SERVERS):
                port = free_port()
                web = f'web = {{ listen = "127.0.0.1:{port}", anonymous = "viewer" }}'
                folder = self._folder / f"page-{number}"
                folder.mkdir()
                page = stack.enter_context(Processes(self._settings(bootstrap, f"page-{number}", web), folder))
                page.start("serve")
                page.wait_for("serve", "the page is at")
                groups.append(page.pid("serve"))
                _OpenPage(port)
            try:
                yield groups
            finally:
                _signal(groups, signal.SIGCONT)

    def interval(self) -> None:
        """Publish the next interval at its time."""
        period_ms = _PERIOD_SECONDS * 1000
        self._interval_ms = max(self._interval_ms + period_ms, time.time_ns() // 1_000_000 // period_ms * period_ms)
        time.sleep(max(0.0, self._interval_ms / 1000 - time.time()))
        states = [namespace_record(_CLUSTER, state) for state in self._cluster.changed_namespaces()]
        sweeps = list(self._cluster.sweeps(self._interval_ms))
        records = [*states, *chain.from_iterable(map(FORMS[_FORM], sweeps))]
        self._log.publish(records, self._interval_ms, {sweep.broker: sweep.sweep_id for sweep in sweeps})
        self._cluster.advance()

    def latency(self) -> tuple[float, int]:
        """Sum and number of the times from tick to decision so far."""
        with urlopen(f"http://127.0.0.1:{self._metrics}/metrics", timeout=60) as answer:
            lines = answer.read().decode().splitlines()
        values = {
            name: float(line.rsplit(" ", 1)[1]) for line in lines for name in (_SUM, _COUNT) if line.startswith(name)
        }
        return values.get(_SUM, 0.0), int(values.get(_COUNT, 0))


def _signal(groups: Iterable[int], number: int) -> None:
    for group in groups:
        os.killpg(group, number)


def _block(site: _Site, controller: int) -> list[_Interval]:
    for _ in range(_SETTLE):
        site.interval()
    found = []
    for _ in range(_COUNTED):
        # Half a period later the interval before is decided, and the servers have read that.
        time.sleep(_PERIOD_SECONDS / 2)
        cpu, (seconds, count) = usage(controller).cpu_seconds, site.latency()
        site.interval()
        time.sleep(_PERIOD_SECONDS / 2)
        cpu_after, (seconds_after, count_after) = usage(controller).cpu_seconds, site.latency()
        if count_after != count + 1:
            raise SystemExit("an interval without a decision: the controller was behind, and the figures say nothing")
        found.append(_Interval(cpu_after - cpu, seconds_after - seconds))
    return found


def _median(intervals: Iterable[_Interval]) -> _Interval:
    return _Interval(*map(statistics.median, zip(*intervals, strict=True)))


def _measured(site: _Site, controller: int, groups: Sequence[int], pairs: int) -> list[dict[bool, list[_Interval]]]:
    """Intervals of each pair, without servers and with them."""
    found = []
    for number in range(pairs):
        pair = {}
        for beside in (False, True) if number % 2 == 0 else (True, False):
            _signal(groups, signal.SIGCONT if beside else signal.SIGSTOP)
            pair[beside] = _block(site, controller)
            cpu, latency = _median(pair[beside])
            print(
                f"pair {number + 1}, {_SERVERS if beside else 0} servers:"
                f" {cpu:.3f} s of CPU an interval, {latency:.3f} s from tick to decision",
                flush=True,
            )
        found.append(pair)
    return found


def main(pairs: int) -> None:
    """Measure so many pairs, each the other way round than the one before."""
    folder = Path(mkdtemp(prefix="pages-beside-"))
    with kafka_server(folder / "kafka") as kafka:
        site = _Site(folder, kafka.bootstrap)
        with Processes(site.conf, folder) as processes:
            processes.start("run")
            for _ in range(_WARM_UP):
                site.interval()
                processes.check()
            with site.pages(kafka.bootstrap) as groups:
                found = _measured(site, processes.pid("run"), groups, pairs)
    ratios = [[a / b for a, b in zip(_median(each[True]), _median(each[False]), strict=True)] for each in found]
    with_servers, without = (_median(chain.from_iterable(each[beside] for each in found)) for beside in (True, False))
    for name, beside, alone, of_pairs in zip(
        ("CPU an interval", "tick to decision"), with_servers, without, zip(*ratios, strict=True), strict=True
    ):
        print(
            f"{name}: {alone:.3f} s, ratio of medians {beside / alone:.3f},"
            f" of pairs: median {statistics.median(of_pairs):.3f}, {min(of_pairs):.3f} to {max(of_pairs):.3f}"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
