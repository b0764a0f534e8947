from collections.abc import Mapping
from typing import Any

import numpy as np

from tests.conformance.brokers.report_needed import ReportedLoad, ReportUpdate
from tests.conformance.vectors import Case, configured, resources, rows_of_4

COMPONENT = "report_needs_update"


def test_a_report_is_needed_when_pulsar_says_so(case: Case) -> None:
    given = case["input"]
    policy = configured(ReportUpdate, case["config"])
    age = np.array([given["ms_since_last_update"]])
    assert policy.needed(_load(given["last"]), _load(given["local"]), age).tolist() == [
        case["expected"]["needs_update"]
    ]


def _load(data: Mapping[str, Any]) -> ReportedLoad:
    usage, limit = resources([data])
    return ReportedLoad(
        load=rows_of_4([data["load"]]), bundles=np.array([data["num_bundles"]]), usage=usage, limit=limit
    )
