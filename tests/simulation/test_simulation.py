"""The whole loop under seeds of faults: nothing lost, nothing twice, nothing wrong, and every run can be repeated."""

import threading
import time
from dataclasses import replace
from importlib import import_module
from itertools import accumulate
from pathlib import Path

import pytest

from tests.protocol.linearizable import UNKNOWN, Call
from tests.protocol.rules import Event
from tests.simulation.explore import main, played, shrunk, stored_results
from tests.simulation.faults import schedule_of
from tests.simulation.oracle import against_the_model, findings, histories
from tests.simulation.planted import in_place
from tests.simulation.run import play
from tests.simulation.schedule import Schedule
from tests.simulation.strangers import PATCHES, functions_of
from tests.simulation.world import Fault


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 21))
def test_under_faults_no_command_is_lost_done_twice_or_wrong(seed: int) -> None:
    assert played(seed)["findings"] == []


@pytest.mark.extended
# Each a group of its own, so that the workers share them.
@pytest.mark.parametrize(
    "first",
    [pytest.param(first, marks=pytest.mark.xdist_group(f"seeds from {first}")) for first in range(21, 521, 20)],
)
def test_many_more_seeds(first: int) -> None:
    failed = {seed: found for seed in range(first, first + 20) if (found := played(seed)["findings"])}
    assert failed == {}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 5))
def test_the_same_holds_where_the_election_lies_in_the_log(seed: int) -> None:
    assert played(seed, elects_on_log=True)["findings"] == []


@pytest.mark.extended
@pytest.mark.parametrize(
    "first",
    [pytest.param(first, marks=pytest.mark.xdist_group(f"on the log from {first}")) for first in range(5, 305, 20)],
)
def test_many_more_seeds_with_the_election_in_the_log(first: int) -> None:
    seeds = range(first, first + 20)
    assert {seed: bad for seed in seeds if (bad := played(seed, elects_on_log=True)["findings"])} == {}


@pytest.mark.slow
@pytest.mark.parametrize("elects_on_log", [False, True])
def test_a_schedule_gives_the_same_run_again(elects_on_log: bool) -> None:
    schedule = replace(schedule_of(7), elects_on_log=elects_on_log)
    one, other = play(schedule), play(schedule)
    assert (one.trace, one.calls) == (other.trace, other.calls)


@pytest.mark.slow
def test_other_threads_of_the_process_keep_the_real_clock_and_real_locks() -> None:
    """A worker may have a JVM, whose client has threads of its own."""
    times, over = list[float](), threading.Event()

    def work() -> None:
        while not over.is_set():
            with threading.Lock():
                threading.Event().wait(0.001)
                time.sleep(0.001)
                times.append(time.time())

    other = threading.Thread(target=work, daemon=True)
    began = time.time()
    other.start()
    play(Schedule(seed=1, intervals=2))
    over.set()
    other.join(10)
    assert not other.is_alive()
    assert len(times) > 10
    assert all(began <= each <= time.time() for each in times)


@pytest.mark.slow
def test_without_faults_commands_are_issued_and_most_are_done() -> None:
    """Some expire: a batch may end before a tick, and its interval is decided with the next one."""
    outcome = play(Schedule(seed=1, intervals=10))
    answers = [each.outcome for each in outcome.trace if each.kind == "answered"]
    assert outcome.findings == []
    assert answers.count("done") >= 5
    assert answers.count("done") > len(answers) / 2


@pytest.mark.slow
def test_a_planted_bug_is_found_and_its_schedule_shrunk_to_what_it_needs() -> None:
    needless = Fault(kind="upgrade", at=200.0, target="broker-3.sim:8080")
    schedule = Schedule(seed=3, intervals=12, faults=(needless,))
    small = shrunk(schedule, "answered-before-the-act")
    assert small.faults == ()
    assert small.intervals < schedule.intervals


BROKERS = [f"broker-{number}.sim:8080" for number in range(1, 5)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bug", "faults"),
    [
        (
            "stop-all-without-fence",
            [
                Fault(kind="pause", at=246.0, target="executor-1", seconds=30.0),
                Fault(kind="stop-all", at=257.0, seconds=60.0),
            ],
        ),
        (
            "controls-of-the-leader-before",
            [
                Fault(kind="pause-people", at=150.0, seconds=200.0),
                Fault(kind="crash", at=160.0, target="controller-1"),
            ],
        ),
        ("exclusion-ignored", [Fault(kind="exclude", at=90.0 + each, seconds=900.0) for each in range(8)]),
        ("dry-run-carried-out", [Fault(kind="mode", at=130.0, seconds=60.0)]),
        ("stop-all-without-pause", [Fault(kind="stop-all", at=130.0, seconds=120.0)]),
        (
            "pause-forgotten-where-it-cannot-be-read",
            [
                Fault(kind="pause-people", at=130.0, seconds=240.0),
                Fault(kind="lose", at=250.0, target="controller-1", point="controls read"),
            ],
        ),
        (
            "second-look-left-out",
            [Fault(kind="delay", at=130.0, target="executor-1", point="store claim", seconds=90.0)],
        ),
        ("answers-forgotten", [Fault(kind="rewind", at=220.0)]),
        (
            "batch-with-other-records",
            [Fault(kind="crash", at=170.0, target="controller-1", point="spark commit")],
        ),
        ("interval-budget-too-large", [Fault(kind="skew", at=150.0, target="controller-1", seconds=-100.0)]),
        (
            "failure-answered-as-done",
            [Fault(kind="lie", at=180.0, target=each, point="done-not-done", seconds=100.0) for each in BROKERS],
        ),
    ],
)
def test_a_bug_that_seeds_meet_seldom_is_found_with_its_faults_and_nothing_without_it(
    bug: str, faults: list[Fault]
) -> None:
    _is_found(bug, Schedule(seed=1, intervals=12, controllers=1, executors=1, faults=tuple(faults)))


def _is_found(bug: str, schedule: Schedule) -> None:
    """By the first of some seeds: any change may alter which modelled clusters command something just then."""
    schedules = [replace(schedule, seed=seed) for seed in range(1, 6)]
    with in_place(bug):
        found = next((each for each in schedules if play(each).findings), None)
    assert found is not None
    assert play(found).findings == []


#: What somebody else planted -> the faults that show it.
STRANGERS = {
    "expiry-in-minutes": [Fault(kind="pause", at=182.0, target="executor-1", seconds=75.0)],
    "marks-not-looked-at": [
        Fault(
            kind="delay",
            at=183.0,
            target="executor-1",
            point="brokers ask",
            nth=2,
            seconds=25.0,
            then=Fault(kind="stop-all", at=1.0, seconds=60.0),
        )
    ],
    "tick-tried-again": [
        Fault(kind="lose", at=130.0, target=each, point="commit ticks", when="after")
        for each in ("collector-1", "collector-2")
    ],
    "controls-kept-for-minutes": [Fault(kind="pause-people", at=190.0, seconds=240.0)],
    "call-under-way-sent-again": [
        Fault(kind="late", at=130.0 + 60 * nth, target="executor-1", point="brokers act", seconds=3.0 + 0.3 * nth)
        for nth in range(10)
    ],
    "exclusion-only-where-nothing-moves": [Fault(kind="exclude", at=130.0, seconds=600.0)],
    "old-report-counts": [Fault(kind="still-report", at=130.0, target=each, seconds=900.0) for each in BROKERS[:2]],
    "delta-of-what-was-not-written": [
        Fault(kind="delay", at=130.0 + 180 * time, target="controller-1", point="election check", nth=1, seconds=75.0)
        for time in range(4)
    ],
    "failure-frees-its-budget": [
        Fault(kind="lie", at=130.0, target=each, point="done-not-done", seconds=500.0) for each in BROKERS
    ],
    "change-lost-to-another": [Fault(kind="crowd", at=130.0 + 150 * time) for time in range(4)],
}


@pytest.mark.slow
@pytest.mark.parametrize("bug", STRANGERS)
def test_a_bug_of_somebody_else_is_found_with_its_faults_and_nothing_without_it(bug: str) -> None:
    _is_found(bug, Schedule(seed=1, intervals=14, controllers=1, executors=1, faults=tuple(STRANGERS[bug])))


@pytest.mark.parametrize("bug", PATCHES)
def test_a_bug_of_somebody_else_changes_the_product_while_it_is_in_place(bug: str) -> None:
    module = import_module(PATCHES[bug].module)

    def code() -> dict[str, object]:
        return {path: function.__code__ for path, function in functions_of(module)}

    before = code()
    with in_place(bug):
        assert code() != before
    assert code() == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bug", "point"), [("approval-not-asked", ""), ("approved-decision-kept", ""), ("old-decision-issued", "late")]
)
def test_in_mode_approve_a_decision_is_issued_once_approved_once_and_in_time(bug: str, point: str) -> None:
    asked = Fault(kind="approve", at=130.0, seconds=900.0, point=point)
    schedules = [
        Schedule(seed=seed, intervals=20, controllers=1, executors=1, faults=(asked,)) for seed in range(1, 11)
    ]
    outcome = play(schedules[0])
    kinds = {each.kind for each in outcome.trace}
    assert outcome.findings == []
    assert {"proposed", "decision-approved", "asks"} <= kinds
    with in_place(bug):
        assert any(each.startswith("approval: ") for schedule in schedules for each in play(schedule).findings)


#: Seeds whose schedules have a policy.
_UNDER_A_POLICY = [seed for seed in range(1, 101) if schedule_of(seed).approvals]
#: Which of them found a bug when it was last looked for, to be played first.  Any change may make it another one.
_FOUND_BY = {"moves-not-in-the-plan": 23}


@pytest.mark.slow
@pytest.mark.parametrize(
    "bug",
    [
        "approvals-not-counted",
        "signature-not-verified",
        "approval-without-end",
        "moves-not-in-the-plan",
        "grants-not-asked",
        "old-grant-obeyed",
        "removed-pause-forgotten",
        "removed-exclusion-forgotten",
    ],
)
def test_under_a_policy_nothing_is_in_force_that_is_not_approved_or_forged_or_expired(bug: str) -> None:
    """One of the first seeds finds each bug; without the bugs these seeds find nothing: see above."""
    with in_place(bug):
        seeds = sorted(_UNDER_A_POLICY, key=lambda seed: seed != _FOUND_BY.get(bug))
        found = (each for seed in seeds for each in play(schedule_of(seed)).findings)
        assert any(each.startswith("unapproved: ") for each in found)


#: Plans that need approvals: some get them in time, some late or never; and somebody forges orders and approvals.
_PLANS = tuple(
    Fault(kind=kind, at=at)
    for at, kind in ((130.0, "apply"), (320.0, "forge"), (500.0, "apply"), (900.0, "apply"), (1200.0, "forge"))
)


@pytest.mark.slow
def test_orders_that_end_between_their_interval_and_its_decision_are_verified() -> None:
    """Seed 4 of other plans than these found that they were obeyed unverified."""
    schedule = Schedule(seed=4, intervals=25, controllers=2, executors=1, approvals=True, faults=_PLANS)
    assert play(schedule).findings == []


@pytest.mark.slow
def test_a_command_whose_start_takes_long_to_store_is_not_carried_out_once_it_has_expired() -> None:
    """Seed 1006, shrunk."""
    stored_late = Fault(
        kind="delay", at=130.0, target="executor-1", point="store claim", when="before", nth=0, seconds=143.5
    )
    assert play(Schedule(seed=1006, intervals=10, executors=1, faults=(stored_late,))).findings == []


@pytest.mark.slow
def test_a_command_whose_start_takes_long_to_store_is_not_carried_out_once_stop_all_has_returned() -> None:
    """Seed 7, shrunk."""
    stopped = Fault(kind="stop-all", at=3.9, seconds=36.7)
    stored_late = Fault(
        kind="delay",
        at=130.0,
        target="executor-1",
        point="append cells",
        when="after",
        nth=1,
        seconds=33.0,
        then=stopped,
    )
    schedule = Schedule(seed=7, intervals=10, atomic=False, controllers=1, executors=1, faults=(stored_late,))
    assert play(schedule).findings == []


@pytest.mark.slow
def test_commands_that_a_stopped_leader_left_are_issued_by_the_next_one_alone_and_fenced() -> None:
    """Seed 13, shrunk: the leader stands still between an entry and its commands, and stop-all begins an epoch."""
    stopped = Fault(kind="stop-all", at=12.0, seconds=7.1)
    still = Fault(
        kind="pause", at=130.0, target="controller-1", point="append journal", when="after", seconds=42.7, then=stopped
    )
    schedule = Schedule(seed=13, intervals=10, atomic=False, partitions=1, controllers=1, executors=1, faults=(still,))
    outcome = play(schedule)
    issued = [each for each in outcome.trace if each.kind in ("marked", "issued")]
    newest = accumulate((each.epoch for each in issued), max)
    late = {each.command for each, epoch in zip(issued, newest, strict=True) if each.epoch < epoch}
    answers = {each.command: each.outcome for each in outcome.trace if each.kind == "answered"}
    assert outcome.findings == []
    assert {answers[each] for each in late} == {"fenced"}
    with in_place("fence-skipped"):
        assert "wrong: epoch 1 follows 2 in partition 0" in play(schedule).findings


def test_results_that_a_stop_cut_off_or_that_are_of_another_commit_count_as_not_played(tmp_path: Path) -> None:
    file = tmp_path / "seeds.jsonl"
    of_now = '{"commit": "abc", "election": "zookeeper", "seed": 1, "findings": []}'
    older, on_log = of_now.replace("abc", "ab0").replace("1", "2"), of_now.replace("zookeeper", "log").replace("1", "4")
    file.write_text(f'{older}\n{of_now}\n{on_log}\n7\n{{"commit": "abc", "se', encoding="utf-8")
    assert [*stored_results(file, "abc")] == [1]
    with file.open("a", encoding="utf-8") as more:
        more.write(of_now.replace("1", "3") + "\n")
    assert [*stored_results(file, "abc")] == [1, 3]
    assert [*stored_results(file, "abc", "log")] == [4]
    assert [*stored_results(tmp_path / "new", "abc")] == []


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ("--seeds 0", "0 is less than 1"),
        ("--jobs 0", "0 is less than 1"),
        ("--from x", "invalid int value: 'x'"),
        ("--resume .", "it is not a file"),
        ("--resume nowhere/seeds", "its folder does not exist"),
        ("--resume seeds --planted letters-lost", "leave it out with --planted"),
    ],
)
def test_arguments_that_play_nothing_are_refused(
    arguments: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        main(arguments.split())
    assert why in capsys.readouterr().err


BEGUN = [
    Event(kind="epoch", epoch=1),
    Event(kind="marked", epoch=1),
    Event(kind="entry", epoch=1, interval=60_000),
    Event(kind="decided", epoch=1, interval=60_000, command="c"),
    Event(kind="issued", epoch=1, command="c"),
    Event(kind="begun", process="executor-1", command="c"),
]
ACT, EFFECT = (Event(kind=kind, process="executor-1", command="c") for kind in ("act", "effect"))


def test_a_trace_that_the_model_does_not_allow_is_a_finding() -> None:
    done, late = (Event(kind="answered", command="c", outcome=status) for status in ("done", "expired"))
    assert [*against_the_model([*BEGUN, ACT, BEGUN[-1], ACT, EFFECT, done])] == [], "the broker was busy at first"
    assert [*against_the_model([*BEGUN, ACT, late])] == [], "no broker was reached"
    for trace, why in (
        ([*BEGUN, ACT, EFFECT, late], "it was begun"),
        ([*BEGUN, replace(BEGUN[-1], process="executor-2"), ACT, done], "it was begun before"),
        ([*BEGUN, Event(kind="died", process="executor-1"), BEGUN[-1], ACT, done], "it was begun before"),
        ([*BEGUN, ACT, replace(ACT, process="executor-2"), done], "it was done before"),
        ([*BEGUN[:-2], done], "it was not issued"),
    ):
        [found] = against_the_model(trace)
        assert why in found


@pytest.mark.parametrize(
    ("between", "is_allowed"),
    [
        (["marked", "taken-over"], True),
        (["marked"], False),
        (["taken-over", "marked"], False),
        (["marked", "taken-over by another"], False),
        (["marked", "taken-over", "died"], False),
        (["marked", "taken-over", "entry"], False),
    ],
)
def test_an_older_epoch_follows_only_where_a_successor_completes_the_last_decision(
    between: list[str], is_allowed: bool
) -> None:
    events = {
        "marked": Event(kind="marked", epoch=2, process="sue"),
        "taken-over": Event(kind="taken-over", process="controller-1"),
        "taken-over by another": Event(kind="taken-over", process="controller-2"),
        "died": Event(kind="died", process="controller-1"),
        "entry": Event(kind="entry", epoch=2, interval=120_000, content="120000"),
    }
    late = replace(BEGUN[4], process="controller-1")
    moved = "unload acme/ns1/0x00000000_0x40000000 broker-2.sim:8080 broker-1.sim:8080 active"
    entry = replace(BEGUN[2], content="60000")
    decided = replace(BEGUN[3], outcome="active unload Overloaded", content=moved)
    trace = [*BEGUN[:2], entry, decided, *(events[each] for each in between), late]
    assert ("wrong: epoch 1 follows 2 in partition 0" not in findings(trace, ended_ms=0)) is is_allowed


def test_calls_of_the_election_or_the_controls_that_no_order_explains_are_a_finding() -> None:
    good = [
        Call("a", "claim", 4, UNKNOWN, 0, None),
        Call("a", "read", None, (None, -1), 1, 2),
        Call("a", "cas", (-1, "paused"), True, 3, 4),
        Call("b", "epoch", None, 5, 5, 6),
        Call("b", "claim", 0, 6, 7, 8),
        Call("b", "check", None, True, 9, 10),
    ]
    assert [*histories(good, -1)] == []
    stale = [Call("b", "read", None, (None, -1), 11, 12)]
    old_leader = [Call("c", "claim", 6, 7, 11, 12), Call("b", "check", None, True, 13, 14)]
    for calls, what in ((stale, "controls"), (old_leader, "election")):
        [found] = histories([*good, *calls], -1)
        assert found.startswith(f"{what}: no order of these calls is possible")
