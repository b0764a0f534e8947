"""Whole cycles under the modular load manager: shedder, filters and placement together.

Not recorded: what is expected follows from what Pulsar's sources say, and each case's note tells how.
"""

from tests.conformance.vectors import Case
from tests.conformance.whole_cycles import check

COMPONENT = "whole_cycle_modular"


def test_the_same_bundles_go_where_pulsar_would_send_them(case: Case) -> None:
    check(case)
