"""Pulsar's own classes beside ours: that they run on a load of ours, and choose as many bundles."""

import pytest

from controller.bench.clusters import CLUSTERS
from controller.bench.decisions import subjects, timings
from controller.bench.java_rival import JavaRival, java_rival

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_every_class_chooses_as_many_bundles_as_ours(cluster: str) -> None:
    view = CLUSTERS[cluster](20, 2_000)
    with java_rival(view) as rival:
        found = {one.subject: one for one in timings(cluster, view, runs=1, rival=rival)}
    assert set(JavaRival.names) <= set(subjects())
    chosen = {name: (found[name].chosen, found[name].java_chosen) for name in JavaRival.names}
    assert {name for name, (ours, theirs) in chosen.items() if ours != theirs} == set()
    assert any(ours for ours, _ in chosen.values())
