"""Options that several strategies have: each is declared here once, with its name, default and unit."""

from typing import Any

from controller.model.option import option


def overloaded_percent(meaning: str) -> Any:
    """The usage from which a broker is overloaded; *meaning*: what the strategy does with it."""
    return option("loadBalancerBrokerOverloadedThresholdPercentage", default=85, unit="%", meaning=meaning)


def history_fraction() -> Any:
    """The weight of past usage in a broker's smoothed usage."""
    return option(
        "loadBalancerHistoryResourcePercentage",
        default=0.9,
        meaning="share of a broker's past usage in its smoothed usage, 0 to 1",
    )


def difference_percent() -> Any:
    """How far below the average a broker must be to be among the best."""
    return option(
        "loadBalancerAverageResourceUsageDifferenceThresholdPercentage",
        default=10,
        unit="%",
        meaning="how far below the average usage a broker must be to be among the best",
    )


def avg_shedder_plans_by_bundle() -> Any:
    """trimtabAvgShedderPlansByBundle, which AvgShedder reads as a shedder and as a placement."""
    return option(
        "trimtabAvgShedderPlansByBundle",
        default=False,
        meaning="true: AvgShedder plans for a bundle by its name, for one round, and takes another broker where the"
        " planned one is overloaded, as in Pulsar 5.0; false: it plans for all bundles of equal data, as before",
    )


def avg_shedder_fixed() -> Any:
    """trimtabAvgShedderFixed, which AvgShedder reads as a shedder and as a placement."""
    return option(
        "trimtabAvgShedderFixed",
        default=False,
        meaning="AvgShedder without Pulsar's flaws: no broker paired with itself, a sole bundle stays,"
        " equal bundles keep to their own plans",
    )
