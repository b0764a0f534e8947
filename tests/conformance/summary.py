"""What the tests on Pulsar's recorded answers come to, one line for each component, however many workers ran them."""

from dataclasses import asdict, dataclass
from typing import Any, Final

import pytest

#: The name under which a test tells what it is about.
PROPERTY: Final = "conformance"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """What tests of a component say of their cases."""

    component: str
    cases: int
    agree: int
    sensitive: int
    invariant: str
    elsewhere: str


def about(
    component: str, *, cases: int, agree: int, sensitive: int = 0, invariant: str = "", elsewhere: str = ""
) -> tuple[str, dict[str, Any]]:
    """What a test says of itself: so many cases it has, and so many of them agree.

    *sensitive* of them are order-sensitive, and *invariant* says what is checked of those; *elsewhere*: the folder that
    does not have *component*.
    """
    told = _Told(
        component=component, cases=cases, agree=agree, sensitive=sensitive, invariant=invariant, elsewhere=elsewhere
    )
    return PROPERTY, asdict(told)


class ConformanceSummary:
    """A plugin that counts what the reports tell: where there are workers, it sees those of all."""

    def __init__(self) -> None:
        #: Test -> what it tells.
        self._told: dict[str, _Told] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        told = dict(report.user_properties).get(PROPERTY)
        if report.when == "call" and isinstance(told, dict):
            self._told[report.nodeid] = _Told(**told)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._told:
            return
        terminalreporter.section("conformance with Pulsar")
        for told in sorted(self._told.values(), key=lambda told: told.component):
            note = f"  (not in {told.elsewhere}: the committed ones)" if told.elsewhere else ""
            terminalreporter.write_line(f"{told.component}: {told.agree} of {told.cases} cases agree{note}")
            if told.sensitive:
                terminalreporter.write_line(f"    {told.sensitive} of them order-sensitive: {told.invariant}")
