"""Prometheus' own promtool tries the alert rules on series that end."""

import json
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from tests.prometheus import program_of

pytestmark = pytest.mark.e2e

_RULES: Final = Path(__file__).parents[2] / "conf" / "prometheus" / "trimtab.rules.yml"
#: Alert -> the metric whose series its processes show.
_GONE: Final = {
    "TrimtabControllersGone": "trimtab_leader",
    "TrimtabCollectorsGone": "trimtab_collector_leads",
    "TrimtabExecutorsGone": "trimtab_executor_partitions",
}


def promtool(
    folder: Path, series: dict[str, str], expected: dict[str, dict[str, list[str]]], severity: str = "critical"
) -> None:
    """Try the rules on *series*, a value a minute: *expected* has time -> alert -> the jobs that it fires for."""
    tests = [
        {
            "eval_time": at,
            "alertname": alert,
            "exp_alerts": [
                {"exp_labels": {"severity": severity} | ({"job": job} if job else {}), "exp_annotations": {}}
                for job in jobs
            ],
        }
        for at, alerts in expected.items()
        for alert, jobs in alerts.items()
    ]
    # Its words are not what is tried.
    rules = [line for line in _RULES.read_text(encoding="utf-8").splitlines() if "annotations:" not in line]
    words = ("summary:", "runbook_url:")
    (folder / "rules.yml").write_text("\n".join(line for line in rules if not line.strip().startswith(words)))
    given = [{"series": name, "values": values} for name, values in series.items()]
    text: dict[str, Any] = {
        "rule_files": ["rules.yml"],
        "evaluation_interval": "1m",
        "tests": [{"interval": "1m", "input_series": given, "alert_rule_test": tests}],
    }
    (folder / "tests.yml").write_text(json.dumps(text))
    done = subprocess.run(
        [program_of("promtool"), "test", "rules", "tests.yml"], cwd=folder, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("alert", "metric"), _GONE.items())
def test_processes_whose_series_end_are_told_of_and_those_of_another_cluster_do_not_matter(
    tmp_path: Path, alert: str, metric: str
) -> None:
    series = {
        f'{metric}{{job="trimtab-a",instance="x"}}': "0x20 stale",
        f'{metric}{{job="trimtab-a",instance="y"}}': "1x10 stale",
        f'{metric}{{job="trimtab-b",instance="z"}}': "1x60",
    }
    promtool(tmp_path, series, {"18m": {alert: []}, "22m": {alert: []}, "30m": {alert: ["trimtab-a"]}})


@pytest.mark.parametrize(("alert", "metric"), _GONE.items())
def test_who_comes_back_within_three_minutes_is_not_told_of(tmp_path: Path, alert: str, metric: str) -> None:
    series = {f'{metric}{{job="trimtab-a",instance="x"}}': "1x20 stale 1x40"}
    promtool(tmp_path, series, {f"{at}m": {alert: []} for at in (20, 21, 22, 30)})


def test_controllers_and_collectors_must_be_there_and_executors_need_not(tmp_path: Path) -> None:
    nobody = {alert: [""] if alert != "TrimtabExecutorsGone" else [] for alert in _GONE}
    promtool(tmp_path, {"up": "1x60"}, {"30m": nobody})


@pytest.mark.parametrize(
    ("alert", "metric"),
    [
        ("TrimtabNoTick", "trimtab_last_tick_timestamp_seconds"),
        ("TrimtabNoDecision", "trimtab_last_interval_timestamp_seconds"),
    ],
)
def test_who_takes_over_has_five_periods_until_it_is_told_of(tmp_path: Path, alert: str, metric: str) -> None:
    series = {
        f'{metric}{{job="trimtab-a",instance="old"}}': "0+60x60 stale",
        f'{metric}{{job="trimtab-a",instance="new"}}': "0x69 4200+60x30 6000x60",
        'trimtab_period_seconds{job="trimtab-a",instance="new"}': "300x160",
    }
    expected: dict[str, dict[str, list[str]]] = {f"{at}m": {alert: []} for at in (60, 65, 69, 80, 124)}
    promtool(tmp_path, series, expected | {"132m": {alert: ["trimtab-a"]}})


def test_rows_are_told_of_when_they_are_dropped_and_not_again_when_another_controller_leads(tmp_path: Path) -> None:
    series = {
        'trimtab_dropped_rows{job="trimtab-a",instance="old"}': "0x29 500x200 stale",
        'trimtab_dropped_rows{job="trimtab-a",instance="new"}': "0x232 500x67 510x100",
        'trimtab_dropped_rows{job="trimtab-b",instance="first"}': "0x4 7x120",
    }
    told = {
        10: ["trimtab-b"],
        29: ["trimtab-b"],
        40: ["trimtab-a"],
        120: [],
        228: [],
        231: [],
        235: [],
        260: [],
        299: [],
    }
    expected = {f"{at}m": {"TrimtabRowsDropped": jobs} for at, jobs in told.items()}
    promtool(tmp_path, series, expected | {"305m": {"TrimtabRowsDropped": ["trimtab-a"]}}, severity="warning")


@pytest.mark.parametrize(
    ("alert", "metric", "hours"),
    [
        ("TrimtabPauseForgotten", "trimtab_paused_since_timestamp_seconds", 4),
        ("TrimtabDrainForgotten", "trimtab_drained_since_timestamp_seconds", 24),
        ("TrimtabDryRunForgotten", 'trimtab_mode_since_timestamp_seconds{mode="dry_run"', 168),
    ],
)
def test_what_was_forgotten_is_told_of_the_leader_alone(tmp_path: Path, alert: str, metric: str, hours: int) -> None:
    # promtool counts time from 1970, and evaluates every rule each minute: all but the last hour is before that.
    began, opening = 60 - 3600 * (hours - 1), metric if "{" in metric else f"{metric}{{"
    labels = opening if opening.endswith("{") else f"{opening},"
    series = {
        f'{labels}job="trimtab-a",instance="x"}}': f"{began}x80",
        f'{labels}job="trimtab-a",instance="y"}}': f"{began - 60}x80",
        f'{labels}job="trimtab-b",instance="z"}}': "3600x80",
        'trimtab_leader{job="trimtab-a",instance="x"}': "1x80",
        'trimtab_leader{job="trimtab-a",instance="y"}': "0x80",
        'trimtab_leader{job="trimtab-b",instance="z"}': "1x80",
    }
    promtool(tmp_path, series, {"60m": {alert: []}, "62m": {alert: ["trimtab-a"]}}, severity="warning")
