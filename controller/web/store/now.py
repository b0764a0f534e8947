"""The last interval as the page shows it."""

import math
from functools import lru_cache

from controller.model.load import MEMORY, RESOURCES
from controller.model.summary import IntervalSummary
from controller.web.store.decisions import details_in
from controller.web.store.filling import Latest
from controller.web.store.values import BreakerState, BrokerNow, BrokerStates, InFlightCommand, LatestState


@lru_cache(maxsize=2)
def latest_state(latest: Latest) -> LatestState:
    """The cluster as of the last interval."""
    summary, guarding, totals = latest.summary, latest.summary.guarding, latest.summary.totals
    return LatestState(
        cluster=summary.cluster,
        epoch=summary.epoch,
        interval=summary.interval,
        period_ms=summary.period_ms,
        decided_at_ms=summary.decided_at_ms,
        tick_to_decision_ms=summary.tick_to_decision_ms,
        summary=summary.summary,
        controls=guarding.controls,
        budgets=details_in(latest.details)[0],
        breaker=BreakerState(
            in_a_row=guarding.breaker.in_a_row,
            most_in_a_row=guarding.most_in_a_row,
            in_window=guarding.failures_in_window,
            most_in_window=guarding.most_in_window,
            tripped_at=guarding.breaker.tripped_at,
            why=guarding.breaker.why,
        ),
        in_flight=tuple(
            InFlightCommand(
                id=key,
                action=each.action,
                bundle=each.bundle,
                source=each.source,
                destination=each.destination,
                interval=each.interval,
                expires_at_ms=each.expires_at_ms,
            )
            for key, each in guarding.in_flight.items()
        ),
        in_flight_total=guarding.in_flight_total,
        joined=guarding.joined,
        departed=guarding.departed,
        brokers_balance=guarding.brokers_balance,
        proposed=guarding.proposed,
        brokers=totals.brokers,
        brokers_without_data=totals.brokers_without_data,
        bundles=totals.bundles,
        namespaces=totals.namespaces,
        topics=totals.topics,
        connections=totals.connections,
        rate=totals.rate,
        throughput=totals.throughput,
        reasons=summary.judged.reasons,
        pulsar=summary.pulsar,
    )


@lru_cache(maxsize=2)
def broker_states(latest: Latest) -> BrokerStates:
    """All brokers, the fullest first."""
    brokers = [_broker(latest, row) for row in range(len(latest.summary.brokers.names))]
    brokers.sort(key=lambda each: (not each.has_data, -(each.fullest_usage or 0.0), each.name))
    summary = latest.summary
    return BrokerStates(
        interval=summary.interval,
        limit=summary.limit,
        goal=summary.goal,
        brokers=tuple(brokers),
        not_listed=not_listed(summary),
    )


def not_listed(summary: IntervalSummary) -> int:
    """Brokers of the cluster that *summary* had no room for."""
    return max(0, summary.totals.brokers - len(summary.brokers.names))


def _broker(latest: Latest, row: int) -> BrokerNow:
    table, controls = latest.summary.brokers, latest.summary.guarding.controls
    has_data = bool(table.has_data[row])
    percents = dict(zip(RESOURCES, table.usage[row].tolist(), strict=True))
    usage = {name: None if math.isnan(percent) else percent for name, percent in percents.items()}
    # Heap memory says little, so it is never the fullest.
    counted = {name: percent for name, percent in usage.items() if percent is not None and name != RESOURCES[MEMORY]}
    fullest = max(counted, key=counted.__getitem__, default="")
    rate_in, rate_out, throughput_in, throughput_out = table.load[row].tolist() if has_data else [None] * 4
    return BrokerNow(
        name=table.names[row],
        has_data=has_data,
        drained=table.names[row] in controls.drained,
        usage=usage,
        fullest=fullest,
        fullest_usage=counted.get(fullest),
        forecast=None if math.isnan(table.forecast[row]) else float(table.forecast[row]),
        rate_in=rate_in,
        rate_out=rate_out,
        throughput_in=throughput_in,
        throughput_out=throughput_out,
        bundles=int(table.bundles[row]) if has_data else None,
        topics=int(table.topics[row]) if has_data else None,
        connections=int(table.connections[row]) if has_data else None,
    )
