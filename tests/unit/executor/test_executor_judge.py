import pytest

from controller.executor.judge import Answer, Failure, Observation, after, before, children, refusal
from controller.model.decision import Command
from tests.commands import BUNDLE, QUARTERS, A, B, C, T, split, unload

OWNED = Observation(boundaries=QUARTERS, owner=A)
HALVED = Observation(boundaries=(0, 0x40000000, 0x60000000, 0x80000000, 0xC0000000, 0xFFFFFFFF))
NO_NAMESPACE = Observation(boundaries=())
TIMEOUT = Failure(detail="no answer")
REFUSED = Failure(detail="no connection", sent=False)


def failure(status: int) -> Failure:
    return Failure(detail=f"HTTP {status}", status=status)


def at(owner: str) -> Observation:
    return Observation(boundaries=QUARTERS, owner=owner)


def status(answer: Answer | None) -> str:
    return answer.status if answer else "go on"


@pytest.mark.parametrize(
    ("epoch", "now_ms", "expected"),
    [(3, T, "go on"), (2, T, "fenced"), (4, T, "go on"), (3, T + 299_999, "go on"), (3, T + 300_000, "expired")],
)
def test_older_epochs_are_fenced_and_late_commands_expire(epoch: int, now_ms: int, expected: str) -> None:
    assert status(refusal(unload(), epoch=epoch, newest_epoch=3, now_ms=now_ms)) == expected


def test_namespaces_of_pulsars_own_are_not_touched() -> None:
    command = unload("pulsar/system/0x00000000_0xffffffff")
    assert status(refusal(command, epoch=1, newest_epoch=1, now_ms=T)) == "skipped"


@pytest.mark.parametrize("command", [unload(), unload(destination=""), split(), split(boundaries=())])
def test_a_command_whose_preconditions_hold_is_carried_out(command: Command) -> None:
    assert before(command, OWNED) is None


@pytest.mark.parametrize(
    ("command", "seen", "expected", "detail"),
    [
        (unload(), at(B), "already_done", "b:8080 has it"),
        (unload(destination=A), at(A), "already_done", "a:8080 has it"),
        (unload(), at(C), "obsolete", "c:8080 has it, not a:8080"),
        (unload(), at(""), "obsolete", "nobody has it"),
        (unload(), HALVED, "obsolete", "no such bundle"),
        (unload(), NO_NAMESPACE, "obsolete", "no such namespace"),
        (split(), HALVED, "already_done", ""),
        (split(boundaries=(0x50000000,)), HALVED, "obsolete", "no such bundle"),
        (split(boundaries=()), HALVED, "obsolete", "no such bundle"),
        (split(), at(C), "obsolete", "c:8080 has it"),
        (split(boundaries=(0x40000000,)), OWNED, "failed", "0x40000000 does not lie inside"),
        (split(boundaries=(0x60000000, 0x90000000)), OWNED, "failed", "0x90000000 does not lie inside"),
    ],
)
def test_what_looking_settles_is_not_acted_on(command: Command, seen: Observation, expected: str, detail: str) -> None:
    answer = before(command, seen)
    assert answer is not None
    assert answer.status == expected
    assert detail in answer.detail


@pytest.mark.parametrize(
    ("command", "dry_run"), [(unload(mode="dry_run"), False), (split(mode="dry_run"), False), (unload(), True)]
)
def test_a_dry_run_looks_and_says_what_it_would_do(command: Command, dry_run: bool) -> None:
    answer = before(command, OWNED, dry_run=dry_run)
    assert answer is not None
    assert answer.status == "dry_run"
    assert answer.detail.startswith(f"would {command.action} it")
    assert status(before(command, at(C), dry_run=dry_run)) == "obsolete"


@pytest.mark.parametrize(
    ("command", "seen", "expected"),
    [
        (unload(), at(B), "already_done"),
        (unload(), at(A), "unknown"),
        (unload(), at(C), "unknown"),
        (unload(), at(""), "unknown"),
        (split(), HALVED, "already_done"),
        (split(), OWNED, "unknown"),
    ],
)
def test_what_a_dead_executor_had_begun_is_never_done_again(command: Command, seen: Observation, expected: str) -> None:
    assert status(before(command, seen, maybe_begun=True)) == expected


@pytest.mark.parametrize(
    ("command", "seen", "failed", "expected"),
    [
        (unload(), at(B), None, "done"),
        (unload(), at(C), None, "failed"),
        (unload(), at(A), None, "failed"),
        (unload(), at(""), None, "unknown"),
        (unload(destination=""), at(C), None, "done"),
        (unload(destination=""), at(A), None, "failed"),
        (unload(), HALVED, failure(412), "obsolete"),
        (unload(), NO_NAMESPACE, failure(404), "obsolete"),
        (unload(), at(B), failure(500), "done"),
        (unload(), at(A), failure(500), "go on"),
        (unload(), at(A), failure(503), "go on"),
        (unload(), at(A), failure(403), "failed"),
        (unload(), at(A), REFUSED, "go on"),
        (unload(), at(""), REFUSED, "go on"),
        (unload(), at(""), failure(500), "unknown"),
        (unload(), at(""), TIMEOUT, "unknown"),
        (unload(), at(A), TIMEOUT, "unknown"),
        (unload(), at(B), TIMEOUT, "done"),
        (split(), HALVED, None, "done"),
        (split(), HALVED, TIMEOUT, "done"),
        (split(), OWNED, None, "failed"),
        (split(), OWNED, TIMEOUT, "unknown"),
        (split(), OWNED, failure(500), "go on"),
        (split(), OWNED, failure(412), "failed"),
        (split(boundaries=(0x50000000,)), HALVED, failure(412), "obsolete"),
        (unload(), at(A), failure(412), "failed"),
        (split(boundaries=()), HALVED, None, "done"),
        (split(boundaries=()), NO_NAMESPACE, failure(404), "obsolete"),
    ],
)
def test_a_second_look_gives_the_result(
    command: Command, seen: Observation, failed: Failure | None, expected: str
) -> None:
    assert status(after(command, seen, failed)) == expected


def test_a_bundle_that_went_elsewhere_is_reported_with_its_owner() -> None:
    answer = after(unload(), at(C), None)
    assert answer == Answer(status="failed", detail="it went to c:8080, not to b:8080")


def test_a_split_leaves_the_ranges_between_its_cuts_whatever_their_order() -> None:
    cuts = (0x60000000, 0x50000000)
    assert children(split(BUNDLE, boundaries=cuts)) == (
        (0x40000000, 0x50000000),
        (0x50000000, 0x60000000),
        (0x60000000, 0x80000000),
    )


def test_a_bundle_halved_by_the_brokers_is_known_by_its_halves() -> None:
    halve = split(algorithm="range_equally_divide", boundaries=())
    assert children(halve) == ((0x40000000, 0x60000000), (0x60000000, 0x80000000))
    assert status(before(halve, HALVED, maybe_begun=True)) == "already_done"
    cut_elsewhere = Observation(boundaries=(0, 0x40000000, 0x50000000, 0x80000000, 0xC0000000, 0xFFFFFFFF))
    assert status(before(halve, cut_elsewhere)) == "obsolete"
