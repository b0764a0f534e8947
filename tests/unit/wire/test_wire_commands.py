"""Commands as CloudEvents, results, and dead letters."""

import hashlib
import json
from dataclasses import replace
from typing import Any

import pytest

from controller.model.decision import Command
from controller.model.errors import WireError
from controller.wire.base import encode
from controller.wire.commands import (
    EpochEvent,
    SplitEvent,
    UnloadEvent,
    command_data,
    command_event,
    command_key,
    epoch_event,
    own_event,
    parse_event,
    to_command,
)
from controller.wire.dead_letter import DeadLetter, Source
from controller.wire.metrics import TickRecord
from controller.wire.results import Result, decode_result
from tests.journal_entries import SPLIT, UNLOAD
from tests.records import CLUSTER, LEFT, PERIOD, T, as_bytes, dead_letter_of, result, tick, topic_stats, without


def test_an_unload_is_a_cloud_event_that_explains_itself() -> None:
    assert json.loads(command_event(UNLOAD, 7, T + 1234)) == {
        "specversion": "1.0",
        "id": UNLOAD.id,
        "source": "/trimtab/demo",
        "type": "trimtab.unload",
        "subject": LEFT,
        "time": "2025-01-01T00:00:01.234000Z",
        "datacontenttype": "application/json",
        "epoch": 7,
        "data": {
            "cluster": CLUSTER,
            "interval": T,
            "issuedAt": T,
            "expiresAt": T + 300_000,
            "mode": "active",
            "preconditions": {"sourceBroker": "broker-1:8080", "bundle": ["0x00000000", "0x80000000"]},
            "reason": "Overloaded",
            "explanation": {
                "subject": "broker-1:8080",
                "observed": 0.9,
                "limit": 0.6,
                "unit": "usage",
                "strategy": "ThresholdShedder",
                "detail": "",
            },
            "destinationBroker": "broker-2:8080",
        },
    }


def test_events_of_other_clusters_are_passed_over_whatever_else_is_wrong_with_them() -> None:
    own = command_event(UNLOAD, 7, T)
    assert own_event(own, CLUSTER) == parse_event(own)
    assert own_event(own, "other") is None
    assert own_event(b'{"type":"trimtab.merge","data":{"cluster":"other"}}', CLUSTER) is None
    for wrong in (b'{"type":"trimtab.merge","data":{"cluster":"demo"}}', b'{"type":"trimtab.merge","data":[]}', b"{"):
        with pytest.raises(WireError):
            own_event(wrong, CLUSTER)


def test_a_split_says_how_and_where() -> None:
    data = json.loads(command_event(SPLIT, 7, T))["data"]
    assert data["algorithm"] == "range_equally_divide"
    assert data["boundaries"] == ["0xc0000000"]
    assert data["unloadAfterSplit"] is True


@pytest.mark.parametrize(
    "command",
    [UNLOAD, SPLIT, replace(UNLOAD, destination=""), replace(SPLIT, boundaries=(), unload_after_split=False)],
)
def test_a_command_comes_back_from_its_event_and_from_the_journal_as_it_was(command: Command) -> None:
    event = parse_event(command_event(command, 7, T + 1234))
    assert isinstance(event, UnloadEvent | SplitEvent)
    assert (event.epoch, event.time_ms) == (7, T + 1234)
    assert to_command(event) == command
    assert to_command(command_data(command)) == command


def test_an_unload_has_nothing_to_unload_after_a_split() -> None:
    event = parse_event(command_event(UNLOAD, 1, T))
    assert not isinstance(event, EpochEvent)
    assert to_command(event).unload_after_split is False


def test_what_is_journalled_has_neither_epoch_nor_time() -> None:
    journalled = json.loads(encode(command_data(UNLOAD)))
    assert set(journalled) == {"id", "type", "subject", "data"}


def test_commands_of_a_namespace_share_a_key() -> None:
    assert command_key(UNLOAD) == command_key(SPLIT) == "tenant/ns"


def test_an_epoch_is_announced_to_the_whole_cluster() -> None:
    event = parse_event(epoch_event(CLUSTER, 8, T))
    assert isinstance(event, EpochEvent)
    assert (event.subject, event.data.cluster, event.data.epoch, event.epoch) == (CLUSTER, CLUSTER, 8, 8)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"type": "trimtab.drop"}, "unknown_type"),
        ({"specversion": "0.3"}, "bad_value"),
        ({"time": "yesterday"}, "bad_value"),
        ({"time": "2025-01-01T00:00:00"}, "bad_value"),  # no offset: whose midnight?
        ({"epoch": -1}, "bad_value"),
        ({"subject": "tenant/ns"}, "impossible_bundle"),
    ],
)
def test_an_event_that_cannot_be_meant_is_refused(change: dict[str, Any], reason: str) -> None:
    event = {**json.loads(command_event(UNLOAD, 7, T)), **change}
    with pytest.raises(WireError) as caught:
        parse_event(as_bytes(event))
    assert caught.value.reason == reason


def decode(record: Any) -> Result | TickRecord | None:
    return decode_result(as_bytes(record), cluster=CLUSTER, period_ms=PERIOD, append_time_ms=T)


def test_the_result_topic_holds_results_and_ticks() -> None:
    assert isinstance(decode(result()), Result)
    assert isinstance(decode(tick(roster=None)), TickRecord)
    assert decode(result(cluster="other")) is None


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (result(status="perhaps"), "bad_value"),
        (without(result(), "status"), "missing_field"),
        (result(attempts=-1), "bad_value"),
        (topic_stats(), "unknown_type"),
        (tick(T + 1), "misaligned_interval"),
        (tick(T + 2 * PERIOD), "future_interval"),
    ],
)
def test_a_bad_result_is_refused_with_its_reason(record: Any, reason: str) -> None:
    with pytest.raises(WireError) as caught:
        decode(record)
    assert caught.value.reason == reason


def test_a_dead_letter_keeps_what_is_needed_to_find_and_understand_the_record() -> None:
    source = Source(topic="trimtab-metrics", partition=3, offset=42)
    letter = dead_letter_of(b'{"v":2', WireError("not_json", "EOF"), source)
    read = DeadLetter.model_validate_json(encode(letter))
    assert read == letter
    assert (read.reason, read.detail, read.source, read.size) == ("not_json", "EOF", source, 6)
    assert read.sha256 == hashlib.sha256(b'{"v":2').hexdigest()
    assert read.truncated == b'{"v":2'
    assert json.loads(encode(letter))["bytes"] == "eyJ2Ijoy"


def test_of_a_huge_record_the_dead_letter_keeps_the_first_64_kib_and_the_hash_of_all() -> None:
    huge = b"x" * 65_536 + b"y" * 1_000_000
    letter = dead_letter_of(huge, WireError("too_large"), Source(file="metrics/1.jsonl", offset=0))
    assert letter.truncated == b"x" * 65_536
    assert letter.size == len(huge)
    assert letter.sha256 == hashlib.sha256(huge).hexdigest()
