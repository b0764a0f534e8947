"""The fault tests' own count of budgets finds an interval, and a window, that issued too much."""

from controller.cycle.limits import Budget, Limits
from controller.model.decision import Command
from tests.commands import B, C, unload
from tests.faults.budgets import over_budget
from tests.unit.faults.test_fault_audit import decided

PERIOD = 60_000


def moves(number: int, **changes: str) -> tuple[Command, ...]:
    bundles = (f"tenant/ns-{nth}/0x00000000_0x40000000" for nth in range(number))
    return tuple(unload(bundle, id=f"{bundle} {changes}", **changes) for bundle in bundles)


def test_what_is_within_the_budgets_is_no_finding() -> None:
    limits = Limits(
        interval=Budget(unloads=2, unloads_per_destination=2), window=Budget(unloads=4), window_ms=2 * PERIOD
    )
    assert over_budget([decided(nth, *moves(2)) for nth in range(3)], limits) == []


def test_too_many_unloads_of_an_interval_are_found_for_each_scope() -> None:
    limits = Limits(interval=Budget(unloads=3, unloads_per_destination=1, unloads_per_namespace=1))
    entry = decided(0, *moves(2, destination=B), *moves(2, destination=C))
    cluster, b, *_ = over_budget([entry], limits)
    assert cluster.endswith("4 unloads of the cluster cluster, the budget is 3")
    assert f"2 unloads of destination {B}" in b


def test_too_many_unloads_of_a_window_are_found_at_its_end() -> None:
    limits = Limits(window=Budget(unloads=5), window_ms=2 * PERIOD)
    entries = [decided(0, *moves(3)), decided(1, *moves(3)), decided(2, *moves(2))]
    [found] = over_budget(entries, limits)
    assert f"the window that ends with {entries[1].entry.interval}: 6 unloads" in found
