"""What the tests on Pulsar's recorded answers come to, one line for each component, however many workers ran them."""

from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any, Final

import pytest

#: The name under which a test tells what it is about.
PROPERTY: Final = "conformance"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """What tests of a component say of their cases."""

    component: str
    release: str
    cases: int
    agree: int
    known: int
    sensitive: int
    invariant: str
    elsewhere: str


def about(
    component: str,
    *,
    cases: int,
    agree: int,
    release: str = "",
    known: int = 0,
    sensitive: int = 0,
    invariant: str = "",
    elsewhere: str = "",
) -> tuple[str, dict[str, Any]]:
    """What a test says of itself: so many cases it has, and so many of them agree with *release* of Pulsar.

    *known* others are known to be decided otherwise.  *sensitive* cases are order-sensitive, and *invariant* says what
    is checked of those; *elsewhere*: the folder that does not have *component*.
    """
    told = _Told(
        component=component,
        release=release,
        cases=cases,
        agree=agree,
        known=known,
        sensitive=sensitive,
        invariant=invariant,
        elsewhere=elsewhere,
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
        order = sorted(self._told.values(), key=lambda told: (told.component, told.release))
        for component, group in groupby(order, key=lambda told: told.component):
            tests = list(group)
            found = ", ".join(_agreement(told) for told in tests)
            note = f"  (not in {tests[0].elsewhere}: the committed ones)" if tests[0].elsewhere else ""
            terminalreporter.write_line(f"{component}: {found}{note}")
            if sensitive := max(told.sensitive for told in tests):
                invariant = max(told.invariant for told in tests)
                terminalreporter.write_line(f"    {sensitive} of them order-sensitive: {invariant}")


def _agreement(told: _Told) -> str:
    of_release = f" with {told.release}" if told.release else ""
    known = f", {told.known} known to differ" if told.known else ""
    return f"{told.agree} of {told.cases} cases agree{of_release}{known}"
