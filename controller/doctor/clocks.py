"""Do the clocks agree, and is the log alive?  Intervals are cut by the collectors' clocks and judged by Kafka's."""

from collections.abc import Iterator, Mapping
from typing import Final

from controller.doctor.facts import Facts, MeasuredClock
from controller.doctor.finding import Finding, fine, warning

#: Synchronised clocks are closer than this.
_WORTH_TELLING_MS: Final = 2_000
_ADVICE: Final = "synchronise the clocks (chrony, ntpd) of this machine and of the other one"
#: Brokers report at least so often unless broker.conf says otherwise.
_REPORT_MINUTES: Final = 15.0
#: A cluster that has just started has no ticks yet; one that runs misses a few at most.
_TICKS_MISSED: Final = 3


def broker_clocks(facts: Facts) -> Iterator[Finding]:
    """clock-skew of brokers, by their HTTP Date."""
    measured = {b.name: b.clock for b in facts.pulsar.brokers if b.clock} if facts.pulsar else {}
    yield from _skews(facts, measured, "the broker's clock")


def kafka_clock(facts: Facts) -> Iterator[Finding]:
    """clock-skew of Kafka by its append time, kafka-not-writable."""
    kafka = facts.kafka
    if kafka is None or kafka.error:
        return
    if kafka.clock_error:
        yield warning(
            "kafka-not-writable",
            kafka.log.bootstrap,
            observed=kafka.clock_error,
            expected="a record appended to the dead letters, in a transaction that is then aborted",
            advice="allow trimtab to write, idempotently and in transactions whose id begins with trimtab-",
        )
    if kafka.clock is not None:
        yield from _skews(facts, {kafka.log.bootstrap: kafka.clock}, "Kafka's append time")


def report_times(facts: Facts) -> Iterator[Finding]:
    """load-report-time: reports from the future, and old ones."""
    if facts.pulsar is None:
        return
    reports = 0
    problems = []
    for broker in facts.pulsar.brokers:
        if broker.report_ahead_ms is None:
            continue
        reports += 1
        oldest_ms = 2 * _minutes(broker.settings or {}) * 60_000
        if -oldest_ms <= broker.report_ahead_ms <= _WORTH_TELLING_MS:
            continue
        ahead = broker.report_ahead_ms > 0
        problems.append(
            warning(
                "load-report-time",
                broker.name,
                observed=f"its load report is {_direction(broker.report_ahead_ms)}",
                expected=f"at most {oldest_ms / 60_000:g} min old, and not from the future",
                advice=_ADVICE if ahead else "see the broker's log: its load manager has stopped reporting",
            )
        )
    yield from problems
    if reports and not problems:
        names = [broker.name for broker in facts.pulsar.brokers if broker.report_ahead_ms is not None]
        yield fine("load-report-time", names, "fresh")


def metrics_flow(facts: Facts) -> Iterator[Finding]:
    """metrics-not-flowing, metrics-unknown: the age of the last tick."""
    intervals = facts.settings.intervals
    kafka = facts.kafka
    if kafka is not None and kafka.error:
        return  # told already
    no_topic = kafka is not None and kafka.log.results_topic not in kafka.topics
    if facts.last_tick_error and not no_topic:
        yield warning(
            "metrics-unknown",
            "ticks",
            observed=facts.last_tick_error,
            expected="the last tick of the log",
            advice="see the findings about the log",
        )
        return
    if facts.last_tick is None:
        yield warning(
            "metrics-not-flowing",
            "ticks",
            observed="no tick in the log",
            expected=f"one every {intervals.period_seconds} s",
            advice="start `trimtab collect`: nothing is decided without ticks",
        )
        return
    age_seconds = (facts.now_ms - facts.last_tick) / 1000
    if age_seconds <= _TICKS_MISSED * intervals.period_seconds:
        yield fine("metrics-flow", ["ticks"], f"the last tick is {age_seconds:.0f} s old")
        return
    yield Finding(
        code="metrics-not-flowing",
        severity="error" if age_seconds > intervals.stale_after_seconds else "warning",
        objects=("ticks",),
        observed=f"the last tick is {age_seconds:.0f} s old",
        expected=f"one every {intervals.period_seconds} s; too old after {intervals.stale_after_seconds} s",
        advice="start `trimtab collect`, or see its log",
    )


def _skews(facts: Facts, measured: dict[str, MeasuredClock], whose: str) -> Iterator[Finding]:
    wrong = {name: clock for name, clock in measured.items() if clock.surely_off_by_ms() > _WORTH_TELLING_MS}
    # With clocks half a period apart, an interval is taken for the one before or after it.
    too_far_ms = facts.settings.intervals.period_ms / 2
    for name, clock in wrong.items():
        yield Finding(
            code="clock-skew",
            severity="error" if clock.surely_off_by_ms() > too_far_ms else "warning",
            objects=(name,),
            observed=f"{whose} is {_direction(clock.ahead_ms)}, give or take {clock.give_or_take_ms / 1000:.1f} s",
            expected=f"a difference of less than {_WORTH_TELLING_MS / 1000:g} s",
            advice=_ADVICE,
        )
    if measured and not wrong:
        yield fine("clocks", measured, f"{whose}: within {_WORTH_TELLING_MS / 1000:g} s")


def _direction(ahead_ms: float) -> str:
    return f"{abs(ahead_ms) / 1000:.1f} s {'ahead of' if ahead_ms > 0 else 'behind'} ours"


def _minutes(settings: Mapping[str, str]) -> float:
    text = settings.get("loadBalancerReportUpdateMaxIntervalMinutes", "")
    return float(text) if text.isdigit() else _REPORT_MINUTES
