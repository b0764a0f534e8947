"""What bundles take of a resource, estimated from what brokers report."""

import numpy as np
import pytest

from controller.model.load import Floats
from controller.planning.shares import fitted

CHANCE = np.random.default_rng(1)
LOAD = CHANCE.uniform(1, 10, (30, 3))


def test_the_factors_are_found_again() -> None:
    fit = fitted(5.0 + LOAD @ [2.0, 0.5, 3.0], LOAD)
    assert fit.factors == pytest.approx((2.0, 0.5, 3.0))
    assert fit.constant == pytest.approx(5.0)
    assert fit.error < 1e-4


def test_noise_is_told_as_error() -> None:
    exact = LOAD @ [2.0, 0.0, 0.0]
    fit = fitted(exact * (1 + 0.1 * CHANCE.standard_normal(30)), LOAD)
    assert fit.factors == pytest.approx((2.0, 0.0, 0.0), rel=0.1)
    assert 0.05 < fit.error < 0.2


def test_drivers_that_always_go_together_count_once() -> None:
    together = np.stack([LOAD[:, 0], LOAD[:, 0] * 1000, LOAD[:, 0] * 7], axis=1)
    fit = fitted(LOAD[:, 0] * 4, together)
    assert together @ np.array(fit.factors) == pytest.approx(LOAD[:, 0] * 4)
    assert sum(factor > 0 for factor in fit.factors) == 1


@pytest.mark.parametrize(("apart", "told"), [(4e-6, True), (4e-7, False)])
def test_drivers_of_which_a_millionth_is_not_common_are_told_apart(apart: float, told: bool) -> None:
    one, other = LOAD[:, 0], LOAD[:, 1]
    aside = other - one * (other @ one) / (one @ one)
    nearly = one + aside * np.sqrt(apart * (one @ one) / (aside @ aside))
    both = np.stack([one, nearly, np.zeros(30)], axis=1)
    fit = fitted(both @ [2.0, 3.0, 0.0], both)
    assert (fit.factors == pytest.approx((2.0, 3.0, 0.0), rel=0.01)) is told


def test_usage_that_does_not_follow_load_is_constant() -> None:
    fit = fitted(np.full(30, 40.0), LOAD)
    assert fit.factors == (0.0, 0.0, 0.0)
    assert fit.constant == pytest.approx(40.0)


def test_no_factor_is_below_0() -> None:
    fit = fitted(100 - 5 * LOAD[:, 0], LOAD)
    assert min(*fit.factors, fit.constant) >= 0


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_few_brokers_have_a_fit(n: int) -> None:
    fit = fitted(LOAD[:n, 0] * 2, LOAD[:n])
    assert all(np.isfinite([*fit.factors, fit.constant, fit.error]))
    if n > 1:
        assert fit.factors == pytest.approx((2.0, 0.0, 0.0))


def test_without_load_all_usage_is_constant() -> None:
    fit = fitted(np.array([10.0, 10.0, 10.0]), np.zeros((3, 3)))
    assert fit.factors == (0.0, 0.0, 0.0)
    assert fit.constant == pytest.approx(10.0)


def almost_even(brokers: int, seed: int) -> tuple[Floats, Floats]:
    """Usage of 5 and 60 more with the mean load, and drivers: 1 % apart, with a noise of 2 %."""
    chance = np.random.default_rng(seed)
    load = 2000 * (1 + 0.01 * chance.standard_normal(brokers))
    usage = (5 + 60 * load / 2000) * (1 + 0.02 * chance.standard_normal(brokers))
    return usage, np.stack([load, load * 500, load * 500], axis=1)


@pytest.mark.parametrize("brokers", [3, 5, 20])
def test_in_an_even_cluster_a_cautious_fit_lets_usage_follow_load(brokers: int) -> None:
    constant = 0
    for seed in range(20):
        usage, drivers = almost_even(brokers, seed)
        constant += not any(fitted(usage, drivers).factors)
        assert fitted(usage, drivers, cautious=True).usage_of(drivers).mean() == pytest.approx(usage.mean(), rel=0.01)
    assert constant, "the other fit may find that nothing follows load"


def test_a_constant_that_is_proved_stays_in_a_cautious_fit() -> None:
    usage = (40.0 + LOAD @ [2.0, 0.5, 3.0]) * (1 + 0.02 * CHANCE.standard_normal(30))
    assert fitted(usage, LOAD, cautious=True) == fitted(usage, LOAD)
    assert fitted(usage, LOAD).constant == pytest.approx(40.0, rel=0.1)


@pytest.mark.parametrize(("brokers", "constant"), [(3, 0.0), (4, 4.0)])
def test_a_constant_is_not_proved_by_three_brokers(brokers: int, constant: float) -> None:
    load = np.arange(1.0, 1.0 + brokers)
    drivers = np.stack([load, 0 * load, 0 * load], axis=1)
    assert fitted(4.0 + load, drivers).constant == pytest.approx(4.0)
    assert fitted(4.0 + load, drivers, cautious=True).constant == pytest.approx(constant)


@pytest.mark.parametrize("usage", [1e-160, 1e-200, 5e-324])
def test_usage_whose_square_is_next_to_nothing_follows_no_load(usage: float) -> None:
    fit = fitted(np.full(2, usage), np.array([[1.0, 2.0, 3.0], [2.0, 1.0, 3.0]]))
    assert (fit.factors, fit.constant) == ((0.0, 0.0, 0.0), 0.0)
