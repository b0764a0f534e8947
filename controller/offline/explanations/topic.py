"""A scalable topic (Pulsar 5.0) in the load that a decision was made on."""

from dataclasses import dataclass

from controller.aggregate.scalable_topics import NO_CUT, ScalableTopics, may_serve, unevenness
from controller.model.load import ClusterView
from controller.model.topic_name import parse_topic
from controller.strategies.common.auto_scale import AutoScale
from controller.wire.answers.explain import ExplainedTopicAnswer
from controller.wire.readable import amounts, counted


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedTopic:
    """Its figures, the bundles that hold its segments, and all of that in words."""

    answer: ExplainedTopicAnswer
    bundles: frozenset[str]
    text: str


def explained_topic(view: ClusterView, name: str, scale: AutoScale) -> ExplainedTopic | None:
    """The scalable topic *name* in *view*; None where it has no segment with load."""
    topics = ScalableTopics.of(view.bundles)
    row = topics.row_of(parse_topic(name), view.bundles.namespaces)
    if row is None:
        return None
    segments = slice(int(topics.starts[row]), int(topics.starts[row + 1]))
    possible = may_serve(view, topics)
    _, busiest, serving = topics.peaks()
    cut = int(topics.advised_cuts()[row])
    bundles = topics.bundles_of(row).tolist()
    answer = ExplainedTopicAnswer(
        segments=segments.stop - segments.start,
        bundles=len(bundles),
        serving=int(serving[row]),
        may_serve=int(possible[row]),
        throughput=float(topics.traffic[segments].sum()),
        unevenness=float(unevenness(topics, possible)[row]),
        busiest=view.brokers.names[int(busiest[row])],
        changing=int(scale.changing(topics, view.bundles.namespaces, view.policies.auto_scale)[segments].sum()),
        cut=None if cut == NO_CUT else cut,
    )
    names = frozenset(view.bundles.names[bundle] for bundle in bundles)
    return ExplainedTopic(answer=answer, bundles=names, text=_text(answer))


def _text(topic: ExplainedTopicAnswer) -> str:
    parts = [
        f"{counted(topic.segments, 'segment')} with load on {topic.serving} of {topic.may_serve} brokers that may"
        " serve it",
        f"{topic.busiest} has {topic.unevenness:.3g} times the mean of {amounts([topic.throughput], 'bytes/s')[0]}",
    ]
    if topic.changing:
        parts.append(f"brokers are about to split or merge {topic.changing} of them, which stay where they are")
    if topic.cut is not None:
        parts.append(
            f"a cut in the middle left one half of two segments hot: one at key hash 0x{topic.cut:04x} would be even"
        )
    return "; ".join(parts)
