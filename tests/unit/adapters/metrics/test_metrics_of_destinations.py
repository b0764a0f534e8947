"""Brokers that do not list what was moved to them are counted on the controller's metrics page."""

from dataclasses import replace

from controller.adapters.metrics.controller import ControllerMetrics
from controller.cycle.limits import Limits
from controller.model.journal import DecidedInterval
from controller.model.memory import BrokerDeaths, Destination, FatalBundle, UnlistedBundle
from tests.journal_entries import entry
from tests.records import T


def test_brokers_moves_and_unlisted_bundles_are_counted() -> None:
    late = {bundle: UnlistedBundle(answered=T, sweeps=3, verified=True) for bundle in ("x/y/1", "x/y/2")}
    destinations = {
        "a:8080": Destination(unlisted=late),
        "b:8080": Destination(listed=4, unlisted={"x/y/3": UnlistedBundle(answered=T)}),
    }
    journalled = entry()
    deaths = BrokerDeaths(fatal={"x/y/4": FatalBundle(at=T, deaths=9)})
    memory = replace(journalled.memory, destinations=destinations, deaths=deaths)
    metrics = ControllerMetrics()
    metrics.limit_by(Limits(confirm_intervals=3))
    metrics.decided(
        DecidedInterval(
            entry=replace(journalled, memory=memory),
            journalled=True,
            too_large=None,
            dropped_rows=0,
            dropped_states=0,
            bundles=0,
            settled=(),
        ),
        now_ms=0,
    )
    found = {
        name: metrics.registry.get_sample_value(f"trimtab_{name}")
        for name in ("unconfirmed_brokers", "unconfirmed_moves", "unlisted_bundles", "fatal_bundles")
    }
    assert found == {"unconfirmed_brokers": 1, "unconfirmed_moves": 2, "unlisted_bundles": 3, "fatal_bundles": 1}
