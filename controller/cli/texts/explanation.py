"""How ``trimtab explain`` prints an explanation."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from rich.console import Console

from controller.cli.shared.console import console
from controller.cli.shared.layout import columns, print_fields, print_line, print_table
from controller.model.decision import Reason
from controller.model.some_of import some_of
from controller.status.reasons import MEANINGS
from controller.status.texts import became, does, verdict_cells
from controller.wire.answers.explain import BrokerForBundleAnswer, ExplainAnswer, FlipAnswer, GivenAnswer
from controller.wire.readable import amounts, in_number, utc

_LABEL: Final = 9
#: Brokers, commands and verdicts that are listed without --all.
_FEW: Final = 20


def print_explanation(answer: ExplainAnswer, *, show_all: bool) -> None:
    """Print *answer*; *show_all*: also who said yes, and everything that is cut short otherwise."""
    out, most = console(), None if show_all else _FEW
    print_fields(out, _head(answer), label=_LABEL)
    if answer.kind != "bundle":
        _print_commands(out, answer, most)
    _print_answers(out, answer.answers, show_all=show_all)
    if answer.brokers is not None:
        _print_brokers(out, answer, most, show_all=show_all)
    if answer.kind == "interval":
        _print_reasons(out, answer)
    if answer.kind == "broker" or show_all:
        _print_verdicts(out, answer, most)
    if answer.flips is not None:
        _print_flips(out, answer.flips, answer.flips_unfinished or (), most)
    for note in answer.notes:
        out.print()
        print_line(out, note, first="Note: ", rest="      ")


def _print_flips(out: Console, found: Sequence[FlipAnswer], unfinished: Sequence[str], most: int | None) -> None:
    out.print()
    if not found:
        print_line(out, "No single change of load or of an option was found that would flip it.")
    else:
        _print_found_flips(out, found, most)
    if unfinished:
        told = "the search was over before its end: a change, or a smaller one, may flip it, too, of"
        print_line(
            out, f"{told} {some_of(unfinished, _FEW)}; --flip-seconds gives it more time", first="Note: ", rest="      "
        )


def _print_found_flips(out: Console, found: Sequence[FlipAnswer], most: int | None) -> None:
    header = columns("change", "of", "from", "to", "then", numbers=("from", "to"), prose=("then",))
    rows = [
        (each.kind, each.of, f"{each.before:g} {each.unit}", f"{each.after:.6g} {each.unit}", each.then or "nothing")
        for each in found[:most]
    ]
    print_table(out, header, rows, title="Each of these alone would flip it; the smallest first", head=2)


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


def _print_commands(out: Console, answer: ExplainAnswer, most: int | None) -> None:
    if not answer.commands:
        return
    out.print()
    results = ("result",) if answer.source != "load" else ()
    header = columns("command", "bundle", "what", "reason", *results, prose=("what", "result"))
    rows = [
        (each.action, each.bundle, does(each), each.why.reason, *([became(each.result)] if results else []))
        for each in answer.commands[:most]
    ]
    print_table(out, header, rows, head=2)
    _print_rest(out, len(answer.commands), most, "command")


def _print_answers(out: Console, answers: Sequence[GivenAnswer], *, show_all: bool) -> None:
    shown = [each for each in answers if show_all or each.answer == "no"]
    if not shown:
        return
    out.print()
    header = columns("asked", "answer", "class", "found", "meaning", prose=("found", "meaning"))
    rows = [(each.asked, each.answer, each.kind, each.text, each.means) for each in shown]
    print_table(out, header, rows, title="Guardrails and strategies" if show_all else "Who said no", head=2)


def _print_brokers(out: Console, answer: ExplainAnswer, most: int | None, *, show_all: bool) -> None:
    out.print()
    header = columns(
        "broker", "answer", "usage", "msg/s", "bundles", "because",
        prose=("because",), numbers=("usage", "msg/s", "bundles"),
    )  # fmt: skip
    brokers = list(answer.brokers or ())
    rows = [_broker(each, show_all=show_all) for each in brokers[:most]]
    title = "As destinations, when the bundle was placed" if answer.chosen else "As destinations, if it were moved now"
    print_table(out, header, rows, title=title, head=2)
    _print_rest(out, len(brokers), most, "broker")


def _broker(broker: BrokerForBundleAnswer, *, show_all: bool) -> tuple[str, ...]:
    usage, rate = amounts([broker.usage], "usage")[0], amounts([broker.msg_rate], "")[0]
    said = [f"{broker.by}: {broker.text}" if broker.by else broker.text] if broker.text else []
    if show_all:
        words = {True: "yes", False: "no", None: "not asked"}
        said += [f"{name}: {words[kept]}" for name, kept in broker.filters.items()]
    usage = f"{usage} {broker.resource}".rstrip()
    return broker.broker, broker.answer, usage, rate, str(broker.bundles), "; ".join(said)


def _print_reasons(out: Console, answer: ExplainAnswer) -> None:
    """How often each reason was given, and what it means."""
    if not answer.verdicts:
        return
    out.print()
    times = Counter(each.reason for each in answer.verdicts)
    header = columns("reason", "times", "class", "meaning", prose=("meaning",), numbers=("times",))
    rows = [
        (reason, str(number), MEANINGS[Reason(reason)].kind.value, MEANINGS[Reason(reason)].text)
        for reason, number in times.most_common()
    ]
    print_table(out, header, rows, title="Reasons that were given")


def _print_verdicts(out: Console, answer: ExplainAnswer, most: int | None) -> None:
    if not answer.verdicts:
        return
    out.print()
    header = columns("what", "reason", "observed", "limit", "by", "detail", prose=("detail",))
    rows = map(verdict_cells, answer.verdicts[:most])
    print_table(out, header, rows, title="Verdicts", head=2)
    _print_rest(out, len(answer.verdicts), most, "verdict")


def _print_rest(out: Console, number: int, most: int | None, what: str) -> None:
    if most is not None and number > most:
        print_line(out, f"and {number - most:,} more {what}{'' if number - most == 1 else 's'}: --all")
