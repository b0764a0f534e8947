"""`trimtab collect` with a folder for a log and a lock for an election: no server but the brokers."""

import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from controller.adapters.folder.group import FileGroup
from controller.adapters.pulsar.admin import Credentials, Tls
from controller.adapters.pulsar.load_data import PulsarLoadData
from controller.cli import collect as collect_cli
from controller.model.errors import TrimtabError
from controller.wire.metrics import NamespaceStateRecord, TickRecord, decode_metric
from controller.wire.sweep import ArrowSweep, BrokerSweep
from tests.contracts.collectors import CollectorGroupContract, Member
from tests.fake_pulsar import CLUSTER, FakePulsar, fake_pulsar
from tests.folders import collector_in

PERIOD_MS = 1000


def conf(folder: Path, pulsar: FakePulsar) -> Path:
    path = folder / "trimtab.toml"
    path.write_text(
        f"""
        cluster.name = "{CLUSTER}"
        intervals = {{period_seconds = {PERIOD_MS // 1000}}}
        log = {{kind = "folder", folder = {{path = "log"}}}}
        election = {{kind = "file", path = "election"}}
        checkpoint.path = "checkpoint"
        pulsar.admin_url = {json.dumps(pulsar.urls)}
        collector = {{deadline_share = 0.9}}
        """,
        encoding="utf-8",
    )
    return path


def collect_once(path: Path) -> None:
    app = typer.Typer()
    app.command()(collect_cli.collect)
    outcome = CliRunner().invoke(app, ["--conf", str(path), "--once"])
    if outcome.exception is not None:
        raise outcome.exception


def records(folder: Path) -> list[Any]:
    lines = [line for path in sorted((folder / "metrics").glob("*.jsonl")) for line in path.read_bytes().split(b"\n")]
    return [decode_metric(line, cluster=CLUSTER, period_ms=PERIOD_MS) for line in lines if line]


@pytest.mark.slow
def test_one_interval_after_the_other_lies_in_the_log_each_behind_its_sweeps(tmp_path: Path) -> None:
    with fake_pulsar(3) as pulsar:
        path = conf(tmp_path, pulsar)
        collect_once(path)
        collect_once(path)
        names = pulsar.names
    found = records(tmp_path / "log")
    ticks = [each for each in found if isinstance(each, TickRecord)]
    assert len(ticks) == 2
    assert ticks[0].interval < ticks[1].interval
    for tick in ticks:
        before = found[: found.index(tick)]
        sweeps = {each.sweep_id: each for each in before if isinstance(each, BrokerSweep)}
        roster = {entry.broker: entry.sweep_id for entry in tick.roster or ()}
        assert sorted(roster) == names
        for broker, sweep_id in roster.items():
            if sweep_id is not None:
                assert (sweeps[sweep_id].broker, sweeps[sweep_id].interval) == (broker, tick.interval)
    assert any(entry.sweep_id for entry in ticks[-1].roster or ())
    assert not any(isinstance(each, ArrowSweep) for each in found)


def test_the_one_that_takes_over_a_folder_knows_how_far_the_one_before_came(tmp_path: Path) -> None:
    old, new = (collector_in(tmp_path, cluster=CLUSTER) for _ in range(2))
    old.lead(0)
    state = NamespaceStateRecord(cluster=CLUSTER, namespace="lab/ns", version=1, boundaries=(0, 0xFFFFFFFF))
    old.tick(1000, {"a:8080": None})
    old.tick(2000, {"a:8080": "s"})
    old.publish([("lab/ns", state.model_dump_json(by_alias=True).encode())], 1.0)
    new.lead(0)
    assert [each.head.interval for each in new.arrived() if isinstance(each.head, TickRecord)] == [1000, 2000]
    assert list(new.arrived()) == []
    new.tick(3000, {"a:8080": None})
    assert [each.interval for each in records(tmp_path) if isinstance(each, TickRecord)] == [1000, 2000, 3000]


def test_an_error_of_the_disk_names_the_file_and_the_log_can_be_used_on(tmp_path: Path) -> None:
    state = NamespaceStateRecord(cluster=CLUSTER, namespace="lab/ns", version=1, boundaries=(0, 0xFFFFFFFF))
    record = ("lab/ns", state.model_dump_json(by_alias=True).encode())
    log = collector_in(tmp_path, cluster=CLUSTER)
    log.lead(0)
    log.publish([record], 1.0)
    away = (tmp_path / "metrics").rename(tmp_path / "away")
    failed = r"/metrics/.*: No such file or directory; make room"
    with pytest.raises(TrimtabError, match=failed):
        log.publish([record], 1.0)
    away.rename(tmp_path / "metrics")
    log.publish([record], 1.0)
    log.tick(1000, {})
    assert [each.interval for each in records(tmp_path) if isinstance(each, TickRecord)] == [1000]


class TestFileGroup(CollectorGroupContract):
    @pytest.fixture
    def member(self, tmp_path: Path) -> Iterator[Member]:
        with ExitStack() as members:

            def join() -> FileGroup:
                group = FileGroup(tmp_path)
                members.callback(group.leave)
                return group

            yield join


def test_on_one_machine_one_collector_works_and_the_next_one_when_it_has_left(tmp_path: Path) -> None:
    first, second = FileGroup(tmp_path), FileGroup(tmp_path)
    found = first.look()
    assert found.leads
    first.share({found.me: ["a:8080"]})
    assert first.look().share == ("a:8080",)
    assert not second.look().leads
    assert second.look().share == ()
    first.leave()
    assert second.look().leads
    second.leave()


def test_load_data_is_kept_until_it_is_renewed_and_for_a_while_after_it_was_withdrawn(
    caplog: pytest.LogCaptureFixture,
) -> None:
    asked = threading.Event()

    def nowhere() -> str:
        asked.set()
        raise TrimtabError("no service URL")

    load_data = PulsarLoadData(nowhere, Credentials, Tls())
    assert load_data.of("a:8080") is None
    load_data.receive("a:8080", b'{"updatedAt": 1}')
    load_data.receive("a:8080", b'{"updatedAt": 2}')
    assert load_data.of("a:8080") == {"updatedAt": 2}
    load_data.receive("a:8080", b"")
    load_data.receive("b:8080", b"")
    load_data.receive("c:8080", b"no json")
    assert load_data.of("a:8080") == {"updatedAt": 2}, "a bundle is on its way; resources have hardly changed"
    assert load_data.of("b:8080") is load_data.of("c:8080") is None
    assert asked.wait(5)
    load_data.close()
    assert any("not_json" in record.message for record in caplog.records)


def test_who_leads_by_a_lock_that_was_deleted_leads_no_more_before_it_has_the_new_one(tmp_path: Path) -> None:
    folder = tmp_path / "election"
    first, second = FileGroup(folder), FileGroup(folder)
    assert [first.look().leads, second.look().leads] == [True, False]
    rmtree(folder)
    assert [first.look().leads, second.look().leads, first.look().leads] == [False, True, False]
    second.leave()
    assert first.look().leads


def test_a_lock_that_cannot_be_taken_is_told_once_and_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    group = FileGroup(tmp_path / "election")
    (tmp_path / "election" / "lock").mkdir()  # so nobody can write there
    assert [group.look().leads for _ in range(2)] == [False, False]
    [told] = [record.message for record in caplog.records]
    assert "cannot determine which collector leads: " in told
    assert "lock cannot be locked: Is a directory" in told
    (tmp_path / "election" / "lock").rmdir()
    assert group.look().leads
