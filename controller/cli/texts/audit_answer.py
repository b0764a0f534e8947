"""The answer of ``trimtab audit``, as JSON."""

from collections.abc import Iterable

from controller.audit.moves import AuditedMove, AuditedSide, MoveSums
from controller.audit.seen_load import BrokerFigures, CarriedLoad
from controller.offline.audit import MOST_LISTED, MoveAudit
from controller.wire.answers.audit import (
    AuditAnswer,
    AuditedMoveAnswer,
    AuditedSideAnswer,
    AuditSumsAnswer,
    BrokerFiguresAnswer,
    CarriedLoadAnswer,
    OwnerChangeAnswer,
)
from controller.wire.readable import counted, utc


def answer_of(found: MoveAudit, *, is_known: bool) -> AuditAnswer:
    """What was *found*; *is_known*: the settings are those of the controller."""
    namespaces = sorted(found.by_namespace.items(), key=lambda each: (-each[1].moves, each[0]))
    hours = sorted(found.by_hour.items())
    return AuditAnswer(
        cluster=found.cluster,
        first_interval=found.first,
        last_interval=found.last,
        intervals=found.intervals,
        decided=found.decided,
        total=_sums(found.total),
        strategies={name: _sums(sums) for name, sums in sorted(found.by_strategy.items())[:MOST_LISTED]},
        namespaces={name: _sums(sums) for name, sums in namespaces[:MOST_LISTED]},
        hours={utc(hour): _sums(sums) for hour, sums in hours[:MOST_LISTED]},
        not_needed=found.not_needed,
        moves=[_move(each) for each in found.moves],
        dry_run=found.dry_run,
        changed_by_others=found.changed["others"],
        changed_as_broker_left=found.changed["broker_left"],
        changes=[
            OwnerChangeAnswer(
                interval=each.interval,
                bundle=each.bundle,
                source=each.source,
                destination=each.destination,
                why=each.why,
            )
            for each in found.changes
        ],
        notes=list(_notes(found, is_known=is_known)),
    )


def _sums(sums: MoveSums) -> AuditSumsAnswer:
    n = sums.predictions
    return AuditSumsAnswer(
        moves=sums.moves,
        arrived=sums.arrived,
        elsewhere=sums.elsewhere,
        stayed=sums.stayed,
        late=sums.late,
        gone=sums.gone,
        unknown=sums.unknown,
        helped=sums.helped,
        judged=sums.judged,
        undone=sums.undone,
        undone_unknown=sums.undone_unknown,
        shorter=sums.shorter,
        clients=sums.clients,
        clients_unknown=sums.clients_unknown,
        had_producers=sums.had_producers,
        producers_back=sums.producers_back,
        producers_back_at_once=sums.producers_back_at_once,
        msg_rate=sums.rate,
        predictions=n,
        promises=sums.promises,
        unpredicted=sums.unpredicted,
        mean_error=100 * sums.error / n if n else None,
        mean_error_without_drift=100 * sums.error_without_drift / n if n else None,
    )


def _move(move: AuditedMove) -> AuditedMoveAnswer:
    return AuditedMoveAnswer(
        id=move.id,
        interval=move.interval,
        bundle=move.bundle,
        namespace=move.namespace,
        strategy=move.strategy,
        reason=move.reason,
        source=_side(move.source),
        destination=_side(move.destination),
        result=move.result,
        outcome=str(move.outcome),  # type: ignore[arg-type]  # one of those that it allows, or an error
        came_to=move.came_to,
        came_at=move.came_at,
        carried=None if move.carried is None else _carried(move.carried),
        clients=move.clients,
        producers_back_seconds=None if move.producers_back_ms is None else move.producers_back_ms / 1000,
        drift=move.drift,
        later=move.later,
        helped=move.helped,
        undone=move.undone,
        undone_at=move.undone_at,
        undone_by=move.undone_by,
        shorter=move.shorter,
    )


def _carried(load: CarriedLoad) -> CarriedLoadAnswer:
    return CarriedLoadAnswer(
        msg_rate_in=load.rate_in,
        msg_rate_out=load.rate_out,
        msg_throughput_in=load.throughput_in,
        msg_throughput_out=load.throughput_out,
        topics=load.topics,
        producers=load.producers,
        consumers=load.consumers,
    )


def _side(side: AuditedSide) -> AuditedSideAnswer:
    return AuditedSideAnswer(
        broker=side.broker,
        before=_figures(side.before),
        predicted=_figures(side.predicted),
        predicted_by=side.predicted_by,
        actual=_figures(side.actual),
        presence=side.presence,
        error=None if side.error is None else 100 * side.error,
    )


def _figures(figures: BrokerFigures | None) -> BrokerFiguresAnswer | None:
    if figures is None:
        return None
    usage = None if figures.usage is None else 100 * figures.usage
    return BrokerFiguresAnswer(
        usage=usage, resource=figures.resource, msg_rate=figures.rate, msg_throughput=figures.throughput
    )


def _notes(found: MoveAudit, *, is_known: bool) -> Iterable[str]:
    if not found.has_journal:
        yield (
            "there is no journal of this cluster, so nobody knows which moves were commanded: every change of owner is"
            " listed as one by others"
        )
    elif found.decided < found.intervals:
        yield f"the controller decided {found.decided} of {counted(found.intervals, 'interval')}"
    if not is_known:
        yield "the settings of the controller are not known (--conf names them): usage is weighed by Pulsar's defaults"
    if found.apart_ms > found.period_ms:
        yield (
            f"intervals are at least {found.apart_ms / 1000:g} s apart, and {found.period_ms / 1000:g} s are assumed:"
            " give --period-seconds or --conf, else nothing can be looked up two intervals later"
        )
    if found.without_memory:
        yield (
            f"{counted(found.without_memory, 'decision')} at the beginning of the journal lack the memory before them:"
            " of their moves, promises and what was on its way are not known"
        )
    if found.refused or found.refused_entries:
        yield f"{counted(found.refused + found.refused_entries, 'record')} could not be used"
    if found.dry_run:
        yield f"{counted(found.dry_run, 'unload')} of a dry run are not audited: they move nothing"
    if found.total.moves > len(found.moves):
        yield f"the first {len(found.moves):,} of {counted(found.total.moves, 'move')} are listed; sums are of all"
