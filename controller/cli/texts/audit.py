"""The answer of ``trimtab audit``, and how it is printed."""

from collections.abc import Iterable
from typing import Final

from rich.console import Console

from controller.aggregate.scalable_topics import NO_CUT
from controller.audit.moves import AuditedMove, AuditedSide, MoveSums
from controller.audit.seen_load import BrokerFigures
from controller.audit.topics import TopicSums
from controller.cli.shared.answers import fields_of, print_answers
from controller.cli.shared.layout import Column, print_fields, print_line
from controller.offline.audit import MAX_LISTED, MoveAudit
from controller.wire.answers.audit import (
    AuditAnswer,
    AuditedMoveAnswer,
    AuditedSideAnswer,
    AuditSumsAnswer,
    BrokerFiguresAnswer,
    CarriedLoadAnswer,
    OwnerChangeAnswer,
    TopicAuditAnswer,
)
from controller.wire.readable import amounts, compact, counted, utc

_UNKNOWN: Final = "?"
_WORDS: Final = {True: "yes", False: "no", None: _UNKNOWN}


def answer_of(audit: MoveAudit, *, is_known: bool) -> AuditAnswer:
    """What was *audit*; *is_known*: the settings are those of the controller."""
    namespaces = sorted(audit.by_namespace.items(), key=lambda each: (-each[1].moves, each[0]))
    hours = [(utc(hour), sums) for hour, sums in sorted(audit.by_hour.items())]
    return AuditAnswer.from_object(
        audit,
        first_interval=audit.first,
        last_interval=audit.last,
        total=_sums(audit.total),
        strategies={name: _sums(sums) for name, sums in sorted(audit.by_strategy.items())[:MAX_LISTED]},
        namespaces={name: _sums(sums) for name, sums in namespaces[:MAX_LISTED]},
        hours={hour: _sums(sums) for hour, sums in hours[:MAX_LISTED]},
        moves=[_move(each) for each in audit.moves],
        changed_by_others=audit.changed["others"],
        changed_as_broker_left=audit.changed["broker_left"],
        topics=[_topic(each) for each in audit.topics],
        notes=list(_notes(audit, is_known=is_known)),
    )


def _topic(topic: TopicSums) -> TopicAuditAnswer:
    return TopicAuditAnswer.from_object(
        topic,
        throughput=topic.throughput / topic.intervals,
        unevenness=topic.unevenness / topic.intervals,
        cut=topic.cut if topic.cut != NO_CUT else None,
    )


def _sums(sums: MoveSums) -> AuditSumsAnswer:
    n = sums.predictions
    return AuditSumsAnswer.from_object(
        sums,
        msg_rate=sums.rate,
        mean_error=100 * sums.error / n if n else None,
        mean_error_without_drift=100 * sums.error_without_drift / n if n else None,
    )


def _move(move: AuditedMove) -> AuditedMoveAnswer:
    load = move.carried
    return AuditedMoveAnswer.from_object(
        move,
        source=_side(move.source),
        destination=_side(move.destination),
        carried=load
        and CarriedLoadAnswer.from_object(
            load,
            msg_rate_in=load.rate_in,
            msg_rate_out=load.rate_out,
            msg_throughput_in=load.throughput_in,
            msg_throughput_out=load.throughput_out,
        ),
        producers_back_seconds=None if move.producers_back_ms is None else move.producers_back_ms / 1000,
    )


def _side(side: AuditedSide) -> AuditedSideAnswer:
    return AuditedSideAnswer.from_object(
        side,
        before=_figures(side.before),
        predicted=_figures(side.predicted),
        actual=_figures(side.actual),
        error=None if side.error is None else 100 * side.error,
    )


def _figures(figures: BrokerFigures | None) -> BrokerFiguresAnswer | None:
    if figures is None:
        return None
    usage = None if figures.usage is None else 100 * figures.usage
    return BrokerFiguresAnswer(
        usage=usage, resource=figures.resource, msg_rate=figures.rate, msg_throughput=figures.throughput
    )


def _notes(audit: MoveAudit, *, is_known: bool) -> Iterable[str]:
    if not audit.has_journal:
        yield (
            "there is no journal of this cluster, so it is not known which moves were commanded: every change of owner"
            " is listed as one by others"
        )
    elif audit.decided < audit.intervals:
        yield f"the controller decided {audit.decided} of {counted(audit.intervals, 'interval')}"
    if not is_known:
        yield "the settings of the controller are not known (--conf names them): usage is weighed by Pulsar's defaults"
    if audit.apart_ms > audit.period_ms:
        yield (
            f"intervals are at least {audit.apart_ms / 1000:g} s apart, and {audit.period_ms / 1000:g} s are assumed:"
            " give --period-seconds or --conf, else nothing can be looked up two intervals later"
        )
    if audit.without_memory:
        yield (
            f"{counted(audit.without_memory, 'decision')} at the beginning of the journal lack the memory before them:"
            " for their moves, promises and commands in flight are not known"
        )
    if audit.refused or audit.refused_entries:
        yield f"{counted(audit.refused + audit.refused_entries, 'record')} could not be used"
    if audit.dry_run:
        yield f"{counted(audit.dry_run, 'unload')} of a dry run are not audited: they move nothing"
    if audit.total.moves > len(audit.moves):
        yield f"the first {len(audit.moves):,} of {counted(audit.total.moves, 'move')} are listed; sums are of all"


def print_audit(out: Console, answer: AuditAnswer, limit: int) -> None:
    """Print *answer* with *limit* rows in each table."""
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
    by_others = f"{answer.changed_by_others:,} by others, {answer.changed_as_broker_left:,} because their broker left"
    print_fields(out, [*fields, ("not by trimtab", by_others)])
    out.print()
    if total.moves:
        for title, sums in (
            ("By strategy", answer.strategies),
            ("By namespace", answer.namespaces),
            ("By hour, UTC", answer.hours),
        ):
            print_answers(out, _SUMS, sums, title=title, limit=limit)
        title = "Usage of source and destination: when decided > predicted > two intervals later; * promised"
        print_answers(out, _MOVE, answer.moves, title=title, head=4, limit=limit)
    changed = answer.changed_by_others + answer.changed_as_broker_left
    print_answers(out, _CHANGE, answer.changes, title="Moved, but not by trimtab", head=2, limit=limit, total=changed)
    if answer.topics:
        title = "Scalable topics: bytes/s of the busiest broker over the mean of all that may serve them"
        print_answers(out, _TOPIC, answer.topics, title=title, head=2, limit=limit)
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
    texts = [
        ("helped", f"{sums.helped:,} of {sums.judged:,}"),
        ("undone", f"{sums.undone:,} within an hour{open_}"),
        ("shorter", f"{sums.shorter:,} not needed within an hour; {answer.not_needed:,} over the whole time"),
        ("clients", f"{sums.clients:,} reconnected{unknown}"),
        ("producers", _producers(sums)),
    ]
    if sums.mean_error is not None and sums.mean_error_without_drift is not None:
        promises = f", {sums.promises:,} of them promised" if sums.promises else ""
        text = (
            f"off by {sums.mean_error:.1f} points of usage on average, {sums.mean_error_without_drift:.1f} without the"
            f" drift of the cluster ({counted(sums.predictions, 'prediction')}{promises})"
        )
        texts.append(("predictions", text))
    if sums.unpredicted:
        text = f"{sums.unpredicted:,}: a broker was at its limit, and the others do not show what load takes"
        texts.append(("not predicted", text))
    return texts


def _producers(sums: AuditSumsAnswer) -> str:
    if not sums.had_producers:
        return "not known: no bundle that came to another broker had producers in the records"
    back = f"as many as before were seen on the new broker for {sums.producers_back:,} of {sums.had_producers:,} moves"
    return f"{back}, for {sums.producers_back_at_once:,} with the bundle's first listing there"


def _rate(carried: CarriedLoadAnswer | None) -> str:
    return _UNKNOWN if carried is None else compact(carried.msg_rate_in + carried.msg_rate_out)


def _undone(move: AuditedMoveAnswer) -> str:
    return f"yes, {move.undone_by.replace('_', ' ')}" if move.undone_by else _WORDS[move.undone]


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
_SUMS: Final = fields_of(
    AuditSumsAnswer,
    "moves",
    "arrived",
    Column(heading="helped", number=True, cell=lambda sums: f"{sums.helped:,}/{sums.judged:,}"),
    *("undone", "shorter", "clients", "msg_rate", "mean_error"),
)
_MOVE: Final = fields_of(
    AuditedMoveAnswer,
    "interval",
    "bundle",
    Column(heading="from", cell=lambda move: move.source.broker),
    Column(heading="to", cell=lambda move: move.destination.broker or "(brokers choose)"),
    "outcome",
    Column(heading="msg/s", number=True, cell=lambda move: _rate(move.carried)),
    Column(heading="clients", number=True, cell=lambda move: _UNKNOWN if move.clients is None else f"{move.clients:,}"),
    Column(heading="source", cell=lambda move: _usages(move.source)),
    Column(heading="destination", cell=lambda move: _usages(move.destination)),
    Column(heading="undone", cell=_undone),
    Column(heading="shorter", cell=lambda move: _WORDS[move.shorter]),
)
_CHANGE: Final = fields_of(
    OwnerChangeAnswer,
    *("interval", "bundle", "source", "destination"),
    Column(heading="why", cell=lambda change: _WHY.get(change.why, change.why)),
)
_TOPIC: Final = fields_of(
    TopicAuditAnswer,
    *("namespace", "place", "intervals", "segments", "changed", "throughput", "unevenness", "worst", "worst_at", "cut"),
)
