"""Every broker over its limit at every interval: budgets hold in each interval and window, and everything settles."""

from pathlib import Path

import pytest

from tests.faults.audit import Findings
from tests.faults.overload import overloaded_site
from tests.faults.prove import prove_full_rebalance

pytestmark = [pytest.mark.e2e, pytest.mark.extended]


def test_nothing_is_issued_beyond_the_budgets_and_nothing_is_lost_or_done_twice_or_wrong(tmp_path: Path) -> None:
    with overloaded_site(tmp_path) as site:
        outcome = prove_full_rebalance(site, 1)
    assert outcome.findings == Findings()
    assert outcome.differences == []
    assert outcome.commands > 1
