"""A bundle that several brokers list is the later report's; that the others list it is known, too."""

import pytest

from controller.aggregate.snapshot import Snapshot
from controller.aggregate.view import assemble
from controller.model.load import ClusterView
from tests.folds import A, B, snapshots, sweep, ticked
from tests.records import LEFT, PERIOD, RIGHT, T


def owner_of(view: ClusterView, bundle: str) -> str:
    return view.brokers.names[int(view.bundles.broker[view.bundles.code_of[bundle]])]


def lists(view: ClusterView, broker: str, bundle: str) -> bool:
    return view.lists(view.brokers.code_of[broker], bundle)


def seen(*records: dict[str, object], oldest_report: int = 0) -> ClusterView:
    [snapshot] = snapshots([*records])
    return assemble([Snapshot.from_blob(snapshot.to_blob())], {}, {}, oldest_report=oldest_report)


def test_the_later_report_has_the_bundle_and_the_earlier_one_lists_it_too() -> None:
    view = seen(sweep(A, 0, LEFT, RIGHT), sweep(B, 0, RIGHT, lastUpdate=T + 1), ticked(0, A, B))
    assert (owner_of(view, LEFT), owner_of(view, RIGHT)) == (A, B)
    assert [lists(view, broker, RIGHT) for broker in (A, B)] == [True, True]
    assert [lists(view, broker, LEFT) for broker in (A, B)] == [True, False]
    assert not view.lists(0, "tenant/ns/0x00000000_0x10000000")


def test_a_broker_that_counts_as_one_without_data_lists_nothing() -> None:
    view = seen(sweep(A, 0, RIGHT), sweep(B, 0, RIGHT, lastUpdate=T + 1), ticked(0, A, B)).without_data({A})
    assert len(view.other_claims.bundle) == 0
    assert lists(view, B, RIGHT)


def test_where_the_later_report_is_incomplete_the_other_broker_has_the_bundle() -> None:
    half = sweep(B, 0, RIGHT, lastUpdate=T + 1) | {"chunk": 0, "chunks": 2}
    view = seen(sweep(A, 0, RIGHT), half, ticked(0, A, B))
    assert view.missing == (B,)
    assert owner_of(view, RIGHT) == A


@pytest.mark.parametrize(("age", "missing"), [(1800, ()), (1801, (B,)), (3 * 3600, (B,))])
def test_a_report_that_stands_still_is_no_data_however_new_the_sweep_is(age: int, missing: tuple[str, ...]) -> None:
    late = sweep(B, 0, RIGHT, lastUpdate=T - age * 1000)
    view = seen(sweep(A, 0, LEFT), late, ticked(0, A, B), oldest_report=T - 1_800_000)
    assert view.missing == missing
    assert dict(view.outdated) == dict.fromkeys(missing, T - age * 1000)
    assert (RIGHT in view.bundles.code_of) == (not missing)


def test_a_report_without_a_time_counts() -> None:
    view = seen(sweep(A, 0, LEFT), sweep(B, 0, RIGHT, lastUpdate=0), ticked(0, A, B), oldest_report=T - PERIOD)
    assert view.missing == ()
