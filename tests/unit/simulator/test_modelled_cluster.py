import numpy as np
import pytest

from controller.model.decision import Command, Reason, Verdict
from controller.model.errors import SettingsError
from controller.model.names import FULL_UPPER, find_bundle, namespace_of, parse_bundle, topic_hash
from controller.simulator.cluster import ClusterShape, ModelledCluster

SMALL = ClusterShape(brokers=3, empty_brokers=1, namespaces=2, bundles=8, topics=200)
NOW = 1_735_689_600_000
WHY = Verdict(subject="cluster", reason=Reason.OVERLOADED)


def cluster(shape: ClusterShape = SMALL, seed: int = 1) -> ModelledCluster:
    return ModelledCluster(shape, seed=seed)


def a_bundle(of: ModelledCluster) -> str:
    """The heaviest, so that moving it shows."""
    return max(of.bundle_loads().items(), key=lambda item: item[1].sum())[0]


def command(of: ModelledCluster, action: str, bundle: str, **given: object) -> Command:
    fields = {
        "id": "an-id",
        "action": action,
        "cluster": of.name,
        "bundle": bundle,
        "interval": NOW,
        "expires_at_ms": NOW + 300_000,
        "mode": "active",
        "source": of.owner(bundle),
        "why": WHY,
    }
    return Command(**{**fields, **given})  # type: ignore[arg-type]


def unload(of: ModelledCluster, bundle: str, **given: object) -> Command:
    return command(of, "unload", bundle, **given)


def split(of: ModelledCluster, bundle: str, **given: object) -> Command:
    return command(of, "split", bundle, **{"algorithm": "range_equally_divide", **given})


def halves(bundle: str) -> tuple[str, str]:
    namespace, lower, upper = parse_bundle(bundle)
    middle = (lower + upper) // 2
    return f"{namespace}/0x{lower:08x}_0x{middle:08x}", f"{namespace}/0x{middle:08x}_0x{upper:08x}"


def everything(of: ModelledCluster) -> list[tuple[object, ...]]:
    return [
        (s.broker, s.usage.tolist(), s.bundles, s.starts.tolist(), s.topics, s.load.tolist(), s.counts.tolist())
        for s in of.sweeps(NOW)
    ]


# ---- what it looks like ----


def test_a_restarted_broker_owns_nothing_and_idles() -> None:
    sweeps = list(cluster().sweeps(NOW))
    assert [bool(s.bundles) for s in sweeps] == [True, True, False]
    assert sweeps[2].topics == []
    assert (sweeps[2].usage / sweeps[2].limit < 0.3).all()


def test_every_topic_lies_in_the_bundle_that_its_hash_decides() -> None:
    modelled = cluster()
    seen = 0
    for sweep in modelled.sweeps(NOW):
        for bundle, lo, hi in zip(sweep.bundles, sweep.starts[:-1], sweep.starts[1:], strict=True):
            namespace, lower, upper = parse_bundle(bundle)
            for topic in sweep.topics[lo:hi]:
                assert topic.startswith(f"persistent://{namespace}/")
                assert find_bundle(modelled.boundaries(namespace), topic_hash(topic)) == (lower, upper)
                seen += 1
    assert seen == 200


@pytest.mark.parametrize("bundles", [2, 7, 8])
def test_the_bundles_of_every_namespace_cover_the_ring(bundles: int) -> None:
    modelled = cluster(ClusterShape(brokers=2, namespaces=2, bundles=bundles, topics=10))
    count = 0
    for namespace in modelled.namespaces:
        boundaries = modelled.boundaries(namespace)
        assert (boundaries[0], boundaries[-1]) == (0, FULL_UPPER)
        assert list(boundaries) == sorted(set(boundaries))
        count += len(boundaries) - 1
    assert count == bundles


def test_a_shape_that_cannot_be_is_refused() -> None:
    with pytest.raises(SettingsError, match="2 brokers of which 2 are empty"):
        ClusterShape(brokers=2, empty_brokers=2)
    with pytest.raises(SettingsError, match="every namespace needs a bundle"):
        ClusterShape(namespaces=3, bundles=2)


# ---- load ----


def test_the_load_of_all_brokers_is_the_load_of_all_topics_and_of_all_sweeps() -> None:
    modelled = cluster()
    for _ in range(3):
        modelled.advance()
    total = modelled.load.sum(axis=0)
    assert (total > 0).all()
    np.testing.assert_allclose(modelled.broker_load().sum(axis=0), total)
    np.testing.assert_allclose(sum(s.load.sum(axis=0) for s in modelled.sweeps(NOW)), total)
    np.testing.assert_allclose(sum(modelled.bundle_loads().values()), total)


def test_the_same_seed_and_commands_give_the_same_sweeps_and_another_seed_others() -> None:
    runs = []
    for seed in (1, 1, 2):
        modelled = cluster(seed=seed)
        modelled.advance()
        bundle = a_bundle(modelled)
        modelled.apply(split(modelled, bundle, unload_after_split=True), now_ms=NOW)
        modelled.advance()
        runs.append(everything(modelled))
    assert runs[0] == runs[1] != runs[2]


# ---- unload ----


def test_unload_moves_exactly_the_bundles_load_to_the_destination() -> None:
    modelled = cluster()
    bundle = a_bundle(modelled)
    source, destination = modelled.owner(bundle), modelled.brokers[2]
    load, before = modelled.bundle_loads()[bundle], modelled.broker_load()
    result = modelled.apply(unload(modelled, bundle, destination=destination), now_ms=NOW)
    assert (result.id, result.status) == ("an-id", "done")
    assert (result.owner_before, result.owner_after) == (source, destination)
    moved = modelled.broker_load() - before
    np.testing.assert_allclose(moved[2], load)
    np.testing.assert_allclose(moved[modelled.brokers.index(source)], -load)
    others = [i for i, name in enumerate(modelled.brokers) if name not in (source, destination)]
    np.testing.assert_array_equal(moved[others], 0)


def test_unload_without_destination_goes_to_the_broker_with_the_least_throughput() -> None:
    modelled = cluster()
    result = modelled.apply(unload(modelled, a_bundle(modelled)), now_ms=NOW)
    assert (result.status, result.owner_after) == ("done", modelled.brokers[2])


def test_unload_is_obsolete_when_another_broker_owns_the_bundle_and_already_done_at_its_destination() -> None:
    modelled = cluster()
    bundle = a_bundle(modelled)
    third = next(b for b in modelled.brokers[:2] if b != modelled.owner(bundle))
    first = unload(modelled, bundle, destination=modelled.brokers[2])
    elsewhere = unload(modelled, bundle, destination=third, source=modelled.brokers[2])
    assert modelled.apply(first, now_ms=NOW).status == "done"
    assert modelled.apply(first, now_ms=NOW).status == "already_done"
    assert modelled.apply(elsewhere, now_ms=NOW).status == "done"
    assert modelled.apply(first, now_ms=NOW).status == "obsolete"
    assert modelled.owner(bundle) == third


# ---- split ----


def test_split_keeps_totals_and_puts_the_children_in_the_parents_place() -> None:
    modelled = cluster()
    bundle = a_bundle(modelled)
    owner, load = modelled.owner(bundle), modelled.bundle_loads()[bundle]
    total = modelled.broker_load()
    assert modelled.apply(split(modelled, bundle), now_ms=NOW).status == "done"
    left, right = halves(bundle)
    loads = modelled.bundle_loads()
    assert bundle not in loads
    assert (loads[left] > 0).all()
    assert (loads[right] > 0).all()
    np.testing.assert_allclose(loads[left] + loads[right], load)
    np.testing.assert_allclose(modelled.broker_load(), total)
    assert modelled.owner(left) == modelled.owner(right) == owner
    assert modelled.owner(bundle) == ""


def test_topics_follow_their_hash_through_splits_of_children_at_given_boundaries() -> None:
    modelled = cluster()
    bundle = a_bundle(modelled)
    namespace, lower, upper = parse_bundle(bundle)
    third = (upper - lower) // 3
    edges = (lower, lower + third, lower + 2 * third, upper)
    modelled.apply(split(modelled, bundle, algorithm="specified", boundaries=edges), now_ms=NOW)
    child = f"{namespace}/0x{edges[1]:08x}_0x{edges[2]:08x}"
    modelled.apply(split(modelled, child), now_ms=NOW)
    assert {*edges, edges[1] + third // 2} <= set(modelled.boundaries(namespace))
    for sweep in modelled.sweeps(NOW):
        for name, lo, hi in zip(sweep.bundles, sweep.starts[:-1], sweep.starts[1:], strict=True):
            _, start, end = parse_bundle(name)
            assert all(start <= topic_hash(topic) < end for topic in sweep.topics[lo:hi])


def test_split_can_unload_the_children_to_the_least_loaded_broker() -> None:
    modelled = cluster()
    bundle = a_bundle(modelled)
    modelled.apply(split(modelled, bundle, unload_after_split=True), now_ms=NOW)
    assert modelled.owner(halves(bundle)[0]) == modelled.brokers[2]


def test_split_twice_is_already_done_and_of_a_bundle_that_never_was_obsolete() -> None:
    modelled = cluster()
    bundle = a_bundle(modelled)
    order = split(modelled, bundle)
    assert modelled.apply(order, now_ms=NOW).status == "done"
    assert modelled.apply(order, now_ms=NOW).status == "already_done"
    assert modelled.apply(unload(modelled, bundle), now_ms=NOW).status == "obsolete"
    stranger = f"{namespace_of(bundle)}/0x00000001_0x00000100"
    assert modelled.apply(split(modelled, stranger), now_ms=NOW).status == "obsolete"


def test_changed_namespaces_are_all_at_first_and_then_those_that_were_split() -> None:
    modelled = cluster()
    assert [(s.namespace, s.version) for s in modelled.changed_namespaces()] == [
        (name, 1) for name in modelled.namespaces
    ]
    assert modelled.changed_namespaces() == []
    bundle = a_bundle(modelled)
    modelled.apply(split(modelled, bundle), now_ms=NOW)
    (state,) = modelled.changed_namespaces()
    assert (state.namespace, state.version) == (namespace_of(bundle), 2)
    assert len(state.boundaries) == 6


# ---- refusals ----


@pytest.mark.parametrize("make", [unload, split])
@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({"mode": "dry_run"}, "dry_run"),
        ({"expires_at_ms": NOW}, "expired"),
        ({"source": "broker-9:8080"}, "obsolete"),
    ],
)
def test_commands_whose_preconditions_do_not_hold_change_nothing(make, given, status) -> None:  # type: ignore[no-untyped-def]
    modelled = cluster()
    before = everything(modelled)
    result = modelled.apply(make(modelled, a_bundle(modelled), **given), now_ms=NOW)
    assert result.status == status
    assert everything(modelled) == before


def test_unknown_destinations_and_boundaries_outside_of_the_bundle_fail_and_change_nothing() -> None:
    modelled = cluster()
    before, bundle = everything(modelled), a_bundle(modelled)
    nowhere = unload(modelled, bundle, destination="broker-9:8080")
    outside = split(modelled, bundle, boundaries=(parse_bundle(bundle).lower,))
    assert modelled.apply(nowhere, now_ms=NOW).status == "failed"
    assert modelled.apply(outside, now_ms=NOW).status == "failed"
    assert everything(modelled) == before
