"""Brokers of equal score, and equal bundles, stand in for each other: Pulsar takes them as its hash map lists them,
trimtab by name.  Whom a broker is paired with then differs, and so do the hit counts and all that follows from them.
So a broker is settled while no other broker has had its score, nor its partner's, in any round so far, and its partners
have been settled too.  Checked round by round: every score; the unloads, in order, their destinations and the counts of
settled brokers, exactly, but for bundles of equal load in an order-sensitive case; and of all other brokers, that what
they give is no more than the share of the difference to a broker of their partner's score.  (Where scores are equal a
case need not be marked as order-sensitive: Pulsar was run under few other names.)"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from controller.strategies.shedding.avg_shedder import AvgShedder
from tests.conformance.vectors import Case, close_to, configured, floats, shedding_view

COMPONENT = "avg_shedder"
#: Columns of a bundle's row: msg/s in and out, bytes/s in and out.
_MEASURES = (slice(2), slice(2, 4))


def test_the_same_bundles_are_unloaded_to_the_same_brokers(case: Case) -> None:
    shedder = configured(AvgShedder, case["config"], pulsar=case["pulsar"])
    memory = shedder.initial_memory()
    unsettled: set[str] = set()
    for given, expected in zip(case["input"]["rounds"], case["expected"]["rounds"], strict=True):
        view = shedding_view(given)
        scores = dict(zip(view.brokers.names, shedder.scores(view).tolist(), strict=True))
        assert scores == close_to(expected["scores"])
        decision, memory = shedder.decide(view, memory)
        unload, placement = defaultdict(list), {}
        for one in decision.unloads:
            unload[one.source].append(one.bundle)
            placement[one.bundle] = one.destination
        _unsettle(scores, unsettled)
        for counts, of_pulsar in ((memory.high, expected["hit_high"]), (memory.low, expected["hit_low"])):
            assert _without(counts, unsettled) == _without(of_pulsar, unsettled)
        theirs = _without(expected["unload"], unsettled)
        assert set(_without(unload, unsettled)) == set(theirs)
        for source, bundles in theirs.items():
            if case.get("order_sensitive"):
                assert any(_loads(unload[source], given, by) == _loads(bundles, given, by) for by in _MEASURES)
            else:
                assert unload[source] == bundles
            assert [placement[one] for one in unload[source]] == [expected["placement"][one] for one in bundles]
        for source in unload.keys() & unsettled:
            assert _gives_no_more_than_its_share(source, unload[source], scores, given, shedder.max_unload_share)


def _unsettle(scores: Mapping[str, float], unsettled: set[str]) -> None:
    """Add to *unsettled* who is no longer settled after a round with *scores*."""
    order = sorted(scores, key=lambda name: scores[name])
    values = list(scores.values())
    for pair in zip(order, reversed(order), strict=True):
        if unsettled.intersection(pair) or any(values.count(scores[name]) > 1 for name in pair):
            unsettled.update(name for name in scores if scores[name] in (scores[pair[0]], scores[pair[1]]))


def _without(of_brokers: Mapping[str, Any], unsettled: set[str]) -> dict[str, Any]:
    return {name: value for name, value in of_brokers.items() if name not in unsettled}


def _loads(bundles: Sequence[str], given: Mapping[str, Any], by: slice) -> list[float]:
    """msg/s or bytes/s of each bundle."""
    return [float(floats(given["bundles"][name][by]).sum()) for name in bundles]


def _gives_no_more_than_its_share(
    source: str, bundles: Sequence[str], scores: Mapping[str, float], given: Mapping[str, Any], share: float
) -> bool:
    ordered = sorted(scores.values())
    partner_scores = {low for low, high in zip(ordered, reversed(ordered), strict=True) if high == scores[source]}
    load_of = {broker["name"]: floats(broker["load"]) for broker in given["brokers"]}
    partners = [name for name in scores if scores[name] in partner_scores]
    for by in _MEASURES:
        most = max(load_of[source][by].sum() - load_of[name][by].sum() for name in partners) * share
        if sum(_loads(bundles, given, by)) <= most * (1 + 1e-9):
            return True
    return False
