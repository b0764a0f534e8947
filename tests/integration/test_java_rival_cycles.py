"""The real load managers of Pulsar, and trimtab's cycle, on the same random clusters over several rounds.

The same cases each time, unless ``TRIMTAB_RIVAL_SEED`` names another seed; ``TRIMTAB_RIVAL_CASES`` says how many each
load manager gets, and ``TRIMTAB_RIVAL_PULSAR`` which release answers.
"""

import os
from collections.abc import Iterator
from itertools import islice
from typing import Final

import pytest

from controller.model.errors import TrimtabError
from tests.conformance.cycle_differences import differences
from tests.java_rival.cycles import MANAGERS, Driver
from tests.java_rival.releases import named

pytestmark = pytest.mark.integration

_SEED: Final = os.environ.get("TRIMTAB_RIVAL_SEED", "1")
_CASES: Final = int(os.environ.get("TRIMTAB_RIVAL_CASES", "100"))
#: So many differing cases are shown.
_SHOWN: Final = 3


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """A JVM with the load managers, compiled once."""
    try:
        named().jars()
    except TrimtabError as error:
        pytest.skip(f"without the jars of the classes: {error}")
    with Driver(named(), tmp_path_factory.mktemp("cycles")) as started:
        yield started


@pytest.mark.parametrize("manager", MANAGERS)
def test_every_round_comes_to_what_pulsar_does(manager: str, driver: Driver) -> None:
    cases = (MANAGERS[manager](driver, _SEED, number) for number in range(_CASES))
    differing = ((case["case"], found) for case in cases if (found := list(differences(case))))
    assert list(islice(differing, _SHOWN)) == []
