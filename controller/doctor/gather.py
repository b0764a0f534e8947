"""Gathers the facts from all systems at the same time.  Judges nothing; one failure stops nothing else."""

import os
import stat
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from email.utils import parsedate_to_datetime
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar

from controller.adapters.disk.files import why_not_lockable, why_not_writable
from controller.adapters.kafka import inspect as kafka_inspect
from controller.adapters.kafka.acls import Acl, read_acls
from controller.adapters.kafka.names import doctor_writer, executor_group
from controller.adapters.kafka.rights import topics_of
from controller.adapters.kubernetes.leadership import require_rights
from controller.adapters.kubernetes.system import lease_api
from controller.adapters.network.calls import FinishedCall, NoAnswerError, side_by_side
from controller.adapters.network.deadline import Deadline
from controller.adapters.outages import Outage, Part
from controller.adapters.pulsar.access import pulsar_admin
from controller.adapters.pulsar.admin import PulsarAdmin, PulsarError
from controller.adapters.pulsar.log.inspect import PulsarLogFacts, inspect_log, subscriptions_on
from controller.adapters.registration import RegisteredProcesses, processes_of
from controller.adapters.zookeeper.access import election_access
from controller.adapters.zookeeper.nodes import open_nodes
from controller.adapters.zookeeper.session import granted_timeout_ms
from controller.cycle.guardrails.listing import unconfirmed_brokers
from controller.doctor.facts import (
    BrokerConfFacts,
    BrokerFacts,
    ExecutionFacts,
    Facts,
    FolderFacts,
    KafkaFacts,
    LeaseFacts,
    MeasuredClock,
    PulsarFacts,
    SigningKeyFacts,
    ZooKeeperFacts,
)
from controller.doctor.names import is_name, namespace_in
from controller.doctor.namespaces import NamespacesFound, read_namespaces
from controller.log import recent
from controller.log.elections import election_system, registry_of
from controller.log.factory import log_system
from controller.log.unanswered import Unanswered, recent_unanswered
from controller.model.controls import ExcludedName, OperatorControls
from controller.model.errors import AccessDeniedError, AnotherClusterError, SettingsError, TrimtabError
from controller.model.memory import FatalBundle
from controller.model.name_patterns import is_pattern
from controller.settings.approvals import ApprovalSettings
from controller.settings.broker_conf import build, read_broker_conf
from controller.settings.capacity import CapacityOverrides, read_capacity_overrides
from controller.settings.election import ElectionByFile, ElectionInZooKeeper, LeaseSettings
from controller.settings.guardrails import limits_of
from controller.settings.known_options import KNOWN_KEYS, StrategyNames
from controller.settings.log import KafkaLogSettings, LogInFolder, LogInKafka, LogInPulsar
from controller.settings.policy import read_policy
from controller.settings.section import is_uri
from controller.settings.signing_key import controller_signing_key
from controller.settings.trimtab_toml import Settings
from controller.strategies.catalogue import short_name
from controller.strategies.filters.anti_affinity import ExtAntiAffinity
from controller.strategies.filters.shedding_excluded_namespaces import SheddingExcludedNamespaces

T = TypeVar("T")

#: HTTP's Date has whole seconds, so it is half a second old on average.
_DATE_MS: Final = 500.0
#: Part -> the questions that are not asked while it is away.
_ASKS: Final = {
    Part.LOG: ("kafka", "pulsar_log", "journal", "groups"),
    Part.ELECTION: ("zookeeper", "processes"),
    Part.BROKERS: ("pulsar",),
}
#: The folders in which files are locked.
_LOCKED: Final = frozenset({"log", "election"})
_NOT_FOUND: Final = 404
_DENIED: Final = frozenset({401, 403})


class TimeLimits(NamedTuple):
    """How long one answer, all brokers and everything may take, in seconds."""

    answer: float = 5.0
    brokers: float = 20.0
    all: float = 30.0


TIME_LIMITS: Final = TimeLimits()


def gather(
    settings: Settings, patience: TimeLimits = TIME_LIMITS, away: Mapping[Part, Outage] = MappingProxyType({})
) -> Facts:
    """All facts that the checks need; those *away* are not asked."""
    log_away = _sentence(away, Part.LOG)
    deadline = Deadline.after(patience.all)
    controls, controls_error = _controls(settings, patience, away)
    work = _questions(settings, patience, away, controls.excluded)
    late = f"no answer within {patience.all:g} s"
    # What is known of a system that does not answer.
    kafka, pulsar_log = _silent_log(settings, log_away or late)
    zookeeper: ZooKeeperFacts | None = None
    if isinstance(settings.election, ElectionInZooKeeper):
        zookeeper = ZooKeeperFacts(election=settings.election, error=_sentence(away, Part.ELECTION) or late)
    lease = None if settings.election.lease is None else LeaseFacts(place=settings.election.lease.name, error=late)
    pulsar = None if settings.pulsar is None else PulsarFacts(error=_sentence(away, Part.BROKERS) or late)
    results = _on_time(side_by_side(work, deadline.remaining))
    tick, tick_error = results["tick"] or (None, late)
    unconfirmed, fatal, waiting = results.get("journal") or ({}, {}, None)
    capacity, capacity_error = _capacity(settings)
    return Facts(
        settings=settings,
        now_ms=_now_ms(),
        pulsar=results.get("pulsar") or pulsar,
        kafka=results.get("kafka") or kafka,
        pulsar_log=results.get("pulsar_log") or pulsar_log,
        zookeeper=results.get("zookeeper") or zookeeper,
        lease=results.get("lease") or lease,
        folders=_folders(settings),
        capacity=capacity,
        capacity_error=capacity_error,
        broker_conf=_broker_conf(settings),
        unconfirmed=unconfirmed,
        fatal=fatal,
        execution=ExecutionFacts(
            mode=controls.mode_in_force(settings.decisions.mode),
            processes=results.get("processes") or RegisteredProcesses(unknown=_sentence(away, Part.ELECTION) or late),
            unanswered=waiting,
            command_groups=results.get("groups") or (),
        ),
        signing_key=signing_key_facts(settings.approvals),
        excluded=controls.excluded,
        controls_error=controls_error,
        last_tick=tick,
        last_tick_error=tick_error,
    )


def _silent_log(settings: Settings, why: str) -> tuple[KafkaFacts | None, PulsarLogFacts | None]:
    match settings.log:
        case LogInKafka(kafka=log):
            return KafkaFacts(log=log, error=why), None
        case LogInPulsar(pulsar=topics):
            return None, PulsarLogFacts(log=topics, error=why)
        case LogInFolder():
            return None, None


def _parts_away(settings: Settings, away: Mapping[Part, Outage]) -> set[Part]:
    """The parts that are not asked: the election, too, where it lies in a log that is away."""
    return {*away, Part.ELECTION} if settings.elects_on_log and Part.LOG in away else set(away)


def signing_key_facts(approvals: ApprovalSettings) -> SigningKeyFacts:
    """Whether a controller could sign its commands with the key file of these settings."""
    file = approvals.controller_key_file
    if file is None:
        return SigningKeyFacts()
    try:
        controller_signing_key(approvals)
        mode = Path(file).stat().st_mode
    except (SettingsError, OSError) as error:
        return SigningKeyFacts(problem=str(error))
    return SigningKeyFacts(is_open=bool(mode & (stat.S_IROTH | stat.S_IWOTH)))


def _questions(
    settings: Settings, patience: TimeLimits, away: Mapping[Part, Outage], excluded: Iterable[ExcludedName]
) -> dict[str, Callable[[], Any]]:
    """What is asked, each by itself, of the parts that are not away."""
    log_away, parts_away = _sentence(away, Part.LOG), _parts_away(settings, away)
    work: dict[str, Callable[[], Any]] = {
        "tick": lambda: (None, log_away) if log_away else _last_tick(settings),
        "journal": partial(_journal, settings),
        "processes": partial(processes_of, partial(registry_of, settings)),
        "groups": partial(_groups, settings, patience),
    }
    if settings.pulsar is not None:
        work["pulsar"] = partial(pulsar_facts, settings, patience, excluded)
    match settings.log:
        case LogInKafka(kafka=log):
            work["kafka"] = lambda: _kafka(log, settings, patience)
        case LogInPulsar(pulsar=topics):
            work["pulsar_log"] = lambda: inspect_log(topics, answer_seconds=patience.answer)
    match settings.election:
        case ElectionInZooKeeper() as election:
            work["zookeeper"] = lambda: _zookeeper(election, settings.cluster.name, patience)
    if settings.election.lease is not None:
        lease = settings.election.lease
        work["lease"] = lambda: _lease(lease, settings.cluster.name)
    not_asked = {each for part in _ASKS if part in parts_away for each in _ASKS[part]}
    return {question: ask for question, ask in work.items() if question not in not_asked}


def pulsar_facts(
    settings: Settings,
    patience: TimeLimits = TIME_LIMITS,
    excluded: Iterable[ExcludedName] = (),
    *,
    thorough: bool = True,
) -> PulsarFacts:
    """What the brokers say of themselves, and of what persons *excluded*; not *thorough*: their settings alone."""
    try:
        admin = pulsar_admin(settings, answer_seconds=patience.answer)
    except SettingsError:
        raise
    except TrimtabError as error:  # TLS files
        return PulsarFacts(error=str(error))
    with closing(admin):
        decisions = settings.decisions
        spaces = {namespace_in(each) for each in decisions.excluded if not is_pattern(each)} if thorough else set()
        # What is stored may be any text, and becomes part of an address.
        spaces |= {namespace_in(each.name) for each in excluded if is_name(each.name)}
        return _of_brokers(admin, patience, sorted(spaces), thorough=thorough)


#: No broker and no namespace has this name.
_NAMESPACES: Final = "namespaces"


def _of_brokers(admin: PulsarAdmin, patience: TimeLimits, namespaces: Sequence[str], *, thorough: bool) -> PulsarFacts:
    try:
        names = admin.active_brokers()
    except PulsarError as error:
        return PulsarFacts(error=str(error), status=error.status)
    calls = _Requests()
    dynamic = calls("dynamic settings", admin.dynamic_configuration)
    clusters = (calls("clusters", admin.clusters) or ()) if thorough else ()
    policies = (calls("isolation policies", admin.isolation_policies) or {}) if thorough else {}
    domains = (calls("failure domains", partial(_domains, admin)) or {}) if thorough else {}
    tenants = calls("tenants", admin.tenants) if thorough else None
    work: dict[str, Callable[[], Any]] = {name: _probe(admin, name, thorough=thorough) for name in names}
    work |= {space: partial(_boundaries, admin, space) for space in namespaces}
    if tenants is not None:
        # The calls that are under way at the end of this time end within another answer's time.
        work[_NAMESPACES] = partial(read_namespaces, admin, tenants, patience.brokers - patience.answer)
    results = _on_time(side_by_side(work, patience.brokers))
    late = f"no answer within {patience.brokers:g} s"
    spaces = results.get(_NAMESPACES) or NamespacesFound(None, {}, "the brokers did not list their tenants in time")
    return PulsarFacts(
        clusters=clusters,
        brokers=tuple(results[name] or BrokerFacts(name=name, silent=late) for name in names),
        leader=(calls("leader", partial(_leader, admin)) or "") if thorough else "",
        dynamic=dynamic,
        boundaries={space: results[space] for space in namespaces if results[space] is not None},
        namespaces=spaces.names,
        policies=policies,
        domains=domains,
        groups=spaces.groups,
        groups_problem=spaces.problem if thorough else "",
        refused=calls.refused,
        failed=calls.failed | ({calls.silent_at: calls.silent} if calls.silent else {}),
    )


def _leader(admin: PulsarAdmin) -> str:
    """The leader of Pulsar's load manager; "" while there is none."""
    try:
        return admin.leader()
    except PulsarError as error:
        if error.status == _NOT_FOUND:
            return ""
        raise


def _domains(admin: PulsarAdmin) -> dict[str, tuple[str, ...]]:
    """Failure domain -> its brokers; none where the cluster is not known, which is another check's matter."""
    try:
        return {name: tuple(each.get("brokers") or ()) for name, each in admin.failure_domains().items()}
    except PulsarError as error:
        if error.status == _NOT_FOUND:
            return {}
        raise


def _boundaries(admin: PulsarAdmin, namespace: str) -> tuple[int, ...] | None:
    """The boundaries of *namespace*'s bundles; empty if there is no such namespace, None if they cannot be read."""
    try:
        return admin.boundaries(namespace)
    except PulsarError as error:
        return () if error.status == _NOT_FOUND else None


def _folders(settings: Settings) -> tuple[FolderFacts, ...]:
    return tuple(_folder(purpose, path) for purpose, path in written_folders(settings).items())


def _folder(purpose: str, path: str) -> FolderFacts:
    problem = why_not_writable(Path(path))
    locks = purpose in _LOCKED and not problem
    return FolderFacts(
        purpose=purpose, path=path, problem=problem, unlocked=why_not_lockable(Path(path)) if locks else ""
    )


def _sentence(away: Mapping[Part, Outage], part: Part) -> str:
    """Why *part* cannot be reached; "" where it can."""
    return away[part].sentence if part in away else ""


def _on_time(calls: Mapping[str, FinishedCall]) -> dict[str, Any]:
    """What each of *calls* returned, None where it was late; raises the error of any other."""
    return {key: None if call.late else call.result() for key, call in calls.items()}


class _Requests:
    """Asks, and remembers what was refused and what failed."""

    def __init__(self) -> None:
        self.refused: dict[str, str] = {}
        self.failed: dict[str, str] = {}
        #: The failed answer, and the question.
        self.silent = self.silent_at = ""

    def __call__(self, what: str, ask: Callable[[], T]) -> T | None:
        if self.silent:
            return None  # who does not answer once is not waited for again
        try:
            return ask()
        except PulsarError as error:
            if error.status == 0:
                self.silent, self.silent_at = str(error), what
            else:
                (self.refused if error.status in _DENIED else self.failed)[what] = str(error)
        return None


def _probe(admin: PulsarAdmin, name: str, *, thorough: bool) -> Callable[[], BrokerFacts]:
    def probe() -> BrokerFacts:
        calls = _Requests()
        if not thorough:
            settings = calls("settings", lambda: admin.configuration(name))
            return BrokerFacts(name=name, silent=calls.silent, refused=calls.refused, settings=settings)
        before = _now_ms()
        version, date = calls("version", lambda: admin.version(name)) or ("", "")
        clock = _clock(date, before, _now_ms())
        settings = calls("settings", lambda: admin.configuration(name))
        report = calls("load report", lambda: admin.load_report(name))
        if "ExtensibleLoadManager" in (settings or {}).get("loadManagerClassName", ""):
            calls.failed.pop("load report", None)  # it has none
        return BrokerFacts(
            name=name,
            silent=calls.silent,
            refused=calls.refused,
            failed=calls.failed,
            version=version,
            clock=clock,
            settings=settings,
            report=report,
            report_ahead_ms=_ahead(report),
        )

    return probe


def _clock(date: str, before_ms: int, after_ms: int) -> MeasuredClock | None:
    if not date:
        return None
    try:
        theirs = parsedate_to_datetime(date).timestamp() * 1000 + _DATE_MS
    except ValueError:
        return None
    return _between(before_ms, theirs, after_ms, _DATE_MS)


def _between(before_ms: float, theirs_ms: float, after_ms: float, resolution_ms: float) -> MeasuredClock:
    """The other clock was read between *before_ms* and *after_ms* of this machine's clock."""
    middle, half = (before_ms + after_ms) / 2, (after_ms - before_ms) / 2
    return MeasuredClock(ahead_ms=theirs_ms - middle, give_or_take_ms=half + resolution_ms)


def _ahead(report: Mapping[str, Any] | None) -> float | None:
    made = (report or {}).get("lastUpdate")
    return made - _now_ms() if isinstance(made, int | float) and made > 0 else None


def _kafka(log: KafkaLogSettings, settings: Settings, patience: TimeLimits) -> KafkaFacts:
    cluster, names = settings.cluster.name, topics_of(log, election=settings.elects_on_log)
    try:
        topics, problem = kafka_inspect.topics(log.bootstrap, names, client=log.client, answer_seconds=patience.answer)
    except TrimtabError as error:
        return KafkaFacts(log=log, error=str(error))
    clock, clock_error = None, ""
    if log.dead_letters_topic in topics:
        try:
            append_time = kafka_inspect.append_time(
                log.bootstrap,
                log.dead_letters_topic,
                name=doctor_writer(cluster),
                client=log.client,
                answer_seconds=patience.answer,
            )
            clock = _between(*append_time, resolution_ms=1)
        except TrimtabError as error:
            clock_error = str(error)
    acls: tuple[Acl, ...] | None = ()
    acl_error = ""
    try:
        acls = read_acls(log.bootstrap, client=log.client, answer_seconds=patience.answer)
    except TrimtabError as error:
        acl_error = str(error)
    return KafkaFacts(
        log=log,
        topics=topics,
        config_error=problem,
        acls=acls,
        acl_error=acl_error,
        clock=clock,
        clock_error=clock_error,
    )


def _zookeeper(election: ElectionInZooKeeper, cluster: str, patience: TimeLimits) -> ZooKeeperFacts:
    try:
        access = election_access(election)
        granted = granted_timeout_ms(access, election.session_timeout_seconds, answer_seconds=patience.answer)
    except TrimtabError as error:
        return ZooKeeperFacts(election=election, error=str(error))
    try:
        nodes = open_nodes(access, election.path, cluster, answer_seconds=patience.answer)
    except TrimtabError as error:
        return ZooKeeperFacts(election=election, granted_ms=granted, nodes_error=str(error))
    return ZooKeeperFacts(election=election, granted_ms=granted, open_nodes=nodes)


def _lease(lease: LeaseSettings, cluster: str) -> LeaseFacts:
    place = lease.name
    try:
        with closing(lease_api(lease)) as api:
            place = str(api.place)
            require_rights(api, cluster)
    except TrimtabError as error:
        is_forbidden, is_of_another = isinstance(error, AccessDeniedError), isinstance(error, AnotherClusterError)
        return LeaseFacts(place=place, error=str(error), is_forbidden=is_forbidden, is_of_another=is_of_another)
    return LeaseFacts(place=place)


def _last_tick(settings: Settings) -> tuple[int | None, str]:
    try:
        return recent.last_tick(settings), ""
    except TrimtabError as error:
        return None, str(error)


def _journal(settings: Settings) -> tuple[dict[str, list[str]], Mapping[str, FatalBundle], Unanswered | None]:
    """Brokers that do not list what was moved to them, bundles that kill brokers, and unanswered commands.

    None of them where the journal cannot be read: other checks say so.
    """
    try:
        last = log_system(settings).tail().last_entry()
        waiting = recent_unanswered(settings, {} if last is None else last.memory.in_flight)
    except TrimtabError:
        return {}, {}, None
    if last is None:
        return {}, {}, waiting
    return unconfirmed_brokers(last.memory, limits_of(settings.guardrails)), last.memory.deaths.fatal, waiting


def _controls(settings: Settings, patience: TimeLimits, away: Mapping[Part, Outage]) -> tuple[OperatorControls, str]:
    """What persons set, read before all else, which depends on it; and why that cannot be read.

    Why an election that is away cannot be read, other checks say.
    """
    if Part.ELECTION in _parts_away(settings, away):
        return OperatorControls(), ""

    def read() -> OperatorControls:
        with closing(election_system(settings).controls()) as store:
            return store.read()[0]

    (answer,) = side_by_side({"controls": read}, patience.answer).values()
    try:
        return answer.result(), ""
    except (TrimtabError, NoAnswerError) as error:
        return OperatorControls(), str(error)


def _groups(settings: Settings, patience: TimeLimits) -> tuple[str, ...]:
    """Groups that read the commands as executors of this cluster do; none if trimtab may not list them."""
    ending, seconds = executor_group("", settings.cluster.name), patience.answer
    try:
        match settings.log:
            case LogInKafka(kafka=log):
                place = (log.bootstrap, log.commands_topic)
                return kafka_inspect.groups_on(*place, ending=ending, client=log.client, answer_seconds=seconds)
            case LogInPulsar(pulsar=topics):
                return subscriptions_on(topics, topics.commands_topic, ending=ending, answer_seconds=seconds)
            case LogInFolder():
                return ()  # a lock lets one executor work
    except TrimtabError:
        return ()


def _broker_conf(settings: Settings) -> BrokerConfFacts:
    file = Path(settings.cluster.broker_conf)
    try:
        filters = read_policy(settings).filters
        conf = read_broker_conf(file, os.environ)
        load_manager = build(StrategyNames, conf).load_manager
    except SettingsError as error:
        return BrokerConfFacts(error=str(error), exists=file.exists())
    shut = (each.names for each in filters if isinstance(each, SheddingExcludedNamespaces))
    return BrokerConfFacts(
        excluded_namespaces=frozenset().union(*shut),
        load_manager=short_name(load_manager),
        failure_domains=any(isinstance(each, ExtAntiAffinity) and each.failure_domains for each in filters),
        options={key: text for key, text in conf.items() if key in KNOWN_KEYS and text},
    )


def _capacity(settings: Settings) -> tuple[CapacityOverrides, str]:
    path = settings.collector.capacity_overrides
    try:
        return (CapacityOverrides() if path is None else read_capacity_overrides(Path(path))), ""
    except SettingsError as error:
        return CapacityOverrides(), str(error)


def written_folders(settings: Settings) -> dict[str, str]:
    """Purpose -> the folders of this machine that trimtab writes to."""
    folders = {"log": settings.log.folder.path} if isinstance(settings.log, LogInFolder) else {}
    if isinstance(settings.election, ElectionByFile):
        folders["election"] = settings.election.path
    if not is_uri(settings.checkpoint.path):
        folders["checkpoint"] = settings.checkpoint.path
    if settings.journal.verdicts_path is not None:
        folders["verdicts"] = settings.journal.verdicts_path
    return folders


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
