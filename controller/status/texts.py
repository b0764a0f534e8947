"""A bundle as text and as JSON; `status` and `lookup` show it alike."""

from typing import Any

from controller.status.bundle import LastDecision, LiveBundle
from controller.wire.answers.base import CommandAnswer, VerdictAnswer
from controller.wire.answers.status import BundleAnswer
from controller.wire.decision_texts import became, does, verdict_text
from controller.wire.readable import amounts, counted, utc


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
