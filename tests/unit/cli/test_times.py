"""Times as people write them on the command line."""

from datetime import UTC, datetime

import pytest
import typer

from controller.cli.shared.arguments import is_time, time_of

NOW = datetime(2025, 1, 31, 14, 5, 30, tzinfo=UTC)


def ms(*when: int) -> int:
    return round(datetime(*when, tzinfo=UTC).timestamp() * 1000)  # type: ignore[arg-type,misc]


def read(text: str) -> int:
    return time_of(text, now_ms=round(NOW.timestamp() * 1000), of="--since")


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2025-01-31T14:05:00Z", ms(2025, 1, 31, 14, 5)),
        ("2025-01-31 14:05", ms(2025, 1, 31, 14, 5)),
        ("2025-01-31", ms(2025, 1, 31)),
        ("2025-01-31T14:05:00+02:00", ms(2025, 1, 31, 12, 5)),
        ("14:05", ms(2025, 1, 31, 14, 5)),
        ("14:05:30", ms(2025, 1, 31, 14, 5, 30)),
        # Later than now: that of yesterday.
        ("14:06", ms(2025, 1, 30, 14, 6)),
        ("90s", ms(2025, 1, 31, 14, 4)),
        ("5m", ms(2025, 1, 31, 14, 0, 30)),
        ("2h", ms(2025, 1, 31, 12, 5, 30)),
        ("31d", ms(2024, 12, 31, 14, 5, 30)),
    ],
)
def test_a_time_is_read_in_utc(text: str, time: int) -> None:
    assert read(text) == time
    assert is_time(text)


@pytest.mark.parametrize("text", ["", "now", "14", "25:00", "2025-02-30", "2h30", "-5m", "0x1", "9999999h", "20250131"])
def test_what_is_no_time_is_refused_with_the_forms_that_are(text: str) -> None:
    assert not is_time(text)
    with pytest.raises(typer.BadParameter, match="is not a time: give 2025-01-31T14:05:00Z, 14:05 "):
        read(text)


def test_a_bundle_and_a_broker_are_no_times() -> None:
    assert not is_time("tenant/ns/0x00000000_0x80000000")
    assert not is_time("broker-1:8080")
    assert not is_time("10.0.0.1:8080")
