import pytest

from controller.adapters.pulsar.admin import PulsarError
from controller.executor.judge import (
    Answer,
    Failure,
    Observation,
    answer_after_act,
    answer_before_act,
    children,
    refusal,
)
from controller.model.decision import Command
from tests.commands import BUNDLE, QUARTERS, A, B, C, T, split, unload

OWNED = Observation(boundaries=QUARTERS, owner=A)
HALVED = Observation(boundaries=(0, 0x40000000, 0x60000000, 0x80000000, 0xC0000000, 0xFFFFFFFF))
#: The halves were split again.
QUARTERED = Observation(boundaries=(0, 0x40000000, 0x50000000, 0x60000000, 0x70000000, 0x80000000, 0xFFFFFFFF))
#: The one bundle of its namespace.
WHOLE = "tenant/whole/0x00000000_0xffffffff"
TWO_HALVES = Observation(boundaries=(0, 0x80000000, 0xFFFFFFFF))
NO_NAMESPACE = Observation(boundaries=())
TIMEOUT = Failure(detail="no answer")
REFUSED = Failure(detail="no connection", sent=False)


def failure(status: int) -> Failure:
    return Failure(detail=f"HTTP {status}", status=status, away=PulsarError("", status=status).away)


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
    assert answer_before_act(command, OWNED) is None


@pytest.mark.parametrize(
    ("command", "seen", "expected", "detail"),
    [
        (unload(), at(B), "already_done", "its owner is b:8080"),
        (unload(destination=A), at(A), "already_done", "its owner is a:8080"),
        (unload(), at(C), "obsolete", "its owner is c:8080, not a:8080"),
        (unload(), at(""), "obsolete", "it has no owner"),
        (unload(), HALVED, "obsolete", "no such bundle"),
        (unload(), NO_NAMESPACE, "obsolete", "no such namespace"),
        (split(), HALVED, "already_done", ""),
        (split(), QUARTERED, "already_done", ""),
        (split(WHOLE, boundaries=(0x80000000,)), TWO_HALVES, "already_done", ""),
        (split(boundaries=(0x50000000,)), HALVED, "obsolete", "no such bundle"),
        (split(boundaries=()), HALVED, "obsolete", "no such bundle"),
        (split(), at(C), "obsolete", "its owner is c:8080"),
        (split(boundaries=(0x40000000,)), OWNED, "failed", "0x40000000 does not lie inside"),
        (split(boundaries=(0x60000000, 0x90000000)), OWNED, "failed", "0x90000000 does not lie inside"),
    ],
)
def test_what_looking_settles_is_not_acted_on(command: Command, seen: Observation, expected: str, detail: str) -> None:
    answer = answer_before_act(command, seen)
    assert answer is not None
    assert answer.status == expected
    assert detail in answer.detail


@pytest.mark.parametrize(
    ("command", "dry_run"), [(unload(mode="dry_run"), False), (split(mode="dry_run"), False), (unload(), True)]
)
def test_a_dry_run_looks_and_says_what_it_would_do(command: Command, dry_run: bool) -> None:
    answer = answer_before_act(command, OWNED, dry_run=dry_run)
    assert answer is not None
    assert answer.status == "dry_run"
    assert answer.detail.startswith(f"would {command.action} it")
    assert status(answer_before_act(command, at(C), dry_run=dry_run)) == "obsolete"


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
    assert status(answer_before_act(command, seen, maybe_started=True)) == expected


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
        (unload(), at(A), failure(429), "go on"),
        (unload(), at(A), failure(502), "unknown"),
        (unload(), at(A), failure(504), "unknown"),
        (unload(), HALVED, None, "obsolete"),
        (unload(), HALVED, TIMEOUT, "obsolete"),
        (split(), QUARTERED, None, "done"),
        (split(boundaries=(0x50000000,)), HALVED, None, "failed"),
        (split(boundaries=()), HALVED, None, "done"),
        (split(boundaries=()), NO_NAMESPACE, failure(404), "obsolete"),
    ],
)
def test_a_second_look_gives_the_result(
    command: Command, seen: Observation, failed: Failure | None, expected: str
) -> None:
    assert status(answer_after_act(command, seen, failed)) == expected


def test_a_bundle_that_went_elsewhere_is_reported_with_its_owner() -> None:
    answer = answer_after_act(unload(), at(C), None)
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
    assert status(answer_before_act(halve, HALVED, maybe_started=True)) == "already_done"
    cut_elsewhere = Observation(boundaries=(0, 0x40000000, 0x50000000, 0x80000000, 0xC0000000, 0xFFFFFFFF))
    assert status(answer_before_act(halve, cut_elsewhere)) == "obsolete"


def test_refusals_say_the_numbers() -> None:
    assert refusal(unload(), epoch=2, newest_epoch=3, now_ms=T) == Answer(
        status="fenced", detail="epoch 2 is over: 3 leads"
    )
    assert refusal(unload(), epoch=3, newest_epoch=3, now_ms=T + 300_007) == Answer(
        status="expired", detail="7 ms too late"
    )


@pytest.mark.parametrize(
    ("command", "would"),
    [
        (unload(), "would unload it from a:8080 to b:8080"),
        (unload(destination=""), "would unload it from a:8080 to the broker that Pulsar chooses"),
        (
            split(boundaries=(0x50000000, 0x60000000)),
            "would split it by specified_positions_divide 0x50000000 0x60000000",
        ),
        (split(algorithm="range_equally_divide", boundaries=()), "would split it by range_equally_divide"),
    ],
)
def test_a_dry_run_says_source_destination_and_boundaries(command: Command, would: str) -> None:
    assert answer_before_act(command, OWNED, dry_run=True) == Answer(status="dry_run", detail=would)


@pytest.mark.parametrize(
    ("command", "seen", "now"),
    [
        (unload(), at(A), "its owner is still a:8080"),
        (unload(), at(C), "its owner is c:8080, not a:8080"),
        (unload(), at(""), "it has no owner: brokers assign it at the next lookup"),
        (unload(), NO_NAMESPACE, "no such namespace"),
        (split(boundaries=(0x50000000,)), HALVED, "no such bundle"),
    ],
)
def test_what_a_dead_executor_left_is_said_as_it_is_now(command: Command, seen: Observation, now: str) -> None:
    assert answer_before_act(command, seen, maybe_started=True, dry_run=True) == Answer(
        status="unknown", detail=f"an executor ended during this command; now: {now}"
    )


def test_a_dead_executors_split_with_impossible_boundaries_has_failed() -> None:
    answer = answer_before_act(split(boundaries=(0x80000000,)), OWNED, maybe_started=True)
    assert answer == Answer(status="failed", detail="0x80000000 does not lie inside the bundle")


@pytest.mark.parametrize(
    ("command", "seen", "failed", "expected"),
    [
        (unload(), at(B), None, Answer(status="done")),
        (unload(), at(B), failure(500), Answer(status="done", detail="in spite of: HTTP 500")),
        (unload(destination=""), at(C), failure(500), Answer(status="done", detail="in spite of: HTTP 500")),
        (unload(destination=""), at(C), None, Answer(status="done")),
        (unload(), at(A), None, Answer(status="failed", detail="it came back to a:8080")),
        (unload(), at(""), None, Answer(status="unknown", detail="it has no owner")),
        (unload(), at(""), failure(500), Answer(status="unknown", detail="it has no owner; HTTP 500")),
        (unload(), at(A), TIMEOUT, Answer(status="unknown", detail="no answer")),
        (unload(), HALVED, failure(412), Answer(status="obsolete", detail="HTTP 412")),
        (split(), HALVED, None, Answer(status="done")),
        (split(), HALVED, failure(500), Answer(status="done", detail="in spite of: HTTP 500")),
        (split(), OWNED, TIMEOUT, Answer(status="unknown", detail="no answer")),
        (unload(), HALVED, None, Answer(status="obsolete", detail="it was split or deleted in the meantime")),
        (
            split(boundaries=(0x50000000,)),
            HALVED,
            None,
            Answer(status="failed", detail="it was split elsewhere: 0x60000000"),
        ),
    ],
)
def test_the_result_says_what_was_seen(
    command: Command, seen: Observation, failed: Failure | None, expected: Answer
) -> None:
    assert answer_after_act(command, seen, failed) == expected


def test_a_split_that_brokers_pass_over_says_what_splits_the_bundle() -> None:
    """The answer is 204, and nothing is split: positions are cut only between topics, and segments are none."""
    at_positions = answer_after_act(split(), OWNED, None)
    assert at_positions is not None
    assert at_positions.status == "failed"
    assert "specified_positions_divide needs a bundle of two topics or more" in at_positions.detail
    assert "only range_equally_divide splits a bundle of segments" in at_positions.detail
    in_halves = answer_after_act(split(algorithm="range_equally_divide", boundaries=()), OWNED, None)
    assert in_halves is not None
    assert in_halves.status == "failed"
    assert "range_equally_divide works without topics, so check the log of a:8080" in in_halves.detail


@pytest.mark.parametrize(
    ("http", "expected"),
    [(399, "go on"), (400, "failed"), (404, "failed"), (412, "failed"), (499, "failed"), (500, "go on")],
)
def test_what_the_client_did_wrong_is_not_tried_again(http: int, expected: str) -> None:
    assert status(answer_after_act(unload(), at(A), failure(http))) == expected
    assert status(answer_after_act(split(), OWNED, failure(http))) == expected


@pytest.mark.parametrize("http", [403, 409, 500])
def test_only_404_and_412_say_that_a_bundle_is_gone(http: int) -> None:
    expected = "failed" if http < 500 else "go on"
    assert status(answer_after_act(split(boundaries=(0x50000000,)), HALVED, failure(http))) == expected


def test_cuts_lie_strictly_inside_the_bundle() -> None:
    for cut, inside in ((0x40000000, False), (0x40000001, True), (0x7FFFFFFF, True), (0x80000000, False)):
        assert (answer_before_act(split(boundaries=(cut,)), OWNED) is None) == inside


def test_a_bundle_has_its_very_boundaries() -> None:
    assert OWNED.has(BUNDLE)
    assert OWNED.has("tenant/ns/0xc0000000_0xffffffff")
    for other in (
        "tenant/ns/0x40000000_0x60000000",
        "tenant/ns/0x00000000_0x80000000",
        "tenant/ns/0x40000000_0xc0000000",
    ):
        assert not OWNED.has(other)
