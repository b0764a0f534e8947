"""How much of anything there may be, whatever the settings are: who writes records, or keeps a log, counts on it."""

from pkgutil import resolve_name
from typing import Final

from controller.aggregate.columns import rows
from controller.aggregate.kept import averages, bundles, seeds, states
from controller.aggregate.shard import state_blob
from controller.aggregate.ticks import prepass
from controller.audit import auditor
from controller.collector import loop, patience, sweeper
from controller.cycle import budgets, ordered
from controller.model import load, names
from controller.planning import objective
from controller.planning.checking import checker
from controller.planning.foresight import followed
from controller.planning.plans import plan_steps, rightsizing
from controller.planning.solving import frontier, steps
from controller.strategies.common import cutting
from controller.wire import base, chunks, controls, dead_letter, journal_records, metrics, plan

BOUNDS: Final = (
    # Records.
    (base.MAX_RECORD_BYTES, 8_388_608),
    (base.MOST_DIGITS, 1000),
    (base.LONGEST_TEXT, 4096),
    (base.MAX_RATE, 1e12),
    (base.MAX_QUANTITY, 1e15),
    (base.MAX_COUNT, 1_000_000_000_000),
    (names.LONGEST_NAME, 1024),
    (metrics.MAX_PARTITIONS, 10_000),
    (metrics.MAX_BROKERS, 10_000),
    (metrics.MAX_BUNDLES, 100_000),
    (chunks.MAX_CHUNK_BYTES, 900_000),
    (dead_letter.KEPT_BYTES, 65_536),
    # What is kept: characters, rows, samples, and moves.
    (states.LARGEST, 67_108_864),
    (seeds.MOST, 500_000),
    ((averages.SHORT_TERM_SAMPLES, averages.LONG_TERM_SAMPLES), (10, 1000)),
    ((auditor.MOST_FOLLOWED, auditor.LOOKED_AT), (100_000, 2)),
    # A broker without a load report for so long counts as gone.
    (prepass.SILENCE_MS, 16 * 60 * 1000),
    # The journal and its entries.
    (journal_records.LARGEST_ENTRY, 67_108_864),
    (journal_records.WHOLE_EVERY_MS, 3_600_000),
    # What operators ask for.
    (controls.MAX_BYTES, 524_288),
    ((controls.MAX_MOVES, controls.MAX_DRAINED), (100, 1000)),
    ((controls.MAX_REASON, controls.MAX_NAME), (500, 100)),
    ((ordered.HOLD_INTERVALS, ordered.HOLD_MS), (4, 60_000)),
    (plan.MAX_BYTES, 134_217_728),
    # Versions of what is written.
    ((base.VERSION, state_blob.VERSION), (1, 3)),
    # Plans: moves, brokers, what a move disturbs, and how far two numbers may differ that are meant to be equal.
    ((plan_steps.MOST_MOVES, rightsizing.MOST_BROKERS), (10_000, 10_000)),
    ((objective.DISTURBANCE_OF_A_MOVE, objective.MESSAGES_OF_A_CONNECTION), (10.0, 1000.0)),
    ((objective.ROUNDING, checker.ROUNDING, steps.EPSILON), (1e-9, 1e-7, 1e-9)),
    # So many moves more than a plan has are told of; and what is kept of a bundle that was never seen.
    ((frontier.FURTHER_MOVES, followed.NEVER), (2, -128)),
    # What a bundle is taken to carry of which nothing is known: messages and bytes per second, in and out.
    (load.DEFAULT_LOAD.tolist(), [50.0, 50.0, 50_000.0, 50_000.0]),
    # Bytes of an answer of Pulsar that several may have at once.
    (sweeper.USUAL_ANSWER, 16_777_216),
    # Unloads that are placed and then held back before no more are placed, and when collectors publish no more.
    ((budgets.PLACED_IN_VAIN, loop.PUBLISH_SHARE, patience.ASKED_BY), (200, 0.9, 0.5)),
    # Kinds of rows, and the columns of what a broker says of itself: Java writes them, and states are stored with them.
    (
        (rows.TICK, rows.SWEEP, rows.BUNDLE, rows.TOPIC, rows.REPORT, rows.REPORT_BUNDLE, rows.FACT, rows.REFUSED),
        (0, 1, 2, 3, 4, 5, 6, 7),
    ),
    ((rows.METRICS, rows.RESULTS, rows.PRODUCERS, rows.CONSUMERS, rows.TOPICS, rows.PER_UNIT), (0, 1, 4, 5, 6, 1000.0)),
    ((rows.NUMBER_USAGE, rows.NUMBER_LIMIT, rows.NUMBER_LOAD), (slice(0, 10, 2), slice(1, 10, 2), slice(10, 14))),
    ((rows.NUMBER_TOPICS, rows.NUMBER_BUNDLES, rows.NUMBERS), (14, 15, 16)),
    ((bundles.NEVER, followed.NEVER), (-1, -128)),
    # Pieces that an algorithm may cut a bundle into.
    (cutting.MOST_CUTS, 10_000),
)

#: What tests replace, to try it out with little or in no time, or what takes too long to come to it: nothing else sees
#: what it is.
REPLACED: Final = {
    "controller.aggregate.ticks.batch_times:_AHEAD": 5.0,
    "controller.collector.cluster_state:_MOST_BUNDLES": 20_000,
    "controller.collector.cluster_state:_MOST_NAMESPACES": 20_000,
    "controller.collector.ticks:_KNOWN": 1440,
    "controller.executor.attempt:_LEADER_SECONDS": 2.0,
    "controller.executor.attempt:_LOOK_AGAIN_SECONDS": 0.2,
    "controller.executor.pace:_BEAT_SECONDS": 0.2,
    "controller.planning.solving.packing:_MOST_COMING": 128,
    "controller.planning.solving.packing:_MOST_OTHERS": 1024,
    "controller.wire.journal_records:_LARGEST_RECORD": 900_000,
    "controller.wire.journal_records:_PART_CHARACTERS": 250_000,
    "controller.wire.plan:_MOST_VALUES": 16_777_216,
}


def test_bounds_are_what_others_count_on() -> None:
    assert [(bound, known) for bound, known in BOUNDS if bound != known] == []


def test_bounds_that_tests_replace_are_as_large_for_users() -> None:
    assert {name: resolve_name(name) for name in REPLACED} == REPLACED
