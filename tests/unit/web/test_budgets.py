"""Budgets as meters."""

from controller.web.store.values import BudgetUse
from controller.web.views.budgets import fullest, tightest
from controller.web.views.formats import BrokerNames


def test_of_many_budgets_those_that_are_fullest_are_shown_in_their_order() -> None:
    used = {"interval.unloads": 1, "window.unloads": 90, "window.splits": 0, "window.connections": 50}
    budgets = [BudgetUse(key=key, scope="cluster", of="", used=use, limit=100, unit="") for key, use in used.items()]
    found = tightest(budgets, BrokerNames())
    assert [meter.key for meter in fullest(found, 2)] == ["window.unloads", "window.connections"]
    assert fullest(found, 9) == found
