"""What a broker says of its process: since when it runs, and whether it can serve."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from controller.adapters.pulsar.admin import PulsarAdmin, PulsarError
from tests.admin_servers import AdminServer, admin_servers

METRICS, HEALTH = "/admin/v2/broker-stats/metrics", "/admin/v2/brokers/health"
STARTED = 1_700_000_000_123


@pytest.fixture
def broker() -> Iterator[AdminServer]:
    with admin_servers(1) as (server,):
        server.answers["/admin/v2/brokers/demo"] = (200, [server.name])
        server.answers[METRICS] = (200, [{"metrics": {"brk_x": 1}}, {"metrics": {"jvm_start_time": STARTED}}])
        server.answers[HEALTH] = (200, "ok")
        yield server


@pytest.fixture
def admin(broker: AdminServer) -> Iterator[PulsarAdmin]:
    with closing(PulsarAdmin([f"http://{broker.name}"], cluster="demo")) as admin:
        yield admin


def test_a_broker_says_since_when_it_runs_and_that_it_is_healthy(broker: AdminServer, admin: PulsarAdmin) -> None:
    assert admin.started_ms(broker.name) == STARTED
    admin.require_healthy(broker.name)


@pytest.mark.parametrize(
    "metrics",
    [
        [],
        {},
        [{"metrics": []}, "text", {"metrics": {"jvm_start_time": "soon"}}],
        [{"metrics": {"jvm_start_time": -1}}],
        [{"metrics": {"jvm_start_time": 1e300}}],
        [{"metrics": {"jvm_start_time": None}}],
    ],
)
def test_a_broker_that_does_not_say_since_when_it_runs_is_named(
    broker: AdminServer, admin: PulsarAdmin, metrics: Any
) -> None:
    broker.answers[METRICS] = (200, metrics)
    with pytest.raises(PulsarError, match=f"{broker.name}: it does not say when it started"):
        admin.started_ms(broker.name)


def test_a_broker_that_has_left_the_cluster_is_not_back_even_if_it_answers(
    broker: AdminServer, admin: PulsarAdmin
) -> None:
    assert admin.started_ms(broker.name) == STARTED
    broker.answers["/admin/v2/brokers/demo"] = (200, ["other:8080"])
    with pytest.raises(PulsarError, match="is no active broker"):
        admin.started_ms(broker.name)


@pytest.mark.parametrize("status", [401, 500, 503])
def test_a_broker_that_cannot_serve_is_not_healthy(broker: AdminServer, admin: PulsarAdmin, status: int) -> None:
    broker.answers[HEALTH] = (status, {"reason": "no bookies"})
    with pytest.raises(PulsarError, match="no bookies"):
        admin.require_healthy(broker.name)
