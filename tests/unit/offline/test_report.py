"""The report of `trimtab compare --html`: what it keeps of a run, and that no text of a scenario is markup."""

import base64
import json
import re
from typing import Any

import numpy as np
import pytest

from controller.model.decision import Command, Decision, Reason, Verdict
from controller.model.load import Floats
from controller.offline.scenarios.compare import Comparison, FigureOverSeeds
from controller.offline.scenarios.report.page import Report
from controller.offline.scenarios.report.reported_run import ABSENT, COLUMNS, PERCENT_A_LEVEL, ReportedRun, reported_run
from controller.offline.scenarios.simulate import SimulatedRun
from controller.settings.scenario import Scenario
from controller.settings.scenario_parts import TurnNumber
from controller.simulator.carrying_out import SimulatedMove

BUNDLE = "a/b/0x00000000_0xffffffff"


def move(interval: int, source: int = 0, destination: int = 1) -> SimulatedMove:
    return SimulatedMove(
        turn=TurnNumber(interval), bundle=BUNDLE, namespace="a/b", source=source, destination=destination,
        connections=3, messages=1.0, usage=2.0,
    )  # fmt: skip


def run_of(usage: Floats, moves: tuple[SimulatedMove, ...] = ()) -> SimulatedRun:
    brokers = tuple(f"broker-{number}" for number in range(usage.shape[1]))
    return SimulatedRun(seed=1, brokers=brokers, usage=usage, moves=moves, splits=(), failures=())


def decision(interval: int, why: str = "") -> Decision:
    told = Verdict(subject="broker-0", reason=Reason.OVERLOADED, detail=why)
    command = Command(
        id=f"c{interval}", action="unload", cluster="x", bundle=BUNDLE, interval=interval, expires_at_ms=0,
        mode="active", source="broker-0", why=told,
    )  # fmt: skip
    settled = Verdict(subject="c0", reason=Reason.SETTLED)
    commands = (command,) if why else ()
    return Decision(interval=interval, commands=commands, verdicts=(settled, told), summary=f"summary {interval}")


def decisions(number: int, **why: str) -> list[Decision]:
    return [decision(at, why.get(f"at{at}", "")) for at in range(number)]


def levels(text: str, brokers: int) -> Floats:
    return np.frombuffer(base64.b64decode(text), np.uint8).reshape(-1, brokers).astype(np.float64)


def test_of_a_short_run_each_interval_is_a_column() -> None:
    usage = np.array([[10.0, np.nan], [99.9, 250.0]])
    shown = reported_run("S", run_of(usage), decisions(2))
    assert shown.step == 1
    assert shown.low == shown.high
    assert levels(shown.high, 2).tolist() == [[10 / PERCENT_A_LEVEL, ABSENT], [200, ABSENT - 1]]


@pytest.mark.parametrize("intervals", [COLUMNS + 1, 2 * COLUMNS, 5 * COLUMNS - 1])
def test_of_a_long_run_no_peak_and_no_trough_is_lost(intervals: int) -> None:
    usage = np.full((intervals, 2), 50.0)
    usage[intervals // 3, 0], usage[intervals // 2, 1] = 90.0, 5.0
    shown = reported_run("S", run_of(usage), decisions(intervals))
    low, high = levels(shown.low, 2), levels(shown.high, 2)
    assert len(high) == len(low) <= COLUMNS
    assert high.max() == 90 / PERCENT_A_LEVEL
    assert high[(intervals // 3) // shown.step, 0] == 90 / PERCENT_A_LEVEL
    assert low[(intervals // 2) // shown.step, 1] == 5 / PERCENT_A_LEVEL
    assert (low <= high).all()


def test_a_broker_is_absent_in_a_column_only_where_it_is_away_in_all_of_it() -> None:
    usage = np.full((2 * COLUMNS, 1), 40.0)
    usage[0], usage[2:4] = np.nan, np.nan
    high = levels(reported_run("S", run_of(usage), decisions(len(usage))).high, 1)
    assert high[:3, 0].tolist() == [40 / PERCENT_A_LEVEL, ABSENT, 40 / PERCENT_A_LEVEL]


def test_a_move_has_the_reason_of_the_last_command_before_it_came() -> None:
    moves = (move(3), move(6, 1, 0), move(9))
    run = run_of(np.full((10, 2), 1.0), moves)
    shown = reported_run("S", run, decisions(10, at1="first", at5="second", at9="too late"))
    assert [(each[0], each[1], shown.reasons[each[7]]) for each in shown.moves] == [
        (3, 1, "broker-0: Overloaded: first"),
        (6, 5, "broker-0: Overloaded: second"),
        (9, 5, "broker-0: Overloaded: second"),
    ]
    assert shown.bundles == (BUNDLE,)


def test_a_move_without_a_command_is_said_to_be_a_part_of_a_split_bundle() -> None:
    shown = reported_run("S", run_of(np.full((5, 2), 1.0), (move(3),)), decisions(5))
    assert "split" in shown.reasons[0]


def test_decisions_with_commands_are_kept_first_and_results_are_left_out() -> None:
    shown = reported_run("S", run_of(np.full((600, 2), 1.0)), decisions(600, at599="late"))
    assert shown.decided[599] == ("summary 599", "broker-0: Overloaded: late")
    assert len(shown.decided) == 400
    assert list(shown.decided) == sorted(shown.decided)


SCENARIO = {"title": "</script><script>alert(1)</script>", "intervals": 5, "text": "/*DATA*/ /*SCRIPT*/ \u2028 &amp;"}


def page_of(shown: int = 1, **fields: Any) -> str:
    scenario = Scenario.model_validate(
        {**SCENARIO, "brokers": [{"count": 2}], "namespaces": [{"name": "a/b", "bundles": 4, "topics": 4}]} | fields
    )
    report = Report()
    for _ in range(shown):
        report.take("S", run_of(np.full((5, 2), 1.0), (move(3),)), decisions(5, at1="<b>why</b>"))
        figures = {
            "S": {"moves": FigureOverSeeds(values=(1.0, 2.0))},
            "T": {"moves": FigureOverSeeds(values=(3.0, 4.0))},
        }
        report.add("name", scenario, Comparison(seeds=(1, 2), figures=figures))
    return report.page()


def data_of(page: str) -> Any:
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert match is not None
    return json.loads(match[1])


def test_texts_of_a_scenario_are_data_and_never_markup() -> None:
    page = page_of()
    (found,) = data_of(page)
    assert (found["title"], found["text"]) == (SCENARIO["title"], SCENARIO["text"])
    assert found["runs"][0]["reasons"] == ["broker-0: Overloaded: <b>why</b>"]
    assert "alert(1)" not in page.replace(page[page.index('id="data">') : page.index("</script>\n<script>")], "")
    assert page.count("<script") == page.count("</script>") == 2
    assert "\u2028" not in page


def test_the_page_has_all_scenarios_and_all_that_its_script_reads() -> None:
    found = data_of(page_of(shown=3))
    assert len(found) == 3
    assert all(len(each["runs"]) == 1 for each in found), "runs of one scenario are not those of the next"
    assert found[0]["figures"] == [
        {
            "name": "moves",
            "cells": [
                {"mean": 1.5, "margin": pytest.approx(6.353), "best": True},
                {"mean": 3.5, "margin": pytest.approx(6.353), "best": False},
            ],
            "sure": {"S": 0, "T": 0},
        }
    ]
    assert set(found[0]["runs"][0]) == set(ReportedRun.__slots__)


def test_the_page_names_no_other_host_and_its_code_is_small() -> None:
    page = page_of()
    assert not re.search(r"https?://|url\(|@import|fetch\(|XMLHttpRequest|WebSocket", page)
    assert len(page) < 40_000
