"""What is recorded of each release is whole: no component of Pulsar's is left out, and 4.0.8 answers as recorded."""

import pytest

from tests.conformance import recorded
from tests.conformance.known_differences import DIFFERENCES, known
from tests.java_rival.answers import COMPONENTS, FILE, VECTORS, read_cases
from tests.java_rival.random_inputs import COMPONENTS as RANDOM
from tests.java_rival.releases import RELEASES
from tests.java_rival.reported_inputs import CASES as REPORTED


@pytest.mark.slow
@pytest.mark.parametrize("release", RELEASES)
def test_a_release_has_answered_the_cases_of_every_class(release: str) -> None:
    lines = {line["file"]: line for line in read_cases(VECTORS / release / FILE)}
    assert lines.keys() == {
        *COMPONENTS, *(f"random_{name}" for name in RANDOM), *(f"reported_{name}" for name in REPORTED),
    }  # fmt: skip
    for file, line in lines.items():
        assert line["cases"] == len(read_cases(VECTORS / f"{file}.jsonl.gz"))
        assert line["same"] == line["cases"] - len(line["differing"])


def test_the_release_of_the_recorded_answers_gives_them_again() -> None:
    assert [line["file"] for line in read_cases(VECTORS / recorded.BASE / FILE) if line["differing"]] == []


@pytest.mark.slow
def test_a_case_that_another_release_answers_otherwise_ends_with_its_answers() -> None:
    cases = [case for release in RELEASES for case in recorded.cases("cycles_modular", release)]
    assert all(len(case["input"]["rounds"]) == len(case["expected"]["rounds"]) for case in cases)
    assert len({len(case["input"]["rounds"]) for case in cases if case["case"] == "cycle_modular-20261126-58"}) > 1


@pytest.mark.slow
def test_known_differences_are_of_cases_that_there_are() -> None:
    for release in RELEASES:
        for component in {component for one in DIFFERENCES for component in one.cases}:
            assert known(component, release) <= {case["case"] for case in recorded.cases(component, release)}
