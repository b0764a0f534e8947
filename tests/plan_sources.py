"""Clusters for ``trimtab plan``: the load of a modelled one in a file, read as the command reads it."""

from pathlib import Path
from typing import Final

from controller.offline.plans.source import PlanSource, source_of_load
from controller.simulator.cluster import ClusterShape, ModelledCluster
from controller.simulator.encode import json_records, namespace_record

#: The option of a filter that Pulsar has on by default.
EVENLY: Final = "loadBalancerDistributeBundlesEvenlyEnabled"
_PERIOD_MS: Final = 60_000


def modelled_load(folder: Path, shape: ClusterShape, seed: int = 3) -> Path:
    """A file with one interval of a cluster of *shape*; its last broker has no bundles."""
    cluster = ModelledCluster(shape, seed=seed, name="lab")
    records = [namespace_record("lab", state)[1] for state in cluster.changed_namespaces()]
    for sweep in cluster.sweeps(1_735_689_600_000):
        records += [value for _, value in json_records(sweep)]
    file = folder / "load.jsonl"
    file.write_bytes(b"\n".join(records))
    return file


def source(load: Path, **options: object) -> PlanSource:
    """The cluster of *load*, with *options* of broker.conf."""
    conf = load.with_name("broker.conf")
    conf.write_text("".join(f"{name}={value}\n" for name, value in options.items()))
    return source_of_load([load], conf, cluster=None, period_ms=_PERIOD_MS)
