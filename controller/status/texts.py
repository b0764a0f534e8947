"""A bundle, or a scalable topic, as text and as JSON; `status` and `lookup` show a bundle alike."""

from collections import Counter
from typing import Any, Final

from controller.status.bundle import LastDecision, LiveBundle
from controller.status.topic import LiveTopic
from controller.wire.answers.base import CommandAnswer, VerdictAnswer
from controller.wire.answers.status import BundleAnswer, SegmentAnswer, TopicAnswer, TopicBrokerAnswer
from controller.wire.decision_texts import became, does, verdict_text
from controller.wire.readable import amounts, counted, utc

#: Segments, and brokers, of a topic that are listed.
_LISTED: Final = 1_000


def topic_answer(live: LiveTopic) -> TopicAnswer:
    """A scalable topic for a program."""
    busiest = sorted(live.segments, key=lambda each: -each.traffic)[:_LISTED]
    segments, on_brokers = Counter(each.owner for each in live.segments), live.on_brokers
    return TopicAnswer(
        topic=live.topic,
        exists=not live.missing,
        segments=len(live.segments),
        sealed=live.sealed,
        unowned=segments[""],
        unreadable=live.unreadable,
        active_brokers=live.brokers,
        may_serve=live.may_serve,
        unevenness=live.unevenness,
        brokers=[
            TopicBrokerAnswer(broker=broker, segments=segments[broker], throughput=traffic)
            for broker, traffic in list(on_brokers.items())[:_LISTED]
        ],
        busiest=[
            SegmentAnswer(
                number=each.number,
                keys=f"{each.first:04x}-{each.last:04x}",
                owner=each.owner,
                msg_rate_in=each.load[0],
                msg_rate_out=each.load[1],
                msg_throughput_in=each.load[2],
                msg_throughput_out=each.load[3],
            )
            for each in sorted(busiest)
        ],
    )


def bundle_answer(bundle: str, live: LiveBundle | None, decision: LastDecision) -> BundleAnswer:
    """For a program; without *live* nothing is said about now."""
    now = {} if live is None else live_fields(live)
    return BundleAnswer(bundle=bundle, **now, **decision_fields(decision))


def live_fields(live: LiveBundle) -> dict[str, Any]:
    """Whether it is there now, who has it, and with what load, for a program."""
    return {"exists": not live.missing, "owner": live.owner or None, "load": dict(live.load)}


def decision_fields(decision: LastDecision) -> dict[str, Any]:
    """The last decision for a program."""
    return {
        "last_command": None if decision.command is None else CommandAnswer.of(decision.command, decision.result),
        "judged": decision.judged,
        "verdicts": [VerdictAnswer.of(verdict) for verdict in decision.verdicts],
    }


def bundle_rows(bundle: str, live: LiveBundle | None, decision: LastDecision) -> list[tuple[str, str]]:
    """For people: label and text."""
    now = (
        [("owner", "unknown: without a section [pulsar] the brokers are not asked")]
        if live is None
        else live_rows(live)
    )
    return [("bundle", bundle), *now, *decision_rows(decision)]


def live_rows(live: LiveBundle) -> list[tuple[str, str]]:
    """Who has it now, and with what load; or that there is no such bundle."""
    if live.missing:
        return [("now", f"no such bundle: {live.missing}")]
    if not live.owner:
        return [("owner", "nobody, until a client looks up a topic in it")]
    load = live.load
    ways = (
        f"{way} {amounts([load[f'msgRate{way.title()}']], 'msg/s')[0]},"
        f" {amounts([load[f'msgThroughput{way.title()}']], 'bytes/s')[0]}"
        for way in ("in", "out")
    )
    return [
        ("owner", f"{live.owner}, now"),
        ("load", "; ".join([counted(int(load["topics"]), "topic"), *ways])),
    ]


def decision_rows(decision: LastDecision) -> list[tuple[str, str]]:
    """The last decision for people."""
    rows = []
    if decision.command is None:
        rows.append(("decided", "no command about it lately"))
    else:
        command = decision.command
        rows.append(("decided", f"{utc(command.interval)}: {command.action} {does(command)}"))
        rows.append(("because", verdict_text(command.why)))
        rows.append(("result", became(decision.result)))
    if decision.judged is not None:
        rows.append(("judged", utc(decision.judged)))
        rows += [("", f"{verdict_text(each)}{f', by {each.by}' if each.by else ''}") for each in decision.verdicts]
    return rows
