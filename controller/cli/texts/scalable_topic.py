"""How ``trimtab status TOPIC`` prints a scalable topic."""

from typing import Final

from rich.console import Console

from controller.cli.shared.answers import fields_of, print_answers
from controller.cli.shared.layout import print_fields
from controller.cli.texts.cluster_status import LABEL
from controller.model.topic_name import excerpt
from controller.wire.answers.status import SegmentAnswer, TopicAnswer, TopicBrokerAnswer
from controller.wire.readable import counted

#: Brokers and segments that are listed.
_LISTED: Final = 20
_BROKERS: Final = fields_of(TopicBrokerAnswer, "broker", "segments", "throughput")
_SEGMENTS: Final = fields_of(
    SegmentAnswer,
    "number",
    "keys",
    "owner",
    "msg_rate_in",
    "msg_rate_out",
    "msg_throughput_in",
    "msg_throughput_out",
)


def print_topic(out: Console, answer: TopicAnswer) -> None:
    """Print all of *answer*: the brokers with the most of the topic, and its busiest segments."""
    print_fields(out, [("topic", excerpt(answer.topic)), *_head(answer)], label=LABEL)
    if answer.exists:
        print_answers(out, _BROKERS, answer.brokers, title="Brokers", head=1, limit=_LISTED, rest="--json")
        print_answers(out, _SEGMENTS, answer.busiest, title="Busiest segments", head=1, limit=_LISTED, rest="--json")


def _head(answer: TopicAnswer) -> list[tuple[str, str]]:
    if not answer.exists:
        return [("now", "the brokers have no such scalable topic")]
    parts = [f"{answer.segments} active", f"{answer.sealed} sealed"]
    parts += [f"{answer.unowned} without an owner"] if answer.unowned else []
    parts += [f"{answer.unreadable} cannot be read"] if answer.unreadable else []
    served = f"{counted(len(answer.brokers), 'broker')} of {answer.may_serve} that may"
    kept_off = answer.active_brokers - answer.may_serve
    served += f"; isolation policies keep it off {kept_off}" if kept_off else ""
    uneven = "no traffic" if answer.unevenness is None else f"{answer.unevenness:.3g}: bytes/s of the busiest broker"
    uneven += "" if answer.unevenness is None else " over the mean of all that may serve it"
    return [("segments", ", ".join(parts)), ("served by", served), ("uneven", uneven)]
