"""Bundles that came to other brokers, and which of them no command explains."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from controller.aggregate.snapshot import Snapshot
from controller.audit.owner_changes import OwnerWatch, may_lead_to
from controller.audit.seen_load import SeenLoad
from controller.model.decision import Command
from controller.model.memory import InFlight
from controller.model.resource_usage import ResourceWeights
from tests.audits import LEFT, MINUTE, RIGHT, SPACE, at, interval, move

USAGE = {"b-1": 50.0, "b-2": 50.0, "b-3": 50.0}


def seen(minute: int, owners: Mapping[str, str], gone: tuple[str, ...] = ()) -> SeenLoad:
    snapshot = interval(minute, USAGE, {name: (owner, 100.0) for name, owner in owners.items()}, gone=gone)
    return SeenLoad.of([snapshot], ResourceWeights())


def changes(*steps: SeenLoad, issued: tuple[Command, ...] = ()) -> list[tuple[str, str, str, str]]:
    """Of the last of *steps*; *issued* before the second one."""
    watch, found = OwnerWatch(MINUTE), []
    for number, step in enumerate(steps):
        for command in issued if number == 1 else ():
            watch.issued(InFlight.of(command), parts_leave=command.unload_after_split)
        found = watch.take(step)
    return [(each.bundle, each.source, each.destination, each.why) for each in found]


def test_a_bundle_that_nobody_commanded_was_moved_by_others() -> None:
    before, after = seen(0, {LEFT: "b-1", RIGHT: "b-2"}), seen(1, {LEFT: "b-3", RIGHT: "b-2"})
    assert changes(before, after) == [(LEFT, "b-1", "b-3", "others")]
    assert changes(after) == []


def test_bundles_of_a_broker_that_left_follow_that() -> None:
    before, after = seen(0, {LEFT: "b-1", RIGHT: "b-2"}), seen(1, {LEFT: "b-3", RIGHT: "b-2"}, gone=("b-1",))
    assert changes(before, after) == [(LEFT, "b-1", "b-3", "broker_left")]


@pytest.mark.parametrize("away", [1, 59])
def test_a_bundle_that_nobody_listed_for_a_while_has_changed_its_broker(away: int) -> None:
    steps = [seen(0, {LEFT: "b-1"}), *(seen(1 + i, {}) for i in range(away))]
    assert changes(*steps, seen(1 + away, {LEFT: "b-2"})) == [(LEFT, "b-1", "b-2", "others")]
    assert changes(*steps, seen(1 + away, {LEFT: "b-1"})) == []


def test_a_bundle_that_nobody_listed_for_longer_than_an_hour_is_new() -> None:
    steps = [seen(0, {LEFT: "b-1"}), *(seen(1 + i, {}) for i in range(62))]
    assert changes(*steps, seen(64, {LEFT: "b-2"})) == []


@pytest.mark.parametrize(
    ("command", "explained"),
    [
        (move(0, LEFT, "b-1", "b-3"), True),
        (move(0, LEFT, "b-1", "b-2"), True),  # it went astray, but on a command
        (move(0, LEFT, "b-2", "b-3"), False),
        (move(0, LEFT, "b-1", "b-3", mode="dry_run"), False),
        (replace(move(0, LEFT, "b-1", "b-3"), expires_at_ms=at(-3)), False),
        (move(2, LEFT, "b-1", "b-3"), False),
        (move(0, RIGHT, "b-1", "b-3"), False),
        (replace(move(0, f"{SPACE}/0x00000000_0xffffffff", "b-1", ""), action="split", unload_after_split=True), True),
        (replace(move(0, f"{SPACE}/0x00000000_0xffffffff", "b-1", ""), action="split"), False),
        (replace(move(0, RIGHT, "b-1", ""), action="split", unload_after_split=True), False),
    ],
)
def test_a_command_explains_a_change_from_its_source_while_it_may_be_carried_out(
    command: Command, explained: bool
) -> None:
    found = changes(seen(0, {LEFT: "b-1"}), seen(1, {LEFT: "b-3"}), issued=(command,))
    assert (found == []) is explained


def test_a_command_may_lead_to_a_change_up_to_three_intervals_after_it_expired() -> None:
    command = move(0, LEFT, "b-1", "b-3")  # expires in minute 5
    assert [may_lead_to(command, "b-1", at(minute), MINUTE) for minute in (0, 1, 8, 9)] == [False, True, True, False]


def test_a_bundle_that_left_on_a_command_may_come_back_long_after_that_expired() -> None:
    away = [seen(minute, {}) for minute in range(1, 40)]
    steps = [seen(0, {LEFT: "b-1"}), *away, seen(40, {LEFT: "b-2"})]
    assert changes(*steps, issued=(move(0, LEFT, "b-1", "b-3"),)) == []
    assert changes(*steps, issued=(move(0, RIGHT, "b-1", "b-3"),)) == [(LEFT, "b-1", "b-2", "others")]


def test_halves_of_a_bundle_are_new() -> None:
    halves = {f"{SPACE}/0x00000000_0x40000000": "b-3", f"{SPACE}/0x40000000_0x80000000": "b-2"}
    assert changes(seen(0, {LEFT: "b-1", RIGHT: "b-1"}), seen(1, {**halves, RIGHT: "b-1"})) == []


def test_shards_make_no_difference() -> None:
    """A bundle is always in the same shard; rosters are those of all."""
    before, after = {LEFT: "b-1", RIGHT: "b-2"}, {LEFT: "b-3", RIGHT: "b-2"}

    def shards(minute: int, owners: Mapping[str, str]) -> SeenLoad:
        parts: list[Snapshot] = []
        for number, bundle in enumerate((LEFT, RIGHT)):
            whole = interval(minute, USAGE, {bundle: (owners[bundle], 100.0)})
            brokers = whole.brokers if number == 0 else ()
            parts.append(replace(whole, shard=number, shards=2, brokers=brokers))
        return SeenLoad.of(parts[::-1], ResourceWeights())

    assert changes(shards(0, before), shards(1, after)) == changes(seen(0, before), seen(1, after))
    whole, parts = seen(0, before).brokers, shards(0, before).brokers
    assert np.array_equal(whole.load, parts.load)
    assert np.array_equal(whole.usage, parts.usage)


@pytest.mark.parametrize("left", ["b-1", "b-2", "b-3"])
@pytest.mark.parametrize("to", ["b-1", "b-2", "b-3"])
def test_bundles_of_any_broker_that_left_are_seen_on_any_other(left: str, to: str) -> None:
    if left == to:
        return
    found = changes(seen(0, {LEFT: left, RIGHT: to}), seen(1, {LEFT: to, RIGHT: to}, gone=(left,)))
    assert found == [(LEFT, left, to, "broker_left")]


def test_a_command_explains_what_is_seen_after_it_expired_also_where_intervals_went_by() -> None:
    # It expires in minute 5; up to minute 8 it may be why.
    command = move(0, LEFT, "b-1", "b-3")
    stays = [seen(minute, {LEFT: "b-1"}) for minute in range(8)]
    assert changes(*stays, seen(8, {LEFT: "b-3"}), issued=(command,)) == []
    assert changes(*stays, seen(8, {LEFT: "b-1"}), seen(9, {LEFT: "b-3"}), issued=(command,)) == [
        (LEFT, "b-1", "b-3", "others")
    ]
