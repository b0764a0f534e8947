"""``trimtab status``: print what the controller did last; or the owner of a bundle, or of a topic's segments."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

import typer

from controller.adapters.long_work import long_work
from controller.adapters.outages import Part
from controller.adapters.pulsar.access import pulsar_admin
from controller.adapters.pulsar.admin import PulsarAdmin
from controller.cli.shared.answers import show
from controller.cli.shared.arguments import bundle_of, topic_of
from controller.cli.shared.console import DEFAULT_CONF, Conf, json_option
from controller.cli.shared.layout import print_fields
from controller.cli.shared.reachable import require
from controller.cli.texts.cluster_status import LABEL, print_status
from controller.cli.texts.scalable_topic import print_topic
from controller.cli.texts.status_watch import watch_status
from controller.model.errors import SettingsError
from controller.model.topic_name import TopicName, excerpt
from controller.settings.trimtab_toml import Settings, read_settings
from controller.status.answer import status_answer
from controller.status.bundle import last_decision, live_bundle
from controller.status.cluster import cluster_status
from controller.status.health import problems
from controller.status.texts import bundle_answer, bundle_rows, topic_answer
from controller.status.topic import live_topic

_ANSWER_SECONDS: Final = 10.0
#: Between two looks of --watch, where nothing else is said.
_EVERY_SECONDS: Final = 5.0
#: Exit code where there is no such bundle.
_NO_SUCH_BUNDLE: Final = 1


def status(
    bundle: Annotated[
        str | None,
        typer.Argument(
            metavar="[BUNDLE|TOPIC]",
            help="Show only this bundle, tenant/namespace/0x00000000_0x40000000, or this scalable topic of Pulsar 5.0,"
            " topic://tenant/namespace/topic.",
            show_default=False,
        ),
    ] = None,
    conf: Conf = DEFAULT_CONF,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch", help="Show it again and again until Ctrl-C: in place in a terminal, else a line each time."
        ),
    ] = False,
    every: Annotated[
        float | None,
        typer.Option(min=1.0, max=86_400.0, help="Seconds between two refreshes of --watch.", show_default="5"),
    ] = None,
    as_json: Annotated[bool, json_option("answer.{status,status_bundle,status_topic}")] = False,
) -> None:
    """Print whether all is well, the processes, the last decision and its commands; or a bundle's owner and decision.

    Of a scalable topic: which brokers serve its segments, and how unevenly.

    Exit codes: 0 printed, also where it names problems, or brokers or an election that did not answer, and after
    --watch; 1 the brokers have no such bundle or topic, or the log did not answer, or, asked for one, the brokers; 2
    the settings are invalid.
    """
    if every is not None and not watch:
        raise typer.BadParameter("it sets the pace of --watch: add --watch", param_hint="--every")
    settings = read_settings(conf)
    if bundle is None:
        if watch:
            watch_status(settings, conf, _EVERY_SECONDS if every is None else every, as_json=as_json)
        else:
            _show_cluster(settings, conf, as_json=as_json)
        return
    if watch:
        raise typer.BadParameter("it shows the whole cluster: leave the bundle out", param_hint="--watch")
    if "://" in bundle:
        _show_topic(settings, topic_of(bundle, of="topic"), as_json=as_json)
        return
    _show_bundle(settings, bundle_of(bundle, of="bundle"), as_json=as_json)


@contextmanager
def _brokers(settings: Settings) -> Iterator[PulsarAdmin | None]:
    """Within the block trimtab waits for answers; yields the brokers' API, None where the settings name no broker.

    Raises TrimtabError where the log cannot be reached.
    """
    with long_work("waiting for the brokers, the log and the election"):
        require(settings, Part.LOG, useful=(Part.ELECTION, Part.BROKERS))
        yield None if settings.pulsar is None else pulsar_admin(settings, answer_seconds=_ANSWER_SECONDS)


def _show_cluster(settings: Settings, conf: Path, *, as_json: bool) -> None:
    with _brokers(settings) as admin:
        status = cluster_status(settings, admin)
    now_ms = time.time() * 1000
    problem_list = problems(status, settings, now_ms)
    show(
        status_answer(status, problem_list),
        lambda out: print_status(out, status, problem_list, now_ms, conf),
        as_json=as_json,
    )


def _show_bundle(settings: Settings, bundle: str, *, as_json: bool) -> None:
    with _brokers(settings) as admin:
        live = None if admin is None else live_bundle(admin, bundle)
        decision = last_decision(settings, bundle, "" if live is None else live.owner)
    answer, rows = bundle_answer(bundle, live, decision), bundle_rows(bundle, live, decision)
    show(answer, lambda out: print_fields(out, rows, label=LABEL), as_json=as_json)
    if live is not None and live.missing:
        raise typer.Exit(_NO_SUCH_BUNDLE)


def _show_topic(settings: Settings, topic: TopicName, *, as_json: bool) -> None:
    if settings.pulsar is None:
        raise SettingsError(
            f"{excerpt(str(topic))}: only the brokers know its segments: name them in [pulsar] admin_urls"
        )
    with long_work("waiting for the brokers"):
        require(settings, Part.BROKERS)
        answer = topic_answer(live_topic(pulsar_admin(settings, answer_seconds=_ANSWER_SECONDS), topic))
    show(answer, lambda out: print_topic(out, answer), as_json=as_json)
    if not answer.exists:
        raise typer.Exit(_NO_SUCH_BUNDLE)
