"""An executor that knows its controllers' keys carries out what they signed, and refuses everything else by name."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from controller.executor.judge import Observation
from controller.executor.loop import Executor
from controller.model.decision import Command
from controller.settings.trimtab_toml import ExecutorSettings
from controller.wire.command_signatures import signed_bytes
from controller.wire.commands import command_event, epoch_event
from controller.wire.ed25519 import SigningKey
from controller.wire.results import Result, decode_result
from tests.commands import QUARTERS, B, C, T, split, unload
from tests.folders import inbox_in
from tests.unit.executor.test_executor_loop import BUNDLES, Owners, remembered, write

KEY, ANOTHER = SigningKey.new(), SigningKey.new()
CLUSTER = "standalone"
REFUSED = ("refused", "no key in [approvals.controllers] made its signature")


def issued(command: Command, *, epoch: int = 1, signed: Command | None = None, signed_epoch: int = 1) -> bytes:
    """The event of *command* with the signature for *signed*, which is the same unless it is given."""
    signature = KEY.sign(signed_bytes(signed or command, signed_epoch))
    return command_event(command, epoch, T, signature)


def play(
    folder: Path, cluster: Owners, keys: Sequence[bytes] = (ANOTHER.public, KEY.public), *, dry_run: bool = False
) -> list[tuple[str, str, str]]:
    """Execute all that there is; the results: id, status and detail."""
    inbox = inbox_in(folder, cluster=CLUSTER)
    settings = ExecutorSettings(max_per_second=1000.0, attempts=2, dry_run=dry_run)
    executor = Executor(inbox, cluster, settings, name=CLUSTER, now_ms=lambda: T, controller_keys=keys)
    try:
        while executor.step():
            pass
    finally:
        inbox.close()
    lines = [line for path in sorted((folder / "results").glob("*.jsonl")) for line in path.read_bytes().splitlines()]
    read = [decode_result(line, cluster=CLUSTER, period_ms=60_000) for line in lines]
    return [(each.id, each.status, each.detail) for each in read if isinstance(each, Result)]


def test_what_a_controller_signed_is_carried_out(tmp_path: Path) -> None:
    cluster, command = Owners(), unload(BUNDLES[0])
    write(tmp_path, "1", epoch_event(CLUSTER, 1, T), issued(command))
    assert [each[:2] for each in play(tmp_path, cluster)] == [(command.id, "done")]


def test_without_keys_in_the_settings_a_signature_does_not_matter(tmp_path: Path) -> None:
    cluster, commands = Owners(), [unload(bundle) for bundle in BUNDLES]
    write(tmp_path, "1", issued(commands[0]), command_event(commands[1], 1, T), issued(commands[2], signed_epoch=9))
    assert {each[1] for each in play(tmp_path, cluster, ())} == {"done"}


def test_an_unsigned_command_is_refused_with_a_result_that_says_so(tmp_path: Path) -> None:
    cluster, command = Owners(), unload(BUNDLES[0])
    write(tmp_path, "1", command_event(command, 1, T))
    detail = "it is not signed, and [approvals.controllers] names who signs"
    assert play(tmp_path, cluster) == [(command.id, "refused", detail)]
    assert cluster.acted == []


COMMAND = unload(BUNDLES[0])


@pytest.mark.parametrize(
    "event",
    [
        issued(replace(COMMAND, destination=C), signed=COMMAND),
        issued(replace(COMMAND, destination=""), signed=COMMAND),
        issued(replace(COMMAND, source=B), signed=COMMAND),
        issued(replace(COMMAND, bundle=BUNDLES[1]), signed=COMMAND),
        issued(replace(COMMAND, expires_at_ms=COMMAND.expires_at_ms + 1), signed=COMMAND),
        issued(replace(COMMAND, id="another"), signed=COMMAND),
        issued(COMMAND, signed=replace(COMMAND, mode="dry_run")),
        issued(COMMAND, signed=replace(COMMAND, cluster="another")),
        issued(COMMAND, epoch=2, signed_epoch=1),
        issued(replace(split(BUNDLES[0]), unload_after_split=True), signed=split(BUNDLES[0])),
        issued(split(BUNDLES[0]), signed=replace(split(BUNDLES[0]), boundaries=(0x50000000,))),
        command_event(COMMAND, 1, T, SigningKey.new().sign(signed_bytes(COMMAND, 1))),
        command_event(COMMAND, 1, T, "no signature at all"),
        command_event(COMMAND, 1, T, KEY.sign(signed_bytes(COMMAND, 1)).rstrip("=")),
        command_event(COMMAND, 1, T, "A" * 100_000),
    ],
)
def test_a_command_that_is_not_what_was_signed_is_refused(tmp_path: Path, event: bytes) -> None:
    cluster = Owners()
    write(tmp_path, "1", event)
    assert [each[1:] for each in play(tmp_path, cluster)] == [REFUSED]
    assert cluster.acted == []


def test_a_forged_command_does_not_take_the_place_of_the_controllers_with_the_same_id(tmp_path: Path) -> None:
    cluster, command = Owners(), unload(BUNDLES[0])
    write(tmp_path, "1", command_event(replace(command, destination=C), 1, T))
    play(tmp_path, cluster)
    write(tmp_path, "2", command_event(command, 1, T), issued(command))  # by an executor that reads the results anew
    assert [each[1] for each in play(tmp_path, cluster)] == ["refused", "refused", "done"]
    assert cluster.acted == [command.id]


def test_a_signed_command_that_comes_again_is_not_carried_out_again(tmp_path: Path) -> None:
    cluster, command = Owners(), unload(BUNDLES[0])
    write(tmp_path, "1", issued(command), issued(command))
    assert [each[1] for each in play(tmp_path, cluster)] == ["done"]


def test_what_an_executor_began_before_it_knew_of_keys_is_unknown_and_not_refused(tmp_path: Path) -> None:
    cluster, command = Owners(), unload(BUNDLES[0])
    write(tmp_path, "1", command_event(command, 1, T))
    inbox = inbox_in(tmp_path, cluster=CLUSTER)
    assert inbox.poll(1, 0.0)
    inbox.begin(0, command.id)
    inbox.close()
    assert [each[1] for each in play(tmp_path, cluster)] == ["unknown"]
    assert remembered(tmp_path)["begun"] == []


def test_a_forged_command_that_is_said_to_be_begun_places_no_bundle(tmp_path: Path) -> None:
    """The state that says so is in the log, and for a command that was begun a bundle without an owner is looked up."""
    cluster, command, looked = Owners(), unload(BUNDLES[0]), list[str]()

    def look(command: Command) -> Observation:
        looked.append(command.id)
        return Observation(boundaries=QUARTERS, owner="")

    cluster.look = cluster.look_after = look  # type: ignore[method-assign]
    write(tmp_path, "1", command_event(command, 1, T))
    inbox = inbox_in(tmp_path, cluster=CLUSTER)
    assert inbox.poll(1, 0.0)
    inbox.begin(0, command.id)
    inbox.close()
    assert [each[1] for each in play(tmp_path, cluster)] == ["unknown"]
    assert looked == []


@pytest.mark.parametrize(("signed", "status"), [(True, "dry_run"), (False, "refused")])
def test_a_dry_run_shows_what_would_be_refused(tmp_path: Path, signed: bool, status: str) -> None:
    cluster, command = Owners(), unload(BUNDLES[0])
    write(tmp_path, "1", issued(command) if signed else command_event(command, 1, T))
    assert [each[1] for each in play(tmp_path, cluster, dry_run=True)] == [status]


def test_what_only_people_read_may_be_another_text(tmp_path: Path) -> None:
    event = json.loads(issued(unload(BUNDLES[0])))
    event["data"]["explanation"]["detail"] = "written by somebody else"
    event["aFieldOfALaterRelease"] = 1
    write(tmp_path, "1", json.dumps(event).encode())
    assert [each[1] for each in play(tmp_path, Owners())] == ["done"]
