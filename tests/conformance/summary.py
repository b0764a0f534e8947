"""What the tests on Pulsar's recorded answers come to, one line for each component, however many workers ran them."""

from collections import Counter
from typing import Final

import pytest

#: The name under which a test tells what it is about.
PROPERTY: Final = "conformance"


def about(component: str, *, invariant: str = "", elsewhere: str = "") -> tuple[str, dict[str, str]]:
    """What a test says of itself.

    *invariant*: what is checked of an order-sensitive case; *elsewhere*: the folder that does not have *component*.
    """
    return PROPERTY, {"component": component, "invariant": invariant, "elsewhere": elsewhere}


class ConformanceSummary:
    """A plugin that counts the reports: where there are workers, it sees those of all."""

    def __init__(self) -> None:
        self._passed: Counter[str] = Counter()
        self._ran: Counter[str] = Counter()
        self._sensitive: Counter[str] = Counter()
        #: Component -> what is checked for its order-sensitive cases.
        self._invariants: dict[str, str] = {}
        #: Component -> the folder without it.
        self._elsewhere: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        told = dict(report.user_properties).get(PROPERTY)
        if report.when != "call" or not isinstance(told, dict):
            return
        component = told["component"]
        self._ran[component] += 1
        self._passed[component] += report.passed
        if told["invariant"]:
            self._sensitive[component] += 1
            self._invariants[component] = told["invariant"]
        if told["elsewhere"]:
            self._elsewhere[component] = told["elsewhere"]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._ran:
            return
        terminalreporter.section("conformance with Pulsar")
        for component in sorted(self._ran):
            folder = self._elsewhere.get(component)
            note = f"  (not in {folder}: the committed ones)" if folder else ""
            agree = f"{self._passed[component]} of {self._ran[component]} cases agree"
            terminalreporter.write_line(f"{component}: {agree}{note}")
            if component in self._invariants:
                invariant = self._invariants[component]
                terminalreporter.write_line(f"    {self._sensitive[component]} of them order-sensitive: {invariant}")
