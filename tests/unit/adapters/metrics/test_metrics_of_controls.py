"""How long a pause, a drained broker and a mode have been in force is shown on the controller's metrics page."""

import math
from dataclasses import replace

import pytest

from controller.adapters.metrics.controller import ControllerMetrics
from controller.model.controls import Controls, Pause
from controller.model.journal import DecidedInterval
from tests.journal_entries import entry

T = 1_735_689_600_000
ALICE, BOB = Pause(by="alice", reason="", at_ms=T + 1000), Pause(by="bob", reason="", at_ms=T + 5000)
PAUSED, DRAINED = "trimtab_paused_since_timestamp_seconds", "trimtab_drained_since_timestamp_seconds"


def shown(*decided: tuple[int, Controls]) -> ControllerMetrics:
    """The metrics after intervals with their controls."""
    metrics = ControllerMetrics()
    for interval, controls in decided:
        made = replace(entry(interval), controls=controls)
        metrics.decided(
            DecidedInterval(
                entry=replace(made, memory=replace(made.memory, last_interval=interval)),
                journalled=True,
                too_large=None,
                dropped_rows=0,
                dropped_states=0,
                bundles=0,
                settled=(),
            ),
            now_ms=0,
        )
    return metrics


def value(metrics: ControllerMetrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


@pytest.mark.parametrize(
    ("pauses", "since"),
    [
        ((ALICE, BOB), T / 1000 + 1),
        ((replace(ALICE, until_ms=T * 2), BOB), T / 1000 + 5),
        ((replace(ALICE, until_ms=T * 2),), math.nan),
    ],
)
def test_the_oldest_pause_counts_that_does_not_end_by_itself(pauses: tuple[Pause, ...], since: float) -> None:
    found = value(shown((T, Controls(mode="active", paused=True, pauses=pauses))), PAUSED)
    assert found == pytest.approx(since, nan_ok=True)


def test_a_pause_of_the_settings_counts_from_the_first_interval_that_was_decided_so() -> None:
    paused, running = Controls(mode="active", paused=True), Controls(mode="active")
    assert value(shown((T, running), (T + 60_000, paused), (T + 120_000, paused)), PAUSED) == T / 1000 + 60
    assert math.isnan(value(shown((T, paused), (T + 60_000, running)), PAUSED) or 0)


def test_a_mode_counts_from_when_it_was_set_and_others_have_no_time() -> None:
    metrics = shown((T, Controls(mode="dry_run", mode_since_ms=T - 8000)))
    assert value(metrics, "trimtab_mode_since_timestamp_seconds", mode="dry_run") == T / 1000 - 8
    assert math.isnan(value(metrics, "trimtab_mode_since_timestamp_seconds", mode="active") or 0)
    by_settings = shown((T, Controls(mode="dry_run")), (T + 60_000, Controls(mode="dry_run")))
    assert value(by_settings, "trimtab_mode_since_timestamp_seconds", mode="dry_run") == T / 1000


def test_drained_brokers_are_counted_with_the_time_of_the_first() -> None:
    metrics = shown((T, Controls(mode="active", drained=("a:8080", "b:8080"), drained_since_ms=T - 3000)))
    assert (value(metrics, "trimtab_drained_brokers"), value(metrics, DRAINED)) == (2, T / 1000 - 3)
    assert math.isnan(value(shown((T, Controls(mode="active"))), DRAINED) or 0)


def test_what_persons_excluded_is_counted() -> None:
    excluded = Controls(mode="active", excluded=("acme/billing", "acme/orders"))
    assert value(shown((T, excluded)), "trimtab_excluded_names") == 2
    assert value(shown((T, excluded), (T + 60_000, Controls(mode="active"))), "trimtab_excluded_names") == 0
