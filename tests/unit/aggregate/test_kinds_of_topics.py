"""Which kinds of topics a bundle of the view holds, persistent or not, by the records of its interval."""

from typing import Any

import pytest

from controller.aggregate.shard.fold import DetailLimits, FoldOptions
from controller.model.topic_kinds import BOTH, NON_PERSISTENT, PERSISTENT, SEGMENTS
from tests.folds import A, B, sweep, ticked, view_of
from tests.records import LEFT, PERIOD, RIGHT, T, broker_load, broker_state, bundle_stats, load_report, topic_stats

P, N = "persistent://tenant/ns/a", "non-persistent://tenant/ns/a"
SEGMENT = "segment://tenant/ns/a/0000-7fff-0"


def swept(n: int, *names: str, broker: str = A, bundle: str = LEFT, **changed: Any) -> dict[str, Any]:
    """A sweep of *broker* that lists the topics *names*, all in *bundle*."""
    return sweep(broker, n, bundleStats=[bundle_stats(bundle, len(names), topic=list(names))], **changed)


def kinds(*batches: list[dict[str, Any]], options: FoldOptions | None = None) -> dict[str, int]:
    view = view_of(*batches) if options is None else view_of(*batches, options=options)
    return dict(zip(view.bundles.names, view.bundles.kinds.tolist(), strict=True))


@pytest.mark.parametrize(
    ("names", "held"),
    [
        ([P], PERSISTENT),
        ([N], NON_PERSISTENT),
        ([P, N], BOTH),
        ([N, P, P], BOTH),
        ([SEGMENT, P], PERSISTENT | SEGMENTS),
    ],
)
def test_a_bundle_holds_the_kinds_of_its_topics_also_near_a_split(names: list[str], held: int) -> None:
    batch = [swept(0, *names), ticked(0, A)]
    near = FoldOptions(bundle_ttl_ms=PERIOD, detail=DetailLimits(topics=1, sessions=1, msg_rate=1, throughput=1))
    assert kinds(batch) == kinds(batch, options=near) == {LEFT: held}


def test_a_topic_that_is_made_anew_as_the_other_kind_counts_as_that_from_then_on() -> None:
    assert kinds([swept(0, P), ticked(0, A), swept(1, N), ticked(1, A)]) == {LEFT: NON_PERSISTENT}


def test_a_bundle_divided_between_two_chunks_holds_the_kinds_of_both() -> None:
    halves = [swept(0, P, chunk=0, chunks=2), swept(0, N, chunk=1, chunks=2)]
    assert kinds([*halves, ticked(0, A)]) == kinds([halves[1]], [halves[0]], [ticked(0, A)]) == {LEFT: BOTH}


def test_a_record_that_comes_twice_changes_nothing_and_of_two_claims_the_one_that_counts_has_the_kinds() -> None:
    assert kinds([swept(0, P), swept(0, P), ticked(0, A)]) == {LEFT: PERSISTENT}
    older, later = swept(0, P, lastUpdate=T - 2), swept(0, N, broker=B, lastUpdate=T - 1)
    assert kinds([older, later, ticked(0, A, B)]) == {LEFT: NON_PERSISTENT}


def test_topic_stats_say_the_kinds_as_well_the_last_of_a_topic_alone() -> None:
    stats = [topic_stats(broker=A, topic=P), topic_stats(broker=A, topic=N), topic_stats(broker=A, topic=P)]
    batch = [*stats, topic_stats(broker=A, bundle=RIGHT, topic=SEGMENT), ticked(0, missing=A)]
    assert kinds(batch) == {LEFT: BOTH, RIGHT: PERSISTENT | SEGMENTS}
    assert kinds(*([record] for record in batch)) == {LEFT: BOTH, RIGHT: PERSISTENT | SEGMENTS}


@pytest.mark.parametrize(
    ("switched_off", "held"),
    [({}, BOTH), ({"nonPersistentTopicsEnabled": False}, PERSISTENT), ({"persistentTopicsEnabled": False}, 2)],
)
def test_a_bundle_without_named_topics_may_hold_all_that_its_broker_serves(
    switched_off: dict[str, bool], held: int
) -> None:
    state = broker_state(broker=A, **switched_off)
    assert kinds([sweep(A, 0, LEFT), state, ticked(0, A)]) == {LEFT: held}
    empty = sweep(A, 0, bundleStats=[bundle_stats(LEFT, 0)])
    assert kinds([empty, state, ticked(0, A)]) == {LEFT: held}
    loaded = broker_load(broker=A, report=load_report(**switched_off))
    assert set(kinds([loaded, ticked(0, missing=A)]).values()) == {held}


def test_topics_that_are_named_in_one_chunk_alone_leave_the_kinds_unknown() -> None:
    halves = [swept(0, N, chunk=0, chunks=2), sweep(A, 0, LEFT, chunk=1, chunks=2)]
    assert kinds([*halves, ticked(0, A)]) == {LEFT: BOTH}


def test_what_a_broker_switches_off_by_its_load_report_or_by_its_state_it_does_not_serve() -> None:
    report = broker_load(broker=A, report=load_report(nonPersistentTopicsEnabled=False))
    states = [broker_state(broker=A), broker_state(broker=B, persistentTopicsEnabled=False)]
    policies = view_of([report, sweep(B, 0, RIGHT), *states, ticked(0, B, missing=A)]).policies
    assert policies.served_kinds((A, B)).tolist() == [PERSISTENT, NON_PERSISTENT]
