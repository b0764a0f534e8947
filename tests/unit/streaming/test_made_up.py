"""What a standby rehearses on are records as a collector writes them."""

from collections import Counter
from pathlib import Path

from controller.wire.metrics import decode_metric
from streaming.made_up import publish

PERIOD = 60_000


def test_a_rehearsal_has_good_records_of_every_interval(tmp_path: Path) -> None:
    assert publish(tmp_path, cluster="lab", period_ms=PERIOD, intervals=2) == len(list(tmp_path.glob("*/*.jsonl")))
    lines = [line for file in sorted(tmp_path.glob("metrics/*.jsonl")) for line in file.read_bytes().splitlines()]
    records = [decode_metric(line, cluster="lab", period_ms=PERIOD) for line in lines]
    assert Counter(type(record).__name__ for record in records) == {
        "NamespaceStateRecord": 1,
        "BrokerSweep": 4,
        "TickRecord": 2,
    }
