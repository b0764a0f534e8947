"""``trimtab hand-back`` and ``trimtab take-over`` on real brokers: each hears of its switches while it runs."""

import json
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from controller.adapters.pulsar.admin import PulsarAdmin
from controller.cli.app import app
from controller.lab.pulsar_server import CLUSTER, PulsarCluster
from controller.model.balancing import SHEDDING, SPLITTING

pytestmark = pytest.mark.integration


def test_the_brokers_balance_after_hand_back_and_trimtab_after_take_over(pulsar: PulsarCluster, tmp_path: Path) -> None:
    conf = tmp_path / "trimtab.toml"
    conf.write_text(
        f"""
        cluster.name = "{CLUSTER}"
        log = {{kind = "folder", folder.path = "log"}}
        election = {{kind = "file", path = "election"}}
        checkpoint.path = "checkpoint"
        pulsar.admin_url = {json.dumps(pulsar.admin_urls)}
        """,
        encoding="utf-8",
    )

    def run(*words: str) -> None:
        result = CliRunner().invoke(app, [*words, "--conf", str(conf)])
        assert result.exit_code == 0, result.output or result.exception

    for words, value in ((["hand-back", "--yes"], "true"), (["take-over", "--yes"], "false")):
        if words[0] == "take-over":
            run("resume")
        run(*words)
        with closing(PulsarAdmin(pulsar.admin_urls, cluster=CLUSTER)) as admin:
            shown = [admin.configuration(broker) for broker in pulsar.brokers]
        assert {(each[SHEDDING], each[SPLITTING]) for each in shown} == {(value, value)}
