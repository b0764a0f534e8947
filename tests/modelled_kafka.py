"""What a modelled cluster and a controller left in a real Kafka: load, results and journal."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from controller.lab.servers import KafkaServer
from controller.log.factory import log_system
from controller.model.journal import JournalEntry
from controller.settings.trimtab_toml import Settings, read_settings
from controller.wire.base import read_object
from tests.kafka_log import as_toml, named_topics
from tests.modelled_log import played, settings_in
from tests.records import CLUSTER, T

#: A strategy that moves something in nearly every interval.
EAGER: Final = """loadBalancerLoadSheddingStrategy=UniformLoadShedder
minUnloadMessage=1
minUnloadMessageThroughput=1
maxUnloadPercentage=0.5
"""


def settings_on(kafka: KafkaServer, folder: Path) -> Path:
    """A settings file in *folder*, of a log in topics of its own."""
    (folder / "broker.conf").write_text(EAGER, encoding="utf-8")
    path = folder / "trimtab.toml"
    path.write_text(
        f"""cluster.name = "{CLUSTER}"
election = {{kind = "file", path = "election"}}
checkpoint.path = "checkpoint"
guardrails.brokers_balance_unknown = "ignore"
[log]
kind = "kafka"
[log.kafka]
{as_toml(named_topics(kafka.bootstrap))}
""",
        encoding="utf-8",
    )
    return path


def played_on(kafka: KafkaServer, folder: Path, intervals: int, start: int = T) -> tuple[Settings, list[JournalEntry]]:
    """Play *intervals*; the settings are folder/kafka/trimtab.toml.  The same log lies in folder/folder, too."""
    (folder / "folder").mkdir()
    (folder / "kafka").mkdir()
    entries = played(settings_in(folder / "folder", broker_conf=EAGER), intervals, start=start)
    settings = read_settings(settings_on(kafka, folder / "kafka"))
    system = log_system(settings)
    metrics, journal = system.metrics(), system.journal()
    journal.open()
    journal.begin_epoch(1)
    results = dict(_values(folder / "folder", "results"))
    for (interval, records), entry in zip(_values(folder / "folder", "metrics"), entries, strict=True):
        metrics.publish((str(number), value) for number, value in enumerate(records))
        metrics.results((str(number), value) for number, value in enumerate(results[interval]))
        metrics.tick(interval, _roster(folder / "folder", interval))
        journal.append(entry, epoch=1, issued_at_ms=interval, before_commit=lambda: None)
    return settings, entries


def _values(folder: Path, topic: str) -> Iterator[tuple[int, list[bytes]]]:
    """The interval of each tick, and the records before it; T + intervals behind the last tick."""
    found: list[bytes] = []
    for path in sorted((folder / "log" / topic).glob("*.jsonl")):
        for value in path.read_bytes().splitlines():
            fields = read_object(value)
            if fields["type"] == "tick":
                yield fields["interval"], found
                found = []
            else:
                found.append(value)


def _roster(folder: Path, interval: int) -> dict[str, str | None]:
    lines = (line for path in sorted((folder / "log" / "metrics").glob("*.jsonl")) for line in path.open())
    ticks = [fields for fields in map(json.loads, lines) if fields["type"] == "tick"]
    roster = next(tick["roster"] for tick in ticks if tick["interval"] == interval)
    return {each["broker"]: each["sweepId"] for each in roster}
