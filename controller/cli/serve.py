"""``trimtab serve``: the page and its REST."""

from pathlib import Path
from typing import Annotated

import typer

from controller.adapters.metrics.web import WebMetrics
from controller.adapters.process import signals
from controller.cli.shared.console import DEFAULT_CONF, start_logging
from controller.cli.shared.log_format import LogFormat, LogFormatOption
from controller.cli.shared.metrics_address import MetricsAddress, checked_address, served
from controller.model.errors import SettingsError
from controller.settings.trimtab_toml import read_settings
from controller.web.notifications.running import send_test
from controller.web.serving import ClusterConf, serve_page


def serve(
    conf: Annotated[
        list[Path] | None,
        typer.Option(
            help="The settings file; one for each cluster that is shown, [web] in the first.",
            show_default=str(DEFAULT_CONF),
        ),
    ] = None,
    listen: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT",
            callback=checked_address,
            help="Listen on this address instead of that in [web] of the settings.",
        ),
    ] = "",
    metrics: MetricsAddress = "",
    test_notification: Annotated[
        bool,
        typer.Option(
            "--test-notification", help="Only send a test notification to each webhook in [notifications], and end."
        ),
    ] = False,
    log_format: LogFormatOption = LogFormat.TEXT,
) -> None:
    """Serve the page and its REST API until SIGTERM or Ctrl-C.

    Any number may run. It issues no commands of its own, and only reads, unless [web] writes = true lets people change
    the controls and carry out plans.
    It shows what the log has, and goes on while the log is away. The settings say who has access.
    One of them sends the notifications of [notifications].

    Exit codes: 0 a signal ended it; 1 a webhook did not accept a test notification; 2 the settings are invalid,
    nobody has access, or the address cannot be used.
    """
    start_logging("kazoo", form=log_format)
    confs = [ClusterConf(read_settings(path), path) for path in conf or [DEFAULT_CONF]]
    if test_notification:
        _test(confs)
        return
    first = confs[0].settings
    web = first.web.at(listen) if listen else first.web
    page_metrics = WebMetrics()
    with served(page_metrics, first, metrics):
        signals.run_until_told(lambda ending: serve_page(confs, web, page_metrics, ending))


def _test(confs: list[ClusterConf]) -> None:
    """Print a line for each webhook."""
    answers = {(each.settings.cluster.name, *answer) for each in confs for answer in send_test(each.settings).items()}
    if not answers:
        raise SettingsError("no webhook is set: add [[notifications.webhooks]] with a name and a url")
    for cluster, webhook, problem in sorted(answers):
        typer.echo(f"{cluster}, {webhook}: {problem or 'accepted'}")
    if any(problem for _, _, problem in answers):
        raise typer.Exit(1)
