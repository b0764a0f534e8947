"""A real Prometheus scrapes real processes: collector, controller, executor and page, on a folder log.

The brokers are played on loopback by what real ones answered (tests/fake_pulsar.py).
"""

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

from controller.adapters.network.waiting import wait_for
from controller.lab.processes import Processes
from controller.lab.servers import free_port
from tests.fake_pulsar import CLUSTER, fake_pulsar
from tests.otlp_receiver import otlp_receiver
from tests.prometheus import Prometheus, prometheus

pytestmark = pytest.mark.e2e

_CONF: Final = Path(__file__).parents[2] / "conf"
_RULES: Final = _CONF / "prometheus" / "trimtab.rules.yml"
_DASHBOARD: Final = _CONF / "grafana" / "trimtab.json"
_METRIC: Final = re.compile(r"\b(?:trimtab|pulsar|process)_\w+")
#: What a sample's name has behind that of its metric.
_SAMPLE: Final = re.compile(r"_(?:bucket|sum|count|total)$")
_PATIENCE_SECONDS: Final = 120.0


def settings(admin_urls: list[str], ports: dict[str, int], receiver: str) -> str:
    served = "\n".join(f'{role} = "127.0.0.1:{port}"' for role, port in ports.items())
    return f"""
        cluster.name = "{CLUSTER}"
        intervals = {{ period_seconds = 2, shards = 1 }}
        log.kind = "folder"
        log.folder.path = "log"
        election.kind = "file"
        election.path = "election"
        checkpoint.path = "checkpoint"
        pulsar.admin_url = {json.dumps(admin_urls)}
        tracing.endpoint = "{receiver}"
        web = {{ listen = "127.0.0.1:{free_port()}", anonymous = "viewer" }}
        [metrics]
        {served}
        [spark]
        master = "local[2]"
        shuffle_partitions = 1
        conf = {{ "spark.driver.extraJavaOptions" = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC" }}
    """


def config(ports: dict[str, int]) -> str:
    targets = ", ".join(f'"127.0.0.1:{port}"' for port in ports.values())
    return f"""
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: ["{_RULES}"]
scrape_configs: [{{job_name: trimtab, static_configs: [{{targets: [{targets}]}}]}}]
"""


def queries() -> list[str]:
    """Of every panel of the dashboard, with what Grafana puts in for its variables."""
    panels = json.loads(_DASHBOARD.read_text(encoding="utf-8"))["panels"]
    found = [target["expr"] for panel in panels for target in panel["targets"]]
    return [text.replace("$__rate_interval", "1m").replace("$job", "trimtab") for text in found]


def decides(server: Prometheus, processes: Processes) -> bool:
    """Whether all is scraped, an interval is decided, and every rule has been evaluated."""
    processes.check()
    up = server.query("sum(up{job='trimtab'})")
    decided = server.query("trimtab_leader == 1 and trimtab_last_interval_timestamp_seconds > 0")
    groups = server.get("rules")["groups"]
    known = bool(groups) and all(rule["health"] != "unknown" for group in groups for rule in group["rules"])
    return bool(up) and up[0]["value"][1] == "4" and bool(decided) and known


def of_all_processes(spans: list[dict[str, Any]]) -> bool:
    """Whether one trace has spans of the collector and of the controller, from the sweep to the journal."""
    names: dict[str, set[str]] = {}
    for span in spans:
        names.setdefault(span["traceId"], set()).add(span["name"])
    return any({"sweep", "interval", "query", "decide", "journal"} <= found for found in names.values())


def test_prometheus_scrapes_all_processes_and_every_rule_and_panel_finds_its_metrics(tmp_path: Path) -> None:
    ports = {role: free_port() for role in ("controller", "collector", "executor", "web")}
    with fake_pulsar(3) as pulsar, otlp_receiver() as receiver, prometheus(tmp_path, config(ports)) as server:
        (tmp_path / "broker.conf").write_text("")
        conf = tmp_path / "trimtab.toml"
        conf.write_text(settings(pulsar.urls, ports, receiver.url))
        with Processes(conf, tmp_path) as processes:
            for command in ("collect", "run", "execute", "serve"):
                processes.start(command)
            wait_for(lambda: decides(server, processes), _PATIENCE_SECONDS, every=0.5)
            known = {each["metric"] for each in server.get("targets/metadata")}
            rules = [rule for group in server.get("rules")["groups"] for rule in group["rules"]]
            for query in queries():
                server.query(query)
            wait_for(lambda: of_all_processes(receiver.spans), _PATIENCE_SECONDS, every=0.5)
            assert processes.stop() == {"collect": 0, "run": 0, "execute": 0, "serve": 0}
    assert len(rules) == _RULES.read_text(encoding="utf-8").count("- alert:")
    assert {rule["name"]: rule["lastError"] for rule in rules if rule["health"] != "ok"} == {}
    asked = {name for text in [*queries(), *(rule["query"] for rule in rules)] for name in _METRIC.findall(text)}
    assert {name for name in asked if not {name, _SAMPLE.sub("", name)} & known} == set()
