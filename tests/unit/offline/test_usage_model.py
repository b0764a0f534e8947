"""The model of the brokers' usage: what it finds, how far off it is, and that it says so."""

from typing import Any

import numpy as np
import pytest

from controller.model.load import CPU, MEMORY, RESOURCE_WORDS, Floats
from controller.offline.counterfactual.usage_model import (
    DRIVERS,
    ResourceFit,
    UsageModel,
    UsageSamples,
    fit_usage,
)

pytestmark = pytest.mark.slow

LIMIT = np.array([800.0, 8192.0, 16384.0, 1e6, 1e6])


def samples(cpu: Any, *, brokers: int = 4, intervals: int = 50, limits: Any = None, seed: int = 1) -> UsageSamples:
    """Brokers whose CPU is *cpu* of their (n, DRIVERS) load, a fraction; heap is chance, other resources are 0."""
    rng = np.random.default_rng(seed)
    n = brokers * intervals
    drivers = rng.uniform(0, 1, (n, len(DRIVERS))) * [1000, 2000, 1e6, 2e6, 500]
    broker = np.tile(np.arange(brokers), intervals)
    limit = np.tile(LIMIT, (n, 1)) if limits is None else np.array(limits)[broker][:, None] * LIMIT
    usage = np.zeros((n, len(RESOURCE_WORDS)))
    usage[:, CPU] = cpu(drivers, broker) * limit[:, CPU]
    usage[:, MEMORY] = rng.uniform(0.2, 0.9, n) * limit[:, MEMORY]
    return UsageSamples(
        interval=np.repeat(np.arange(intervals), brokers),
        broker=broker,
        brokers=tuple(f"broker-{i}" for i in range(brokers)),
        drivers=drivers,
        usage=usage,
        limit=limit,
    )


def of(model: UsageModel, resource: int = CPU) -> list[ResourceFit]:
    return [fit for fit in model.fits if fit.resource == RESOURCE_WORDS[resource]]


def linear(drivers: Floats, _broker: object) -> Floats:
    return 0.05 + 0.0003 * drivers[:, 0] + 1e-7 * drivers[:, 2]


def test_a_linear_world_is_found_exactly() -> None:
    model = fit_usage(samples(linear))
    (fit,) = of(model)
    assert fit.factors == pytest.approx((0.0003, 0, 1e-7, 0, 0), abs=1e-12)
    assert fit.constant == pytest.approx(0.05)
    assert fit.error < 1e-9 < fit.error_of_constant
    load = np.array([100.0, 0, 1e5, 0, 0])
    assert model.added("broker-2", load)[CPU] == pytest.approx(0.04)
    assert model.added("broker-2", -load)[CPU] == pytest.approx(-0.04)


def test_usage_that_does_not_follow_load_gets_no_factors() -> None:
    (heap,) = of(fit_usage(samples(linear)), MEMORY)
    assert heap.factors == (0.0,) * len(DRIVERS)
    assert heap.error == heap.error_of_constant > 0.1


def test_the_error_is_that_of_the_noise() -> None:
    noise = np.random.default_rng(2).normal(0, 0.02, 200)
    (fit,) = of(fit_usage(samples(lambda drivers, broker: linear(drivers, broker) + noise)))
    # Nine of ten errors of a normal distribution are below 1.64 standard deviations.
    assert fit.error == pytest.approx(1.64 * 0.02, rel=0.25)


def test_a_world_that_is_not_linear_has_an_error_that_says_so() -> None:
    fit, *_ = of(fit_usage(samples(lambda drivers, _: 0.05 + 0.7 * (drivers[:, 0] / 1000) ** 3)))
    assert 0.03 < fit.error < fit.error_of_constant


def test_a_few_wild_reports_change_nothing() -> None:
    wild = np.zeros(200)
    wild[[3, 77, 150]] = 0.4
    (fit,) = of(fit_usage(samples(lambda drivers, broker: linear(drivers, broker) + wild)))
    assert fit.factors == pytest.approx((0.0003, 0, 1e-7, 0, 0), abs=1e-9)


def test_reports_at_the_limit_do_not_count_because_more_may_have_been_asked_for() -> None:
    (fit,) = of(fit_usage(samples(lambda drivers, broker: np.minimum(1.0, 3 * linear(drivers, broker)))))
    assert fit.factors == pytest.approx((0.0009, 0, 3e-7, 0, 0), abs=1e-9)


def test_no_factor_is_below_zero() -> None:
    model = fit_usage(samples(lambda drivers, _: np.maximum(0.0, 0.8 - 0.0005 * drivers[:, 0])))
    assert all(factor >= 0 for fit in model.fits for factor in fit.factors)


def test_machine_classes_have_models_of_their_own() -> None:
    sizes = np.array([1.0, 1.0, 2.0, 2.0])
    model = fit_usage(samples(lambda drivers, broker: linear(drivers, broker) / sizes[broker], limits=sizes))
    assert [fit.brokers for fit in of(model)] == [2, 2]
    load = np.array([100.0, 0, 0, 0, 0])
    assert model.added("broker-0", load)[CPU] == pytest.approx(2 * model.added("broker-3", load)[CPU])


def test_a_broker_unlike_its_class_has_a_model_of_its_own() -> None:
    unlike = np.array([1.0, 1.0, 1.0, 2.5])
    model = fit_usage(samples(lambda drivers, broker: linear(drivers, broker) * unlike[broker]))
    assert "broker-3" in [fit.of for fit in of(model)]
    load = np.array([1000.0, 0, 0, 0, 0])
    assert model.added("broker-3", load)[CPU] == pytest.approx(0.75)
    assert model.error("broker-3")[CPU] < 1e-9


@pytest.mark.parametrize("n", [0, 1, 2])
def test_with_hardly_any_samples_nothing_fails(n: int) -> None:
    few = samples(linear, brokers=1, intervals=n)
    model = fit_usage(few)
    assert all(np.isfinite(fit.error) for fit in model.fits)
    assert np.isfinite(model.added("broker-0", np.ones(len(DRIVERS)))).all()


def test_a_broker_that_is_not_known_adds_nothing() -> None:
    model = fit_usage(samples(linear))
    assert not model.added("elsewhere:8080", np.ones(len(DRIVERS))).any()
    assert not model.error("elsewhere:8080").any()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_are_none_are_left_out(value: float) -> None:
    made = samples(linear)
    made.usage[5, CPU] = value
    made.drivers[9, 0] = value
    made.limit[12] = 0
    (fit,) = [each for each in of(fit_usage(made)) if each.brokers == 4]
    assert fit.factors == pytest.approx((0.0003, 0, 1e-7, 0, 0), abs=1e-9)
