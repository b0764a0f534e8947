"""The answers of the filters and the placement about each broker as the destination of one bundle."""

from typing import Final, NamedTuple

import numpy as np

from controller.audit.seen_load import weights_of
from controller.cycle import Policy
from controller.model.load import RATE_IN, RATE_OUT, ClusterView
from controller.offline.explanations.examined import Placed
from controller.status.reasons import MEANINGS
from controller.strategies.common.candidates import Candidates
from controller.strategies.protocols import Filter
from controller.wire.answers.explain import BrokerForBundleAnswer, DestinationAnswer

#: The order of the answers.
_ORDER: Final = ("chosen", "source", "yes", "no")


def destinations(view: ClusterView, bundle: str, policy: Policy, placed: Placed) -> list[BrokerForBundleAnswer]:
    """Each broker as the destination of *bundle*: first where it goes and where it is, then the others by name."""
    brokers, source = view.brokers, int(view.bundles.broker[view.bundles.code_of[bundle]])
    # As the shedder's verdicts and the audit give it.
    weights = weights_of(policy.shedder)
    usage = np.nan_to_num(weights.weighted_usage(brokers.usage, brokers.limit), neginf=0.0)
    resources = weights.fullest(brokers.usage, brokers.limit)
    answers = []
    for row, name in enumerate(brokers.names):
        one = _answer(row, name, source, policy, placed)
        answers.append(
            BrokerForBundleAnswer(
                broker=name,
                answer=one.answer,
                by=one.by,
                reason="" if one.against is None else one.against.reason,
                kind="" if one.against is None else MEANINGS[one.against.reason].kind.value,
                text=one.text,
                filters=_of_filters(placed.candidates, row),
                usage=float(usage[row]),
                resource=resources[row],
                msg_rate=float(brokers.load[row, RATE_IN] + brokers.load[row, RATE_OUT]),
                msg_throughput=float(brokers.throughput[row]),
                bundles=int(brokers.bundle_count[row]),
            )
        )
    return sorted(answers, key=lambda each: _ORDER.index(each.answer))


def ignored_filters(policy: Policy, placed: Placed) -> str:
    """Why brokers count that filters have excluded; "" where none does."""
    rows, candidates = placed.acceptable, placed.candidates
    if rows is None or not candidates.steps:
        return ""
    if any(not (candidates.remaining == row).any() for row in rows.tolist()):
        return (
            "all brokers that the filters leave are overloaded, so only the binding ones hold"
            " (loadBalancerBrokerOverloadedThresholdPercentage, trimtabOverloadedBrokersKeepFilters)"
        )
    names = ", ".join(type(step).__name__ for step in policy.filters if not step.binding)
    return (
        f"the filters together leave no broker, so these are ignored: {names}"
        if not len(candidates.steps[-1][1])
        else ""
    )


class _Answer(NamedTuple):
    """The answer about one broker, who gives it, the filter that excludes it, and all that in words."""

    answer: DestinationAnswer
    by: str
    against: Filter | None
    text: str


def _answer(row: int, name: str, source: int, policy: Policy, placed: Placed) -> _Answer:
    """The answer about the broker at *row*."""
    if name == placed.destination:
        return _Answer("chosen", "", None, "")
    if row == source:
        return _Answer("source", "", None, "it is there")
    if placed.acceptable is not None and row in placed.acceptable:
        return _Answer("yes", "", None, "as good as the chosen one")
    against = placed.candidates.excludes(row)
    if against is not None:
        return _Answer("no", type(against).__name__, against, MEANINGS[against.reason].text)
    planned = placed.view.planned
    if placed.acceptable is None or placed.acceptable.tolist() == [planned]:
        return _Answer("yes", "", None, "no filter excludes it; the shedder chose another one")
    if row == planned:
        return _Answer("no", type(policy.placement).__name__, None, "the shedder chose it, and it is overloaded")
    if placed.best is not None and row in placed.best:
        return _Answer("no", type(policy.selection).__name__, None, "it is overloaded")
    return _Answer("no", type(policy.placement).__name__, None, "another broker is better")


def _of_filters(candidates: Candidates, row: int) -> dict[str, bool | None]:
    """Filter -> whether it keeps the broker at *row*; None behind the first that does not."""
    answers: dict[str, bool | None] = {}
    passed_so_far = True
    for step, remaining in candidates.steps:
        keeps = bool((remaining == row).any())
        answers[type(step).__name__] = keeps if passed_so_far else None
        passed_so_far = passed_so_far and keeps
    return answers
