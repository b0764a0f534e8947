"""What came of PeakShedder's moves is shown on the controller's metrics page."""

import pytest

from controller.adapters.metrics.controller import ControllerMetrics
from controller.model.journal import DecidedInterval
from controller.model.strategy_memory import NoMemory, StrategyMemory
from controller.strategies.shedding.peak_shedder.memory import PeakHistory, Proven
from tests.journal_entries import entry


def shown(memory: StrategyMemory) -> dict[str, float]:
    """The samples about plans and promises, after an interval with *memory*."""
    metrics = ControllerMetrics()
    metrics.decided(
        DecidedInterval(
            entry=entry(shedder=memory),
            journalled=True,
            too_large=None,
            dropped_rows=0,
            dropped_states=0,
            bundles=0,
            settled=(),
        ),
        now_ms=0,
    )
    wanted = ("trimtab_plan_gap", "trimtab_prediction_error", "trimtab_verified_moves")
    return {
        f"{sample.name} {sample.labels.get('outcome', '')}".strip(): sample.value
        for family in metrics.registry.collect()
        if family.name in wanted
        for sample in family.samples
    }


def test_the_gap_the_error_and_what_became_of_moves_are_shown() -> None:
    found = shown(PeakHistory(proven=Proven(error=0.04, verified=9, broken=3, strayed=2, gap=0.015)))
    assert found == pytest.approx(
        {
            "trimtab_plan_gap": 0.015,
            "trimtab_prediction_error": 0.04,
            "trimtab_verified_moves all": 9,
            "trimtab_verified_moves broken": 3,
            "trimtab_verified_moves strayed": 2,
        }
    )


def test_other_shedders_have_no_promises() -> None:
    assert "trimtab_verified_moves all" not in shown(NoMemory())
