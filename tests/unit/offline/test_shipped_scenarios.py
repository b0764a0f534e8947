"""The scenarios that come with trimtab: each expectation is met, and each of a cure fails without it."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from controller.offline.scenarios.expectations import JudgedScenario, judge
from controller.offline.scenarios.figures import value_of
from controller.offline.scenarios.shipped import shipped
from controller.offline.scenarios.simulate import simulate, variant_of
from tests.effort import tries

pytestmark = pytest.mark.slow

LIBRARY = Path(__file__).parents[3] / "conf" / "scenarios" / "simulated"
SCENARIOS = dict(shipped(LIBRARY))
#: Those that take longest, more than half of the time of all.
LONG = ("isolated-brokers", "pip255-restarts", "daily-cycle", "minute-bursts", "pip255-new-broker")
#: As many as `trimtab simulate` runs unless told otherwise.
SEEDS = 3


def told(judged: JudgedScenario) -> list[str]:
    """What is not as the scenario says."""
    return [
        f"{each.expectation.text}: without cure {each.without_cure}, with cure {each.with_cure}"
        for each in judged.expectations
        if not each.held
    ]


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=pytest.mark.extended) if each in LONG else each for each in SCENARIOS]
)
def test_every_expectation_is_met_and_those_of_the_cure_fail_without_it(name: str) -> None:
    scenario = SCENARIOS[name]
    judged = judge(scenario, tries(plain=1, thorough=SEEDS))
    assert told(judged) == []
    assert any(each.of_cure for each in judged.expectations), "a scenario shows what cures it"


_AVG: Final = {"loadBalancerLoadSheddingStrategy": "AvgShedder", "loadBalancerLoadPlacementStrategy": "AvgShedder"}
_UNIFORM: Final = {"loadBalancerLoadSheddingStrategy": "UniformLoadShedder"}
_PEAK: Final = {"loadBalancerLoadSheddingStrategy": "PeakShedder"}


@pytest.mark.extended
@pytest.mark.parametrize(
    ("name", "settings", "cures"),
    [
        ("idle-broker", {"lowerBoundarySheddingEnabled": "true"}, True),
        ("idle-broker", _AVG, True),
        ("idle-broker", _PEAK, False),  # the page says how far
        ("restarted-broker", _UNIFORM, True),
        ("restarted-broker", _AVG, True),
        ("restarted-broker", _PEAK, False),
        ("single-partition", _AVG, True),
        ("single-partition", _PEAK, True),
        ("unequal-layers", {**_AVG, "loadBalancerAvgShedderLowThreshold": "8"}, True),
        ("unequal-layers", _AVG, False),
        ("unequal-layers", _PEAK, False),
    ],
)
def test_what_the_tuning_page_names_cures_the_scenario_of_its_row(
    name: str, settings: dict[str, str], *, cures: bool
) -> None:
    scenario = SCENARIOS[name]
    run = simulate(scenario, variant_of(scenario, strategy=settings), 1)
    held = [each.holds(value_of(each, scenario, run)) for each in scenario.expectations(cured=True)]
    assert all(held) is cures, held


@pytest.mark.integration
def test_peak_shedder_brings_a_broker_that_restarted_to_about_two_fifths_of_the_mean() -> None:
    scenario = SCENARIOS["restarted-broker"]
    run = simulate(scenario, variant_of(scenario, strategy=_PEAK), 1)
    after = run.usage[45:]
    # Load drifts by a percent, and bundles are no liquid.
    assert 0.38 <= after.min() / after.mean() <= 0.55
    assert after.max() / after.mean() <= 1.15


def test_every_scenario_says_what_happens_and_who_has_seen_it() -> None:
    assert [name for name, each in SCENARIOS.items() if not (each.text and each.source)] == []
    assert len({each.title for each in SCENARIOS.values()}) == len(SCENARIOS)


def test_the_same_seed_gives_the_same_run_and_another_one_does_not() -> None:
    scenario = SCENARIOS["placement-by-count"].model_copy(update={"intervals": 20})
    one, again, other = (simulate(scenario, variant_of(scenario), seed) for seed in (3, 3, 4))
    assert one.usage.tobytes() == again.usage.tobytes()
    assert one.moves == again.moves
    assert len(one.moves) > 0
    assert one.moves != other.moves


@pytest.mark.integration
@pytest.mark.extended
def test_a_run_does_not_depend_on_the_order_of_sets() -> None:
    """Python orders sets of text by a number that it chooses at its start."""
    program = (
        "import hashlib\n"
        "from pathlib import Path\n"
        "from controller.offline.scenarios.simulate import simulate, variant_of\n"
        "from controller.settings.scenario import read_scenario\n"
        f"scenario = read_scenario(Path({str(LIBRARY / 'placement-by-count.toml')!r}))\n"
        "run = simulate(scenario, variant_of(scenario), 1)\n"
        "print(hashlib.sha256(run.usage.tobytes() + repr(run.moves).encode()).hexdigest())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": number},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for number in ("0", "1", "2")
    }
    assert len(found) == 1


def test_an_expectation_that_is_not_met_is_seen() -> None:
    scenario = SCENARIOS["quiet-namespace"]
    assert scenario.cure is not None
    # The cure without what cures.
    idle = scenario.model_copy(update={"cure": scenario.cure.model_copy(update={"decisions": None})})
    (judged,) = judge(idle, 1).expectations
    assert not judged.held
    assert judged.without_cure == judged.with_cure
