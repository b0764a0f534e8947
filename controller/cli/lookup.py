"""``trimtab lookup``: find the bundle of a topic, and its owner.  Only --live asks the cluster."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import typer

from controller.adapters.long_work import long_work
from controller.adapters.outages import Part
from controller.adapters.pulsar.access import pulsar_admin
from controller.adapters.pulsar.admin import PulsarError
from controller.cli.shared.answers import show
from controller.cli.shared.console import DEFAULT_CONF, json_option
from controller.cli.shared.layout import print_fields
from controller.cli.shared.reachable import require
from controller.log.factory import log_system, recording
from controller.log.tail import LogTail
from controller.model.errors import TrimtabError
from controller.model.names import BundleName, default_boundaries
from controller.model.topic_name import TopicName, excerpt, parse_topic
from controller.offline.namespaces import LoggedNamespace, read_boundaries, read_namespace
from controller.settings.broker_conf import read_broker_conf
from controller.settings.policy import read_assignment
from controller.settings.trimtab_toml import Settings, read_settings
from controller.status.bundle import LastDecision, LiveBundle, last_decision, live_bundle
from controller.status.texts import decision_fields, decision_rows, live_fields, live_rows
from controller.wire.answers.status import LookupAnswer
from controller.wire.readable import counted, utc

_MAX_BUNDLES: Final = 1 << 20
_ANSWER_SECONDS: Final = 10.0
#: Width of the names in front of the values.
_LABEL: Final = 9

_Topic: TypeAlias = Annotated[
    str,
    typer.Argument(
        help="persistent://tenant/namespace/topic, or a short form of that; also of a scalable topic or its segment."
    ),
]
_Bundles: TypeAlias = Annotated[
    int | None,
    typer.Option(
        min=1, max=_MAX_BUNDLES, help="Assume a new namespace with this number of bundles.", show_default=False
    ),
]
_Boundaries: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        help="File with the namespace's bundles: the answer of Pulsar's admin API to GET /namespaces/../bundles.",
        exists=True,
        dir_okay=False,
        show_default=False,
    ),
]
_Log: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        help="Folder of a log: its last namespace_state gives the bundles, its last sweeps the owner.",
        exists=True,
        file_okay=False,
        show_default=False,
    ),
]
_Conf: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        help="Settings that give the log, the cluster and the topic-to-bundle assignment.",
        show_default=f"with --live {DEFAULT_CONF}",
    ),
]
_Cluster: TypeAlias = Annotated[
    str | None,
    typer.Option(help="Use the records of this cluster.", show_default="that of --conf, else of the log's last record"),
]
_Live: TypeAlias = Annotated[
    bool, typer.Option("--live", help="Ask the brokers in [pulsar] of --conf; also print the last decision.")
]


def lookup(
    topic: _Topic,
    bundles: _Bundles = None,
    boundaries: _Boundaries = None,
    log: _Log = None,
    conf: _Conf = None,
    cluster: _Cluster = None,
    live: _Live = False,
    as_json: Annotated[bool, json_option("answer.lookup")] = False,
) -> None:
    """Print a topic's position on the hash ring, its bundle, and the bundle's owner."""
    if bundles is not None and boundaries is not None:
        raise typer.BadParameter("give --bundles or --boundaries, not both", param_hint="--bundles")
    try:
        name = parse_topic(topic)
    except TrimtabError as error:
        raise typer.BadParameter(str(error), param_hint="topic") from error
    if live:
        if (bundles, boundaries, log) != (None, None, None):
            raise typer.BadParameter("excludes --bundles, --boundaries and --log", param_hint="--live")
        _tell_live(*_from_cluster(name, read_settings(conf or DEFAULT_CONF)), as_json=as_json)
        return
    settings = None if conf is None else read_settings(conf)
    place = recording(log) if log else _log_tail(settings, needed=bundles is None and boundaries is None)
    logged = None
    if place is not None:
        whose = cluster or (settings.cluster.name if settings else None)
        logged = read_namespace(place, name.namespace, cluster=whose)
    edges = _edges(name, bundles, boundaries, place, logged)
    fields = _lookup_fields(name, edges, _bundle(name, edges, settings), logged)
    show(LookupAnswer(**fields), lambda out: print_fields(out, _rows(fields), label=_LABEL), as_json=as_json)


def _from_cluster(topic: TopicName, settings: Settings) -> tuple[dict[str, Any], LiveBundle, LastDecision]:
    with long_work("waiting for the brokers and the log"):
        require(settings, Part.BROKERS, Part.LOG)
        return _live(topic, settings)


def _live(topic: TopicName, settings: Settings) -> tuple[dict[str, Any], LiveBundle, LastDecision]:
    admin = pulsar_admin(settings, answer_seconds=_ANSWER_SECONDS)
    try:
        edges = admin.boundaries(topic.namespace)
    except PulsarError as error:
        if error.status == 404:
            raise TrimtabError(
                f"the cluster has no namespace {topic.namespace}, so {excerpt(str(topic))} has no bundle"
            ) from error
        raise
    bundle = _bundle(topic, edges, settings)
    now = live_bundle(admin, str(bundle))
    return _lookup_fields(topic, edges, bundle, None), now, last_decision(settings, str(bundle), now.owner)


def _tell_live(fields: dict[str, Any], now: LiveBundle, decided: LastDecision, *, as_json: bool) -> None:
    rows = [*_rows(fields), *live_rows(now), *decision_rows(decided)]
    answer = LookupAnswer(**fields, **live_fields(now), **decision_fields(decided))
    show(answer, lambda out: print_fields(out, rows, label=_LABEL), as_json=as_json)


def _log_tail(settings: Settings | None, *, needed: bool) -> LogTail | None:
    """The end of the log in the settings.  An endless log is read only where it is *needed*."""
    tail = None if settings is None else log_system(settings).tail()
    if settings is not None and tail is not None and (needed or not tail.endless):
        require(settings, Part.LOG)
        return tail
    if not needed:
        return None
    raise typer.BadParameter(
        "the namespace's bundles are unknown: give --bundles, --boundaries, --log, --conf or --live",
        param_hint="--bundles",
    )


def _edges(
    topic: TopicName,
    bundles: int | None,
    boundaries: Path | None,
    place: LogTail | None,
    logged: LoggedNamespace | None,
) -> tuple[int, ...]:
    if bundles is not None:
        return default_boundaries(bundles)
    if boundaries is not None:
        return read_boundaries(boundaries)
    if logged is None or logged.boundaries is None:
        where = "" if place is None else place.where
        raise TrimtabError(
            f"{where} holds no namespace_state of {topic.namespace}: give its bundles with --bundles or --boundaries"
        )
    return logged.boundaries


def _bundle(topic: TopicName, edges: Sequence[int], settings: Settings | None) -> BundleName:
    # Without settings, only the environment says how the brokers assign topics.
    path = Path(os.devnull if settings is None else settings.cluster.broker_conf)
    conf = read_broker_conf(path, os.environ)
    (row,) = read_assignment(conf).assign([str(topic)], edges).tolist()
    if row < 0:
        raise TrimtabError(
            f"{excerpt(str(topic))} has no bundle: no bundle of Pulsar contains position 0xffffffff, and Pulsar's own"
            " lookup fails"
        )
    return BundleName(topic.namespace, edges[row], edges[row + 1])


def _lookup_fields(
    topic: TopicName, edges: Sequence[int], bundle: BundleName, logged: LoggedNamespace | None
) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "topic": str(topic),
        "namespace": topic.namespace,
        "hash": topic.position,
        "position": f"0x{topic.position:08x}",
        "bundle": str(bundle),
        "bundles": len(edges) - 1,
    }
    if topic.segment is not None:
        keys = f"0x{topic.segment.start:04x}-0x{topic.segment.end:04x}"
        fields |= {"scalable_topic": str(topic.whole), "segment": topic.segment.number, "key_hashes": keys}
    elif topic.is_scalable:
        fields["scalable_topic"] = str(topic)
    if logged is not None:
        owner = logged.owners.get(str(bundle))
        as_of = (owner.interval or owner.last_update) if owner is not None else logged.ticked
        fields |= {"owner": None if owner is None else owner.broker, "as_of": as_of}
    return fields


def _rows(fields: dict[str, Any]) -> list[tuple[str, str]]:
    rows = [
        ("topic", excerpt(fields["topic"])),
        ("namespace", f"{fields['namespace']}, {counted(fields['bundles'], 'bundle')}"),
        ("hash", f"{fields['position']} ({fields['hash']})"),
        ("bundle", fields["bundle"]),
        *_segment_rows(fields),
    ]
    if "owner" in fields:
        as_of = "" if fields["as_of"] is None else f", as of {utc(fields['as_of'])}"
        rows.append(("owner", (fields["owner"] or "none: no broker lists the bundle") + as_of))
    return rows


def _segment_rows(fields: dict[str, Any]) -> list[tuple[str, str]]:
    if "segment" in fields:
        whole = excerpt(fields["scalable_topic"])
        return [("segment", f"{fields['segment']} of {whole}, key hashes {fields['key_hashes']}")]
    if "scalable_topic" in fields:
        return [
            ("segments", "each in a bundle of its own: look up segment://tenant/namespace/topic/<start>-<end>-<number>")
        ]
    return []
