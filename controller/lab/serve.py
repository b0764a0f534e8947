"""The command line of the servers that run on this machine: scripts/kafka, scripts/zookeeper and scripts/pulsar.

python -m controller.lab.serve kafka|zookeeper|pulsar [start|stop|run] [--dir DIR] [--port PORT]
python -m controller.lab.serve traffic: scripts/traffic, messages for the brokers of scripts/pulsar
"""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final, Literal, Protocol, TypeAlias

import typer

from controller.adapters.process import signals
from controller.lab.pulsar_release import RELEASES, USUAL, find_release
from controller.lab.pulsar_server import PulsarCluster
from controller.lab.servers import FOLDER, KafkaServer, ZooKeeperServer
from controller.model.errors import TrimtabError

app = typer.Typer(help="Start and stop a server on this machine.", no_args_is_help=True, add_completion=False)

ServerAction: TypeAlias = Annotated[
    Literal["start", "stop", "run"], typer.Argument(help="run: run until Ctrl-C; start: run until stop.")
]
Folder: TypeAlias = Annotated[Path, typer.Option("--dir", help="Folder of the server's state.")]
Port: TypeAlias = Annotated[int, typer.Option(help="The server's port; 0 picks a free one.")]


class Service(Protocol):
    """What can be started and stopped: one server, or several that belong together."""

    name: str
    folder: Path

    @property
    def summary(self) -> str:
        """Where it serves, its processes and logs: one line, or more."""

    @property
    def logs(self) -> str:
        """Where to look when it has ended."""

    def start(self, *, tied: bool = False) -> None:
        """Return when it serves.  *tied*: it is killed when this process ends, however that ends."""

    def stop(self) -> bool:
        """False: it did not run."""

    def wait(self) -> None:
        """Block until it has ended."""


@app.command()
def kafka(
    action: ServerAction = "start", folder: Folder = FOLDER / "kafka", port: Port = KafkaServer.default_port
) -> None:
    """A Kafka broker that is its own controller."""
    _act(lambda: KafkaServer(folder, port), action)


@app.command()
def zookeeper(
    action: ServerAction = "start", folder: Folder = FOLDER / "zookeeper", port: Port = ZooKeeperServer.default_port
) -> None:
    """A ZooKeeper server by itself."""
    _act(lambda: ZooKeeperServer(folder, port), action)


@app.command()
def pulsar(
    action: ServerAction = "start",
    processes: Annotated[bool, typer.Option("--processes", help="Run each part in its own JVM.")] = False,
    folder: Folder = FOLDER / "pulsar",
    port: Annotated[int, typer.Option(help="HTTP port of the first broker; 0 picks a free one.")] = 8080,
    version: Annotated[
        str, typer.Option(help=f"Release of Pulsar, or its first numbers: {', '.join(r.version for r in RELEASES)}.")
    ] = USUAL.version,
) -> None:
    """A Pulsar cluster of three brokers, with a bookie and a ZooKeeper."""
    _act(lambda: PulsarCluster(folder, port, processes=processes, release=find_release(version)), action)


@app.command()
def traffic(
    admin_url: Annotated[str, typer.Option(help="URL of a broker's admin API.")] = "http://127.0.0.1:8080",
    service_url: Annotated[str, typer.Option(help="pulsar://host:port of brokers.")] = "pulsar://127.0.0.1:6650",
    folder: Folder = FOLDER / "pulsar",
) -> None:
    """Messages for the cluster of scripts/pulsar, until Ctrl-C; at first all of them go to one broker."""
    # Pulsar's client takes a while to load, and the other commands do not need it.
    from controller.lab.pulsar_demo_traffic import send_until_told

    try:
        with signals.interrupts(), suppress(KeyboardInterrupt):
            send_until_told(admin_url, service_url, folder / "traffic.log", typer.echo)
    except TrimtabError as error:
        typer.echo(error, err=True)
        raise typer.Exit(error.exit_code) from error


def _act(service: Callable[[], Service], action: str) -> None:
    try:
        _ACTIONS[action](service())
    except TrimtabError as error:
        typer.echo(error, err=True)
        raise typer.Exit(error.exit_code) from error


def _start(service: Service, *, tied: bool = False) -> None:
    service.start(tied=tied)
    typer.echo(service.summary)


def _stop(service: Service) -> None:
    stopped = service.stop()
    typer.echo(f"{service.name} {'stopped' if stopped else 'does not run'} in {service.folder}")


def _run(service: Service) -> None:
    # A service manager sends SIGTERM; background jobs of a shell ignore Ctrl-C.
    with signals.interrupts():
        try:
            _start(service, tied=True)
            service.wait()
        except KeyboardInterrupt:
            return _stop(service)
    service.stop()  # what is left of it
    typer.echo(f"{service.name} has ended by itself; see {service.logs}", err=True)
    raise typer.Exit(1)


_ACTIONS: Final[dict[str, Callable[[Service], None]]] = {"start": _start, "stop": _stop, "run": _run}

if __name__ == "__main__":
    app()
