"""The command line of the servers, as far as no server starts."""

import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner

from controller.lab.pulsar_server import PulsarCluster
from controller.lab.serve import app
from controller.lab.servers import free_port


@pytest.mark.parametrize("name", ["kafka", "zookeeper", "pulsar"])
def test_stopping_what_does_not_run_says_so_and_is_no_failure(name: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, [name, "stop", "--dir", str(tmp_path)])
    assert result.exit_code == 0
    assert result.stdout == f"{name} does not run in {tmp_path}\n"


def test_with_a_port_the_brokers_stand_beside_each_other_and_leave_what_is_taken(tmp_path: Path) -> None:
    first = free_port()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", first + 1))
        taken.listen()
        cluster = PulsarCluster(tmp_path, first)
    ports = [int(broker.rpartition(":")[2]) for broker in cluster.brokers]
    assert ports[0] == first
    assert first + 1 not in ports
    everything = [
        *ports,
        *(int(each.rpartition(":")[2]) for each in (*cluster.service_url.split(","), cluster.zookeeper)),
    ]
    assert len(set(everything)) == 7


def test_a_release_of_pulsar_that_there_is_not_is_refused_with_those_there_are(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["pulsar", "start", "--version", "6", "--dir", str(tmp_path)])
    assert result.exit_code == 2
    assert result.stderr == "no Pulsar '6' can be started here; known: 4.0.8, 5.0.1\n"
