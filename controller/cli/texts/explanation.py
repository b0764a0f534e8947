"""How ``trimtab explain`` prints an explanation."""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Final

from rich.console import Console

from controller.cli.shared.answers import fields_of, print_answers
from controller.cli.shared.layout import Column, print_fields, print_line
from controller.cli.texts.verdicts import print_verdicts
from controller.model.decision import Reason
from controller.model.some_of import some_of
from controller.status.reasons import MEANINGS
from controller.wire.answers.base import CommandAnswer
from controller.wire.answers.explain import BrokerForBundleAnswer, ExplainAnswer, FlipAnswer, GivenAnswer
from controller.wire.decision_texts import became, does
from controller.wire.readable import amounts, in_number, utc

_LABEL: Final = 9
#: Brokers, commands and verdicts that are listed without --all.
_LISTED: Final = 20
_ALL: Final = "--all"


def print_explanation(out: Console, answer: ExplainAnswer, *, show_all: bool) -> None:
    """Print *answer*; *show_all*: also who said yes, and everything that is cut short otherwise."""
    limit = None if show_all else _LISTED
    print_fields(out, _head(answer), label=_LABEL)
    out.print()
    if answer.kind != "bundle":
        header = [*_COMMANDS, *([_RESULT] if answer.source != "load" else [])]
        print_answers(out, header, answer.commands, head=2, limit=limit, rest=_ALL)
    answers = [each for each in answer.answers if show_all or each.answer == "no"]
    print_answers(out, _ANSWERS, answers, title="Guardrails and strategies" if show_all else "Who said no", head=2)
    if answer.brokers is not None:
        title = "As destinations, when the bundle was placed"
        title = title if answer.chosen else "As destinations, if it were moved now"
        because = Column(heading="because", prose=True, cell=partial(_because, show_all=show_all))
        print_answers(out, [*_BROKERS, because], answer.brokers, title=title, head=2, limit=limit, rest=_ALL)
    if answer.kind == "interval":
        _print_reasons(out, answer)
    if answer.kind in ("broker", "topic") or show_all:
        print_verdicts(out, answer.verdicts, limit=limit, rest=_ALL)
    if answer.flips is not None:
        _print_flips(out, answer.flips, answer.flips_unfinished or (), limit)
    for note in answer.notes:
        print_line(out, note, first="Note: ", rest="      ")


def _print_flips(out: Console, flips: Sequence[FlipAnswer], unfinished: Sequence[str], limit: int | None) -> None:
    if not flips:
        print_line(out, "No single change of load or of an option was found that would flip it.")
    title = "Each of these alone would flip it; the smallest first"
    print_answers(out, _FLIPS, flips, title=title, head=2, limit=limit, rest=_ALL)
    if unfinished:
        text = "the search was over before its end: a change, or a smaller one, may flip it, too, of"
        print_line(
            out,
            f"{text} {some_of(unfinished, _LISTED)}; --flip-seconds gives it more time",
            first="Note: ",
            rest="      ",
        )


def _head(answer: ExplainAnswer) -> list[tuple[str, str]]:
    again = {
        True: "; replaying it now gives the same result",
        False: "; replaying it now gives ANOTHER result",
        None: "",
    }
    of = {"journal": "from the journal", "recording": "from the recording", "load": "what trimtab would decide now"}[
        answer.source
    ]
    rows = [
        (answer.kind, answer.subject) if answer.kind != "interval" else ("cluster", answer.cluster),
        ("interval", f"{utc(answer.interval)}, {of}{again[answer.reproduced]}"),
        ("summary", in_number(answer.summary)),
        *([] if answer.pulsar is None else [("pulsar", answer.pulsar.text)]),
    ]
    if answer.kind == "bundle":
        rows.append(("decided", _decided(answer)))
    rows.append(("because", answer.because))
    rows += [
        ("result", became(each.result))
        for each in answer.commands
        if answer.kind == "bundle" and answer.source != "load"
    ]
    if answer.kind == "bundle" and answer.where_to and not answer.commands:
        rows.append(
            ("if moved", f"it would go to {answer.where_to}" if _goes(answer) else f"nowhere: {answer.where_to}")
        )
    return rows


def _goes(answer: ExplainAnswer) -> bool:
    return any(each.answer == "chosen" for each in answer.brokers or ())


def _decided(answer: ExplainAnswer) -> str:
    if not answer.commands:
        return "it stays"
    return "; ".join(f"{each.action} {does(each)}" for each in answer.commands)


def _because(broker: BrokerForBundleAnswer, *, show_all: bool) -> str:
    reasons = [f"{broker.by}: {broker.text}" if broker.by else broker.text] if broker.text else []
    if show_all:
        words = {True: "yes", False: "no", None: "not asked"}
        reasons += [f"{name}: {words[passes]}" for name, passes in broker.filters.items()]
    return "; ".join(reasons)


def _usage(broker: BrokerForBundleAnswer) -> str:
    return f"{amounts([broker.usage], 'usage')[0]} {broker.resource}".rstrip()


def _print_reasons(out: Console, answer: ExplainAnswer) -> None:
    """How often each reason was given, and what it means."""
    times = Counter(each.reason for each in answer.verdicts).most_common()
    header = (
        Column(heading="reason", cell=lambda each: each[0]),
        Column(heading="times", number=True, cell=lambda each: f"{each[1]:,}"),
        Column(heading="class", cell=lambda each: MEANINGS[Reason(each[0])].kind.value),
        Column(heading="meaning", prose=True, cell=lambda each: MEANINGS[Reason(each[0])].text),
    )
    print_answers(out, header, times, title="Reasons that were given")


_COMMANDS: Final = fields_of(
    CommandAnswer,
    Column(heading="command", cell=lambda each: each.action),
    "bundle",
    Column(heading="what", prose=True, cell=does),
    Column(heading="reason", cell=lambda each: each.why.reason),
)
_RESULT: Final = Column(heading="result", prose=True, cell=lambda each: became(each.result))
_ANSWERS: Final = fields_of(GivenAnswer, "asked", "answer", "kind", "text", "means")
_BROKERS: Final = fields_of(
    BrokerForBundleAnswer,
    "broker",
    "answer",
    Column(heading="usage", number=True, cell=_usage),
    Column(heading="msg/s", number=True, cell=lambda each: amounts([each.msg_rate], "")[0]),
    "bundles",
)
_FLIPS: Final = fields_of(
    FlipAnswer,
    *("kind", "of"),
    Column(heading="from", number=True, cell=lambda each: f"{each.before:g} {each.unit}"),
    Column(heading="to", number=True, cell=lambda each: f"{each.after:.6g} {each.unit}"),
    Column(heading="then", prose=True, cell=lambda each: each.then or "nothing"),
)
