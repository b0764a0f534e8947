"""Each release of Pulsar, and trimtab set up as that release, on the same random cases.

Single classes one by one, then whole load managers over several rounds.  The same cases each time, unless
``TRIMTAB_RIVAL_SEED`` names another seed; ``TRIMTAB_RIVAL_CASES`` says how many each class and load manager gets, and
``TRIMTAB_RIVAL_PULSAR`` which release alone answers.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from itertools import islice
from typing import Final

import pytest

from controller.model.errors import TrimtabError
from tests.conformance.checks import check
from tests.conformance.cycle_differences import differences
from tests.java_rival import answers, random_inputs
from tests.java_rival.cycles import MANAGERS
from tests.java_rival.driver import Driver
from tests.java_rival.releases import USUAL, Release, releases_to_run

pytestmark = [pytest.mark.integration, pytest.mark.extended, pytest.mark.parametrize("release", releases_to_run())]

_SEED: Final = os.environ.get("TRIMTAB_RIVAL_SEED", "1")
#: The usual release is asked more: the others mostly answer the same.
_CASES: Final = {USUAL: 100}
_OF_OTHERS: Final = 25
#: Class and release -> why trimtab decides otherwise.
#: So many differing cases are shown.
_SHOWN: Final = 3


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Driver]]:
    """The JVM with the classes of a release, compiled once."""
    with ExitStack() as started:

        @cache
        def of(version: str) -> Driver:
            try:
                Release(version).jars()
            except TrimtabError as error:
                pytest.skip(f"without the jars of the classes: {error}")
            return started.enter_context(Driver(Release(version), tmp_path_factory.mktemp("rival")))

        yield of


def _count(release: str) -> int:
    return int(os.environ.get("TRIMTAB_RIVAL_CASES") or _CASES.get(release, _OF_OTHERS))


@pytest.mark.parametrize("component", random_inputs.COMPONENTS)
def test_a_class_answers_as_ours(
    component: str, release: str, driver: Callable[[str], Driver], request: pytest.FixtureRequest
) -> None:
    failures = []
    for number in range(_count(release)):
        case = random_inputs.case(component, _SEED, number)
        case |= {"pulsar": release, "expected": answers.ask(driver(release), component, case)}
        try:
            check(component, case)
        except Exception as error:
            error.add_note(f"in case {case['case']}: {case}")
            failures.append(error)
    if failures:
        raise ExceptionGroup(f"{len(failures)} of {_count(release)} cases differ", failures[:_SHOWN])


@pytest.mark.parametrize("manager", MANAGERS)
def test_every_round_comes_to_what_pulsar_does(manager: str, release: str, driver: Callable[[str], Driver]) -> None:
    cases = (MANAGERS[manager](driver(release), _SEED, number) for number in range(_count(release)))
    differing = ((case["case"], found) for case in cases if (found := list(differences(case))))
    assert list(islice(differing, _SHOWN)) == []
