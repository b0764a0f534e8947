"""The answer of ``trimtab audit``, as tables."""

from collections.abc import Mapping, Sequence
from typing import Final

from rich.console import Console

from controller.cli.shared.layout import columns, print_fields, print_line, print_table
from controller.cli.texts.numbers import compact
from controller.wire.answers.audit import (
    AuditAnswer,
    AuditedMoveAnswer,
    AuditedSideAnswer,
    AuditSumsAnswer,
    BrokerFiguresAnswer,
)
from controller.wire.readable import amounts, counted, utc

_UNKNOWN: Final = "?"
_WORDS: Final = {True: "yes", False: "no", None: _UNKNOWN}


def print_audit(out: Console, answer: AuditAnswer, most: int) -> None:
    """Print *answer* with *most* rows in each table."""
    total = answer.total
    fields = [
        ("cluster", answer.cluster),
        (
            "load",
            f"{counted(answer.intervals, 'interval')}, {utc(answer.first_interval)} to {utc(answer.last_interval)}",
        ),
        ("moves", f"{total.moves:,}: {', '.join(_outcomes(total))}" if total.moves else "none"),
    ]
    if total.moves:
        fields += _of_moves(answer)
    by_others = f"{answer.changed_by_others:,} by others, {answer.changed_as_broker_left:,} as their broker left"
    print_fields(out, [*fields, ("not by trimtab", by_others)])
    out.print()
    if total.moves:
        for title, sums in (
            ("By strategy", answer.strategies),
            ("By namespace", answer.namespaces),
            ("By hour, UTC", answer.hours),
        ):
            _print_sums(out, title, sums, most)
        _print_moves(out, answer, most)
    _print_changes(out, answer, most)
    for note in answer.notes:
        print_line(out, f"note: {note}")


def _outcomes(sums: AuditSumsAnswer) -> list[str]:
    counts = {
        "arrived": sums.arrived,
        "elsewhere": sums.elsewhere,
        f"stayed ({sums.late:,} of them done later)" if sums.late else "stayed": sums.stayed,
        "split or gone": sums.gone,
        "not known": sums.unknown,
    }
    return [f"{count:,} {name}" for name, count in counts.items() if count]


def _of_moves(answer: AuditAnswer) -> list[tuple[str, str]]:
    sums = answer.total
    open_ = f", {sums.undone_unknown:,} not known yet" if sums.undone_unknown else ""
    unknown = f", of {counted(sums.clients_unknown, 'move')} not known" if sums.clients_unknown else ""
    found = [
        ("helped", f"{sums.helped:,} of {sums.judged:,}"),
        ("undone", f"{sums.undone:,} within an hour{open_}"),
        ("shorter", f"{sums.shorter:,} not needed within an hour; {answer.not_needed:,} over the whole time"),
        ("clients", f"{sums.clients:,} reconnected{unknown}"),
        ("producers", _producers(sums)),
    ]
    if sums.mean_error is not None and sums.mean_error_without_drift is not None:
        promises = f", {sums.promises:,} of them promised" if sums.promises else ""
        told = (
            f"off by {sums.mean_error:.1f} points of usage on average, {sums.mean_error_without_drift:.1f} without the"
            f" drift of the cluster ({counted(sums.predictions, 'prediction')}{promises})"
        )
        found.append(("predictions", told))
    if sums.unpredicted:
        told = f"{sums.unpredicted:,}: a broker was at its limit, and the others do not show what load takes"
        found.append(("not predicted", told))
    return found


def _producers(sums: AuditSumsAnswer) -> str:
    if not sums.had_producers:
        return "not known: no bundle that came to another broker had producers in the records"
    back = f"as many as before were seen on the new broker for {sums.producers_back:,} of {sums.had_producers:,} moves"
    return f"{back}, for {sums.producers_back_at_once:,} with the bundle's first listing there"


_SUMS: Final = ("moves", "arrived", "helped", "undone", "shorter", "clients", "msg/s", "error")


def _print_sums(out: Console, title: str, sums: Mapping[str, AuditSumsAnswer], most: int) -> None:
    shown = list(sums.items())[:most]
    if not shown:
        return
    rows = [
        (
            name,
            f"{each.moves:,}",
            f"{each.arrived:,}",
            f"{each.helped:,}/{each.judged:,}",
            f"{each.undone:,}",
            f"{each.shorter:,}",
            f"{each.clients:,}",
            compact(each.msg_rate),
            "" if each.mean_error is None else f"{each.mean_error:.1f}",
        )
        for name, each in shown
    ]
    print_table(out, columns("", *_SUMS, numbers=_SUMS), rows, title=title)
    _print_left(out, len(sums), most)
    out.print()


_MOVE_NUMBERS: Final = ("msg/s", "clients")
_MOVE: Final = (
    "interval", "bundle", "from", "to", "outcome", *_MOVE_NUMBERS, "source", "destination", "undone", "shorter",
)  # fmt: skip


def _print_moves(out: Console, answer: AuditAnswer, most: int) -> None:
    rows = [_cells(move) for move in answer.moves[:most]]
    if rows:
        title = "Usage of source and destination: when decided > predicted > two intervals later; * promised"
        print_table(out, columns(*_MOVE, numbers=_MOVE_NUMBERS), rows, title=title, head=4)
        _print_left(out, len(answer.moves), most)
        out.print()


def _cells(move: AuditedMoveAnswer) -> Sequence[str]:
    carried = move.carried
    undone = _WORDS[move.undone] if not move.undone_by else f"yes, {move.undone_by.replace('_', ' ')}"
    return (
        utc(move.interval),
        move.bundle,
        move.source.broker,
        move.destination.broker or "(brokers choose)",
        move.outcome.replace("_", " "),
        _UNKNOWN if carried is None else compact(carried.msg_rate_in + carried.msg_rate_out),
        _UNKNOWN if move.clients is None else f"{move.clients:,}",
        _usages(move.source),
        _usages(move.destination),
        undone,
        _WORDS[move.shorter],
    )


def _usages(side: AuditedSideAnswer) -> str:
    if side.presence == "left":
        actual = "left"
    elif side.presence == "no_data":
        actual = "no data"
    else:
        actual = _percent(side.actual)
    promised = "*" if side.predicted_by == "promise" else ""
    of = next((each.resource for each in (side.before, side.predicted, side.actual) if each and each.resource), "")
    return f"{_percent(side.before)} > {_percent(side.predicted)}{promised} > {actual} {of}".rstrip()


def _percent(figures: BrokerFiguresAnswer | None) -> str:
    return _UNKNOWN if figures is None or figures.usage is None else amounts([figures.usage / 100], "usage")[0]


#: Why a bundle moved that trimtab did not move.
_WHY: Final = {"others": "a person, a lookup or the brokers' balancing", "broker_left": "its broker left"}


def _print_changes(out: Console, answer: AuditAnswer, most: int) -> None:
    rows = [
        (utc(each.interval), each.bundle, each.source, each.destination, _WHY.get(each.why, each.why))
        for each in answer.changes[:most]
    ]
    if rows:
        header = columns("seen", "bundle", "from", "to", "why")
        print_table(out, header, rows, title="Moved, but not by trimtab", head=2)
        _print_left(out, answer.changed_by_others + answer.changed_as_broker_left, most)
        out.print()


def _print_left(out: Console, total: int, most: int) -> None:
    if total > most:
        print_line(out, f"{total - most:,} more: --most {total}, or --json, lists them")
