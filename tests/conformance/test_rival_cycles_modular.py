"""Rounds of the modular load manager, one after the other: bundles, destinations, splits, what is remembered.

Recorded by tests/java_rival/cycles.py; see tests/vectors/README.md.
"""

import pytest

from tests.conformance.cycle_differences import differences
from tests.conformance.vectors import Case

pytestmark = pytest.mark.slow

COMPONENT = "rival_cycles_modular"


def test_every_round_comes_to_what_pulsar_does(case: Case) -> None:
    assert list(differences(case)) == []
