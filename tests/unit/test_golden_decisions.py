"""Whole decisions of small clusters, compared with those on file: a diff shows what a change decides otherwise.

A file NAME.json in tests/data/golden holds the options of broker.conf, the number of intervals, and bundle -> msg/s in
for each broker.  A broker is as busy as its msg/s are of ``capacity``.  Bundles go where commands send them.
NAME.decisions.json has what was decided; ``pytest --update-golden tests/unit/test_golden_decisions.py`` writes it anew.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest

from controller.aggregate.columns.rows import METRICS, RESULTS
from controller.engine import decide_interval
from controller.model.controls import Controls
from controller.model.decision import Command, Decision
from controller.model.names import namespace_of
from controller.settings.policy import read_policy
from controller.settings.trimtab_toml import read_settings
from controller.wire.results import decode_result
from controller.wire.rows import Located
from tests.folds import Shard, place
from tests.modelled_log import settings_in
from tests.records import CLUSTER, PERIOD, T, as_bytes, broker_sweep, namespace_state, result, tick

GOLDEN: Final = Path(__file__).parents[1] / "data" / "golden"
CASES: Final = sorted(path.stem for path in GOLDEN.glob("*.json") if not path.stem.endswith(".decisions"))
MESSAGE_BYTES: Final = 1024
#: Offsets of an interval's records: more than it has.
MANY: Final = 1000

#: Broker -> bundle -> msg/s in.
Cluster = dict[str, dict[str, float]]


@pytest.mark.parametrize("case", CASES)
def test_a_small_cluster_is_decided_as_before(case: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    told = json.loads((GOLDEN / f"{case}.json").read_text(encoding="utf-8"))
    decided = list(played(told, tmp_path))
    assert any(each["commands"] for each in decided), "a case in which nothing is done shows nothing"
    file = GOLDEN / f"{case}.decisions.json"
    if pytestconfig.getoption("update_golden"):
        file.write_text(json.dumps(decided, indent=2) + "\n", encoding="utf-8")
    assert decided == json.loads(file.read_text(encoding="utf-8"))


def played(case: Mapping[str, Any], folder: Path) -> Iterator[dict[str, Any]]:
    """Each interval's decision, in words."""
    options = "\n".join(f"{key}={value}" for key, value in case["broker.conf"].items())
    conf = settings_in(folder, broker_conf=options, more="guardrails.freeze_intervals = 0")
    policy = read_policy(read_settings(conf))
    shard, memory, results = Shard(), policy.initial_memory(seed=1), list[Located]()
    cluster: Cluster = {broker: dict(bundles) for broker, bundles in case["brokers"].items()}
    for number in range(case["intervals"]):
        interval = T + number * PERIOD
        roster = [{"broker": broker, "sweepId": f"{broker}@{interval}"} for broker in cluster]
        closing = tick(interval, partitions={"metrics": 1, "results": 1}, roster=roster)
        records = [*states(cluster, number), *sweeps(cluster, interval, case["capacity"]), closing]
        metrics = [place((METRICS, 0), number * MANY + nth, record) for nth, record in enumerate(records)]
        results.append(replace(metrics[-1], source=RESULTS, offset=number * MANY + len(results)))
        snapshots = shard.feed_places(*metrics, *results)
        entry = decide_interval(snapshots, memory, Controls(mode="active"), policy)
        memory = entry.memory
        yield in_words(number, entry.decision)
        answers = [carried_out(cluster, command) for command in entry.decision.commands]
        results = [answer(record, (number + 1) * MANY + nth) for nth, record in enumerate(answers)]


def answer(record: dict[str, Any], offset: int) -> Located:
    read = decode_result(as_bytes(record), cluster=CLUSTER, period_ms=PERIOD)
    return Located(source=RESULTS, partition=0, offset=offset, record=read)


def states(cluster: Cluster, version: int) -> Iterator[dict[str, Any]]:
    """The boundaries of each namespace."""
    boundaries: dict[str, set[str]] = {}
    for bundle in (bundle for bundles in cluster.values() for bundle in bundles):
        boundaries.setdefault(namespace_of(bundle), set()).update(bundle.rpartition("/")[2].split("_"))
    for namespace, found in sorted(boundaries.items()):
        yield namespace_state(namespace=namespace, version=version, boundaries=sorted(found))


def sweeps(cluster: Cluster, interval: int, capacity: float) -> Iterator[dict[str, Any]]:
    for broker, bundles in cluster.items():
        usage = {"usage": 100 * sum(bundles.values()) / capacity, "limit": 100.0}
        yield broker_sweep(
            broker,
            interval=interval,
            sweepId=f"{broker}@{interval}",
            lastUpdate=interval,
            numBundles=len(bundles),
            numTopics=2 * len(bundles),
            **rates(sum(bundles.values())),
            **dict.fromkeys(("cpu", "bandwidthIn", "bandwidthOut"), usage),
            bundleStats=[{"bundle": name, "totals": {**rates(rate), **COUNTS}} for name, rate in bundles.items()],
        )


COUNTS: Final = {"producerCount": 1, "consumerCount": 1, "topics": 2}


def rates(rate: float) -> dict[str, float]:
    size = rate * MESSAGE_BYTES
    return {"msgRateIn": rate, "msgRateOut": rate, "msgThroughputIn": size, "msgThroughputOut": size}


def carried_out(cluster: Cluster, command: Command) -> dict[str, Any]:
    """Do what *command* says, and answer it."""
    rate, namespace = cluster[command.source].pop(command.bundle), namespace_of(command.bundle)
    owner = command.destination or command.source
    if command.action == "unload":
        cluster[owner][command.bundle] = rate
    else:
        lower, upper = (int(edge, 16) for edge in command.bundle.rpartition("/")[2].split("_"))
        cuts = [lower, *(command.boundaries or ((lower + upper) // 2,)), upper]
        parts = [f"{namespace}/0x{first:08x}_0x{last:08x}" for first, last in pairwise(cuts)]
        cluster[owner].update(dict.fromkeys(parts, rate / len(parts)))
    return result(id=command.id, ownerBefore=command.source, ownerAfter=owner)


def in_words(number: int, decision: Decision) -> dict[str, Any]:
    def words(command: Command) -> str:
        how = f"to {command.destination}" if command.action == "unload" else f"by {command.algorithm}"
        why = f"{command.why.reason} {command.why.subject}, by {command.why.by}"
        return f"{command.action} {command.bundle} of {command.source} {how}: {why}"

    return {"interval": number, "summary": decision.summary, "commands": [*map(words, decision.commands)]}
