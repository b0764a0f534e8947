"""Pulsar's own classes beside ours: that they run on a load of ours, and choose as many bundles."""

from pathlib import Path

import pytest

from controller.adapters.disk import jars
from controller.adapters.disk.java_compiler import compile_java
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


def test_a_runtime_without_javac_is_enough_to_compile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = tmp_path / "runtime" / "bin"
    runtime.mkdir(parents=True)
    (runtime / "java").symlink_to(Path(jars.java()).resolve())
    source = tmp_path / "Small.java"
    source.write_text(
        'final class Small { String of(int x) { return switch (x) { case 1 -> "one"; default -> ""; }; } }'
    )
    monkeypatch.setenv("JAVA_HOME", str(runtime.parent))
    monkeypatch.setenv("PATH", "")
    compile_java([source], [], tmp_path)
    assert (tmp_path / "Small.class").exists()
