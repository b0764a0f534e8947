"""How `run`, `collect` and `execute` serve their metrics, where the settings or --metrics give an address."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Annotated, TypeAlias

import typer

from controller.adapters.expiry import expiring_files
from controller.adapters.metrics.process import ProcessMetrics
from controller.adapters.metrics.server import MetricsServer
from controller.adapters.network.unreachable import words
from controller.adapters.process.watchdog import watched
from controller.cli.shared.common_options import own_version
from controller.model.errors import SettingsError
from controller.settings.addresses import host_and_port
from controller.settings.trimtab_toml import Settings

log = logging.getLogger(__name__)


def checked_address(address: str) -> str:
    """*address*, host:port or ""; typer.BadParameter where it is neither."""
    try:
        if address:
            host_and_port(address)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    return address


#: The option --metrics, as ``metrics: MetricsAddress = ""``.
MetricsAddress: TypeAlias = Annotated[
    str,
    typer.Option(
        "--metrics",
        metavar="HOST:PORT",
        callback=checked_address,
        help="Serve /metrics, /healthz and /readyz on this address instead of that in [metrics] of the settings.",
    ),
]


@contextmanager
def served(metrics: ProcessMetrics, settings: Settings, address: str = "") -> Iterator[None]:
    """Within the block serve *metrics* at *address*, or at the one in the settings; nowhere where both are "".

    systemd's watchdog hears what /healthz answers.  SettingsError where another process listens there.
    """
    own: str = getattr(settings.metrics, metrics.role)
    where, key = (address, "--metrics") if address else (own, f"{metrics.role} in [metrics]")
    metrics.tell(
        cluster=settings.cluster.name,
        version=own_version(),
        period_seconds=settings.intervals.period_seconds,
        stalled_after_seconds=settings.intervals.stalled_after_seconds,
    )
    metrics.show_expiry_of(expiring_files(settings))
    metrics.trace_to(settings.tracing.endpoint, cluster=settings.cluster.name, version=own_version())
    with watched(lambda: not metrics.health.standstill), _listening(metrics, where, key):
        yield


@contextmanager
def _listening(metrics: ProcessMetrics, where: str, key: str) -> Iterator[None]:
    if not where:
        yield
        return
    host, port = host_and_port(where)
    try:
        server = MetricsServer(host, port, metrics)
    except OSError as error:
        raise SettingsError(
            f"metrics cannot be served at {where} ({key}): {words(error)}; end the process that listens there, or give"
            " this one another address with --metrics"
        ) from error
    with server:
        known = "" if ip_address(server.host).is_loopback else "; everybody who can reach this address can read them"
        log.info("metrics are at http://%s/metrics, beside /healthz and /readyz%s", where, known)
        yield
