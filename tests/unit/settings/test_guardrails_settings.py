"""[guardrails] in trimtab.toml: defaults, limits that are switched off, windows of maintenance, and errors."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from controller.model.controls import Controls
from controller.model.decision import Reason
from controller.model.errors import SettingsError
from controller.settings.guardrails import GuardrailSettings, limits_of
from controller.settings.known_options import options_table
from controller.settings.maintenance import Maintenance
from controller.settings.trimtab_toml import read_settings
from tests.folder_settings import write_settings
from tests.unit.cycle.test_cycle import cycle, held_back


def read(tmp_path: Path, text: str) -> GuardrailSettings:
    return read_settings(write_settings(tmp_path, text, cluster="lab")).guardrails


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def test_every_rule_is_on_by_default(tmp_path: Path) -> None:
    limits = limits_of(read(tmp_path, ""))
    for budget in (limits.interval, limits.window):
        assert all(getattr(budget, name) is not None for name in type(budget).__slots__)
    assert None not in (limits.in_flight, limits.in_flight_per_broker)
    assert None not in (limits.failures_in_a_row, limits.failures_in_window)
    assert limits.freeze_intervals == 2
    assert limits.freeze_share == 0.4
    assert not limits.move_undescribed


def test_a_limit_is_a_number_or_unlimited(tmp_path: Path) -> None:
    found = limits_of(read(tmp_path, '[guardrails]\nin_flight = 7\n[guardrails.window]\nunloads = "unlimited"'))
    assert (found.in_flight, found.window.unloads, found.window.splits) == (7, None, 200)


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "true", '"many"'])
def test_another_limit_is_refused_by_name(tmp_path: Path, value: str) -> None:
    with pytest.raises(
        SettingsError, match=r"guardrails\.interval\.unloads = .*: allowed: a whole number from 1 on, or"
    ):
        read(tmp_path, f"[guardrails.interval]\nunloads = {value}")


def test_a_limit_of_zero_is_refused_with_the_switches_that_forbid_commands(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"set decisions\.shed or decisions\.split to false"):
        read(tmp_path, "[guardrails.interval]\nsplits = 0")


def test_the_options_table_lists_every_rule() -> None:
    keys = {row.key for row in options_table()}
    assert {
        "guardrails.interval.unloads_per_namespace",
        "guardrails.window.connections_per_destination",
        "guardrails.maintenance.allowed",
        "guardrails.move_undescribed",
        "guardrails.failures_in_a_row",
    } <= keys


# ---- maintenance windows ----


def test_without_windows_everything_is_allowed_at_any_time() -> None:
    assert Maintenance().forbids(ms("2025-01-06T12:00:00")) == ""


def test_with_allowed_windows_nothing_is_issued_outside_of_them() -> None:
    nights = Maintenance(allowed=("0 22 * * mon-fri for 8h",), time_zone="Europe/Berlin")
    outside = "outside of the allowed windows '0 22 * * mon-fri for 8h' (Europe/Berlin)"
    assert nights.forbids(ms("2025-01-06T20:59:59")) == outside
    assert nights.forbids(ms("2025-01-06T21:00:00")) == ""
    assert nights.forbids(ms("2025-01-07T04:59:59")) == ""
    assert nights.forbids(ms("2025-01-07T05:00:00")) == outside
    assert nights.forbids(ms("2025-07-07T20:00:00")) == "", "summer time"


def test_a_frozen_window_wins_over_an_allowed_one() -> None:
    windows = Maintenance(allowed=("0 0 * * * for 24h",), frozen=("0 8 24 12 * for 72h",))
    assert windows.forbids(ms("2025-12-24T07:59:59")) == ""
    assert windows.forbids(ms("2025-12-26T12:00:00")) == "in the frozen window '0 8 24 12 * for 72h' (UTC)"
    assert windows.forbids(ms("2025-12-27T08:00:00")) == ""


def test_a_window_keeps_its_length_when_the_clocks_change() -> None:
    # In the night of 2025-03-30 the hour from 02:00 to 03:00 is missing in Berlin.
    window = Maintenance(allowed=("0 0 * * * for 4h",), time_zone="Europe/Berlin")
    assert window.forbids(ms("2025-03-30T02:59:59")) == ""
    assert window.forbids(ms("2025-03-30T03:00:00"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('allowed = ["at night"]', r"guardrails\.maintenance\.allowed\.0 = 'at night': not a window: expected"),
        ('allowed = ["0 25 * * * for 1h"]', r"allowed\.0 = '0 25 .*': the cron expression '0 25 \* \* \*': Bad hour"),
        ('frozen = ["0 22 * * for 1h"]', r"frozen\.0 = .*does not have five fields"),
        ('frozen = ["0 22 * * * for 200h"]', r"frozen\.0 = .*a window lasts from 1m to 168h"),
        ('time_zone = "Mars/Olympus"', r"time_zone = 'Mars/Olympus': no such time zone"),
    ],
)
def test_a_window_that_cannot_be_read_is_refused_by_name(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        read(tmp_path, f"[guardrails.maintenance]\n{line}")


def test_outside_of_maintenance_windows_nothing_is_issued_and_the_reason_is_given() -> None:
    decision, _ = cycle(controls=Controls(mode="active", maintenance="outside of the allowed windows"))
    assert held_back(decision, Reason.MAINTENANCE, "guardrails.maintenance")


def test_while_the_controls_are_not_known_nothing_is_issued() -> None:
    decision, _ = cycle(controls=Controls(mode="active", unknown="ZooKeeper did not answer"))
    assert held_back(decision, Reason.CONTROLS_UNKNOWN, "controls")
