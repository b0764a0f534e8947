"""The real classes of Pulsar and Kafka Connect, and ours, on the same random cases, answered line by line.

The same cases each time, unless ``TRIMTAB_RIVAL_SEED`` names another seed; ``TRIMTAB_RIVAL_CASES`` says how many each
component gets.
"""

import os
from collections.abc import Callable
from functools import cache
from itertools import islice
from pathlib import Path
from random import Random
from typing import Final

import pytest

from controller.model.errors import TrimtabError
from tests.java_rival.asking import Driver, differing
from tests.java_rival.components import COMPONENTS, Rival

pytestmark = [pytest.mark.integration, pytest.mark.extended]

_SEED: Final = os.environ.get("TRIMTAB_RIVAL_SEED", "1")
_CASES: Final = int(os.environ.get("TRIMTAB_RIVAL_CASES", "100"))
#: So many differing cases are shown.
_SHOWN: Final = 3


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Rival], Driver]:
    """The driver of a rival, compiled once."""

    @cache
    def compiled(rival: Rival) -> Driver:
        folder: Path = tmp_path_factory.mktemp("driver")
        try:
            fetched = rival.fetched()
        except TrimtabError as error:
            pytest.skip(f"without the jars of the classes: {error}")
        return Driver(rival.driver, rival.main, fetched, folder, rival.java())

    return compiled


@pytest.mark.parametrize("component", COMPONENTS)
def test_the_class_in_java_answers_as_ours(component: str, driver: Callable[[Rival], Driver]) -> None:
    rival, play = COMPONENTS[component]
    cases = [list(play(Random(f"{_SEED}/{component}/{number}"))) for number in range(_CASES)]
    said = driver(rival).answers([asked.line for case in cases for asked in case])
    assert list(islice(differing(cases, said), _SHOWN)) == []
