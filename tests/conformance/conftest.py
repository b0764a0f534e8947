"""Runs the tests of this folder on recorded answers of Pulsar's own classes.

A module names its ``COMPONENT``; a test with a ``case`` argument goes through all cases of that component, as each
release of Pulsar answers them, and names those that fail.  Nothing is ever skipped.  For order-sensitive cases the
module's docstring names the invariant that is checked.  ``known_differences`` lists what trimtab decides otherwise:
these cases have to fail.

TRIMTAB_VECTORS=<folder> runs the same tests on other vectors of the same format; a component without a file there
is tested on the committed ones, and the summary says so.  TRIMTAB_CASE=<name> runs one case alone.
"""

import os
from collections.abc import Collection, Sequence
from typing import Any, Final

import pytest

from tests.conformance import recorded
from tests.conformance.known_differences import known
from tests.conformance.summary import about
from tests.effort import PLAIN
from tests.java_rival.answers import VECTORS

_ONLY: Final = os.environ.get("TRIMTAB_CASE")
#: Of many cases that fail the first so many are shown.
_SHOWN: Final = 5
#: Plain pytest tries about so many cases of a component, spread over all of them; scripts/test tries all.
_PLAIN_CASES: Final = 20


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test for each release of Pulsar that has answered the component's cases."""
    if "case" in metafunc.fixturenames:
        component: str = metafunc.module.COMPONENT
        releases = recorded.releases(component)
        if _ONLY:  # with the releases that have it; with all where none has, so that a test says so
            releases = tuple(release for release in releases if _cases(component, release)) or releases
        if releases:
            metafunc.parametrize("case", [_param(release) for release in releases], indirect=True)


def _param(release: str) -> Any:
    """Plain pytest tries the base release, scripts/test all of them."""
    return pytest.param(release, marks=() if release == recorded.BASE else pytest.mark.slow)


@pytest.fixture
def case() -> None:
    """A case of the module's component; see pytest_pyfunc_call."""


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Call a test with each of its cases: as tests of their own they would take more time around them than inside."""
    if "case" not in pyfuncitem.fixturenames:
        return None
    component: str = pyfuncitem.module.COMPONENT
    callspec = getattr(pyfuncitem, "callspec", None)
    release: str = callspec.params["case"] if callspec else recorded.BASE
    cases = _cases(component, release)
    if pyfuncitem.config.option.markexpr == PLAIN:
        cases = cases[:: max(1, len(cases) // _PLAIN_CASES)]
    if not cases:
        raise pytest.UsageError(f"{recorded.source(component, release)}: no case of {component} to run")
    failures = {case["case"]: error for case in cases if (error := _failure(pyfuncitem, case))}
    to_differ = _known(component, release, cases)
    _tell(pyfuncitem, release, cases, len(failures), len(to_differ))
    wrong = [error for name, error in failures.items() if name not in to_differ]
    wrong += [AssertionError(f"{name} agrees: take it off known_differences") for name in to_differ - failures.keys()]
    if wrong:
        raise ExceptionGroup(f"{len(wrong)} of {len(cases)} cases of {component} fail", wrong[:_SHOWN])
    return True


def _cases(component: str, release: str) -> list[dict[str, Any]]:
    return [case for case in recorded.cases(component, release) if _ONLY in (None, case["case"])]


def _failure(test: pytest.Function, case: dict[str, Any]) -> Exception | None:
    try:
        test.obj(case=case)
    except Exception as error:
        error.add_note(f"in case {case['case']} (TRIMTAB_CASE={case['case']} runs it alone)")
        return error
    except pytest.fail.Exception as error:  # not an Exception: what should raise does not
        return AssertionError(f"{error} in case {case['case']}")
    return None


def _known(component: str, release: str, cases: Collection[dict[str, Any]]) -> set[str]:
    """The *cases* that are known to fail; of vectors that are not the committed ones, none."""
    if recorded.source(component, release) != VECTORS:
        return set()
    return known(component, release) & {case["case"] for case in cases}


def _tell(test: pytest.Function, release: str, cases: Sequence[dict[str, Any]], failed: int, to_differ: int) -> None:
    """The test says what the summary at the end counts it for."""
    component: str = test.module.COMPONENT
    sensitive = sum(bool(case.get("order_sensitive")) for case in cases)
    told = about(
        component,
        # Cases may name the release; those of no class of Pulsar's have none.
        release=", ".join(sorted({case["pulsar"] for case in cases})) if hasattr(test, "callspec") else "",
        cases=len(cases),
        agree=len(cases) - failed,
        known=to_differ,
        sensitive=sensitive,
        invariant=" ".join(test.module.__doc__.split()) if sensitive else "",
        elsewhere="" if recorded.source(component, release) == recorded.FOLDER else str(recorded.FOLDER),
    )
    test.user_properties.append(told)
