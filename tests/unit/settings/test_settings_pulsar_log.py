"""[log.pulsar]: what it accepts, and what it refuses by name."""

from typing import Any

import pytest
from pydantic import ValidationError

from controller.settings.pulsar_log import PulsarLogSettings

_NEEDED = {"service_url": "pulsar://a:6650,b:6650", "admin_url": ["http://a:8080"]}


def settings(**values: Any) -> PulsarLogSettings:
    return PulsarLogSettings.model_validate(_NEEDED | values)


def test_two_addresses_are_enough() -> None:
    log = settings()
    assert (log.namespace, log.partitions, log.journal_topic) == ("public/trimtab", 4, "journal")


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("service_url", "pulsar://a:6650,http://b:8080", "pulsar://host:port"),
        ("service_url", "pulsar://a:6650,", "pulsar://host:port"),
        ("service_url", "a:6650", "does not begin with pulsar://"),
        ("service_url", "pulsar://user:secret@a:6650", "user or a password"),
        ("admin_url", [], "at least 1"),
        ("namespace", "trimtab", "tenant/namespace"),
        ("namespace", "a/b/c", "tenant/namespace"),
        ("metrics_topic", "persistent://public/trimtab/metrics", "short name"),
        ("metrics_topic", "metrics-partition-0", "Pulsar's"),
        ("metrics_topic", "ticks-control", "trimtab's"),
        ("results_topic", "metrics", "different topics"),
        ("partitions", 0, "greater than or equal to 1"),
        ("partitions", 5000, "less than or equal to 1024"),
        ("retention_hours", 0, "greater than or equal to 1"),
        ("start_at", "yesterday", "earliest, latest"),
        ("user", "someone", "needed together"),
    ],
)
def test_what_cannot_work_is_refused_by_name(key: str, value: object, said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        settings(**{key: value})


def test_one_credential_is_shown_not_two() -> None:
    with pytest.raises(ValidationError, match="choose one of them"):
        settings(token_file="token", user="someone", password_file="password")


@pytest.mark.parametrize(
    ("start_at", "begins"), [("earliest", None), ("latest", None), ("90m", 4_600_000), ("4h", 0), ("7d", 0)]
)
def test_start_at_is_a_time_before_now_or_an_end(start_at: str, begins: int | None) -> None:
    assert settings(start_at=start_at).start_ms(10_000_000) == begins
