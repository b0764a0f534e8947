from dataclasses import fields, is_dataclass

import pytest

from controller.strategies.catalogue import PLACEMENTS, SHEDDERS, SPLIT_POLICIES, short_name


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ("org.apache.pulsar.broker.loadbalance.impl.ThresholdShedder", "ThresholdShedder"),
        ("ThresholdShedder", "ThresholdShedder"),
        ("range_equally_divide", "range_equally_divide"),
        ("org.apache.pulsar.broker.loadbalance.impl.LeastResourceUsageWithWeight", "LeastResourceUsageWithWeight"),
        (
            "org.apache.pulsar.broker.loadbalance.extensions.strategy.LeastResourceUsageWithWeight",
            "ExtLeastResourceUsageWithWeight",
        ),
        ("ExtLeastResourceUsageWithWeight", "ExtLeastResourceUsageWithWeight"),
        # No class of Pulsar: another one of this name may do anything.
        ("de.example.ThresholdShedder", "de.example.ThresholdShedder"),
        # Pulsar has no class of this name, so it is a user's own, whatever its package.
        ("de.example.ThroughputDeviationShedder", "ThroughputDeviationShedder"),
        ("balance.ThresholdShedder", "balance.ThresholdShedder"),
    ],
)
def test_a_strategy_is_known_by_its_short_or_full_name(given: str, key: str) -> None:
    assert short_name(given) == key


@pytest.mark.parametrize("catalogue", [SHEDDERS, PLACEMENTS, SPLIT_POLICIES])
def test_a_strategy_is_called_as_in_pulsar_and_every_field_is_an_option_with_a_meaning(
    catalogue: dict[str, type],
) -> None:
    for name, cls in catalogue.items():
        assert cls.__name__ == name
        assert is_dataclass(cls)
        assert all(field.metadata["meaning"] for field in fields(cls))
