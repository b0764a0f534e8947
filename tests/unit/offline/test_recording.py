"""A recording becomes a log with ticks."""

import json
import os
from pathlib import Path

import pytest

from controller.model.errors import SettingsError, TrimtabError
from controller.offline.recording import lines_of, recorded_files, write_ticks
from controller.wire.readable import utc
from tests.records import CLUSTER, PERIOD, SAMPLES, T, as_bytes, broker_sweep, namespace_state, tick


def lines(folder: Path) -> list[bytes]:
    return [line for path in sorted((folder / "metrics").glob("*.jsonl")) for line in path.read_bytes().splitlines()]


def kinds(folder: Path) -> list[str]:
    return [json.loads(line).get("type", "report") for line in lines(folder)]


def test_sweeps_are_copied_as_they_are_with_a_tick_behind_each_interval(tmp_path: Path) -> None:
    source, target = tmp_path / "from", tmp_path / "to"
    source.mkdir()
    sweeps = [as_bytes(broker_sweep(broker, interval=T + i * PERIOD)) for i in range(2) for broker in ("a:1", "b:1")]
    (source / "1.jsonl").write_bytes(as_bytes(namespace_state()) + b"\n" + sweeps[0] + b"\n")
    (source / "2.jsonl").write_bytes(b"\n".join(sweeps[1:]) + b"\n\nnot json\n")
    assert write_ticks(source, target, cluster=CLUSTER, period_ms=PERIOD) == 2

    assert [line for line in lines(target) if b'"tick"' not in line] == [
        as_bytes(namespace_state()),
        *sweeps,
        b"not json",
    ]
    ticks = [i for i, line in enumerate(lines(target)) if b'"tick"' in line]
    assert ticks == [3, 6]
    assert [json.loads(lines(target)[i])["interval"] for i in ticks] == [T, T + PERIOD]


def test_load_reports_saved_from_real_brokers_are_a_recording(tmp_path: Path) -> None:
    assert write_ticks(SAMPLES, tmp_path, cluster=CLUSTER, period_ms=PERIOD) >= 1
    reports = [line for line in lines(tmp_path) if b"loadReportType" in line]
    assert len(reports) == 5
    last = json.loads(lines(tmp_path)[-1])
    assert last["type"] == "tick"
    assert [each["broker"] for each in last["roster"]] == ["127.0.0.1:18080", "127.0.0.1:18081", "127.0.0.1:18082"]


def test_a_log_of_trimtab_is_read_where_its_metrics_lie(tmp_path: Path) -> None:
    (tmp_path / "from" / "metrics").mkdir(parents=True)
    (tmp_path / "from" / "metrics" / "1.jsonl").write_bytes(as_bytes(broker_sweep()) + b"\n")
    write_ticks(tmp_path / "from", tmp_path / "to", cluster=CLUSTER, period_ms=PERIOD)
    assert kinds(tmp_path / "to") == ["broker_sweep", "tick"]


@pytest.mark.parametrize(
    ("records", "told"),
    [
        ([namespace_state()], "neither sweeps nor load reports of cluster 'demo'"),
        ([broker_sweep(cluster="other")], "neither sweeps nor load reports of cluster 'demo'"),
        ([broker_sweep(), tick()], f"has ticks already, the first for {utc(T)}"),
    ],
)
def test_a_recording_that_cannot_be_ticked_says_why(tmp_path: Path, records: list[object], told: str) -> None:
    (tmp_path / "1.jsonl").write_bytes(b"\n".join(map(as_bytes, records)))
    with pytest.raises(TrimtabError, match=told) as raised:
        write_ticks(tmp_path, tmp_path / "to", cluster=CLUSTER, period_ms=PERIOD)
    assert isinstance(raised.value, SettingsError) or "ticks" in told  # as where `decide` reads it


def test_ticks_do_not_go_into_a_log_that_is_there_already(tmp_path: Path) -> None:
    write_ticks(SAMPLES, tmp_path, cluster=CLUSTER, period_ms=PERIOD)
    with pytest.raises(TrimtabError, match="holds a log already"):
        write_ticks(SAMPLES, tmp_path, cluster=CLUSTER, period_ms=PERIOD)


def test_files_and_documents_that_are_too_large_are_not_read_and_pipes_in_a_folder_not_waited_for(
    tmp_path: Path,
) -> None:
    large, document = tmp_path / "a.jsonl", tmp_path / "b.json"
    for path, size in ((large, (1 << 30) + 1), (document, (64 << 20) + 1)):
        with path.open("wb") as file:
            file.truncate(size)
        with pytest.raises(SettingsError, match=f"{path}: has "):
            next(lines_of(path))
    os.mkfifo(tmp_path / "c.jsonl")
    assert recorded_files(tmp_path) == [large, document]


def test_of_many_other_clusters_some_are_named(tmp_path: Path) -> None:
    """Whoever writes records can name any number of them."""
    (tmp_path / "1.jsonl").write_bytes(b"\n".join(as_bytes(broker_sweep(cluster=f"c{n:02}")) for n in range(12)))
    with pytest.raises(TrimtabError) as refused:
        write_ticks(tmp_path, tmp_path / "to", cluster=CLUSTER, period_ms=PERIOD)
    assert str(refused.value).endswith("'c08', 'c09' and 2 more: name one with --cluster")
