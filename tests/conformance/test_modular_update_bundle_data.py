"""The brokers' stats go the whole way here: as sweeps through the fold, an interval a round, to the view.

Pulsar drops a bundle as soon as no broker lists it, trimtab after a time to live, which is therefore none here.  Of a
broker's averages trimtab has use for the long-term ones alone; the short-term ones are summed in the test, from what
the view says of its bundles."""

from controller.aggregate.shard.fold import ShardState
from controller.aggregate.view import assemble
from tests.conformance.vectors import Case, close_to
from tests.rounds import close_round

COMPONENT = "modular_update_bundle_data"


def test_averages_of_bundles_and_brokers_are_those_of_pulsar(case: Case) -> None:
    assert case["config"] == {"short_samples": 10, "long_samples": 1000}
    state = ShardState(shard=0, shards=1)
    for number, (given, expected) in enumerate(zip(case["input"]["rounds"], case["expected"]["rounds"], strict=True)):
        listed = {f"{broker}:8080": bundles for broker, bundles in given.items()}
        state, snapshot = close_round(state, number, listed, bundle_ttl_ms=0)
        view = assemble([snapshot], {}, {})
        known, bundles, brokers = state.bundles, view.bundles, view.brokers
        assert known.names == list(bundles.names) == sorted(expected["bundle_data"])
        for row, name in enumerate(bundles.names):
            of_bundle = expected["bundle_data"][name]
            assert [known.short_samples[row], *bundles.short_term[row]] == close_to(of_bundle["st"])
            assert [known.long_samples[row], *bundles.long_term[row]] == close_to(of_bundle["lt"])
            assert bundles.topics[row] == of_bundle["topics"]
        assert set(brokers.names) == {f"{broker}:8080" for broker in expected["broker_time_average"]}
        for broker, average in expected["broker_time_average"].items():
            row = brokers.code_of[f"{broker}:8080"]
            short_term = bundles.short_term[bundles.of_broker(row)].sum(axis=0)
            assert short_term.tolist() == close_to(average["short_term"])
            assert brokers.long_term[row].tolist() == close_to(average["long_term"])
