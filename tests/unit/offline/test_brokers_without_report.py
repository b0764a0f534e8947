"""A broker of the roster whose report is missing is left out of no plan without a word."""

import json
from pathlib import Path

import pytest

from controller.model.errors import TrimtabError
from controller.offline.plans.planner import PlanRequest, planned_cluster
from controller.offline.plans.rightsizing import rightsizing
from controller.offline.plans.source import PlanSource, source_of_load
from controller.planning.plans.plan import DRAIN, JOIN, REMOVE, RESTART
from controller.simulator.cluster import ClusterShape, ModelledCluster
from controller.simulator.encode import json_records, namespace_record

T = 1_735_689_600_000
SILENT = "broker-4:8080"


@pytest.fixture(scope="module")
def loads(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Four brokers: one load with all of their reports, and one without that of SILENT."""
    cluster = ModelledCluster(ClusterShape(brokers=4, bundles=48, topics=192, empty_brokers=0), seed=3, name="lab")
    states = [namespace_record("lab", state)[1] for state in cluster.changed_namespaces()]
    sweeps = list(cluster.sweeps(T))
    roster = [{"broker": sweep.broker, "sweepId": sweep.sweep_id} for sweep in sweeps]
    tick = {"v": 1, "type": "tick", "cluster": "lab", "interval": T, "roster": roster}
    tick["partitions"] = {"metrics": 1, "results": 1}
    found = {}
    for name, silent in (("whole", ""), ("part", SILENT)):
        reports = [value for sweep in sweeps if sweep.broker != silent for _, value in json_records(sweep)]
        found[name] = tmp_path_factory.mktemp("load") / f"{name}.jsonl"
        found[name].write_bytes(b"\n".join([*states, *reports, json.dumps(tick).encode()]))
    return found


def source(load: Path) -> PlanSource:
    return source_of_load([load], None, cluster=None, period_ms=60_000)


@pytest.mark.parametrize(
    "asked", [PlanRequest(kind=RESTART), PlanRequest(kind=REMOVE, number=1)], ids=lambda asked: asked.kind
)
def test_what_concerns_every_broker_is_refused_and_the_broker_named(loads: dict[str, Path], asked: PlanRequest) -> None:
    with pytest.raises(TrimtabError, match=rf"from {SILENT}, and a .* wait for the next interval"):
        planned_cluster(source(loads["part"]), asked)
    assert planned_cluster(source(loads["whole"]), asked).plan.moves


def test_no_number_of_brokers_is_told_without_the_load_of_all(loads: dict[str, Path]) -> None:
    with pytest.raises(TrimtabError, match=rf"from {SILENT}, and a number of brokers"):
        rightsizing(source(loads["part"]), headroom=0.3, added=0)
    assert rightsizing(source(loads["whole"]), headroom=0.3, added=0).brokers == 4


@pytest.mark.parametrize(
    "asked",
    [
        PlanRequest(max_moves=1),
        PlanRequest(kind=DRAIN, brokers=("broker-1:8080",)),
        PlanRequest(kind=JOIN, brokers=("broker-1:8080",)),
    ],
    ids=lambda asked: asked.kind,
)
def test_other_plans_say_that_it_is_not_counted(loads: dict[str, Path], asked: PlanRequest) -> None:
    told = [note for note in planned_cluster(source(loads["part"]), asked).notes if SILENT in note]
    assert len(told) == 1
    assert "not counted" in told[0]
    assert not any("not counted" in note for note in planned_cluster(source(loads["whole"]), asked).notes)
