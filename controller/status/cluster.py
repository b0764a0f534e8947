"""The controller's recent decisions, and how evenly the load is spread."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from controller.adapters.network.calls import side_by_side
from controller.adapters.pulsar.admin import PulsarAdmin, PulsarError
from controller.adapters.registration import RegisteredProcesses, processes_of
from controller.cycle.guardrails.unreadable import UNREADABLE_ANY, UNREADABLE_POLICIES
from controller.log.elections import election_system, registry_of
from controller.log.factory import log_system
from controller.log.recent import journal_tail, last_entry, last_tick, recent_results
from controller.log.tail import JournalTail
from controller.log.unanswered import RECENT_DECISIONS, Unanswered, unanswered
from controller.model.decision import Command
from controller.model.errors import TrimtabError, WireError
from controller.model.journal import JournalEntry
from controller.model.leadership import Leader
from controller.model.memory import InFlight
from controller.settings.trimtab_toml import Settings
from controller.status.bundle import last_verdicts
from controller.status.guardrails import GuardrailStatus, chosen_controls, guardrail_status
from controller.wire.base import read_object
from controller.wire.metrics import TickRecord, decode_metric
from controller.wire.results import Result

_RATES: Final = ("msgRateIn", "msgRateOut")
_THROUGHPUTS: Final = ("msgThroughputIn", "msgThroughputOut")
_LOADS: Final = (*_RATES, *_THROUGHPUTS)
#: How far back the sweeps of the last interval are looked for: so many ticks, and so many sweeps.
_TICKS: Final = 3
_SWEEPS: Final = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Imbalance:
    """How much more the busiest broker has than all have on average; 1 is even.

    NaN does not occur: where nothing flows it is 1.
    """

    brokers: int
    msg_rate: float
    msg_throughput: float
    #: The busiest broker by messages.
    busiest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterStatus:
    """The answer to ``trimtab status``."""

    cluster: str
    #: The newest leadership's number; 0 before the first.
    epoch: int
    #: The process that leads; None where none does, or ``leader_unknown`` says why nobody knows.
    leader: Leader | None
    leader_unknown: str
    #: The newest decision; None before the first.
    last: JournalEntry | None
    #: The newest tick, epoch ms.
    ticked: int | None
    #: Commands of the last intervals, newest first, with what became of them.
    commands: tuple[tuple[Command, Result | None], ...]
    #: The interval that the reasons are of, epoch ms, and how often each was given.
    judged: int | None
    reasons: Mapping[str, int]
    #: Why isolation policies could not be read in that interval, of the first ones.
    unreadable_policies: tuple[str, ...]
    imbalance: Imbalance | None
    #: Brokers, or the whole of them, that did not answer -> why.
    silent: Mapping[str, str]
    #: What stops commands now, and how much of the budgets is used.
    guardrails: GuardrailStatus
    processes: RegisteredProcesses
    #: Commands that nobody has answered; None: there are none.
    unanswered: Unanswered | None

    @property
    def in_flight(self) -> Mapping[str, InFlight]:
        """Command id -> the command whose result the last decision was still waiting for."""
        return {} if self.last is None else self.last.memory.in_flight


def cluster_status(settings: Settings, admin: PulsarAdmin | None) -> ClusterStatus:
    """Read the end of the log, the kept verdicts, the registry, and the brokers' load where there is an *admin*.

    Where no broker has a load report (the extensible load manager's have none) their last sweeps tell how even the
    cluster is.  All is read at the same time.

    Raises TrimtabError where the log cannot be read.
    """
    calls = side_by_side(
        {
            "recent": lambda: _recent(settings),
            "last": lambda: last_entry(settings),
            "ticked": lambda: last_tick(settings),
            "verdicts": lambda: last_verdicts(settings),
            "leader": lambda: _leader(settings),
            "loads": lambda: _loads(settings, admin),
            "chosen": lambda: chosen_controls(settings),
            "processes": lambda: processes_of(partial(registry_of, settings)),
        }
    )
    # In this order, so that an error names what stands first.
    answers = {key: call.result() for key, call in calls.items()}
    (decisions, epoch), results = answers["recent"]
    commands = [command for decision in decisions for command in decision.commands]
    judged, verdicts = answers["verdicts"]
    last = answers["last"] if decisions else None
    leader, unknown = answers["leader"]
    reports, silent = answers["loads"]
    return ClusterStatus(
        cluster=settings.cluster.name,
        epoch=epoch,
        leader=leader,
        leader_unknown=unknown,
        last=last,
        ticked=answers["ticked"],
        commands=tuple((command, results.get(command.id)) for command in commands),
        judged=judged,
        reasons=dict(Counter(str(verdict.reason) for verdict in verdicts).most_common()),
        unreadable_policies=tuple(
            verdict.detail
            for verdict in verdicts
            if verdict.by in (UNREADABLE_POLICIES, UNREADABLE_ANY) and verdict.detail
        ),
        imbalance=imbalance(reports),
        silent=silent,
        guardrails=guardrail_status(settings, last, *answers["chosen"]),
        processes=answers["processes"],
        unanswered=unanswered(commands, {} if last is None else last.memory.in_flight, results),
    )


def imbalance(reports: Mapping[str, Mapping[str, Any]]) -> Imbalance | None:
    """Of the brokers with a load report in *reports*; None of none."""
    if not reports:
        return None
    rates = {name: _sum(report, _RATES) for name, report in reports.items()}
    throughputs = {name: _sum(report, _THROUGHPUTS) for name, report in reports.items()}
    return Imbalance(
        brokers=len(reports),
        msg_rate=_over_mean(rates),
        msg_throughput=_over_mean(throughputs),
        busiest=max(sorted(rates), key=lambda name: rates[name]),
    )


def _leader(settings: Settings) -> tuple[Leader | None, str]:
    """The process that leads, and why that is unknown, "" where it is known."""
    try:
        return election_system(settings).leader(), ""
    except TrimtabError as error:
        return None, str(error)


def _recent(settings: Settings) -> tuple[JournalTail, Mapping[str, Result]]:
    """The newest decisions, and the results that came since the oldest of them."""
    tail = journal_tail(settings, RECENT_DECISIONS)
    return tail, recent_results(settings, tail.decisions[-1].interval) if tail.decisions else {}


def _loads(settings: Settings, admin: PulsarAdmin | None) -> tuple[Mapping[str, Mapping[str, Any]], Mapping[str, str]]:
    """Broker -> its load, and those that did not answer -> why."""
    reports, silent = _reports(admin)
    return reports or _swept(settings), silent


def _reports(admin: PulsarAdmin | None) -> tuple[dict[str, Mapping[str, Any]], dict[str, str]]:
    if admin is None:
        return {}, {}
    try:
        brokers = admin.brokers()
    except PulsarError as error:
        return {}, {"all": str(error)}
    reports: dict[str, Mapping[str, Any]] = {}
    silent: dict[str, str] = {}
    for broker, call in side_by_side({name: partial(admin.load_report, name) for name in brokers}).items():
        try:
            reports[broker] = call.result()
        except PulsarError as error:
            silent[broker] = str(error)
    return reports, silent


def _swept(settings: Settings) -> dict[str, Mapping[str, Any]]:
    """Broker -> a chunk of the sweep that counts for the last interval; all chunks have the broker's own fields."""
    cluster = settings.cluster.name
    roster: dict[str, str] | None = None
    # Those in front of the tick as well: records of one millisecond come in any order.
    chunks: dict[tuple[str, str], Mapping[str, Any]] = {}
    ticks = 0
    for value in log_system(settings).tail().backwards("metrics", (b'"broker_sweep"', b'"tick"')):
        try:
            fields = read_object(value)
            record = decode_metric(value, cluster=cluster, period_ms=1) if fields.get("type") == "tick" else None
        except WireError:
            continue
        if isinstance(record, TickRecord) and record.roster is not None:
            ticks += 1
            if roster is None:
                roster = {entry.broker: entry.sweep_id for entry in record.roster if entry.sweep_id}
        elif fields.get("type") == "broker_sweep" and fields.get("cluster") == cluster:
            chunks[str(fields.get("broker")), str(fields.get("sweepId"))] = {key: fields.get(key) for key in _LOADS}
        is_complete = roster is not None and roster.items() <= chunks.keys()
        if is_complete or ticks == _TICKS or len(chunks) == _SWEEPS:
            break
    return {broker: chunks[broker, sweep] for broker, sweep in (roster or {}).items() if (broker, sweep) in chunks}


def _sum(report: Mapping[str, Any], keys: tuple[str, ...]) -> float:
    values = (report.get(key) for key in keys)
    return float(sum(value for value in values if isinstance(value, int | float)))


def _over_mean(values: Mapping[str, float]) -> float:
    total = sum(values.values())
    return max(values.values()) * len(values) / total if total > 0 else 1.0
