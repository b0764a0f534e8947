"""``trimtab init``: write settings to start from."""

import json
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Final, TypeAlias

import typer

from controller.adapters.disk.files import create
from controller.adapters.disk.places import SHIPPED
from controller.cli.shared.console import DEFAULT_CONF, command_line
from controller.model.errors import SettingsError, TrimtabError
from controller.model.topic_name import is_named_entity
from controller.settings.trimtab_toml import read_settings

#: Section and key -> value.
Values: TypeAlias = Mapping[tuple[str, str], str | int | Sequence[str]]

_SECTION: Final = re.compile(r"(?P<hidden># )?\[(?P<name>[\w.]+)\]")
_KEY: Final = re.compile(r"(?P<key>[\w.]+) = (?P<value>[^#]*?)(?P<gap> *)(?P<comment>#.*)?")
_HIDDEN: Final = "# "
#: Where comments begin, in characters.
_COMMENT_AT: Final = 32


def starter(template: str, values: Values, *, sections: Sequence[str] = (), left_out: Sequence[str] = ()) -> str:
    """*template*, a TOML file, with *values*, without the sections *left_out*, and with those *sections* switched on.

    A section that is switched on is a comment in the template.  A value, or a section, that the template has no line
    for raises SettingsError.
    """
    section, keep, missing = "", True, dict.fromkeys([*values, *((name, "") for name in [*sections, *left_out])])
    lines = []
    for line in template.splitlines():
        match = _SECTION.match(line)
        if match and (not match["hidden"] or match["name"] in sections):
            section, keep = match["name"], match["name"] not in left_out
            missing.pop((section, ""), None)
        elif not line and section in sections:
            section = ""  # a section that was a comment ends at an empty line
        text = line.removeprefix(_HIDDEN) if section in sections else line
        key = _KEY.fullmatch(text)
        if key and (section, key["key"]) in values:
            text = _line(key["key"], values[section, key["key"]], key["comment"])
            missing.pop((section, key["key"]), None)
        if keep:
            lines.append(text)
    if missing:
        raise SettingsError(
            f"the template of the settings has no line for {[f'[{s}] {k}'.strip() for s, k in missing]}"
        )
    return "\n".join(lines) + "\n"


def _line(key: str, value: str | int | Sequence[str], comment: str | None) -> str:
    # JSON's strings are TOML's, but for the character DEL, which no setting may hold.
    made = f"{key} = {json.dumps(value, ensure_ascii=False)}"
    return f"{made:<{_COMMENT_AT - 1}} {comment}" if comment else made


_SETTINGS: Final = "trimtab.toml"
_RULES: Final = "broker.conf"
#: Written as they come with trimtab: the documents name them by these paths below conf.
_AS_SHIPPED: Final = (_RULES, "broker.recommended.conf", "prometheus/trimtab.rules.yml", "grafana/trimtab.json")
#: The second line of the template, which is about a checkout.
_OF_THE_CHECKOUT: Final = (
    "# Unchanged, it works with the servers that scripts/kafka and scripts/zookeeper start on this machine."
)
_CLUSTER: Final = "standalone"
_KAFKA: Final = "127.0.0.1:9092"
_ZOOKEEPER: Final = "127.0.0.1:2181"
_ADMIN: Final = "http://127.0.0.1:8080"
_SERVICE: Final = "pulsar://127.0.0.1:6650"


_Period: TypeAlias = Annotated[
    int, typer.Option(min=1, help="Seconds of an interval; brokers renew their statistics once a minute.")
]
_State: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        help="Folder for the checkpoint, and for what --log folder keeps.", show_default="DIR/../.trimtab/CLUSTER"
    ),
]


class LogChoice(StrEnum):
    """Where metrics, commands and journal lie."""

    KAFKA = "kafka"
    PULSAR = "pulsar"
    FOLDER = "folder"


class ElectionChoice(StrEnum):
    """Where controllers elect their leader."""

    ZOOKEEPER = "zookeeper"
    LOG = "log"


_Election: TypeAlias = Annotated[
    ElectionChoice,
    typer.Option(
        metavar="<kind>",
        help="zookeeper: controllers elect their leader in ZooKeeper.  log: in a topic of the log, in Kafka or Pulsar;"
        " no ZooKeeper is needed.  With --log folder the election lies in the folder.",
    ),
]


def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder to write to.")] = DEFAULT_CONF.parent,
    log: Annotated[
        LogChoice,
        typer.Option(
            metavar="<kind>",
            help="kafka: metrics, commands and journal lie in Kafka, the election in ZooKeeper; for production."
            "  pulsar: they lie in Pulsar, the cluster that is balanced; no Kafka is needed."
            "  folder: all in a folder of this machine, without a server; to try trimtab on a cluster.",
        ),
    ] = LogChoice.KAFKA,
    cluster: Annotated[
        str | None,
        typer.Option(help="The Pulsar cluster's name.", show_default="DIR, if it is a name; else standalone"),
    ] = None,
    kafka: Annotated[str, typer.Option(help="host:port[,host:port ...] of Kafka.")] = _KAFKA,
    service_url: Annotated[
        str, typer.Option(help="pulsar://host:port[,host:port ...] of brokers, for --log pulsar.")
    ] = _SERVICE,
    election: _Election = ElectionChoice.ZOOKEEPER,
    zookeeper: Annotated[str, typer.Option(help="host:port[,host:port ...] of ZooKeeper.")] = _ZOOKEEPER,
    admin_url: Annotated[
        list[str] | None, typer.Option(help="URL of a broker's admin API; may be repeated.", show_default=_ADMIN)
    ] = None,
    period: _Period = 60,
    state: _State = None,
) -> None:
    """Write commented settings to start from: DIR/trimtab.toml and DIR/broker.conf.

    Beside them: options to compare with (broker.recommended.conf), alerts for Prometheus and a dashboard for Grafana.

    Nothing is overwritten.  The mode is dry_run: trimtab decides and explains, and moves nothing.

    Exit codes: 0 written; 1 a file cannot be written; 2 a file already exists, or a value is invalid.
    """
    cluster = _cluster_of(folder) if cluster is None else cluster
    places = _places(f"../.trimtab/{cluster}" if state is None else str(state.absolute()), log)
    values: dict[tuple[str, str], str | int | list[str]] = {
        ("cluster", "name"): cluster,
        ("intervals", "period_seconds"): period,
        ("pulsar", "admin_url"): admin_url or [_ADMIN],
        **places,
        **_servers(log, kafka=kafka, service_url=service_url, admin_url=admin_url or [_ADMIN]),
        **_election(log, election, zookeeper),
    }
    shipped = {name: (SHIPPED / name).read_text(encoding="utf-8") for name in _AS_SHIPPED}
    _write(folder, {_SETTINGS: _settings(values, log), **shipped})
    for line in _next_steps(folder, log, election):
        typer.echo(line)


def _cluster_of(folder: Path) -> str:
    """The cluster that a person means who gives only a name, which is that of the folder, too; no path of folders."""
    is_name = len(folder.parts) == 1 and is_named_entity(folder.name)
    return folder.name if is_name and folder != DEFAULT_CONF.parent else _CLUSTER


def _servers(
    log: LogChoice, *, kafka: str, service_url: str, admin_url: list[str]
) -> dict[tuple[str, str], str | list[str]]:
    """Where the log is."""
    if log is LogChoice.FOLDER:
        return {}
    if log is LogChoice.KAFKA:
        return {("log.kafka", "bootstrap"): kafka}
    return {
        ("log", "kind"): "pulsar",
        ("log.pulsar", "service_url"): service_url,
        ("log.pulsar", "admin_url"): admin_url,
    }


def _election(log: LogChoice, election: ElectionChoice, zookeeper: str) -> dict[tuple[str, str], str]:
    """Where the election is."""
    if log is LogChoice.FOLDER:
        return {}
    if election is ElectionChoice.ZOOKEEPER:
        return {("election", "hosts"): zookeeper}
    return {("election", "kind"): "log", ("election", "hosts"): "", ("election", "path"): ""}


def _places(state: str, log: LogChoice) -> dict[tuple[str, str], str]:
    places = {("checkpoint", "path"): f"{state}/checkpoint"}
    if log is LogChoice.FOLDER:
        places |= {
            ("log", "kind"): "folder",
            ("log.folder", "path"): f"{state}/log",
            ("election", "kind"): "file",
            ("election", "hosts"): "",
            ("election", "path"): f"{state}/election",
        }
    return places


def _settings(values: Values, log: LogChoice) -> str:
    """The settings file, or SettingsError where trimtab would refuse it."""
    template = (SHIPPED / _SETTINGS).read_text(encoding="utf-8").replace(f"{_OF_THE_CHECKOUT}\n", "")
    sections = {LogChoice.FOLDER: ("log.folder",), LogChoice.PULSAR: ("log.pulsar",)}.get(log, ())
    text = starter(
        template,
        values,
        sections=sections,
        left_out=("log.kafka", "log.kafka.client") if sections else (),
    )
    with TemporaryDirectory(prefix=".trimtab-") as made:
        path = Path(made, _SETTINGS)
        path.write_text(text, encoding="utf-8")
        try:
            read_settings(path)
        except SettingsError as error:
            raise SettingsError(str(error).replace(f"{path}: ", "")) from None
    return text


def _write(folder: Path, files: dict[str, str]) -> None:
    there = [str(folder / name) for name in files if (folder / name).exists()]
    if there:
        raise SettingsError(
            f"{', '.join(there)}: already exists, so nothing was written; choose another folder, or remove it"
        )
    try:
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            create(path, text.encode())
    except OSError as error:
        raise TrimtabError(f"{folder} cannot be written to: {error.strerror}; choose another folder") from error


def _next_steps(folder: Path, log: LogChoice, election: ElectionChoice) -> list[str]:

    def trimtab(*words: str) -> str:
        return command_line(*words, conf=folder / _SETTINGS)

    kafka = "Kafka, " if log is LogChoice.KAFKA else ""
    zookeeper = "" if election is ElectionChoice.LOG else " and of ZooKeeper"
    servers = "URLs of the brokers" if log is LogChoice.FOLDER else f"addresses of {kafka}the brokers{zookeeper}"
    return [
        f"Written: {', '.join(str(folder / name) for name in (_SETTINGS, *_AS_SHIPPED))}",
        "",
        "What to do next:",
        f"1. Read {folder / _SETTINGS}: the cluster's name, the {servers}, and their credentials.",
        f"2. Replace {folder / _RULES} by the file of your brokers: strategies and thresholds are read from it.",
        f"3. {trimtab('doctor')}     says what else is missing, and what to change on the brokers.",
        f"4. {trimtab('collect')}    and beside it",
        f"   {trimtab('run')}        decides, and moves nothing: the mode is dry_run.",
        f"5. {trimtab('status')}     shows what it would do.  To move load: `{trimtab('execute')}`, then",
        f"   `{trimtab('take-over')}`: it switches the brokers' own balancing off, and sets the mode active.",
        f"   With `{trimtab('mode', 'approve')}` people approve each decision first (docs/mode_approve.md).",
    ]
