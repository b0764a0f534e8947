"""``trimtab bench decisions``: that it times everything there is, on clusters that are what they are called."""

import json

import pytest
from typer.testing import CliRunner

from controller.bench.clusters import CLUSTERS, skewed
from controller.bench.command import app
from controller.bench.decisions import AVERAGES, slopes, subjects, timings
from controller.bench.overload import SHARES
from controller.strategies.catalogue import PLACEMENTS, SHEDDERS, SPLIT_POLICIES

pytestmark = pytest.mark.slow


class Rival:
    """Takes 100 s for everything, and says so."""

    names = ("OverloadShedder",)

    def __init__(self) -> None:
        self.asked = 0

    def decide(self, name: str) -> tuple[float, int]:
        assert name in self.names
        self.asked += 1
        return 100_000.0, 7


def test_everything_in_the_catalogue_is_timed() -> None:
    named = {name.removesuffix(" (placement)") for name in subjects()}
    assert named == {*SHEDDERS, *PLACEMENTS, *SPLIT_POLICIES, AVERAGES}


def test_a_rival_that_takes_too_long_is_asked_once() -> None:
    rival = Rival()
    found = {one.subject: one for one in timings("skewed", skewed(4, 200), runs=2, rival=rival)}
    assert rival.asked == 1
    overload = found["OverloadShedder"]
    assert (overload.java_ms, overload.java_chosen) == (100_000.0, 7)
    assert overload.ratio == pytest.approx(overload.ms / 100_000)
    assert found["ThresholdShedder"].ratio is None


def test_slopes_are_taken_over_all_sizes() -> None:
    found = {one.subject: one for one in slopes("skewed", runs=1, sizes=(200, 400, 2_000))}
    assert set(found) == set(subjects())
    assert all(len(one.ms) == len(one.peak) == 3 for one in found.values())
    # An array of 4 numbers a bundle, and nothing else of weight: linear by what it is.
    assert found[AVERAGES].memory == pytest.approx(1.0, abs=0.1)


def test_the_command_tells_every_figure_as_json() -> None:
    result = CliRunner().invoke(app, ["decisions", "--bundles", "200", "--brokers", "4", "--runs", "1", "--json"])
    assert result.exit_code == 0
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert {(row["cluster"], row["subject"]) for row in rows} == {(c, s) for c in CLUSTERS for s in subjects()}
    assert all(row["ms"] > 0 for row in rows)


def test_whole_intervals_of_overloaded_clusters_are_told_for_every_shedder() -> None:
    small = ["--bundles", "100", "--brokers", "2", "--runs", "1"]
    result = CliRunner().invoke(app, ["decisions", "--overloaded", *small, "--json"])
    assert result.exit_code == 0
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert {(row["cluster"], row["shedder"]) for row in rows} == {(c, s) for c in SHARES for s in SHEDDERS}
    assert all(row["decision"] > 0 and row["entry_bytes"] > 0 for row in rows)
    assert CliRunner().invoke(app, ["decisions", "--overloaded", *small]).exit_code == 0
    assert CliRunner().invoke(app, ["decisions", "--overloaded", "--slope"]).exit_code == 2
